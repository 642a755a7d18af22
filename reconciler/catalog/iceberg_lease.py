"""The records of a lease in a warehouse: top-level namespaces, which every server creates once. Unlike tables they have
no files, and nesting them would not work on every server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.catalog import iceberg_wire as wire
from reconciler.catalog.entries import NamespaceEntry
from reconciler.catalog.iceberg_capabilities import OWN
from reconciler.catalog.iceberg_client import IcebergClient
from reconciler.catalog.lease_records import KEY, created, numbered, numbers_in, unless_missing
from reconciler.model.errors import Code

_BEFORE = f"{OWN}_lease_"


@dataclass(frozen=True)
class IcebergLease:
    client: IcebergClient
    warehouse: str

    @property
    def place(self) -> str:
        return f"{self.client.endpoint}, warehouse {self.warehouse}, namespaces {_BEFORE}*"

    def numbers(self) -> Sequence[int]:
        return numbers_in(self.client.child_namespaces(self._at, (self.warehouse,)).all(), _BEFORE)

    def read(self, number: int) -> str | None:
        found = self.client.namespace(self._at, (self.warehouse, _name(number)))
        if found is None:
            return None
        return found.properties.get(KEY, "") if isinstance(found, NamespaceEntry) else ""

    def create(self, number: int, text: str) -> bool:
        path, doing = self._at.namespaces(), f"create namespace {_name(number)}"
        body = {"namespace": [_name(number)], "properties": {KEY: text}}
        taken = Code.NAMESPACE_ALREADY_EXISTS
        return created(lambda: self.client.write(self._at, wire.CREATE_NAMESPACE, path, doing, body, conflict=taken))

    def drop(self, number: int) -> None:
        path, doing = self._at.namespace((_name(number),)), f"drop namespace {_name(number)}"
        unless_missing(lambda: self.client.write(self._at, wire.DROP_NAMESPACE, path, doing))

    @property
    def _at(self) -> wire.Warehouse:
        return self.client.warehouse(self.warehouse)


def _name(number: int) -> str:
    return f"{_BEFORE}{numbered(number)}"
