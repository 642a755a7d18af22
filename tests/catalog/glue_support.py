"""One Glue server for the tests of a worker; every test works in an account of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from servers.glue_moto import KEYS, GlueServer

from reconciler.catalog.base import WriteContext
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.glue import connect
from reconciler.model.change import Change
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Finding, Gap, Observation, Occupied, Scope

_accounts = itertools.count(300_000_000_000)
CONTEXT = WriteContext("plan", "s1")


@dataclass
class Account:
    server: GlueServer
    id: str
    root: Path
    glue: Any
    """boto3: somebody else."""

    def options(self, **more: str) -> dict[str, str]:
        return {"endpoint": self.server.endpoint, "catalog_id": self.id, "root": str(self.root), **KEYS, **more}

    def connect(self, **more: str) -> EntryCatalog:
        """Without the pauses between tries."""
        catalog = connect(self.options(**more))
        api: Any = catalog.store._api  # type: ignore[attr-defined]
        api.sleep = api._pace._sleep = lambda seconds: None
        return catalog

    def make_database(self, name: str = "db", catalog: str = "", **more: Any) -> None:
        self.glue.create_database(CatalogId=catalog or self.id, DatabaseInput={"Name": name, **more})

    def make_table(self, name: str = "t", database: str = "db", catalog: str = "", **more: Any) -> dict[str, Any]:
        table = {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"table_type": "lance"},
            "StorageDescriptor": {"Location": str(self.root / database / f"{name}.lance"), "Columns": []},
            **more,
        }
        self.glue.create_table(CatalogId=catalog or self.id, DatabaseName=database, TableInput=table)
        return table

    def table(self, name: str = "t", database: str = "db") -> dict[str, Any]:
        found: dict[str, Any] = self.glue.get_table(CatalogId=self.id, DatabaseName=database, Name=name)["Table"]
        return found

    def database(self, name: str = "db") -> dict[str, Any]:
        found: dict[str, Any] = self.glue.get_database(CatalogId=self.id, Name=name)["Database"]
        return found


@pytest.fixture(scope="session")
def glue_server() -> Iterator[GlueServer]:
    with GlueServer() as server:
        yield server


@pytest.fixture(scope="session")
def glue_client(glue_server: GlueServer) -> Any:
    return glue_server.client()


@pytest.fixture
def account(glue_server: GlueServer, glue_client: Any, tmp_path: Path) -> Account:
    glue_server.forget()
    return Account(glue_server, str(next(_accounts)), tmp_path / "lake", glue_client)


def apply(catalog: EntryCatalog, change: Change) -> None:
    catalog.apply(change, CONTEXT)


def found(catalog: EntryCatalog, kind: Kind, ident: Ident, detail: bool = False) -> Finding:
    scope = Scope(detail=frozenset({ident}) if detail else frozenset())
    (one,) = catalog.read([(kind, ident)], scope)
    return one.finding


def scanned(catalog: EntryCatalog, scope: Scope | None = None) -> dict[tuple[str, Ident], object]:
    seen: dict[tuple[str, Ident], object] = {}
    for one in catalog.scan(scope or Scope()):
        if isinstance(one, Observation):
            seen[one.kind, one.ident] = one.finding
        elif isinstance(one, Gap):
            seen["Gap", one.ident] = one
        elif isinstance(one, Occupied):
            seen["Occupied", one.ident] = one
    return seen
