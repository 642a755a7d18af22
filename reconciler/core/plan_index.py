"""The steps for a table's indexes."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.applied import entries_left_to_others, parse_applied
from reconciler.core.diff_index import by_name, index_differences
from reconciler.core.draft import Block, Drafter
from reconciler.core.fields import find
from reconciler.model.change import CreateIndex, DropIndex
from reconciler.model.codec import index_json
from reconciler.model.desired import DesiredTable
from reconciler.model.plan import PARENT_BLOCKED
from reconciler.model.state import Index, default_index_name


def wanted_indexes(want: DesiredTable) -> tuple[Index, ...]:
    """The declared indexes that are not left to others."""
    ignored = want.ignore_differences
    if "indexes" in ignored:
        return ()
    return tuple(i for i in want.indexes if f"indexes.{i.name}" not in ignored)


def with_live_names(want: DesiredTable, live: tuple[Index, ...]) -> DesiredTable:
    """An index declared without a name is met by any index that is as declared: Lance keeps the name of an index when
    its column is renamed, and others name theirs as they like."""
    there = {i.name for i in live}
    free = [i for i in live if i.name not in {w.name for w in want.indexes}]
    indexes = list(want.indexes)
    for at, index in enumerate(indexes):
        if index.name in there or index.name != default_index_name(index.column):
            continue
        match = next((i for i in free if not index_differences(index, i)), None)
        if match is not None:
            free.remove(match)
            indexes[at] = replace(index, name=match.name)
    return want if tuple(indexes) == want.indexes else replace(want, indexes=tuple(indexes))


def drop_indexes(d: Drafter, want: DesiredTable) -> None:
    """Drops the ones that differ (to be made again) and the ones that we made and the manifest lost. An index that
    somebody else made and nobody declares stays."""
    wanted = by_name(wanted_indexes(want))
    left_alone = entries_left_to_others(want.ignore_differences)
    ours = parse_applied(d.dataset.applied).indexes
    for live in sorted(d.dataset.indexes, key=lambda i: i.name):
        declared = wanted.get(live.name)
        if declared is not None:
            if differ := index_differences(declared, live):
                what = ", ".join(f"{k} {old!s} -> {new!s}" for k, (old, new) in differ.items())
                reason = f"index {live.name} differs ({what}): dropped and made again"
                drop = DropIndex(want.ident, live.name)
                if live.name in ours:
                    d.propose(drop, "rewrite", reason, index_json(live))
                else:
                    d.propose(drop, "destructive", f"{reason}; we did not make it", index_json(live), "drop_index")
        elif live.name in ours and not left_alone(f"index:{live.name}"):
            d.propose(
                DropIndex(want.ident, live.name),
                "destructive",
                f"index {live.name} is no longer declared",
                index_json(live),
                "drop_index",
            )


def create_indexes(d: Drafter, want: DesiredTable) -> None:
    there = {i.name for i in d.dataset.indexes}
    for index in sorted(wanted_indexes(want), key=lambda i: i.name):
        if index.name in there:
            continue
        change = CreateIndex(want.ident, index)
        if find(d.dataset.fields, index.column) is None:
            reason = f"index {index.name} needs column {index.column}, whose step is held back"
            d.refuse(change, "safe", Block(PARENT_BLOCKED, reason))
        else:
            d.propose(change, "safe", f"index {index.name} does not exist yet")
