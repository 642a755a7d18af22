"""One catalog as a snapshot: the scan collected, the ignored objects left out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from reconciler.core.globs import matcher
from reconciler.core.uris import canonical_location
from reconciler.model.capabilities import Capabilities
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident
from reconciler.model.observed import (
    Absent,
    Detached,
    Finding,
    Gap,
    LocationCheck,
    Occupied,
    Present,
    RootSeen,
    Scope,
    Seen,
    Snapshot,
    Unreadable,
    Unsupported,
)
from reconciler.model.state import TableState

_ANY_NAME = "\x01" * 40
"""Stands for any name below a namespace when the patterns are asked."""


class Scanned(Protocol):
    """What is needed of a Catalog."""

    @property
    def capabilities(self) -> Capabilities: ...

    def scan(self, scope: Scope) -> Iterator[Seen]: ...


def observe(
    catalog: Scanned,
    scope: Scope,
    ignore: Sequence[str] = (),
    clean: Callable[[str], str] = lambda message: message,
) -> Snapshot:
    """Raises CatalogError when nothing at all can be said about the catalog.

    Ignored objects are not reported, but they are remembered as `hidden`: a namespace that holds one is not empty and
    must never be planned as droppable, and the data of an ignored table is that table's. `clean` takes secrets out of
    what a library said.

    Where ignored tables are is asked only when it matters: when a table is to get back to its data, which may be theirs
    by now. Then the catalog is listed once more, without `ignore` and without opening anything.
    """
    ignored = matcher(tuple(dict.fromkeys((*scope.ignore, *ignore))))
    seen = _collected(catalog, scope, ignored, clean)
    if not seen.hidden_unread or not any(isinstance(f, Detached) for f in seen.tables.values()):
        return seen
    with contextlib.suppress(CatalogError):  # Then it stays unknown, and says so.
        whole = _collected(catalog, Scope(namespaces=scope.namespaces), ignored, clean)
        unread = {g.ident for g in whole.gaps} | whole.hidden_unread
        return replace(seen, hidden_places=whole.hidden_places, hidden_unread=frozenset(unread))
    return seen


def _collected(
    catalog: Scanned, scope: Scope, ignored: Callable[[Ident], bool], clean: Callable[[str], str]
) -> Snapshot:
    namespaces: dict[Ident, Present | Unreadable] = {}
    tables: dict[Ident, Present | Detached | Unreadable] = {}
    gaps: list[Gap] = []
    hidden: set[Ident] = set()
    places: dict[Ident, str] = {}
    unread: set[Ident] = set()
    closed: set[Ident] = set()
    lacks: list[Unsupported] = []
    checked: dict[Ident, LocationCheck] = {}
    root = RootSeen()
    for found in catalog.scan(scope):
        if isinstance(found, RootSeen):
            beside = tuple(e._replace(place=clean(e.place)) for e in found.elsewhere)
            root = replace(found, new=clean(found.new) if found.new else None, elsewhere=beside)
            continue
        if isinstance(found, Unsupported):
            lacks.append(replace(found, reason=clean(found.reason)))
            continue
        if isinstance(found, Occupied):
            hidden.add(found.ident)
            if scope.ignore and ignored(found.ident):
                unread.add(found.ident)  # Named by the catalog, not read: it may be a table.
            continue
        if isinstance(found, Gap):
            if found.ident and ignored(found.ident):
                hidden.add(found.ident)  # Something is there, and what holds it is not empty.
                unread.add(found.ident)
            else:
                gaps.append(replace(found, message=clean(found.message)))
            continue
        finding = found.finding
        if isinstance(finding, Unreadable):
            finding = replace(finding, message=clean(finding.message))
        if not isinstance(finding, Unreadable) and finding.checked is not None:
            checked[found.ident] = _cleaned(finding.checked, clean)
        if isinstance(finding, Absent):
            continue
        if ignored(found.ident):
            if not isinstance(finding, Detached):
                hidden.add(found.ident)
                place = _place(finding)
                if place is not None:
                    places[found.ident] = place
                elif found.kind == "Namespace":
                    closed.add(found.ident)
                elif not isinstance(finding, Unreadable) or not finding.foreign:
                    unread.add(found.ident)
        elif found.kind == "Table":
            tables[found.ident] = finding
        elif not isinstance(finding, Detached):
            namespaces[found.ident] = finding
    return Snapshot(
        dict(sorted(namespaces.items())),
        dict(sorted(tables.items())),
        tuple(sorted(gaps, key=lambda g: (g.ident, g.code, g.message))),
        frozenset(hidden),
        dict(sorted(places.items())),
        frozenset(unread | (_unseen(closed, {*tables, *places}, ignored) if scope.ignore else set())),
        _chosen(catalog.capabilities, {i: tables[i] for i in sorted(scope.detail) if i in tables}),
        dict(sorted(checked.items())),
        tuple(sorted(lacks, key=lambda u: (u.ident, u.change))),
        root=root,
    )


def _cleaned(checked: LocationCheck, clean: Callable[[str], str]) -> LocationCheck:
    conflict, former = checked.conflict, checked.former
    if former is not None:
        former = replace(former, location=clean(former.location), record=clean(former.record))
    return replace(checked, conflict=clean(conflict) if conflict is not None else None, former=former)


def _chosen(capabilities: Capabilities, tables: Mapping[Ident, Finding]) -> dict[Ident, str]:
    """Tables that are not where their names would put them, where a manifest may say so."""
    out: dict[Ident, str] = {}
    for ident, found in tables.items() if capabilities.chooses_location else ():
        if isinstance(found, Present) and isinstance(found.state, TableState) and isinstance(found.state.location, str):
            rule, location = capabilities.location_of(ident), found.state.location
            by_rule = rule is not None and canonical_location(rule) in (canonical_location(location), found.state.place)
            if not by_rule and capabilities.location_problem(ident, location) is None:
                out[ident] = location
    return out


def _place(finding: Present | Unreadable) -> str | None:
    if isinstance(finding, Unreadable) or not isinstance(finding.state, TableState):
        return None
    place = finding.state.place or finding.state.location
    return place if isinstance(place, str) else None


def _unseen(namespaces: set[Ident], tables: set[Ident], ignored: Callable[[Ident], bool]) -> set[Ident]:
    """The ignored namespaces that show no table: some catalogs do not look inside one when all of it is ignored."""
    seen = {t[:n] for t in tables for n in range(1, len(t))}
    return {i for i in namespaces if i not in seen and ignored((*i, _ANY_NAME))}
