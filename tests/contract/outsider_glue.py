"""The outsider of the `glue` backend: plain boto3. Every site is an account of its own on one server."""

from __future__ import annotations

import itertools
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from servers.glue_moto import KEYS, GlueServer

from contract.backends import Site, service_site
from contract.outsider import Changes, Ident, changed
from contract.outsider_service import Entry, ServiceOutsider
from reconciler.catalog.glue_capabilities import GlueCapabilities
from reconciler.model.ident import Kind

_accounts = itertools.count(200_000_000_000)
_OF_DATABASES = {"Description": "description", "LocationUri": "location"}


@lru_cache
def server() -> GlueServer:
    """One for the whole run, in a thread that ends with it."""
    return GlueServer().__enter__()


@lru_cache
def client() -> Any:
    return server().client()


class GlueOutsider(ServiceOutsider):
    def __init__(self, root: Path, account: str) -> None:
        super().__init__(root)
        self.glue, self.account = client(), {"CatalogId": account}

    def namespaces(self) -> dict[Ident, dict[str, str]]:
        found = {}
        for page in self.glue.get_paginator("get_databases").paginate(**self.account):
            for database in page["DatabaseList"]:
                found[(database["Name"],)] = _properties(database, _OF_DATABASES)
        return found

    def entries(self) -> dict[Ident, Entry]:
        found = {}
        for ident, table in self._tables().items():
            if table.get("Parameters", {}).get("table_type", "").lower() == "lance":
                properties = _properties(table, {"Description": "description"})
                found[ident] = Entry(table["StorageDescriptor"]["Location"], properties, table)
        return found

    def raw(self) -> object:
        """Views and all: nobody's table may change."""
        return self._tables(), super().raw()

    def _tables(self) -> dict[Ident, dict[str, Any]]:
        found = {}
        for (database,) in self.namespaces():
            for page in self.glue.get_paginator("get_tables").paginate(DatabaseName=database, **self.account):
                found.update({(database, table["Name"]): table for table in page["TableList"]})
        return found

    def create_namespace(self, ident: Ident, properties: Mapping[str, str] | None = None) -> None:
        new = {"Name": ident[0], **_given(properties or {}, _OF_DATABASES)}
        self.glue.create_database(DatabaseInput=new, **self.account)

    def put_table(self, ident: Ident, location: str, properties: Mapping[str, str]) -> None:
        """With the placeholder column and the formats that another implementation writes."""
        new = {
            "Name": ident[1],
            "TableType": "EXTERNAL_TABLE",
            "StorageDescriptor": {
                "Location": location,
                "Columns": [{"Name": "__placeholder_id", "Type": "bigint"}],
                "InputFormat": "org.apache.hadoop.mapred.TextInputFormat",
            },
            **_given({**properties, "table_type": "LANCE"}, {"Description": "description"}),
        }
        self.glue.create_table(DatabaseName=ident[0], TableInput=new, **self.account)

    def set_properties(self, kind: str, ident: Ident, values: Changes) -> None:
        if kind == "Namespace":
            live = self.glue.get_database(Name=ident[0], **self.account)["Database"]
            properties = changed(_properties(live, _OF_DATABASES), values)
            new = {"Name": ident[0], **_given(properties, _OF_DATABASES)}
            self.glue.update_database(Name=ident[0], DatabaseInput=new, **self.account)
            return
        live = self.glue.get_table(DatabaseName=ident[0], Name=ident[1], **self.account)["Table"]
        known = self.glue.meta.service_model.shape_for("TableInput").members
        new = {k: v for k, v in live.items() if k in known}
        new["Parameters"] = changed(new["Parameters"], values)
        self.glue.update_table(DatabaseName=ident[0], TableInput=new, **self.account)

    def point(self, ident: Ident, location: str) -> None:
        live = self.glue.get_table(DatabaseName=ident[0], Name=ident[1], **self.account)["Table"]
        known = self.glue.meta.service_model.shape_for("TableInput").members
        new = {k: v for k, v in live.items() if k in known}
        new["StorageDescriptor"]["Location"] = location
        self.glue.update_table(DatabaseName=ident[0], TableInput=new, **self.account)

    def foreign_table(self, ident: Ident) -> None:
        new = {"Name": ident[1], "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "select 1"}
        self.glue.create_table(DatabaseName=ident[0], TableInput=new, **self.account)

    def copy_to(self, other: ServiceOutsider) -> None:
        """Exact: what others keep on a table comes along, its columns too."""
        assert isinstance(other, GlueOutsider)
        shutil.copytree(self.root, other.root, dirs_exist_ok=True)
        old, new = str(self.root), str(other.root)
        for ident, properties in self.namespaces().items():
            other.create_namespace(ident, {k: v.replace(old, new) for k, v in properties.items()})
        known = self.glue.meta.service_model.shape_for("TableInput").members
        for ident, entry in self.entries().items():
            assert isinstance(entry.raw, dict)
            table = {k: v for k, v in entry.raw.items() if k in known}
            table["StorageDescriptor"] = {**table["StorageDescriptor"], "Location": entry.location.replace(old, new)}
            other.glue.create_table(DatabaseName=ident[0], TableInput=table, **other.account)
        other._places = {i: Path(str(p).replace(old, new)) for i, p in self._places.items()}


def _properties(found: Mapping[str, Any], native: Mapping[str, str]) -> dict[str, str]:
    properties = {k: v for k, v in (found.get("Parameters") or {}).items() if k != "table_type"}
    return properties | {key: found[field] for field, key in native.items() if found.get(field) is not None}


def _given(properties: Mapping[str, str], native: Mapping[str, str]) -> dict[str, Any]:
    parameters = {k: v for k, v in properties.items() if k not in native.values()}
    fields = {field: properties[key] for field, key in native.items() if key in properties}
    return {"Parameters": parameters, **fields}


@dataclass(frozen=True, slots=True)
class NoChildCatalogs(GlueCapabilities):
    """The account of these tests has none, and nobody but AWS could make one."""

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        if len(ident) > (2 if kind == "Table" else 1):
            return "there are no child catalogs here"
        return GlueCapabilities.ident_problem(self, kind, ident)


def glue_site(folder: Path, fixture: Callable[[str], Any]) -> Site:
    return _site(folder / "lake")


def _site(root: Path) -> Site:
    account = str(next(_accounts))
    outsider = GlueOutsider(root, account)
    options = {"type": "glue", "endpoint": server().endpoint, "catalog_id": account, "root": str(root), **KEYS}

    def copy() -> Site:
        made = _site(root.with_name(f"copy-{uuid.uuid4().hex[:8]}"))
        assert isinstance(made.outsider, GlueOutsider)
        outsider.copy_to(made.outsider)
        return made

    return replace(service_site(options, outsider, copy), capabilities=NoChildCatalogs(root=str(root)))
