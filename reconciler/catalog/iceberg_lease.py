"""The records of a lease in a warehouse: top-level namespaces, which every server creates once. Unlike tables they have
no files, and nesting them would not work on every server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.catalog import iceberg_wire as wire
from reconciler.catalog.entries import NamespaceEntry
from reconciler.catalog.iceberg_capabilities import OWN
from reconciler.catalog.iceberg_client import IcebergClient
from reconciler.catalog.lease_files import is_missing, is_there
from reconciler.model.errors import CatalogError, Code

_NAME = re.compile(rf"{OWN}_lease_([0-9]{{10}})")
_KEY = "reconciler.lease"


@dataclass(frozen=True)
class IcebergLease:
    client: IcebergClient
    warehouse: str

    @property
    def place(self) -> str:
        return f"{self.client.endpoint}, warehouse {self.warehouse}, namespaces {OWN}_lease_*"

    def numbers(self) -> Sequence[int]:
        names = self.client.child_namespaces(self._at, (self.warehouse,)).all()
        return [int(match[1]) for name in names if (match := _NAME.fullmatch(name))]

    def read(self, number: int) -> str | None:
        found = self.client.namespace(self._at, (self.warehouse, _name(number)))
        if found is None:
            return None
        return found.properties.get(_KEY, "") if isinstance(found, NamespaceEntry) else ""

    def create(self, number: int, text: str) -> bool:
        body = {"namespace": [_name(number)], "properties": {_KEY: text}}
        doing = f"create namespace {_name(number)}"
        try:
            self.client.write(
                self._at,
                wire.CREATE_NAMESPACE,
                self._at.namespaces(),
                doing,
                body,
                conflict=Code.NAMESPACE_ALREADY_EXISTS,
            )
        except CatalogError as error:
            if is_there(error):
                return False
            raise
        return True

    def drop(self, number: int) -> None:
        try:
            path = self._at.namespace((_name(number),))
            self.client.write(self._at, wire.DROP_NAMESPACE, path, f"drop namespace {_name(number)}")
        except CatalogError as error:
            if not is_missing(error):
                raise

    @property
    def _at(self) -> wire.Warehouse:
        return self.client.warehouse(self.warehouse)


def _name(number: int) -> str:
    return f"{OWN}_lease_{number:010d}"
