"""The self-check: every plan is run on an in-memory catalog before anybody sees it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from reconciler.core.draft import Draft
from reconciler.core.errors import InternalError
from reconciler.core.plan_catalog import CatalogPlan
from reconciler.core.world import World
from reconciler.model.change import DELETES, RenameNamespace, RenameTable
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Finding, Present, Snapshot, what_is_left
from reconciler.model.plan import NOT_EMPTY, THRESHOLD, TWO_APPLIES
from reconciler.model.state import UNKNOWN, TableState


def check(
    drafts: Sequence[tuple[str, Draft]],
    snapshots: Mapping[str, Snapshot],
    again: Callable[[str, Snapshot], CatalogPlan],
    missing: Callable[[str, Snapshot, frozenset[Ident]], str | None],
    unread: Mapping[str, Container[Ident]] = MappingProxyType({}),
) -> None:
    """Runs the allowed drafts in order under RESTRICT, compares every result with the plan, and plans once more: what
    is left may only be what was held back before. `missing` says what is not as declared in the end, apart from what
    was held back: a planner that forgets a step does so both times."""
    by_catalog: dict[str, list[Draft]] = {name: [] for name in snapshots}
    for name, draft in drafts:
        by_catalog[name].append(draft)
    for name, all_ in by_catalog.items():
        end = snapshots[name]
        allowed = [d for d in all_ if d.verdict == "allowed"]
        if allowed:
            world = World(end, unread=unread.get(name, ()))
            for draft in allowed:
                run(world, draft)
            left = world.snapshot()
            end = replace(end, namespaces=left.namespaces, tables=left.tables, data_left=world.data_left)
            _converged(all_, again(name, end))
        problem = missing(name, end, frozenset(d.change.ident for d in all_ if d.verdict != "allowed"))
        if problem is not None:
            raise InternalError(f"after this plan {problem}")


def _converged(first: Sequence[Draft], second: CatalogPlan) -> None:
    held = {(d.change.action, d.change.ident) for d in first if d.verdict != "allowed"}
    over = {d.change.ident for d in first if d.blocked_by == THRESHOLD}
    later = {d.change.ident for d in first if d.blocked_by == TWO_APPLIES}
    over |= _emptied_later(first, later)
    for draft in (*second.drafts, *second.deletes):
        what = (draft.change.action, draft.change.ident)
        if draft.change.ident in over or _within(what[1], later):
            continue  # Held back until a later apply, and so is what lives below it.
        if draft.verdict == "allowed":
            raise InternalError(f"after this plan {what[0]} {dotted(what[1])} would still be needed")
        if what not in held:
            raise InternalError(f"after this plan {what[0]} {dotted(what[1])} would be newly held back")


def _emptied_later(first: Sequence[Draft], later: set[Ident]) -> set[Ident]:
    """Namespaces that cannot be dropped yet because something in them waits for a rename that takes two applies."""
    renames = (
        d.change for d in first if d.verdict != "allowed" and isinstance(d.change, RenameNamespace | RenameTable)
    )
    leaving = [change.source for change in renames if _within(change.ident, later)]
    full = {d.change.ident for d in first if d.blocked_by == NOT_EMPTY}
    return {ident for ident in full if any(_within(source, {ident}) for source in leaving)}


def _within(ident: Ident, places: Iterable[Ident]) -> bool:
    return any(ident[: len(place)] == place for place in places)


def run(world: World, draft: Draft) -> None:
    """One draft on a world, with its expectations checked."""
    change = draft.change
    name = f"{change.action} {dotted(change.ident)}"
    before = what_is_left(world.find(change.kind, change.ident))
    if isinstance(change, DELETES):
        before = _unread(before)
    if before != draft.expect:
        raise InternalError(f"{name} expects another state than there will be")
    try:
        findings = world.apply(change)
    except CatalogError as e:
        raise InternalError(f"{name} is not legal: {e.message}") from e
    if findings[-1] != draft.yields and not isinstance(change, DELETES):
        raise InternalError(f"{name} yields another state than planned")


def _unread(finding: Finding) -> Finding:
    """A delete compares the catalog entry only: the dataset is not read for it."""
    if isinstance(finding, Present) and isinstance(finding.state, TableState):
        return Present(replace(finding.state, dataset=UNKNOWN))
    return finding
