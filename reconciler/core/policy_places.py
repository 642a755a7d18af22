"""Where a declared table is or will be, for the rule about locations: as it is told, and as it is judged.

A plan is the same on every machine, so a location that is relative to the working directory is told as it is written;
it is judged by the absolute path, which the catalogs know. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable
from reconciler.model.ident import Ident
from reconciler.model.observed import Present, Snapshot
from reconciler.model.state import TableState

ByCatalog = Mapping[str, Capabilities]
_ROOTS = ("path", "root")
_NO_SNAPSHOTS: Mapping[str, Snapshot] = {}
_NOT_OPENED: ByCatalog = {}


@dataclass(frozen=True, slots=True)
class Place:
    shown: str
    whole: str | None
    """An absolute path or a URI; None when nobody can tell yet."""


class Whereabouts:
    """`capabilities` as the manifests say them; `opened`, of the catalogs that were opened, with `${env:}` resolved."""

    def __init__(
        self,
        desired: Desired,
        capabilities: ByCatalog,
        snapshots: Mapping[str, Snapshot] = _NO_SNAPSHOTS,
        opened: ByCatalog = _NOT_OPENED,
    ) -> None:
        self._desired, self._snapshots = desired, snapshots
        self._written, self._opened = capabilities, opened

    def of(self, want: DesiredTable) -> Place:
        """As declared, or where it is, or where it will be."""
        if want.location is not None:
            return self._declared(want, want.location)
        return self._live(want) or self._foreseen(want.catalog, want.ident)

    def _declared(self, want: DesiredTable, location: str) -> Place:
        if _absolute(location):
            return Place(location, location)
        rules = self._rules(want.catalog)
        shown = f"{_root(self._desired.catalogs.get(want.catalog))}/{location}"
        return Place(shown, rules.whole_place(location) if rules is not None else None)

    def _live(self, want: DesiredTable) -> Place | None:
        snapshot = self._snapshots.get(want.catalog)
        found = snapshot.tables.get(want.ident) if snapshot is not None else None
        state = found.state if isinstance(found, Present) else None
        if not isinstance(state, TableState) or not isinstance(state.location, str):
            return None
        return Place(state.location, state.location if _absolute(state.location) else state.place)

    def _foreseen(self, catalog: str, ident: Ident) -> Place:
        written, known = self._written.get(catalog), self._rules(catalog)
        if written is not None and (location := written.location_of(ident)):
            return Place(location, location)
        whole = (known.location_of(ident) or known.whole_place()) if known is not None else None
        return Place(_root(self._desired.catalogs.get(catalog)), whole)

    def _rules(self, catalog: str) -> Capabilities | None:
        return self._opened.get(catalog) or self._written.get(catalog)


def _absolute(location: str) -> bool:
    return location.startswith(("/", "file:")) or "://" in location


def _root(spec: CatalogSpec | None) -> str:
    """As written."""
    given = (spec.options.get(key) for key in _ROOTS) if spec is not None else ()
    return next((text for text in given if isinstance(text, str)), "")
