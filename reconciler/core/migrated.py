"""The dataset of a table that is moved: as it is copied, and as it is marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.change import MigrateTable
from reconciler.model.data import DataRecord, migrated_from
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import dotted
from reconciler.model.state import DatasetState, Unknown


def as_copied(change: MigrateTable) -> DatasetState:
    """What the source is, and its copy until it is marked."""
    data = DataRecord(change.copied_data) if change.copied_data is not None else None
    return DatasetState(
        change.fields,
        change.schema_metadata,
        change.config,
        change.indexes,
        change.copied_owner,
        change.copied_applied,
        data=data,
        empty=False,
    )


def as_marked(change: MigrateTable) -> DatasetState:
    record = DataRecord(migrated_from(change.from_catalog, change.from_ident))
    return replace(as_copied(change), owner=change.owner, applied=change.applied, data=record)


def migrated(live: DatasetState | Unknown | None, change: MigrateTable) -> Sequence[DatasetState]:
    """The states after each write. A copy that is there already is only marked."""
    if live is None:
        return as_copied(change), as_marked(change)
    copied = as_copied(change)
    if not isinstance(live, DatasetState) or replace(live, version=None, data=copied.data) != copied:
        raise CatalogError(Code.TABLE_ALREADY_EXISTS, f"{dotted(change.ident)} has a dataset already")
    return (as_marked(change),)
