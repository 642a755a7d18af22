"""Data that a plan gives back to a table must still be nobody's: one dataset is one table of a catalog.

The reads of single objects do not show it, so a plan that re-attaches a table, or goes on with a replacement that was
cut, lists its catalog once more before the first write. What is ignored counts too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from reconciler.core.plan_locations import Locations
from reconciler.core.uris import canonical_location
from reconciler.core.world import World
from reconciler.engine.chain import Link, Live
from reconciler.engine.reader import Reader
from reconciler.engine.retry import Retry
from reconciler.model.change import CreateDataset, DeclareTable, ReplaceTable
from reconciler.model.ident import Ident, ObjectKey, dotted
from reconciler.model.observed import Detached, Finding, Snapshot, Unreadable


def data_in_use(
    live: Mapping[ObjectKey, Live], chains: Mapping[ObjectKey, Sequence[Link]], reader: Reader, retry: Retry
) -> tuple[dict[ObjectKey, str], list[str]]:
    """The tables whose data another table has by now, and of which that could not be found out. `live`: all that the
    plan touches in one catalog. Raises CatalogError."""
    wanted = {
        key: one.finding.location
        for key, one in live.items()
        if isinstance(one.finding, Detached) and _gives_back(one.finding, chains[key])
    }
    if not wanted:
        return {}, []
    touched = frozenset(key.ident if key.kind == "Namespace" else key.ident[:-1] for key in live)
    snapshot = _without(retry.call(lambda: reader.listing(touched)), {key.ident for key in wanted})
    there = Locations(World(snapshot), snapshot)
    taken: dict[ObjectKey, str] = {}
    for key, location in wanted.items():
        for other in there.users_of(_canonical(live[key].finding, location)):
            taken[key] = f"its data at {location} is table {dotted(other)} now"
    unseen = there.unseen_user()
    return taken, [] if unseen is None else [f"{key}: {unseen.reason}" for key in wanted if key not in taken]


def unsuitable(live: Live, chain: Sequence[Link]) -> str | None:
    """Why the table cannot be made or attached any more: its location is inside somebody's dataset by now, or holds
    somebody's files."""
    found = live.finding
    checked = None if isinstance(found, Unreadable) else found.checked
    makes = any(isinstance(link.step.change, (DeclareTable, CreateDataset)) for link in chain)
    return checked.conflict if checked is not None and makes else None


def _canonical(found: Finding, location: str) -> str:
    checked = found.checked if isinstance(found, Detached) else None
    return checked.canonical if checked is not None else canonical_location(location)


def _gives_back(found: Detached, chain: Sequence[Link]) -> bool:
    """A replacement whose first half is done makes the entry on its data again, as a declare does."""
    makes = (DeclareTable, ReplaceTable) if found.cut is not None else DeclareTable
    return any(isinstance(link.step.change, makes) for link in chain)


def _without(snapshot: Snapshot, wanted: Collection[Ident]) -> Snapshot:
    """A listing calls a table whose replacement was cut unreadable: here it is known what it is."""
    tables = {i: f for i, f in snapshot.tables.items() if i not in wanted or not isinstance(f, Unreadable)}
    return replace(snapshot, tables=tables)
