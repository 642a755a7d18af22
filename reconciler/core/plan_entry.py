"""The steps for the catalog entry of a table that is there: properties and our marks.

Where the catalog can update an entry, that is one step, and it comes first. Where it can only replace one, the change
of the properties waits for the dataset steps, so that one replacement shows the new columns too.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.applied import expected_applied
from reconciler.core.diff_properties import MapDiff, diff_map, ignored_paths, left_to_others
from reconciler.core.draft import Block, Drafter
from reconciler.core.notes import gives_up
from reconciler.core.ownership import Standing, entry_owner, table_standing
from reconciler.core.plan_index import with_live_names
from reconciler.core.record_text import marks_reason
from reconciler.core.text import changed_keys
from reconciler.model.change import AdoptTable, RenameTable, ReplaceTable, UpdateTable
from reconciler.model.codec import marks_json
from reconciler.model.desired import DesiredTable
from reconciler.model.ident import Ident, dotted
from reconciler.model.plan import Json
from reconciler.model.state import DatasetState, Marks, TableState

REPLACE = "replace_table"


@dataclass(frozen=True, slots=True)
class Pending:
    """What a replacement of the entry has to bring."""

    diff: MapDiff
    marks: Marks


def plan_entry(
    d: Drafter, want: DesiredTable, live: TableState, holds: bool, renamed: Ident | None, notes: bool
) -> tuple[Standing, Pending | None]:
    """`notes`: see core/notes.py."""
    where, held = table_standing(d.context, live)
    d.block = d.block or held
    ours = live.marks.applied if where == "owned" else ()
    nothing = MapDiff({}, (), ())
    ignored = ignored_paths(want)
    diff = diff_map(want.properties, live.properties, ours, ignored, "properties") if holds else nothing
    protect = live.marks.protect if want.protect is None else want.protect
    full = Marks(d.context.owner, protect, diff.applied)
    if renamed is not None:
        _rename(d, want, renamed)
    replaces = bool(diff) and d.context.capabilities.replaces_tables
    update = UpdateTable(want.ident, diff.set, diff.unset, full)
    if not replaces and (not diff or d.may(update)):
        if where == "adopting":
            _adopt(d, want, live, full)
        given_up = gives_up(ours, full.applied, live.properties, left_to_others(ignored))
        goes_along = notes and full != live.marks and d.may(update)  # What only goes along is no step of its own.
        noted = where == "owned" and (given_up or goes_along)
        if diff or noted or (where in ("owned", "held") and protect != live.marks.protect):
            _update(d, live, diff, update)
        return where, None
    settled = live.marks.applied if where == "owned" else tuple(k for k in diff.applied if k not in diff.set)
    _marks(d, want, live, where, Marks(d.context.owner, protect, settled), replaces)
    if replaces:
        return where, Pending(diff, full)
    _update(d, live, diff, update)
    return where, None


def _marks(d: Drafter, want: DesiredTable, live: TableState, where: Standing, marks: Marks, replaces: bool) -> None:
    """The properties cannot be changed here and now: our marks do not wait for them, and name only keys that we set."""
    if where == "adopting":
        _adopt(d, want, live, marks)
    elif where == "owned" and marks != live.marks:
        change = UpdateTable(want.ident, {}, (), marks)
        with_the_rest = replaces and d.may(ReplaceTable(want.ident, {}, (), marks), REPLACE)
        if not with_the_rest and d.may(change):
            _update(d, live, MapDiff({}, (), ()), change)


def _update(d: Drafter, live: TableState, diff: MapDiff, change: UpdateTable) -> None:
    before: Json = {"properties": diff.before(live.properties), "marks": marks_json(d.table.marks)}
    differs = changed_keys("properties differ", diff)
    noted = marks_reason(d.table.marks, change.marks, (*diff.set, *diff.unset), differs)
    d.propose(change, "metadata", "; ".join(p for p in (differs, noted) if p), before)


def adopt_data(d: Drafter, want: DesiredTable, owner: str | None) -> None:
    """The entry is ours already, the data is not yet."""
    live = d.table
    if not isinstance(live.dataset, DatasetState):
        return
    want = with_live_names(want, live.dataset)
    change = AdoptTable(want.ident, live.marks, expected_applied(want))
    where = f"its data at {live.location}"
    reason = f"{where} is taken from {owner}" if owner else f"nobody owned {where}"
    if not d.propose(change, "metadata", reason, {"marks": marks_json(live.marks), "data_owner": owner}):
        d.block = Block("", "its data is not ours, and cannot be taken over", "unsupported")


def _adopt(d: Drafter, want: DesiredTable, live: TableState, marks: Marks) -> None:
    if isinstance(live.dataset, DatasetState):
        want = with_live_names(want, live.dataset)
    change = AdoptTable(want.ident, marks, expected_applied(want))
    owner = entry_owner(d.context.owner, live)
    reason = f"taken from {owner}" if owner else "nobody owned it"
    if not d.propose(change, "metadata", reason, {"marks": marks_json(live.marks)}):
        d.block = Block("", "it is not ours, and cannot be taken over", "unsupported")


def _rename(d: Drafter, want: DesiredTable, old: Ident) -> None:
    before: Json = {"id": [*old]}
    if not d.propose(RenameTable(want.ident, old), "metadata", f"renamed from {dotted(old)}", before):
        d.block = Block("", "the rename is not possible", "unsupported")
