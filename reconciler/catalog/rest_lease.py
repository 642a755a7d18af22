"""The records of a lease in a Lance REST namespace: namespaces below `__reconciler`, which a server creates once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.catalog.lease_files import is_missing, is_there
from reconciler.catalog.rest_api import RestApi
from reconciler.catalog.rest_capabilities import INVENTORY
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident

_ABOVE: Ident = (INVENTORY, "lease")
_KEY = "reconciler.lease"


@dataclass(frozen=True)
class RestLease:
    api: RestApi

    @property
    def place(self) -> str:
        return f"{self.api.http.base}, namespace {'.'.join(_ABOVE)}"

    def numbers(self) -> Sequence[int]:
        try:
            return [int(name) for name in self.api.names(_ABOVE, "namespace") if name.isdecimal()]
        except CatalogError as error:
            if is_missing(error):
                return []
            raise

    def read(self, number: int) -> str | None:
        properties = self.api.namespace(_ident(number))
        return None if properties is None else properties.get(_KEY, "")

    def create(self, number: int, text: str) -> bool:
        try:
            return self._created(_ident(number), {_KEY: text})
        except CatalogError as error:
            if not is_missing(error):
                raise
        for above in (_ABOVE[:1], _ABOVE):
            self._created(above, {"description": "Notes of the reconciler. Do not change."})
        return self._created(_ident(number), {_KEY: text})

    def _created(self, ident: Ident, properties: dict[str, str]) -> bool:
        try:
            self.api.create_namespace(ident, properties)
        except CatalogError as error:
            if is_there(error):
                return False
            raise
        return True

    def drop(self, number: int) -> None:
        try:
            self.api.drop_namespace(_ident(number))
        except CatalogError as error:
            if not is_missing(error):
                raise


def _ident(number: int) -> Ident:
    return (*_ABOVE, f"{number:010d}")
