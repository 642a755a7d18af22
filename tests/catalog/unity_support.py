"""A catalog on a fresh stand-in, and the shortest way to work on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from servers.unity_server import UnityServer, unity_server

from reconciler.catalog.base import WriteContext
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.unity import connect
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import Change, CreateDataset, CreateNamespace, DeclareTable, ReplaceTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Finding, Present, Scope
from reconciler.model.state import Marks, NamespaceState, TableState

OURS = Marks("us")
N: Ident = ("lake", "n")
T: Ident = ("lake", "n", "t")
FIELDS = (Field("id", parse_type("int64"), False), Field("v", parse_type("fixed_size_list<float32>[4]"), True, "a vec"))


class Killed(SystemExit):
    """What no `except` of a catalog holds back."""


@dataclass
class Unity:
    server: UnityServer
    root: Path
    _shared: EntryCatalog | None = None

    def options(self, **more: str) -> dict[str, str]:
        return {"endpoint": self.server.endpoint, "catalog": "lake", "root": str(self.root), "max_retries": "0", **more}

    def open(self, **more: str) -> EntryCatalog:
        return connect(self.options(**more))

    @property
    def shared(self) -> EntryCatalog:
        """One connection for what needs no new process."""
        self._shared = self._shared or self.open()
        return self._shared

    def apply(self, *changes: Change, catalog: EntryCatalog | None = None) -> None:
        for change in changes:
            (catalog or self.shared).apply(change, WriteContext("plan", "s1"))

    def fill(self, properties: Mapping[str, str] | None = None) -> None:
        """The schema N and in it the table T, with data."""
        catalog = self.open()
        columns = catalog.capabilities.columns_of(FIELDS)
        declare = DeclareTable(T, dict(properties or {}), OURS, None, columns)
        self.apply(CreateNamespace(N, {}, OURS), declare, CreateDataset(T, FIELDS, {}, {}, "us", ()), catalog=catalog)

    def find(self, kind: Kind, ident: Ident, catalog: EntryCatalog | None = None) -> Finding:
        scope = Scope(detail=frozenset({ident}) if kind == "Table" else frozenset())
        (found,) = (catalog or self.shared).read([(kind, ident)], scope)
        return found.finding

    def table(self, ident: Ident = T, catalog: EntryCatalog | None = None) -> TableState:
        found = self.find("Table", ident, catalog)
        assert isinstance(found, Present), found
        assert isinstance(found.state, TableState)
        return found.state

    def namespace(self, ident: Ident = N) -> NamespaceState:
        found = self.find("Namespace", ident)
        assert isinstance(found, Present), found
        assert isinstance(found.state, NamespaceState)
        return found.state

    def wire(self, ident: Ident = T) -> dict[str, Any]:
        """What the server itself holds."""
        schema = self.server.state.schema(*ident[:2])
        return schema.info if len(ident) == 2 else self.server.state.one(schema.leaves["tables"], ident[2], "")

    def post(self, kind: str, **body: Any) -> Any:
        """Somebody else's write."""
        return self.server._create(kind, {"catalog_name": "lake", "schema_name": "n", **body})

    def cut(self, change: ReplaceTable) -> None:
        """A replacement whose process dies when the old entry is removed and the new one is not made."""
        catalog = self.open()
        store: Any = catalog.store

        def die(body: object) -> None:
            raise Killed

        store.client.create_table = die
        with pytest.raises(Killed):
            catalog.apply(change, WriteContext())

    def code(self, *changes: Change) -> Code:
        try:
            self.apply(*changes)
        except CatalogError as error:
            return error.code
        raise AssertionError("it was not refused")


@contextmanager
def fresh_unity(root: Path) -> Iterator[Unity]:
    with unity_server() as server:
        server.state.create_catalog({"name": "lake"})
        yield Unity(server, root)
