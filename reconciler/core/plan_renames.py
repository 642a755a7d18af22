"""Where a renamed object may be found, and what keeps a namespace from being moved.

A rename of a namespace moves everything inside, so an object below it goes by two names until all renames are done:
`old.t` and `new.t` are the same table. Both are looked for, whatever an interrupted run has left.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from reconciler.core.draft import Block, Context, gap_block, unread_block
from reconciler.core.ownership import entry_owner, standing
from reconciler.core.world import World
from reconciler.model.desired import DesiredNamespace
from reconciler.model.ident import Ident, dotted, is_below
from reconciler.model.observed import Present, Snapshot, Unreadable
from reconciler.model.plan import NOT_OWNED, RENAME_CONFLICT, TWO_APPLIES

Renames = Mapping[Ident, Ident]
"""New identifier -> old identifier."""


def namespace_renames(namespaces: Mapping[Ident, DesiredNamespace]) -> dict[Ident, Ident]:
    return {i: n.renamed_from for i, n in namespaces.items() if n.renamed_from is not None and not n.absent}


def later_names(ident: Ident, renames: Renames) -> Iterator[Ident]:
    """The identifier itself, then what it becomes when namespaces above it get their new names."""
    return _names(ident, [(old, new) for new, old in renames.items()])


def earlier_names(ident: Ident, renames: Renames) -> Iterator[Ident]:
    """The identifier itself, then what it was while namespaces above it had their old names."""
    return _names(ident, list(renames.items()))


def _names(ident: Ident, moves: list[tuple[Ident, Ident]]) -> Iterator[Ident]:
    """Each move is used once at most, so that odd renames cannot go on for ever."""
    yield ident
    for i, (source, target) in enumerate(moves):
        if is_below(ident, source):
            yield from _names(target + ident[len(source) :], moves[:i] + moves[i + 1 :])


def move_block(
    context: Context,
    world: World,
    snapshot: Snapshot,
    declared: Container[Ident],
    leaving: Container[Ident],
    source: Ident,
    target: Ident,
) -> Block | None:
    """Why the namespace may not be moved although it is ours: moving it changes the name of all that is inside.
    `declared`: the identifiers of everything that is to be present; `leaving`: the old names of all that is renamed."""
    found = world.namespaces[source]
    if isinstance(found, Unreadable):
        return unread_block(found, f"{dotted(source)} exists but")
    if is_below(target, source):
        return Block(RENAME_CONFLICT, f"{dotted(source)} cannot be moved into itself")
    if (gap := snapshot.gap_at(source)) is not None:
        return gap_block(gap, f"the listing of {dotted(source)} is incomplete: what is inside would move too")
    if (gap := snapshot.gap_at(target)) is not None:
        return gap_block(gap, f"the listing of {dotted(target)} is incomplete: something may be there already")
    if there := next(world.below(target), None):
        why = f"{dotted(there)} is live without its namespace: remove it in one apply, rename in the next"
        return Block(TWO_APPLIES, why)
    for ident in world.below(source):
        if ident in declared:
            return Block(
                RENAME_CONFLICT, f"{dotted(ident)} is declared and would lose its name: declare it below the new one"
            )
        inside = world.namespaces.get(ident) or world.tables.get(ident)
        if inside is None:
            return Block(NOT_OWNED, f"{dotted(ident)} is inside and ignored: it would get another name")
        if not _movable(context, inside, target + ident[len(source) :] in declared):
            if ident in leaving:
                why = f"{dotted(ident)} is inside and is renamed itself: that comes first, this in the next apply"
                return Block(TWO_APPLIES, why)
            return Block(NOT_OWNED, f"{dotted(ident)} is inside and not ours: it would get another name")
    return None


def _movable(context: Context, found: Present | Unreadable, declared: bool) -> bool:
    """Ours, or to be taken in this plan."""
    if isinstance(found, Unreadable):
        return False
    where, _ = standing(context, entry_owner(context.owner, found.state))
    return where == "owned" or (where == "adopting" and declared)
