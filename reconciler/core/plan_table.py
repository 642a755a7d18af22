"""The steps for one declared table: its catalog entry, then its dataset, then the columns that the catalog shows."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.applied import expected_applied
from reconciler.core.coverage import refresh_indexes
from reconciler.core.diff_properties import diff_map, ignored_paths
from reconciler.core.diff_schema import ignore_rule, unignored
from reconciler.core.draft import Block, Context, Drafter, allow_block, allow_words, unread_block
from reconciler.core.fields import Fields, plain
from reconciler.core.notes import go_along
from reconciler.core.ownership import Standing, data_owner, data_standing, standing
from reconciler.core.plan_data import plan_data
from reconciler.core.plan_dataset import plan_dataset
from reconciler.core.plan_entry import Pending, adopt_data, plan_entry
from reconciler.core.plan_index import create_indexes
from reconciler.core.plan_locations import moved
from reconciler.core.plan_migration import plan_migration
from reconciler.core.plan_projection import columns_for, plan_projection
from reconciler.core.text import listing
from reconciler.core.uris import canonical_location
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import CreateDataset, DeclareTable, UpdateDataset, UpdateTable
from reconciler.model.codec import marks_json
from reconciler.model.desired import AllowWord, DesiredTable
from reconciler.model.ident import Ident
from reconciler.model.observed import Absent, Detached, Finding, Former, Present, Unreadable
from reconciler.model.plan import ADOPT, Json
from reconciler.model.state import EMPTY, DatasetState, Marks, TableState, Unknown

RECREATE: AllowWord = "recreate"


@dataclass(frozen=True, slots=True)
class Planned:
    drafter: Drafter
    stale: bool = False
    """The catalog goes on showing other columns than the data has."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A dataset that another catalog's steps make and alter."""

    fields: Fields | None
    """The schema it will have then; None when that is not known."""


def plan_table(
    context: Context,
    want: DesiredTable,
    found: Finding,
    block: Block | None,
    renamed: Ident | None = None,
    shared: Shared | None = None,
) -> Planned:
    """`renamed`: `found` is the table under this old name, and a rename comes first. `shared`: its data is looked after
    through another catalog. No drafts and a finding that is not ours means: as declared, but unowned. Planned again
    when there is a step that our record can go with."""
    planned = _planned(context, want, found, block, renamed, shared, notes=False)
    is_new = isinstance(found, Absent) and want.migration is None  # What is made has its record from the start.
    if is_new or not go_along(planned.drafter.drafts):
        return planned
    return _planned(context, want, found, block, renamed, shared, notes=True)


def _planned(
    context: Context,
    want: DesiredTable,
    found: Finding,
    block: Block | None,
    renamed: Ident | None,
    shared: Shared | None,
    notes: bool,
) -> Planned:
    allow = allow_words(want, context.options)
    known = shared.fields if shared is not None else None
    d = Drafter(context, want.source, found, allow, block, shared is not None, set() if want.at_least else None)
    if renamed is not None:
        d.start = Absent()
    if isinstance(found, Unreadable) and (left := _ours_without_data(d, want, found, renamed)) is not None:
        found = d.start = d.now = left
        d.block = d.block or (None if RECREATE in allow else allow_block(d, RECREATE))
    if isinstance(found, Unreadable):
        d.refuse(UpdateTable(want.ident, {}, (), Marks()), "metadata", unread_block(found))
        return Planned(d)
    if isinstance(found, Present) and isinstance(found.state, TableState) and (why := moved(want, found.state)):
        before: Json = {"marks": marks_json(found.state.marks)}
        change = UpdateTable(want.ident, {}, (), found.state.marks)
        d.refuse(change, "metadata", Block("", why, "unsupported"), before)
        return Planned(d)
    holds = context.capabilities.holds_properties("Table", want.ident)
    where: Standing = "owned"
    pending: Pending | None = None
    if isinstance(found, Present) and isinstance(found.state, TableState):
        where, pending = plan_entry(d, want, found.state, holds, renamed, notes)
    elif isinstance(found, Detached):
        d.block = d.block or standing(context, found.dataset.owner)[1] or _elsewhere(want, found)
        d.propose(
            _new_entry(context, want, holds, found.location, known or found.dataset.fields),
            "safe",
            f"attached to its existing data at {found.location}",
            {"location": found.location, "owner": found.dataset.owner},
        )
    elif isinstance(found, Absent):
        location = new_location(context.capabilities, want)
        fields = known or _new_fields(want) or _moved_fields(context, want)
        checked = context.snapshot.checked.get(want.ident)
        former = checked.former if checked is not None else None
        if former is None:
            d.propose(_new_entry(context, want, holds, location, fields), "safe", "not in the catalog yet")
        else:
            _again(d, _new_entry(context, want, holds, location, fields), former)
    if not holds:
        _cannot_hold(d, want)
    unmarked = _dataset(d, want, where, notes)
    before_it = d.block
    d.block = d.block or unmarked
    stale = plan_projection(d, want, where, pending, known)
    d.block = before_it
    refresh_indexes(d, want)
    return Planned(d, stale)


def _ours_without_data(d: Drafter, want: DesiredTable, found: Unreadable, renamed: Ident | None) -> Present | None:
    """The table as its entry shows it, where its data can be made again: it is ours, and the manifest says all of it.
    What is to be renamed, or filled from another table, or left to another catalog, is first brought in order."""
    if found.gone is None or found.gone.marks.owner != d.context.owner:
        return None
    makes = want.fields is not None and want.migration is None and renamed is None and not d.unread
    return Present(found.gone) if makes else None


def _made_empty(d: Drafter, location: str | Unknown) -> str:
    where = f" at {location}" if isinstance(location, str) else ""
    created = "it is created empty" if RECREATE in d.allow else "it would be created empty"
    return f"it existed{where}, and its data is gone; {created}"


def _again(d: Drafter, entry: DeclareTable, former: Former) -> None:
    """A table that came to an end behind our back is not made again in silence: its rows are lost, and an empty table
    under its name hides that."""
    if former.owner not in (None, d.context.owner):
        why = (
            f"it existed at {former.location}, and its data is gone; {former.owner} owned it, and their record of it "
            f"stands: {former.record}. Let them recreate or remove the table, or remove that record if it is settled"
        )
        d.block = d.block or Block("", why, "unsupported")
    d.propose(entry, "safe", _made_empty(d, former.location), allow_word=RECREATE)


def _moved_fields(context: Context, want: DesiredTable) -> Fields:
    """Of a table that declares no columns and gets another one's."""
    origin = context.snapshot.origins.get(want.ident)
    return origin.dataset.fields if origin is not None and origin.dataset is not None else ()


def new_location(capabilities: Capabilities, want: DesiredTable) -> str | None:
    """Where a table without data goes; None when only the server knows."""
    if not capabilities.chooses_location:
        return None
    return want.location or capabilities.location_of(want.ident)


def _cannot_hold(d: Drafter, want: DesiredTable) -> None:
    """Said, not left out: the properties of an object that has no place for any."""
    if cannot := diff_map(want.properties, EMPTY, (), ignored_paths(want), "properties"):
        marks = d.table.marks if isinstance(d.now, Present) else Marks(d.context.owner)
        before: Json = {"properties": cannot.before(EMPTY), "marks": marks_json(marks)}
        d.propose(UpdateTable(want.ident, cannot.set, (), marks), "metadata", "properties differ", before)


def _elsewhere(want: DesiredTable, found: Detached) -> Block | None:
    if want.location is None or canonical_location(want.location) == canonical_location(found.location):
        return None
    why = f"its data is at {found.location}, and `location` says {want.location}: a table is not moved by that"
    return Block("", why, "unsupported")


def _new_entry(context: Context, want: DesiredTable, holds: bool, location: str | None, fields: Fields) -> DeclareTable:
    applied = diff_map(want.properties, EMPTY, (), ignored_paths(want), "properties").applied if holds else ()
    marks = Marks(context.owner, bool(want.protect), applied)
    properties = {k: want.properties[k] for k in applied}
    return DeclareTable(want.ident, properties, marks, location, columns_for(context.capabilities, fields))


def _dataset(d: Drafter, want: DesiredTable, where: Standing, notes: bool) -> Block | None:
    """Gives what blocks the columns that the entry shows. Data that another owner has marked may stand in two catalogs,
    and our entry goes on showing it; data that nobody has marked is a sign that our entry was pointed elsewhere."""
    if not isinstance(d.now, Present):
        return None
    held = None
    if where == "owned":
        owner = _whose_data(d, want)
        where, held = data_standing(d.context, owner, d.table)
        if where == "adopting":
            adopt_data(d, want, owner)
    if held is None or d.block is not None:
        _steps_of_data(d, want, where, notes)
        return None
    d.block, before = held, d.now
    _steps_of_data(d, want, where, notes)
    d.block, d.now = None, before
    return held if held.word == ADOPT else None


def _whose_data(d: Drafter, want: DesiredTable) -> str | None:
    """A copy that was not marked yet has the mark of what it was copied from."""
    origin = d.context.snapshot.origins.get(want.ident)
    return d.table.marks.owner if origin is not None and origin.copied else data_owner(d.context.owner, d.table)


def _steps_of_data(d: Drafter, want: DesiredTable, where: Standing, notes: bool) -> None:
    if want.migration is not None and not plan_migration(d, want, want.migration):
        return
    if isinstance(d.table.dataset, DatasetState):
        plan_dataset(d, want, bookkeeping=where != "held", notes=notes)
    elif d.table.dataset is None and want.fields is not None:
        gone = d.table.gone
        reason = _made_empty(d, d.table.location) if gone else "no data yet: an empty dataset is written"
        if d.propose(_new_dataset(d, want), "safe", reason, allow_word=RECREATE if gone else None):
            plan_data(d, want)
            create_indexes(d, want)
    elif d.table.dataset is None and (want.config or want.schema_metadata or want.indexes):
        parts = {"config": want.config, "schemaMetadata": want.schema_metadata, "indexes": want.indexes}
        why = f"{listing([k for k, v in parts.items() if v])} need a dataset, and there is none: declare a schema"
        change = UpdateDataset(want.ident, dict(want.config), dict(want.schema_metadata), {}, d.context.owner, ())
        d.refuse(change, "metadata", Block("", why, "unsupported"))


def _new_dataset(d: Drafter, want: DesiredTable) -> CreateDataset:
    """What is left to others (`ignoreDifferences`) is not set at the start either."""
    ignored = frozenset(want.ignore_differences)
    return CreateDataset(
        want.ident,
        _new_fields(want),
        diff_map(want.schema_metadata, EMPTY, (), ignored, "schemaMetadata").set,
        diff_map(want.config, EMPTY, (), ignored, "config").set,
        d.context.owner,
        expected_applied(want),
    )


def _new_fields(want: DesiredTable) -> Fields:
    rule = ignore_rule(want.ignore_differences)
    return tuple(unignored(plain(f), f.name, rule) for f in want.fields or ())
