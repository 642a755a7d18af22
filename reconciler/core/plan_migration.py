"""The step that moves the rows of another table to a new one.

It is for a table that has no dataset yet: rows that are there already are never mixed with others or written over. Once
its record says where the rows came from there is nothing to do, whatever becomes of the source.
"""

from __future__ import annotations

from reconciler.core.draft import Block, Drafter
from reconciler.model.change import MigrateTable
from reconciler.model.data import Migration
from reconciler.model.desired import DesiredTable
from reconciler.model.ident import dotted
from reconciler.model.observed import Origin
from reconciler.model.plan import DATA_UNKNOWN, SOURCE_PROBLEM
from reconciler.model.state import DatasetState

NOT_LOOKED_AT = Origin(problem="nobody looked at it for this plan")


def plan_migration(d: Drafter, want: DesiredTable, migration: Migration) -> bool:
    """False when the dataset is not, or will not be, the one that is declared: nothing else is done to it then."""
    origin = d.context.snapshot.origins.get(want.ident, NOT_LOOKED_AT)
    told = f"{migration.catalog} {dotted(migration.ident)}"
    live = d.table.dataset
    if isinstance(live, DatasetState):
        if live.data is not None and live.data.digest == migration.digest:
            return True
        if origin.copied:
            change = _change(d, want, migration, live)
            return d.propose(change, "safe", f"the copy of {told} is complete, but not marked as ours yet")
        why = (
            f"the table has a dataset, and no record says that it came from {told}: nothing is copied over it. Remove "
            "`migration` to keep it, or move its data away first"
        )
        d.refuse(_change(d, want, migration, live), "safe", Block(DATA_UNKNOWN, why))
    elif live is None and origin.dataset is not None and origin.problem is None:
        change = _change(d, want, migration, origin.dataset)
        return d.propose(change, "safe", f"no data yet: copied from {told}, which stays as it is")
    elif live is None:
        why = f"no data yet, and nothing can be copied from {told}: {origin.problem}"
        d.refuse(_change(d, want, migration, DatasetState(())), "safe", Block(SOURCE_PROBLEM, why))
    return False


def _change(d: Drafter, want: DesiredTable, migration: Migration, source: DatasetState) -> MigrateTable:
    ours = d.context.owner
    return MigrateTable(
        want.ident,
        migration.catalog,
        migration.ident,
        migration.checksum,
        source.fields,
        source.schema_metadata,
        source.config,
        source.indexes,
        ours,
        source.applied if source.owner == ours else (),
        source.owner,
        source.applied,
        source.data.digest if source.data is not None else None,
    )
