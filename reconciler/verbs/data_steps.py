"""`pipeline materialize`, `evolve` and `migrate`: the data steps of the ordinary plan, by themselves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler import app
from reconciler.core.planner import with_id
from reconciler.model.change import CreateIndex, RewriteColumns
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.plan import PARENT_BLOCKED, Plan, Step
from reconciler.model.plan_rules import summarize

if TYPE_CHECKING:
    from reconciler.session import Session

ACTIONS: dict[str, frozenset[str]] = {
    "materialize": frozenset({"materialize_table"}),
    "evolve": frozenset({"backfill_columns", "rewrite_columns"}),
    "migrate": frozenset({"migrate_table"}),
}


@dataclass(frozen=True)
class DataRequest:
    what: app.Request
    verb: str


def plan_data_steps(request: DataRequest, at: Session) -> tuple[Plan, list[Diagnostic]]:
    """The plan of `reconciler plan` with nothing in it but the steps of this verb. One that needs a step that is not
    among them is held back until that one is applied."""
    made, warnings = app.plan(request.what, at)
    return only(made, ACTIONS[request.verb]), warnings


def only(plan: Plan, actions: frozenset[str]) -> Plan:
    ids = {s.id: s for s in plan.steps}
    kept = {s.id for s in plan.steps if s.action in actions}
    kept |= {s.id for s in plan.steps if any(_rebuilds(s, ids[n]) for n in s.needs if n in kept)}
    steps = tuple(_alone(s, ids, kept) for s in plan.steps if s.id in kept)
    steps = tuple(_with_indexes(s, steps) for s in steps)
    return with_id(replace(plan, steps=steps, orphans=(), unowned=(), summary=summarize(steps)))


def _rebuilds(step: Step, before: Step) -> bool:
    """An index that the rewrite takes away and that comes back."""
    change, rewrite = step.change, before.change
    return (
        isinstance(change, CreateIndex) and isinstance(rewrite, RewriteColumns) and change.index.name in rewrite.loses
    )


def _alone(step: Step, all_: dict[str, Step], kept: set[str]) -> Step:
    """A step was planned on the result of all steps before it on the same object."""
    earlier = itertools.takewhile(lambda s: s.id != step.id, all_.values())
    before = [s for s in earlier if s.key == step.key and s.verdict == "allowed"]
    first = next((s for s in (*before, *(all_[n] for n in step.needs)) if s.id not in kept), None)
    needs = tuple(n for n in step.needs if n in kept)
    if first is None or step.verdict != "allowed":
        return replace(step, needs=needs)
    return _held(replace(step, needs=needs), first)


def _with_indexes(step: Step, steps: Sequence[Step]) -> Step:
    """A rewrite waits for apply when the indexes that it takes away cannot come back right after it."""
    stuck = next((s for s in steps if step.id in s.needs and s.verdict != "allowed" and _rebuilds(s, step)), None)
    return step if stuck is None or step.verdict != "allowed" else _held(step, stuck)


def _held(step: Step, first: Step) -> Step:
    reason = f"{step.reason}; needs {first.action} of {first.key} first: run `reconciler apply`"
    return replace(step, verdict="blocked", blocked_by=PARENT_BLOCKED, reason=reason)
