"""The steps for a table's indexes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from reconciler.core.applied import entries_left_to_others, parse_applied
from reconciler.core.diff_index import by_name, differences_text, index_differences, index_notes
from reconciler.core.draft import Block, Drafter
from reconciler.core.fields import bare, find
from reconciler.core.index_fit import unsuitable
from reconciler.core.kept_params import keeping
from reconciler.model.change import CreateIndex, DropIndex, ReplaceIndex
from reconciler.model.codec import index_json
from reconciler.model.desired import DesiredTable
from reconciler.model.ident import Ident
from reconciler.model.plan import PARENT_BLOCKED, Json
from reconciler.model.state import DatasetState, Index, default_index_name


def wanted_indexes(want: DesiredTable) -> tuple[Index, ...]:
    """The declared indexes that are not left to others."""
    ignored = want.ignore_differences
    if "indexes" in ignored:
        return ()
    return tuple(i for i in want.indexes if f"indexes.{i.name}" not in ignored)


def with_live_names(want: DesiredTable, live: DatasetState) -> DesiredTable:
    """An index declared without a name is met by any index that is as declared: Lance keeps the name of an index when
    its column is renamed, and others name theirs as they like. Failing that, by one that we made for this column, of
    this type: it gets the declared parameters in place, and no second index comes beside it."""
    declared, ours = {w.name for w in want.indexes}, parse_applied(live.applied).indexes
    there = {i.name for i in live.indexes}
    free = [i for i in live.indexes if i.name not in declared]
    names: dict[str, str] = {}
    for only_ours in (False, True):
        for index in want.indexes:
            if index.name in there or index.name in names or index.name != default_index_name(index.column):
                continue
            match = next((i for i in free if _meets(index, i, ours if only_ours else None)), None)
            if match is not None:
                free.remove(match)
                names[index.name] = match.name
    if not names:
        return want
    return replace(want, indexes=tuple(replace(i, name=names.get(i.name, i.name)) for i in want.indexes))


def _meets(index: Index, live: Index, ours: Collection[str] | None) -> bool:
    if ours is None:
        return not index_differences(index, live)
    return live.name in ours and (index.column, index.type) == (live.column, live.type)


def replace_indexes(d: Drafter, want: DesiredTable, managed: bool) -> None:
    """Declared indexes that differ are built anew and swapped in. That needs no allow word while nothing is lost: what
    is declared, on a table that is ours, is built from its rows. An index that somebody else made for another column,
    or of another type, is lost when the declared one takes its name.

    `managed`: those that are in our record, or those that are not. The record takes in the latter afterwards."""
    there = by_name(d.dataset.indexes)
    ours = parse_applied(d.dataset.applied).indexes
    for index in sorted(wanted_indexes(want), key=lambda i: i.name):
        live = there.get(index.name)
        if live is None or (index.name in ours) is not managed or not index_differences(index, live):
            continue
        reason = f"index {index.name} differs: {differences_text(index, live)}"
        change = replacing(want.ident, index, live)
        before: Json = {**index_json(live), **({} if live.rows is None else {"rows": live.rows})}
        if (block := _no_fit(d, want, index)) is not None:
            d.refuse(change, "safe", replace(block, reason=f"{block.reason}; {reason}"), before)
        elif (live.external or not managed) and (index.column, index.type) != (live.column, live.type):
            d.propose(change, "destructive", f"{reason}; we did not make it", before, "drop_index")
        else:
            d.propose(change, "safe", reason, before)


def replacing(ident: Ident, index: Index, live: Index) -> ReplaceIndex:
    """The step that builds `index` in place of `live`."""
    known = live.record if live.type == index.type else None
    same = known is not None and known.current and known.params == index.params
    return ReplaceIndex(ident, keeping(index, live), known.again + 1 if known is not None and same else 0)


def followed_indexes(want: DesiredTable, live: DatasetState) -> frozenset[str]:
    """The live indexes that go while another one comes on the same column, under another name: they go after it, so
    that the column has an index at any time, and keeps it when the other one cannot be built."""
    there = by_name(live.indexes)
    columns = {i.column for i in wanted_indexes(want) if i.name not in there}
    return frozenset(i.name for i in live.indexes if i.column in columns)


def drop_indexes(
    d: Drafter, want: DesiredTable, but: Collection[str] = (), only: Collection[str] | None = None
) -> None:
    """Drops those that we made and the manifest lost. An index that somebody else made and nobody declares stays, also
    under a name that was ours."""
    wanted = by_name(wanted_indexes(want))
    left_alone = entries_left_to_others(want.ignore_differences)
    ours = parse_applied(d.dataset.applied).indexes
    for live in sorted(d.dataset.indexes, key=lambda i: i.name):
        if live.name in wanted or live.name not in ours or live.external:
            continue
        if live.name in but or (only is not None and live.name not in only):
            continue
        if not left_alone(f"index:{live.name}"):
            d.propose(
                DropIndex(want.ident, live.name),
                "destructive",
                f"index {live.name} is no longer declared",
                index_json(live),
                "drop_index",
            )


def _no_fit(d: Drafter, want: DesiredTable, index: Index) -> Block | None:
    """Why Lance would refuse the index on the column as the steps before leave it."""
    live, declared = find(d.dataset.fields, index.column), find(want.fields or (), index.column)
    if live is None:
        return Block(PARENT_BLOCKED, f"needs column {index.column}, whose step is blocked")
    if (why := unsuitable(index, live.type)) is None:
        return None
    if declared is not None and unsuitable(index, declared.type) is None:
        return Block(
            PARENT_BLOCKED, f"needs column {index.column} as {bare(declared.type)}: it is {bare(live.type)} still"
        )
    reason = f"Lance refuses a {index.type} index on {index.column} ({bare(live.type)}): {why}"
    return Block("", reason, "unsupported")


def rebuild_index(d: Drafter, want: DesiredTable, index: Index) -> bool:
    """An index that went with the old type of its column: as declared, with what it keeps. False when it does not fit
    the column that it is declared on, as that is now."""
    if _no_fit(d, want, index) is not None:
        return False
    reason = f"index {index.name} is built again: it went with the old type of its column; until then there is none"
    d.propose(CreateIndex(want.ident, index), "safe", reason)
    return True


def create_indexes(d: Drafter, want: DesiredTable) -> None:
    there = {i.name for i in d.dataset.indexes}
    for index in sorted(wanted_indexes(want), key=lambda i: i.name):
        if index.name in there:
            continue
        change = CreateIndex(want.ident, index)
        if (block := _no_fit(d, want, index)) is not None:
            d.refuse(change, "safe", replace(block, reason=f"{block.reason}; index {index.name} does not exist yet"))
        else:
            d.propose(change, "safe", f"index {index.name} does not exist yet")


def notes_on_indexes(want: DesiredTable, live: DatasetState) -> list[str]:
    """For the reader: where a declared index is not as declared and no step changes that, with the reason."""
    there = by_name(live.indexes)
    declared = sorted(wanted_indexes(with_live_names(want, live)), key=lambda i: i.name)
    return [note for index in declared if index.name in there for note in index_notes(index, there[index.name])]
