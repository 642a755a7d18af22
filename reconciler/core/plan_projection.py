"""The columns that a catalog shows: a projection of the dataset's schema, brought up to date after its steps."""

from __future__ import annotations

from reconciler.core.diff_properties import MapDiff
from reconciler.core.draft import Block, Drafter
from reconciler.core.fields import Fields
from reconciler.core.ownership import Standing
from reconciler.core.plan_entry import REPLACE, Pending
from reconciler.core.projection import Columns, projection
from reconciler.core.text import changed_keys, listing
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import ReplaceTable, SyncColumns
from reconciler.model.codec import column_json, marks_json
from reconciler.model.desired import DesiredTable
from reconciler.model.observed import Present
from reconciler.model.plan import Json
from reconciler.model.state import Column, DatasetState

LOST = "the entry is removed and made again, its grants and its id are lost"


def columns_for(capabilities: Capabilities, fields: Fields) -> Columns | None:
    """What a new entry is to show. A schema that the catalog cannot show is shown as no columns at all."""
    shown = projection(capabilities, fields)
    return shown.columns if shown.problem is None else capabilities.columns_of(())


def plan_projection(
    d: Drafter, want: DesiredTable, where: Standing, pending: Pending | None, known: Fields | None = None
) -> bool:
    """True when the catalog goes on showing other columns than the data has, because only a replacement of the entry
    could change that and nobody allowed it. `known`: the schema, where another catalog's steps change the data."""
    if not isinstance(d.now, Present):
        return False
    columns = _wanted(d, want, known) if where != "held" else None
    shown = d.table.columns
    if not d.context.capabilities.replaces_tables:
        if columns is not None:
            assert shown is not None
            d.propose(SyncColumns(want.ident, columns), "metadata", _reason(shown, columns), _before(shown))
        return False
    if pending is None and columns is None:
        return False
    if pending is None and REPLACE not in d.allow:
        return True
    _replace(d, want, pending, columns)
    return False


def _wanted(d: Drafter, want: DesiredTable, known: Fields | None) -> Columns | None:
    """The columns to show, or None when nothing is to be changed."""
    dataset, shown = d.table.dataset, d.table.columns
    fields = dataset.fields if isinstance(dataset, DatasetState) else known
    if shown is None or fields is None:
        return None
    wanted = projection(d.context.capabilities, fields)
    if wanted.problem is not None:
        reason = f"the catalog cannot show the columns of the data: {wanted.problem}"
        d.refuse(SyncColumns(want.ident, shown), "metadata", Block("", reason, "unsupported"), _before(shown))
        return None
    columns = wanted.columns
    return None if columns is None or same_columns(columns, shown) else columns


def same_columns(one: Columns, other: Columns) -> bool:
    """Column order is never compared."""
    return one == other or sorted(one, key=_all) == sorted(other, key=_all)


def _all(column: Column) -> tuple[str, str, bool, str]:
    return column.name, column.type, column.nullable, column.comment or ""


def _replace(d: Drafter, want: DesiredTable, pending: Pending | None, columns: Columns | None) -> None:
    shown = d.table.columns
    diff = pending.diff if pending is not None else MapDiff({}, (), ())
    marks = pending.marks if pending is not None else d.table.marks
    parts = [changed_keys("properties differ", diff)]
    before: dict[str, Json] = {"properties": diff.before(d.table.properties), "marks": marks_json(d.table.marks)}
    if columns is not None and shown is not None:
        parts.append(_reason(shown, columns))
        before |= _before(shown)
    change = ReplaceTable(want.ident, diff.set, diff.unset, marks, shown if columns is None else columns)
    d.propose(change, "destructive", "; ".join([p for p in (*parts, LOST) if p]), before, REPLACE)


def _before(shown: Columns) -> dict[str, Json]:
    return {"columns": [column_json(c) for c in shown]}


def _reason(shown: Columns, columns: Columns) -> str:
    differ = {c.name for c in {*shown} ^ {*columns}}
    return f"the catalog shows other columns than the data has: {listing(sorted(differ))}"
