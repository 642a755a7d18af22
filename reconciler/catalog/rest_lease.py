"""The records of a lease in a Lance REST namespace: namespaces below `__reconciler`, which a server creates once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.catalog.lease_records import KEY, NOTE, created, numbered, numbers_in, unless_missing
from reconciler.catalog.rest_api import RestApi
from reconciler.catalog.rest_capabilities import INVENTORY
from reconciler.model.ident import Ident

_ABOVE: Ident = (INVENTORY, "lease")


@dataclass(frozen=True)
class RestLease:
    api: RestApi

    @property
    def place(self) -> str:
        return f"{self.api.http.base}, namespace {'.'.join(_ABOVE)}"

    def numbers(self) -> Sequence[int]:
        return numbers_in(unless_missing(lambda: self.api.names(_ABOVE, "namespace")) or ())

    def read(self, number: int) -> str | None:
        properties = self.api.namespace(_ident(number))
        return None if properties is None else properties.get(KEY, "")

    def create(self, number: int, text: str) -> bool:
        """Before the first record there is nothing to hold it: a call that cannot succeed would only be lost."""
        if number > 1 and (made := unless_missing(lambda: self._created(_ident(number), {KEY: text}))) is not None:
            return made
        self.api.make_namespaces(_ABOVE, {"description": NOTE})
        return self._created(_ident(number), {KEY: text})

    def _created(self, ident: Ident, properties: dict[str, str]) -> bool:
        return created(lambda: self.api.create_namespace(ident, properties))

    def drop(self, number: int) -> None:
        unless_missing(lambda: self.api.drop_namespace(_ident(number)))


def _ident(number: int) -> Ident:
    return (*_ABOVE, numbered(number))
