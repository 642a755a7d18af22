"""Data that a plan gives back to a table must still be nobody's: one dataset is one table of a catalog.

The reads of single objects do not show it, so a plan that re-attaches a table lists its catalog once more before the
first write. What is ignored counts too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.core.plan_places import Places
from reconciler.core.world import World
from reconciler.engine.chain import Link, Live
from reconciler.engine.reader import Reader
from reconciler.engine.retry import Retry
from reconciler.model.change import DeclareTable
from reconciler.model.ident import ObjectKey, dotted
from reconciler.model.observed import Detached


def data_in_use(
    live: Mapping[ObjectKey, Live], chains: Mapping[ObjectKey, Sequence[Link]], reader: Reader, retry: Retry
) -> tuple[dict[ObjectKey, str], list[str]]:
    """The tables whose data another table has by now, and of which that could not be found out. Raises CatalogError."""
    wanted = {
        key: one.finding.location
        for key, one in live.items()
        if isinstance(one.finding, Detached) and any(isinstance(link.step.change, DeclareTable) for link in chains[key])
    }
    if not wanted:
        return {}, []
    snapshot = retry.call(lambda: reader.listing(frozenset(key.ident[:-1] for key in wanted)))
    places = Places(World(snapshot), snapshot)
    used = {key: other for key, location in wanted.items() if (other := places.user_of(location)) is not None}
    taken = {key: f"its data at {wanted[key]} is table {dotted(other)} now" for key, other in used.items()}
    unseen = places.unseen_user()
    return taken, [] if unseen is None else [f"{key}: {unseen.reason}" for key in wanted if key not in taken]
