"""The steps that bring a table's columns to the declared schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.core.applied import wanted_metadata
from reconciler.core.casts import Cast
from reconciler.core.diff_schema import Difference, aspect_of, compare, ignore_rule, unignored
from reconciler.core.draft import Block, Drafter
from reconciler.core.fields import bare, edit, pairs, plain, unspeakable, walk
from reconciler.core.plan_index import wanted_indexes, with_live_names
from reconciler.core.rewrite import rewritten
from reconciler.core.text import listing
from reconciler.model.arrow import ArrowType, Field
from reconciler.model.change import (
    DATA_PLANE,
    AddColumns,
    AlterColumns,
    BackfillColumns,
    ColumnAlteration,
    DropColumns,
    DropIndex,
    RewriteColumns,
)
from reconciler.model.codec import field_json, index_json
from reconciler.model.desired import DesiredTable
from reconciler.model.plan import PARENT_BLOCKED, RENAME_CONFLICT, Json, Risk


def plan_columns(d: Drafter, want: DesiredTable) -> dict[str, str]:
    """Renames first, so that everything after speaks of columns by their new names; then rewrites, because differences
    inside a list show only once the list itself is as declared. Gives the renames done, as old path -> new name."""
    renames: dict[str, str] = {}
    if not _renames(d, want, renames):
        return renames
    while anew := {x.column for x in _differences(d, want) if _needs_rewrite(x)}:
        as_it_was = d.dataset.fields
        _rewrites(d, want, anew)
        if not _renames(d, want, renames):
            return renames
        if d.dataset.fields == as_it_was:
            break
    _refuse_unspeakable(d, want)
    found = _differences(d, want)
    for x in (x for x in found if x.kind == "conflict"):
        stuck = Block(RENAME_CONFLICT, f"column {_wanted(x).name} is renamed from {x.path}, but both are there")
        alteration = ColumnAlteration(x.path, rename=_wanted(x).name)
        d.refuse(AlterColumns(want.ident, (alteration,)), "metadata", stuck)
    _casts(d, want, [x for x in found if x.kind == "type" and x.cast != "rewrite"])
    _nullability(d, want, [x for x in found if x.kind == "nullable"])
    missing = [_wanted(x) for x in found if x.kind == "missing" and "." not in x.path]
    extra = [x for x in found if x.kind == "extra"]
    if _nothing_stays(d, missing, extra):
        _all_anew(d, want, missing, extra)
        return renames
    _additions(d, want, missing)
    _drops(d, want, extra)
    return renames


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


def _needs_rewrite(x: Difference) -> bool:
    return x.cast == "rewrite" or (x.kind == "missing" and "." in x.path)


def _casts(d: Drafter, want: DesiredTable, found: Sequence[Difference]) -> None:
    kinds: tuple[tuple[Cast, Risk, str | None], ...] = (
        ("widen", "rewrite", None),
        ("narrow", "destructive", "narrow_type"),
    )
    for cast, risk, word in kinds:
        these = [x for x in found if x.cast == cast]
        if not these:
            continue
        columns = tuple(ColumnAlteration(x.path, type=_types(x)[1]) for x in these)
        before: Json = {"columns": {x.path: str(_types(x)[0]) for x in these}}
        text = listing([f"{x.path} {_types(x)[0]} -> {_types(x)[1]}" for x in these])
        reason = f"{'wider' if cast == 'widen' else 'narrower'} type: {text}"
        change = AlterColumns(want.ident, columns)
        may = word is None or word in d.allow or d.block is not None
        if may and not _free_of_indexes(d, want, [x.path for x in these]):
            d.refuse(change, risk, Block(PARENT_BLOCKED, f"{reason}; an index on it must go first"), before)
        else:
            d.propose(change, risk, reason, before, word)


def _types(x: Difference) -> tuple[ArrowType, ArrowType]:
    """Live and wanted, as compared."""
    assert x.live is not None
    return bare(x.live.type), bare(_wanted(x).type)


def _free_of_indexes(d: Drafter, want: DesiredTable, paths: Sequence[str]) -> bool:
    """Lance refuses to cast an indexed column: its indexes are dropped, and the declared ones made again later. When
    one of them has to stay, none is touched: the cast cannot be done anyway."""
    declared = {i.name for i in wanted_indexes(with_live_names(want, d.dataset.indexes))}
    held = [i for i in sorted(d.dataset.indexes, key=lambda i: i.name) if _on(i.column, paths)]
    lost = [i for i in held if i.name not in declared]
    stays = d.block is None and "drop_index" not in d.allow
    for index in lost if stays and lost else held:
        again = index.name in declared
        reason = f"index {index.name}: the type of {index.column} changes" + (
            "; made again afterwards" if again else ""
        )
        change = DropIndex(want.ident, index.name)
        risk: Risk = "rewrite" if again else "destructive"
        if not d.propose(change, risk, reason, index_json(index), None if again else "drop_index"):
            return False
    return True


def _on(column: str, paths: Sequence[str]) -> bool:
    return any(column == p or column.startswith(p + ".") for p in paths)


def _nullability(d: Drafter, want: DesiredTable, found: Sequence[Difference]) -> None:
    for nullable, word in ((True, None), (False, "set_not_null")):
        these = [x for x in found if _wanted(x).nullable is nullable]
        if these:
            paths = [x.path for x in these]
            columns = tuple(ColumnAlteration(p, nullable=nullable) for p in paths)
            reason = f"{listing(paths)}: " + ("nulls allowed" if nullable else "no nulls allowed any more")
            before: Json = {"columns": {p: {"nullable": not nullable} for p in paths}}
            d.propose(AlterColumns(want.ident, columns), "metadata", reason, before, word)


def _additions(d: Drafter, want: DesiredTable, missing: Sequence[Field]) -> None:
    rule = ignore_rule(want.ignore_differences)
    free = tuple(unignored(plain(f), f.name, rule) for f in missing if f.nullable and not f.filled)
    if free:
        d.propose(AddColumns(want.ident, free), "safe", f"new columns: {listing([f.name for f in free])}")
    filled = tuple(unignored(f, f.name, rule) for f in missing if f.filled)
    if filled:
        reason = f"new columns with values for existing rows: {listing([f.name for f in filled])}"
        d.propose(BackfillColumns(want.ident, filled), "rewrite", reason)
    for f in missing:
        if not f.nullable and not f.filled:
            reason = (
                f"column {f.name} is NOT NULL and rows that exist have no value for it: give it a default or backfill"
            )
            d.refuse(AddColumns(want.ident, (plain(f),)), "safe", Block("", reason, "unsupported"))


def _rewrites(d: Drafter, want: DesiredTable, names: set[str]) -> None:
    if not names:
        return
    rule = ignore_rule(want.ignore_differences)
    live = {f.name: f for f in d.dataset.fields if f.name in names}
    fields = tuple(rewritten(f, live[f.name], rule, f.name) for f in want.fields or () if f.name in live)
    reason = f"Lance cannot change {listing(sorted(names))} in place: the column is written anew"
    before: Json = {"columns": [field_json(f) for f in live.values()]}
    change = RewriteColumns(want.ident, fields)
    if d.may(change) and not _free_of_indexes(d, want, sorted(names)):
        d.refuse(change, "rewrite", Block(PARENT_BLOCKED, f"{reason}; an index on it must go first"), before)
    else:
        d.propose(change, "rewrite", reason, before)


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
    if d.block is not None or "drop_column" in d.allow:
        for index in sorted(d.dataset.indexes, key=lambda i: i.name):
            if _on(index.column, paths):
                reason = f"index {index.name} goes with column {index.column}"
                d.propose(DropIndex(want.ident, index.name), "destructive", reason, index_json(index), "drop_column")
    lost = [i.name for i in d.dataset.indexes if _on(i.column, paths)]
    reason = f"columns that are not declared: {listing(paths)}" + (f" (with index {listing(lost)})" if lost else "")
    before = {"columns": [field_json(x.live) for x in extra if x.live is not None]}
    d.propose(DropColumns(want.ident, tuple(paths)), "destructive", reason, before, "drop_column")


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
