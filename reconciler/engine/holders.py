"""Data that a plan gives back to a table must still be nobody's: one dataset is one table of a catalog.

The reads of single objects do not show it, so a plan that re-attaches a table, or goes on with a replacement that was
cut, lists its catalog once more before the first write. What is ignored counts too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from reconciler.core.plan_places import Places
from reconciler.core.world import World
from reconciler.engine.chain import Link, Live
from reconciler.engine.reader import Reader
from reconciler.engine.retry import Retry
from reconciler.model.change import DeclareTable, ReplaceTable
from reconciler.model.ident import Ident, ObjectKey, dotted
from reconciler.model.observed import Detached, Snapshot, Unreadable


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
    places = Places(World(snapshot), snapshot)
    used = {key: other for key, location in wanted.items() if (other := places.user_of(location)) is not None}
    taken = {key: f"its data at {wanted[key]} is table {dotted(other)} now" for key, other in used.items()}
    unseen = places.unseen_user()
    return taken, [] if unseen is None else [f"{key}: {unseen.reason}" for key in wanted if key not in taken]


def _gives_back(found: Detached, chain: Sequence[Link]) -> bool:
    """A replacement whose first half is done makes the entry on its data again, as a declare does."""
    makes = (DeclareTable, ReplaceTable) if found.cut is not None else DeclareTable
    return any(isinstance(link.step.change, makes) for link in chain)


def _without(snapshot: Snapshot, wanted: Collection[Ident]) -> Snapshot:
    """A listing calls a table whose replacement was cut unreadable: here it is known what it is."""
    tables = {i: f for i, f in snapshot.tables.items() if i not in wanted or not isinstance(f, Unreadable)}
    return replace(snapshot, tables=tables)
