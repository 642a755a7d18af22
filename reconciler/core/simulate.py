"""The self-check: every plan is run on an in-memory catalog before anybody sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from reconciler.core.errors import InternalError
from reconciler.core.fingerprint import same
from reconciler.core.plan_catalog import CatalogPlan
from reconciler.core.world import World
from reconciler.model.change import RenameNamespace, RenameTable
from reconciler.model.errors import CatalogError
from reconciler.model.ident import dotted
from reconciler.model.observed import Absent, Finding, Present, Snapshot
from reconciler.model.plan import THRESHOLD, Step
from reconciler.model.state import UNKNOWN, TableState


def check(
    steps: tuple[Step, ...], snapshots: Mapping[str, Snapshot], again: Callable[[str, Snapshot], CatalogPlan]
) -> None:
    """Runs the allowed steps in order under RESTRICT, compares every result with the plan, and plans once more: what is
    left may only be what was held back before."""
    allowed = [s for s in steps if s.verdict == "allowed"]
    for name in sorted({s.catalog for s in allowed}):
        world = World(snapshots[name])
        for step in (s for s in allowed if s.catalog == name):
            run(world, step)
        end = replace(world.snapshot(), gaps=snapshots[name].gaps, hidden=snapshots[name].hidden)
        held = {(s.action, s.change.ident) for s in steps if s.catalog == name and s.verdict != "allowed"}
        over = {s.change.ident for s in steps if s.catalog == name and s.blocked_by == THRESHOLD}
        second = again(name, end)
        for draft in (*second.drafts, *second.deletes):
            what = (draft.change.action, draft.change.ident)
            if draft.verdict == "allowed" and draft.change.ident not in over:
                raise InternalError(f"after this plan {what[0]} {dotted(what[1])} would still be needed")
            if draft.verdict != "allowed" and what not in held and draft.change.ident not in over:
                raise InternalError(f"after this plan {what[0]} {dotted(what[1])} would be newly held back")


def run(world: World, step: Step) -> None:
    """One step of a plan on a world, with its expectations checked."""
    change = step.change
    children = world.children(change.ident) if step.action == "drop_namespace" else None
    before = world.find(change.kind, change.ident)
    if isinstance(change, (RenameTable, RenameNamespace)):
        before = Absent() if not isinstance(before, Present) else before
    if not same(step.expect, _unread(step, before), children):
        raise InternalError(f"{step.id} {step.action} {dotted(change.ident)} expects another state than there will be")
    try:
        findings = world.apply(change)
    except CatalogError as e:
        raise InternalError(f"{step.id} {step.action} {dotted(change.ident)} is not legal: {e.message}") from e
    if not step.deletes and not same(step.yields, findings[-1]):
        raise InternalError(f"{step.id} {step.action} {dotted(change.ident)} yields another state than planned")


def _unread(step: Step, finding: Finding) -> Finding:
    """A delete compares the catalog entry only: the dataset is not read for it."""
    if step.deletes and isinstance(finding, Present) and isinstance(finding.state, TableState):
        return Present(replace(finding.state, dataset=UNKNOWN))
    return finding
