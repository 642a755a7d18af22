"""`pipeline materialize`, `evolve` and `migrate`: the data steps of the ordinary plan, by themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler import app
from reconciler.core.planner import summarize, with_id
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.plan import PARENT_BLOCKED, Plan, Step

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
    steps = tuple(_alone(s, ids, kept) for s in plan.steps if s.id in kept)
    return with_id(replace(plan, steps=steps, orphans=(), unowned=(), summary=summarize(steps)))


def _alone(step: Step, all_: dict[str, Step], kept: set[str]) -> Step:
    first = next((all_[n] for n in step.needs if n not in kept), None)
    needs = tuple(n for n in step.needs if n in kept)
    if first is None or step.verdict != "allowed":
        return replace(step, needs=needs)
    reason = f"{step.reason}; needs {first.action} of {first.key} first: run `reconciler apply`"
    return replace(step, needs=needs, verdict="blocked", blocked_by=PARENT_BLOCKED, reason=reason)
