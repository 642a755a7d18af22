"""Which columns of a plan may have existed before, so that a tag from before their drop can be looked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.core.fields import walk
from reconciler.model.change import CREATES_COLUMNS, RenameTable
from reconciler.model.ident import Ident, ObjectKey
from reconciler.model.observed import Present, Snapshot
from reconciler.model.plan import Step
from reconciler.model.state import DatasetState, TableState


@dataclass(frozen=True, slots=True)
class NewColumns:
    live: Ident
    """What the table is called now."""
    paths: tuple[str, ...]


def new_columns(steps: Iterable[Step], snapshots: Mapping[str, Snapshot]) -> dict[ObjectKey, NewColumns]:
    """Of tables with data, by the names that the steps use; blocked steps too."""
    old: dict[ObjectKey, Ident] = {}
    found: dict[ObjectKey, list[str]] = {}
    for step in steps:
        if isinstance(step.change, RenameTable):
            old[step.key] = step.change.source
        if not isinstance(step.change, CREATES_COLUMNS):
            continue
        live = _live_paths(old.get(step.key, step.key.ident), snapshots[step.catalog])
        if live is not None:
            found.setdefault(step.key, []).extend(p for p, _ in walk(step.change.fields) if p not in live)
    return {key: NewColumns(old.get(key, key.ident), tuple(paths)) for key, paths in found.items() if paths}


def _live_paths(ident: Ident, snapshot: Snapshot) -> set[str] | None:
    found = snapshot.tables.get(ident)
    state = found.state if isinstance(found, Present) else None
    dataset = state.dataset if isinstance(state, TableState) else None
    return {path for path, _ in walk(dataset.fields)} if isinstance(dataset, DatasetState) else None
