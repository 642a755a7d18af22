"""The outsider of the `iceberg` backend: plain HTTP, as the protocol's specification has it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import httpx
from servers.iceberg_rest import IcebergRest
from servers.nessie import WAREHOUSE, Nessie

from contract.backends import Site, service_site
from contract.outsider import Changes, Ident, changed
from contract.outsider_service import Entry, ServiceOutsider

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "dummy", "required": False, "type": "string"}]}
SERVERS_OWN = ("table_type", "lance.location", "write.parquet.compression-codec", "created-at", "gc.enabled")


class IcebergOutsider(ServiceOutsider):
    def __init__(self, root: Path, endpoint: str, warehouse: str) -> None:
        super().__init__(root)
        self.warehouse = warehouse
        self.http = httpx.Client(timeout=60)
        config = self._ask("GET", f"{endpoint}/v1/config", params={"warehouse": warehouse})
        said = {**config["defaults"], **config["overrides"]}
        prefix = f"/{said['prefix']}" if "prefix" in said else ""
        self.base = f"{said.get('uri', endpoint).rstrip('/')}/v1{prefix}"
        self.separator = said.get("namespace-separator", "%1F")

    # what a service fills in

    def namespaces(self) -> dict[Ident, dict[str, str]]:
        return {ident: self._properties(ident) for ident in self._below((self.warehouse,))}

    def entries(self) -> dict[Ident, Entry]:
        found = {}
        for ident in self._below((self.warehouse,)):
            for item in self._ask("GET", f"{self._namespace(ident)}/tables")["identifiers"]:
                table = (*ident, item["name"])
                answer = self._ask("GET", self._table(table))
                properties = answer["metadata"]["properties"]
                if properties.get("table_type", "").lower() == "lance":
                    location = properties.get("lance.location") or answer["metadata"]["location"]
                    found[table] = Entry(location, _users(properties), _without_commit(answer["metadata"]))
        return found

    def create_namespace(self, ident: Ident, properties: Mapping[str, str] | None = None) -> None:
        self._ask(
            "POST", f"{self.base}/namespaces", json={"namespace": ident[1:], "properties": dict(properties or {})}
        )

    def put_table(self, ident: Ident, location: str, properties: Mapping[str, str]) -> None:
        said = {**properties, "table_type": "LANCE", "lance.location": location}
        self._create(ident, {"location": location, "properties": said})

    def set_properties(self, kind: str, ident: Ident, values: Changes) -> None:
        new, gone = changed({}, values), [k for k, v in values.items() if v is None]
        if kind == "Namespace":
            self._ask("POST", f"{self._namespace(ident)}/properties", json={"updates": new, "removals": gone})
            return
        updates: list[dict[str, Any]] = [{"action": "set-properties", "updates": new}] if new else []
        updates += [{"action": "remove-properties", "removals": gone}] if gone else []
        self._ask("POST", self._table(ident), json={"requirements": [], "updates": updates})

    def point(self, ident: Ident, location: str) -> None:
        self.set_properties("Table", ident, {"lance.location": location})

    def foreign_table(self, ident: Ident) -> None:
        self._create(ident, {"properties": {"made-by": "somebody else"}})

    def foreign_view(self, ident: Ident) -> None:
        version = {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "representations": [{"type": "sql", "sql": "select 'x' dummy", "dialect": "spark"}],
            "default-namespace": list(ident[1:-1]),
        }
        body = {"name": ident[-1], "schema": SCHEMA, "view-version": version, "properties": {}}
        self._ask("POST", f"{self._namespace(ident[:-1])}/views", json=body)

    # calls

    def metadata(self, ident: Ident) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", self._table(ident))["metadata"]
        return found

    def drop(self, ident: Ident) -> None:
        self._ask("DELETE", self._table(ident), params={"purgeRequested": "false"})

    def drop_namespace(self, ident: Ident) -> None:
        self._ask("DELETE", self._namespace(ident))

    def _create(self, ident: Ident, more: Mapping[str, Any]) -> None:
        body = {"name": ident[-1], "schema": SCHEMA, "stage-create": False, **more}
        self._ask("POST", f"{self._namespace(ident[:-1])}/tables", json=body)

    def _properties(self, ident: Ident) -> dict[str, str]:
        return {k: v for k, v in self._ask("GET", self._namespace(ident))["properties"].items() if k != "location"}

    def _below(self, ident: Ident) -> list[Ident]:
        query = {"parent": unquote(self.separator).join(ident[1:])} if len(ident) > 1 else {}
        names = [n[-1] for n in self._ask("GET", f"{self.base}/namespaces", params=query)["namespaces"]]
        return [i for n in sorted(names) for i in ((*ident, n), *self._below((*ident, n)))]

    def _namespace(self, ident: Ident) -> str:
        return f"{self.base}/namespaces/" + self.separator.join(quote(n, safe="") for n in ident[1:])

    def _table(self, ident: Ident) -> str:
        return f"{self._namespace(ident[:-1])}/tables/{quote(ident[-1], safe='')}"

    def _ask(self, method: str, url: str, **how: Any) -> Any:
        answer = self.http.request(method, url, **how)
        assert answer.is_success, f"{method} {url}: {answer.status_code} {answer.text[:300]}"
        return answer.json() if answer.content else None


def _users(properties: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in properties.items() if k not in SERVERS_OWN and not k.startswith("nessie.")}


def _without_commit(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Nessie shows at every table the last commit of the whole branch."""
    properties = {k: v for k, v in metadata["properties"].items() if not k.startswith("nessie.commit.")}
    return {**metadata, "properties": properties}


def iceberg_site(folder: Path, fixture: Callable[[str], Any]) -> Site:
    servers: IcebergRest = fixture("iceberg_rest")
    return _site(folder / "lake", lambda: servers.new().endpoint)


def nessie_site(folder: Path, fixture: Callable[[str], Any]) -> Site:
    server: Nessie = fixture("nessie")
    return _site(folder / "lake", server.branch)


def _site(root: Path, new: Callable[[], str]) -> Site:
    """`new` gives the endpoint of an empty catalog."""
    endpoint = new()
    outsider = IcebergOutsider(root, endpoint, WAREHOUSE)

    def copy() -> Site:
        made = _site(root.with_name(f"copy-{uuid.uuid4().hex[:8]}"), new)
        assert isinstance(made.outsider, IcebergOutsider)
        outsider.copy_to(made.outsider)
        return made

    options = {"type": "iceberg", "endpoint": endpoint, "warehouse": WAREHOUSE, "root": str(root)}
    return service_site(options, outsider, copy, (WAREHOUSE,))
