"""What a step on a table needs of the steps before it on the same table.

Steps that depend on the values of a column can fail while everything else about the table is in order. What does not
build on such a column goes on without it: another column's cast, another column's index. An index needs new columns
only if it is on one of them. Every other step needs the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reconciler.model import change as c


@dataclass(slots=True)
class Steps:
    """The allowed steps so far on one object."""

    done: list[tuple[str, c.Change]] = field(default_factory=list)
    _behind: dict[str, frozenset[str]] = field(default_factory=dict)

    def needs(self, change: c.Change) -> list[str]:
        """The ids that it needs itself: not those that these need in turn. In plan order."""
        found: list[str] = []
        covered: set[str] = set()
        for id_, before in reversed(self.done):
            if id_ not in covered and depends(change, before):
                found.insert(0, id_)
                covered |= {id_, *self._behind[id_]}
        return found

    def add(self, id_: str, change: c.Change, needs: Sequence[str]) -> None:
        self.done.append((id_, change))
        self._behind[id_] = frozenset(needs).union(*(self._behind.get(n, frozenset()) for n in needs))


def depends(change: c.Change, before: c.Change) -> bool:
    """Does `change` build on what `before` does, a step on the same object?"""
    if isinstance(change, c.CreateIndex | c.ReplaceIndex):
        if isinstance(before, c.UpdateDataset):
            return False
        if isinstance(before, c.AddColumns | c.BackfillColumns):
            return _top(change.index.column) in {f.name for f in before.fields}
    casts, indexed = _cast_columns(before), _indexed_column(before)
    if casts is None and indexed is None:
        return True
    match change:
        case c.UpdateDataset():
            new = casts if isinstance(before, c.RewriteColumns) or _writes_any_type(before) else None
            return new is not None and bool({_top(path) for path in change.fields} & new)
        case c.AddColumns() | c.BackfillColumns() | c.MaterializeTable():
            return casts is not None and not isinstance(change, c.AddColumns)
        case c.DropColumns():
            return bool({_top(p) for p in change.paths} & (casts or {indexed}))
        case c.CreateIndex() | c.ReplaceIndex():
            return casts is not None and (_top(change.index.column) in casts or change.index.name in _lost(before))
    mine = _cast_columns(change)
    return mine is None or bool(mine & (casts or {indexed}))


def _cast_columns(change: c.Change) -> frozenset[str] | None:
    """The columns of a step that can fail on their values; None for any other step."""
    match change:
        case c.RewriteColumns():
            return frozenset(f.name for f in change.fields)
        case c.AlterColumns() if all(a.rename is None for a in change.columns):
            return frozenset(_top(a.path) for a in change.columns)
    return None


def _indexed_column(change: c.Change) -> str | None:
    return _top(change.index.column) if isinstance(change, c.CreateIndex | c.ReplaceIndex) else None


def _writes_any_type(change: c.Change) -> bool:
    """Then there may be fields in the column that were not there before."""
    return isinstance(change, c.AlterColumns) and change.empty


def _lost(change: c.Change) -> tuple[str, ...]:
    return change.loses if isinstance(change, c.AlterColumns | c.RewriteColumns) else ()


def _top(path: str) -> str:
    return path.partition(".")[0]
