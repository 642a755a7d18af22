"""Which values have to be looked at before a plan can promise its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.core.casts import classify
from reconciler.core.fields import Fields, bare, find
from reconciler.model.change import AddColumns, AlterColumns, Change, RewriteColumns
from reconciler.model.ident import ObjectKey
from reconciler.model.observed import Present, Snapshot
from reconciler.model.plan import Step
from reconciler.model.state import DatasetState, TableState
from reconciler.model.values import ValueCheck

Checks = dict[ValueCheck, str]
"""With the path that the column has now."""


def value_checks(steps: Iterable[Step], snapshots: Mapping[str, Snapshot]) -> dict[ObjectKey, Checks]:
    """For the tables with steps that will run and can fail on values. Of a column that an earlier step of the plan
    writes it is not asked whether its values fit a type: they are not there yet. Whether all are there is known before,
    because a cast keeps every null."""
    out: dict[ObjectKey, Checks] = {}
    tables: dict[ObjectKey, _Table] = {}
    for step in steps:
        if step.verdict != "allowed" or not isinstance(step.change, AlterColumns | RewriteColumns | AddColumns):
            continue
        if step.key not in tables:
            tables[step.key] = _Table(_fields(step.key, snapshots[step.catalog]))
        if checks := tables[step.key].checks(step.change):
            out.setdefault(step.key, {}).update(checks)
    return out


def _fields(key: ObjectKey, snapshot: Snapshot) -> Fields:
    """Empty where there are no rows to look at."""
    found = snapshot.tables.get(key.ident)
    state = found.state if isinstance(found, Present) else None
    dataset = state.dataset if isinstance(state, TableState) else None
    return dataset.fields if isinstance(dataset, DatasetState) and not dataset.empty else ()


class _Table:
    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.old: dict[str, str] = {}
        """New path of a renamed column -> the path before."""
        self.written: set[str] = set()

    def checks(self, change: Change) -> Checks:
        wanted: list[ValueCheck] = []
        if isinstance(change, RewriteColumns):
            wanted = [ValueCheck(f.name, bare(f.type)) for f in change.fields]
        elif isinstance(change, AlterColumns):
            for a in change.columns:
                if a.rename is not None:
                    above, dot, _ = a.path.rpartition(".")
                    self.old[above + dot + a.rename] = a.path
                elif a.type is not None and not change.empty:
                    wanted.append(ValueCheck(a.path, bare(a.type)))
                elif a.nullable is False:
                    wanted.append(ValueCheck(a.path))
        out = {check: path for check in wanted if (path := self._live(check)) is not None}
        self.written |= {check.path.partition(".")[0] for check in wanted}
        return out

    def _live(self, check: ValueCheck) -> str | None:
        path = self._old(check.path)
        found = find(self.fields, path)
        if found is None:
            return None
        if check.type is None:
            return path
        if check.path.partition(".")[0] in self.written:
            return None
        return None if classify(found.type, check.type) in ("same", "widen") else path

    def _old(self, path: str) -> str:
        """Renames go from the outside in: the innermost is undone first."""
        parts = path.split(".")
        for end in range(len(parts), 0, -1):
            old = self.old.get(".".join(parts[:end]))
            if old is not None:
                parts[:end] = old.split(".")
        return ".".join(parts)
