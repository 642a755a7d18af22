"""The steps that bring a table's columns to the declared schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.core.applied import wanted_metadata
from reconciler.core.diff_schema import Difference, aspect_of, compare, ignore_rule, unignored
from reconciler.core.draft import Block, Drafter
from reconciler.core.fields import bare, edit, pairs, plain, unspeakable, walk
from reconciler.core.plan_casts import Casts, is_on, needs_rewrite
from reconciler.core.text import listing
from reconciler.model.arrow import Field
from reconciler.model.change import (
    DATA_PLANE,
    AddColumns,
    AlterColumns,
    BackfillColumns,
    ColumnAlteration,
    DropColumns,
)
from reconciler.model.codec import field_json
from reconciler.model.desired import DesiredTable
from reconciler.model.plan import PARENT_BLOCKED, RENAME_CONFLICT, Json


def plan_columns(d: Drafter, want: DesiredTable) -> dict[str, str]:
    """Renames first, so that everything after speaks of columns by their new names; then rewrites, because differences
    inside a list show only once the list itself is as declared. Gives the renames done, as old path -> new name.
    Indexes that a new type takes away come back before any other work on the table's data."""
    renames: dict[str, str] = {}
    casts = Casts(d, want)
    found = _brought_to_names(d, want, renames, casts)
    if found is None:
        casts.build_indexes()
        return renames
    _refuse_unspeakable(d, want)
    for x in (x for x in found if x.kind == "conflict"):
        stuck = Block(RENAME_CONFLICT, f"column {_wanted(x).name} is renamed from {x.path}, but both are there")
        alteration = ColumnAlteration(x.path, rename=_wanted(x).name)
        d.refuse(AlterColumns(want.ident, (alteration,)), "metadata", stuck)
    casts.in_place([x for x in found if x.kind == "type" and not needs_rewrite(x)])
    casts.nullability([x for x in found if x.kind == "nullable"])
    casts.build_indexes()
    missing = [_wanted(x) for x in found if x.kind == "missing" and "." not in x.path]
    extra = [x for x in found if x.kind == "extra"]
    if _nothing_stays(d, missing, extra):
        _all_anew(d, want, missing, extra)
        return renames
    _additions(d, want, missing)
    _drops(d, want, extra)
    return renames


def _brought_to_names(d: Drafter, want: DesiredTable, renames: dict[str, str], casts: Casts) -> list[Difference] | None:
    """What differs once names are as declared and columns are written anew, in turns until nothing moves any more.
    None when a rename cannot be done: what follows would speak of columns that are not there."""
    waits = _make_room(d, want)
    stuck = set(waits)
    while True:
        if not _renames(d, want, renames):
            return None
        found = [x for x in _differences(d, want) if x.column not in waits and _target(x) not in waits]
        anew = sorted({x.column for x in found if needs_rewrite(x)} - stuck)
        if not anew:
            return found
        for name in anew:
            as_it_was = d.dataset.fields
            casts.rewrite(name, [x for x in found if x.column == name])
            if d.dataset.fields == as_it_was:
                stuck.add(name)
            if not any(x.column == name and x.kind in ("type", "missing") for x in _differences(d, want)):
                casts.build_indexes(name)


def _target(x: Difference) -> str | None:
    return _wanted(x).name if x.kind == "conflict" else None


def _make_room(d: Drafter, want: DesiredTable) -> set[str]:
    """A column whose type no cast gives is replaced by another one: that one is as declared and is renamed to it, and
    the old column is dropped first. Both being there is a conflict in every other case: the rename may be an old one.
    Gives the columns that may not be dropped."""
    live = {f.name: bare(f.type) for f in d.dataset.fields}
    waits: set[str] = set()
    for x in [x for x in _differences(d, want) if x.kind == "conflict" and "." not in x.path]:
        new, old = _wanted(x), x.path
        if live[new.name] == bare(new.type) or live[old] != bare(new.type):
            continue
        reason = f"column {new.name} is replaced by {old}, which has the declared type and is renamed to it"
        reason += _with_indexes(d, [new.name])
        before: Json = {"columns": [field_json(f) for f in d.dataset.fields if f.name == new.name]}
        if not d.propose(DropColumns(want.ident, (new.name,)), "destructive", reason, before, "drop_column"):
            waits.add(new.name)
            stuck = Block(PARENT_BLOCKED, f"column {old} is renamed to {new.name}, which has to be dropped first")
            d.refuse(AlterColumns(want.ident, (ColumnAlteration(old, rename=new.name),)), "metadata", stuck)
    return waits


def _nothing_stays(d: Drafter, missing: Sequence[Field], extra: Sequence[Difference]) -> bool:
    """True when every column that is there would go and none that holds values would come."""
    gone = {x.path for x in extra}
    filled = any(f.filled for f in missing)
    return d.block is None and bool(gone) and not filled and all(f.name in gone for f in d.dataset.fields)


def _all_anew(d: Drafter, want: DesiredTable, missing: Sequence[Field], extra: Sequence[Difference]) -> None:
    """A new column without values has no data file, and rows without any data file cannot be read again. The additions
    are refused too: once they are there, nothing tells them from columns with values."""
    names = listing([x.path for x in extra])
    why = "no column that is there now would stay, and Lance cannot read rows that have none of their data left: "
    hint = "keep one of them, give a new one a `default` or `backfill`, use `renamedFrom`, or make a new table"
    if missing:
        new = tuple(plain(f) for f in missing)
        reason = f"new columns: {listing([f.name for f in new])}; {why}{hint}"
        d.refuse(AddColumns(want.ident, new), "safe", Block("", reason, "unsupported"))
    before: Json = {"columns": [field_json(x.live) for x in extra if x.live is not None]}
    reason = f"columns that are not declared: {names}; {why}{hint}"
    d.refuse(
        DropColumns(want.ident, tuple(x.path for x in extra)), "destructive", Block("", reason, "unsupported"), before
    )


def _renames(d: Drafter, want: DesiredTable, renames: dict[str, str]) -> bool:
    """False when a rename cannot be done: what follows would speak of columns that are not there."""
    while found := [x for x in _differences(d, want) if x.kind == "rename"]:
        done = {x.path: _wanted(x).name for x in found}
        columns = tuple(ColumnAlteration(x.path, rename=_wanted(x).name) for x in found)
        text = listing([f"{old} -> {new}" for old, new in done.items()])
        before: Json = {"columns": list(done)}
        if not d.propose(AlterColumns(want.ident, columns), "metadata", f"columns renamed: {text}", before):
            return False
        renames |= done
    return True


def _differences(d: Drafter, want: DesiredTable) -> list[Difference]:
    """Those that can be changed as far as names go."""
    odd = _unspeakable(d)
    return [x for x in _all_differences(d, want) if not _out_of_reach(x, odd)]


def _all_differences(d: Drafter, want: DesiredTable) -> Iterator[Difference]:
    assert want.fields is not None
    return compare(want.fields, d.dataset.fields, want.at_least, ignore_rule(want.ignore_differences))


def _unspeakable(d: Drafter) -> dict[str, str]:
    """Columns with a name in them that no path can hold, and that name."""
    return {f.name: name for f in d.dataset.fields if (name := unspeakable(f)) is not None}


def _out_of_reach(x: Difference, odd: Mapping[str, str]) -> bool:
    """A column as a whole can be renamed or dropped whatever is in it, if its own name is not the odd one."""
    return x.column in odd and ("." in x.path or odd[x.column] == x.column)


def _refuse_unspeakable(d: Drafter, want: DesiredTable) -> None:
    """Everything inside such a column that is not as declared, notes included, in one step a column."""
    odd = _unspeakable(d)
    if not odd:
        return
    rule = ignore_rule(want.ignore_differences)
    live = {f.name: f for f in d.dataset.fields}
    differ = {x.column for x in _all_differences(d, want) if _out_of_reach(x, odd)}
    for f in want.fields or ():
        for path, w, found in pairs(f.type, live[f.name].type, f"{f.name}.") if f.name in odd else ():
            missed = wanted_metadata(w).items() - wanted_metadata(found).items()
            if any(not rule(path, aspect_of(key)) for key, _ in missed):
                differ.add(f.name)
    wanted = {f.name: f for f in want.fields or ()}
    for name in sorted(differ):
        reason = (
            f"column {name} is not as declared, but a name in it, {odd[name]!r}, has a dot or a backtick: no path can "
            "hold it, so nothing in there can be changed; write the column anew with pylance, under other names"
        )
        type_ = bare(wanted[name].type) if name in wanted else None
        change = AlterColumns(want.ident, (ColumnAlteration(name, type=type_),))
        before: Json = {"columns": [field_json(live[name])]}
        d.refuse(change, "rewrite", Block("", reason, "unsupported"), before)


def _wanted(x: Difference) -> Field:
    assert x.want is not None
    return x.want


def _additions(d: Drafter, want: DesiredTable, missing: Sequence[Field]) -> None:
    rule = ignore_rule(want.ignore_differences)
    free = tuple(unignored(plain(f), f.name, rule) for f in missing if f.nullable and not f.filled)
    if free:
        d.propose(AddColumns(want.ident, free), "safe", f"new columns: {listing([f.name for f in free])}")
    lacking = d.context.options.functions
    fill = [unignored(f, f.name, rule) for f in missing if f.filled]
    for filled in ([f for f in fill if f.function not in lacking], [f for f in fill if f.function in lacking]):
        if not filled:
            continue
        reason = f"new columns with values for existing rows: {listing([f.name for f in filled])}"
        d.propose(BackfillColumns(want.ident, tuple(filled)), "rewrite", reason)
    for f in missing:
        if not f.nullable and not f.filled:
            reason = (
                f"column {f.name} is NOT NULL and rows that exist have no value for it: give it a default or backfill"
            )
            d.refuse(AddColumns(want.ident, (plain(f),)), "safe", Block("", reason, "unsupported"))


def _drops(d: Drafter, want: DesiredTable, extra: Sequence[Difference]) -> None:
    extra = _without_the_last(d, want, extra)
    if not extra:
        return
    paths = [x.path for x in extra]
    if waits := _waiting_for_data(d):
        reason = f"columns that are not declared: {listing(paths)}; they stay until {waits} has run: it may read them"
        before: Json = {"columns": [field_json(x.live) for x in extra if x.live is not None]}
        d.refuse(DropColumns(want.ident, tuple(paths)), "destructive", Block(PARENT_BLOCKED, reason), before)
        return
    reason = f"columns that are not declared: {listing(paths)}{_with_indexes(d, paths)}"
    before = {"columns": [field_json(x.live) for x in extra if x.live is not None]}
    d.propose(DropColumns(want.ident, tuple(paths)), "destructive", reason, before, "drop_column")


def _with_indexes(d: Drafter, paths: Sequence[str]) -> str:
    """Lance drops a column and its indexes in one commit."""
    lost = [i.name for i in d.dataset.indexes if is_on(i.column, paths)]
    return f" (with index {listing(lost)})" if lost else ""


def _waiting_for_data(d: Drafter) -> str | None:
    """The backfill or rewrite of this table that is held back: a drop before it would take away what it reads."""
    if d.block is not None:
        return None
    held = (x.change.action for x in d.drafts if isinstance(x.change, DATA_PLANE) and x.verdict != "allowed")
    return next(held, None)


def _without_the_last(d: Drafter, want: DesiredTable, extra: Sequence[Difference]) -> list[Difference]:
    """A struct that loses its last field is gone in Lance, and with it a column that is declared: those drops wait
    until the struct has its declared fields."""
    out: list[Difference] = []
    left = d.dataset.fields
    for x in extra:
        after = edit(left, x.path, lambda _: None)
        gone = {p for p, _ in walk(left)} - {p for p, _ in walk(after)}
        if any(x.path.startswith(p + ".") for p in gone):
            block = Block(PARENT_BLOCKED, f"{x.path} is not declared, but its struct would be left without a field")
            d.refuse(DropColumns(want.ident, (x.path,)), "destructive", block)
        else:
            out.append(x)
            left = after
    return out
