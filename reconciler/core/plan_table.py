"""The steps for one declared table: its catalog entry, then its dataset."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.applied import expected_applied
from reconciler.core.diff_properties import MapDiff, diff_map, ignored_paths
from reconciler.core.diff_schema import Ignored, ignore_rule
from reconciler.core.draft import Block, Context, Drafter
from reconciler.core.fields import Fields, plain
from reconciler.core.ownership import Standing, standing
from reconciler.core.plan_dataset import plan_dataset
from reconciler.core.plan_index import create_indexes, wanted_indexes, with_live_names
from reconciler.core.text import changed_keys, listing
from reconciler.model.arrow import Field
from reconciler.model.change import AdoptTable, CreateDataset, DeclareTable, RenameTable, UpdateDataset, UpdateTable
from reconciler.model.codec import marks_json
from reconciler.model.desired import DesiredTable
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Absent, Detached, Finding, Present, Unreadable
from reconciler.model.plan import UNREADABLE, Json
from reconciler.model.state import EMPTY, DatasetState, Marks, TableState


def plan_table(
    context: Context, want: DesiredTable, found: Finding, block: Block | None, renamed: Ident | None = None
) -> Drafter:
    """`renamed`: `found` is the table under this old name, and a rename comes first.
    No drafts and a finding that is not ours means: as declared, but unowned."""
    allow = frozenset(want.allow) | context.options.allow
    d = Drafter(context, want.source, found, allow, block)
    if renamed is not None:
        d.start = Absent()
    ignored = ignored_paths(want)
    holds = context.capabilities.holds_properties("Table", want.ident)
    if isinstance(found, Unreadable):
        stuck = Block(UNREADABLE, f"it exists but cannot be read: {found.message}")
        d.refuse(UpdateTable(want.ident, {}, (), Marks()), "metadata", stuck)
        return d
    where: Standing = "owned"
    if isinstance(found, Present) and isinstance(found.state, TableState):
        where = _existing(d, want, found.state, ignored, holds, renamed)
    elif isinstance(found, Detached):
        where, held = standing(context, found.dataset.owner)
        d.block = d.block or held
        d.propose(
            DeclareTable(want.ident, *_new_entry(context, want, ignored, holds), found.location),
            "safe",
            f"its data is {_still(found, context.owner)}there: attached to {found.location}",
            {"location": found.location, "owner": found.dataset.owner},
        )
    elif isinstance(found, Absent):
        d.propose(
            DeclareTable(want.ident, *_new_entry(context, want, ignored, holds)), "safe", "not in the catalog yet"
        )
    if not holds and (cannot := diff_map(want.properties, EMPTY, (), ignored, "properties")):
        marks = d.table.marks if isinstance(d.now, Present) else Marks(context.owner)
        before: Json = {"properties": cannot.before(EMPTY), "marks": marks_json(marks)}
        d.propose(UpdateTable(want.ident, cannot.set, (), marks), "metadata", "properties differ", before)
    _dataset(d, want, where)
    return d


def _still(found: Detached, owner: str) -> str:
    return "still " if found.dataset.owner == owner else ""


def _new_entry(
    context: Context, want: DesiredTable, ignored: frozenset[str], holds: bool
) -> tuple[dict[str, str], Marks]:
    applied = diff_map(want.properties, EMPTY, (), ignored, "properties").applied if holds else ()
    return {k: want.properties[k] for k in applied}, Marks(context.owner, bool(want.protect), applied)


def _existing(
    d: Drafter, want: DesiredTable, live: TableState, ignored: frozenset[str], holds: bool, renamed: Ident | None
) -> Standing:
    where, held = standing(d.context, live.marks.owner)
    d.block = d.block or held
    ours = live.marks.applied if where == "owned" else ()
    diff = diff_map(want.properties, live.properties, ours, ignored, "properties") if holds else MapDiff({}, (), ())
    protect = live.marks.protect if want.protect is None else want.protect
    marks = Marks(d.context.owner, protect, diff.applied)
    before: Json
    if want.location is not None and isinstance(live.location, str) and live.location != want.location:
        why = f"it is at {live.location}, and `location` says {want.location}: a table is not moved by that"
        before = {"marks": marks_json(live.marks)}
        d.refuse(UpdateTable(want.ident, {}, (), live.marks), "metadata", Block("", why, "unsupported"), before)
    if renamed is not None:
        before = {"id": [*renamed]}
        if not d.propose(RenameTable(want.ident, renamed), "metadata", f"renamed from {dotted(renamed)}", before):
            d.block = Block("", "the rename is not possible", "unsupported")
    if where == "adopting":
        if isinstance(live.dataset, DatasetState):
            want = with_live_names(want, live.dataset.indexes)
        change = AdoptTable(want.ident, marks, expected_applied(want), wanted_indexes(want))
        reason = f"taken from {live.marks.owner}" if live.marks.owner else "nobody owned it"
        d.propose(change, "metadata", reason, {"marks": marks_json(live.marks)})
    if diff or (where == "owned" and marks != live.marks) or (where == "held" and protect != live.marks.protect):
        before = {"properties": diff.before(live.properties), "marks": marks_json(d.table.marks)}
        reason = changed_keys("properties differ", diff) or "our marks differ"
        d.propose(UpdateTable(want.ident, diff.set, diff.unset, marks), "metadata", reason, before)
    return where


def _dataset(d: Drafter, want: DesiredTable, where: Standing) -> None:
    if not isinstance(d.now, Present):
        return
    if isinstance(d.table.dataset, DatasetState):
        plan_dataset(d, want, bookkeeping=where != "held")
    elif d.table.dataset is None and want.fields is not None:
        if d.propose(_new_dataset(d, want, want.fields), "safe", "no data yet: an empty dataset is written"):
            create_indexes(d, want)
    elif d.table.dataset is None and (want.config or want.schema_metadata or want.indexes):
        parts = {"config": want.config, "schemaMetadata": want.schema_metadata, "indexes": want.indexes}
        why = f"{listing([k for k, v in parts.items() if v])} need a dataset, and there is none: declare a schema"
        change = UpdateDataset(want.ident, dict(want.config), dict(want.schema_metadata), {}, d.context.owner, ())
        d.refuse(change, "metadata", Block("", why, "unsupported"))


def _new_dataset(d: Drafter, want: DesiredTable, fields: Fields) -> CreateDataset:
    """What is left to others (`ignoreDifferences`) is not set at the start either."""
    ignored = frozenset(want.ignore_differences)
    return CreateDataset(
        want.ident,
        tuple(_unignored(plain(f), f.name, ignore_rule(want.ignore_differences)) for f in fields),
        diff_map(want.schema_metadata, EMPTY, (), ignored, "schemaMetadata").set,
        diff_map(want.config, EMPTY, (), ignored, "config").set,
        d.context.owner,
        expected_applied(want),
    )


def _unignored(f: Field, path: str, rule: Ignored) -> Field:
    if f.comment is not None and rule(path, "comment"):
        f = replace(f, comment=None)
    return replace(f, metadata=EMPTY) if f.metadata and rule(path, "metadata") else f
