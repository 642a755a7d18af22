"""The outsider of the `unity` backend: plain HTTP. Every site is a catalog of its own on one server, which is the
stand-in, or the real one at `RECONCILER_TEST_UNITY`."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
from servers.unity_server import API, UnityServer

from contract.backends import Site, service_site
from contract.outsider import Changes, Ident, changed
from contract.outsider_service import Entry, ServiceOutsider

MARKER = "table_type"
_PLACEHOLDER = {
    "name": "__placeholder_id", "type_text": "bigint", "type_name": "LONG", "position": 0, "nullable": True,
    "type_json": '{"name": "__placeholder_id", "type": "long", "nullable": true, "metadata": {}}',
}  # fmt: skip


@lru_cache
def endpoint() -> str:
    """One server for the whole run; the stand-in is a thread that ends with it."""
    real = os.environ.get("RECONCILER_TEST_UNITY")
    if real:
        return real
    server = UnityServer()
    server.start()
    return server.endpoint


@lru_cache
def client() -> httpx.Client:
    return httpx.Client(base_url=endpoint() + API, timeout=30)


class UnityOutsider(ServiceOutsider):
    def __init__(self, root: Path, catalog: str) -> None:
        super().__init__(root)
        self.catalog = catalog
        self.call("POST", "/catalogs", {"name": catalog})

    def call(self, method: str, path: str, body: object = None, **params: str) -> Any:
        answer = client().request(method, path, json=body, params=params)
        assert answer.status_code == 200, (method, path, answer.text)
        return answer.json() if "json" in answer.headers["content-type"] else None

    # what a service fills in

    def namespaces(self) -> dict[Ident, dict[str, str]]:
        return {(self.catalog, s["name"]): _properties(s) for s in self._all("/schemas", "schemas")}

    def entries(self) -> dict[Ident, Entry]:
        found = {}
        for _, schema in self.namespaces():
            for table in self._all("/tables", "tables", schema_name=schema):
                properties = _properties(table)
                if properties.pop(MARKER, "").lower() == "lance":
                    properties |= self._recorded(table["table_id"])
                    found[self.catalog, schema, table["name"]] = Entry(table["storage_location"], properties, table)
        return found

    def create_namespace(self, ident: Ident, properties: Mapping[str, str] | None = None) -> None:
        self.call("POST", "/schemas", {"name": ident[1], "catalog_name": ident[0], **_given(properties or {})})

    def put_table(self, ident: Ident, location: str, properties: Mapping[str, str]) -> None:
        """With the placeholder column that another implementation writes."""
        self._put(ident, location, properties, [_PLACEHOLDER])

    def _put(self, ident: Ident, location: str, properties: Mapping[str, str], columns: object) -> None:
        body = {"name": ident[2], "catalog_name": ident[0], "schema_name": ident[1], "table_type": "EXTERNAL",
                "data_source_format": "TEXT", "storage_location": location, "columns": columns,
                **_given({MARKER: "LANCE", **properties})}  # fmt: skip
        self.call("POST", "/tables", body)

    def set_properties(self, kind: str, ident: Ident, values: Changes) -> None:
        if kind == "Namespace":
            live = self.call("GET", f"/schemas/{'.'.join(ident)}")
            self.call("PATCH", f"/schemas/{'.'.join(ident)}", _given(changed(_properties(live), values)))
            return
        entry = self.entries()[ident]
        assert isinstance(entry.raw, dict)
        self.call("DELETE", f"/tables/{'.'.join(ident)}")
        self._put(ident, entry.location, changed(entry.properties, values), entry.raw["columns"])

    def point(self, ident: Ident, location: str) -> None:
        entry = self.entries()[ident]
        assert isinstance(entry.raw, dict)
        self.call("DELETE", f"/tables/{'.'.join(ident)}")
        self._put(ident, location, entry.properties, entry.raw["columns"])

    def foreign_table(self, ident: Ident) -> None:
        body = {"name": ident[2], "catalog_name": ident[0], "schema_name": ident[1], "table_type": "EXTERNAL",
                "data_source_format": "PARQUET", "storage_location": str(self._new_place()), "columns": []}  # fmt: skip
        self.call("POST", "/tables", body)

    def copy_to(self, other: ServiceOutsider) -> None:
        """Below the other site's root and catalog, with the columns and the records beside the tables."""
        assert isinstance(other, UnityOutsider)
        shutil.copytree(self.root, other.root, dirs_exist_ok=True)
        for folder in (other.root, other.root / "__reconciler" / "unity"):
            if (folder / self.catalog).is_dir():
                (folder / self.catalog).rename(folder / other.catalog)
        for ident, properties in self.namespaces().items():
            other.create_namespace((other.catalog, ident[1]), properties)
        for ident, entry in self.entries().items():
            assert isinstance(entry.raw, dict)
            new = other.catalog, *ident[1:]
            other._put(new, self._moved(other, entry.location), entry.properties, entry.raw["columns"])
        other._places = {(other.catalog, *i[1:]): Path(self._moved(other, str(p))) for i, p in self._places.items()}

    def _moved(self, other: UnityOutsider, location: str) -> str:
        by_rule = location.replace(f"{self.root}/{self.catalog}/", f"{other.root}/{other.catalog}/")
        return by_rule.replace(f"{self.root}/", f"{other.root}/")

    def _all(self, path: str, key: str, **params: str) -> list[Any]:
        found, token = [], ""
        while True:
            more = {"page_token": token} if token else {}
            page = self.call("GET", path, catalog_name=self.catalog, **params, **more)
            found += page[key]
            token = page.get("next_page_token") or ""
            if not token:
                return found

    def _recorded(self, table_id: str) -> dict[str, str]:
        """Marks that were changed after the entry was made."""
        file = self.root / "__reconciler" / "unity" / self.catalog / "marks" / f"{table_id}.json"
        if not file.exists():
            return {}
        record = json.loads(file.read_text())
        marks = {"reconciler.owner": record["owner"], "reconciler.applied-keys": json.dumps(record["applied"])}
        return marks | ({"reconciler.protect": "true"} if record["protect"] else {})


def _properties(found: Mapping[str, Any]) -> dict[str, str]:
    return {**found["properties"], **({"description": found["comment"]} if found["comment"] else {})}


def _given(properties: Mapping[str, str]) -> dict[str, Any]:
    kept = {k: v for k, v in properties.items() if k != "description"}
    return {"properties": kept, "comment": properties.get("description", "")}


def unity_site(folder: Path, fixture: Callable[[str], Any]) -> Site:
    return _site(folder / "lake")


def _site(root: Path) -> Site:
    outsider = UnityOutsider(root, f"lake_{uuid.uuid4().hex[:12]}")
    options = {"type": "unity", "endpoint": endpoint(), "catalog": outsider.catalog, "root": str(root)}

    def copy() -> Site:
        made = _site(root.with_name(f"copy-{uuid.uuid4().hex[:8]}"))
        assert isinstance(made.outsider, UnityOutsider)
        outsider.copy_to(made.outsider)
        return made

    return service_site(options, outsider, copy, (outsider.catalog,))
