"""How a run ended, as one word and one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping

from reconciler.engine.run_step import Ended
from reconciler.model.errors import Code
from reconciler.model.plan import Plan
from reconciler.model.report import Outcome, Report, StepError, StepResult, counted, why_blocked

Halt = str
SIGNAL: Halt = "signal"
TIMEOUT: Halt = "timeout"
JOURNAL: Halt = "journal"
LEASE: Halt = "lease"


def nothing_ran(plan: Plan, outcome: Outcome, message: str) -> Report:
    return Report(plan.plan_id, outcome, tuple(StepResult(step, "not_run") for step in plan.steps), message)


def report_of(
    plan: Plan, ended: Mapping[str, Ended], halt: Halt | None, why: str = "", unreachable: Collection[str] = ()
) -> Report:
    """`halt`: what kept steps from starting, None when all of them had their chance; `why`: said of it. `unreachable`:
    catalogs whose service answers nobody any more."""
    steps = tuple(ended[s.id].result if s.id in ended else StepResult(s, "not_run") for s in plan.steps)
    landed = any(e.landed for e in ended.values())
    message = _message(plan, steps, halt, why, unreachable)
    return Report(plan.plan_id, _outcome(plan, steps, landed, halt), steps, message)


def not_ended(plan_id: str = "", journal: str | None = None) -> Report:
    """What stands in the place of a report while the run goes on: all there will be if the process is killed.
    `journal`: None before the first step."""
    how_far = "no step was begun" if journal is None else f"its journal {journal} says how far it came"
    message = f"this run has not ended yet, or it was killed: {how_far}; apply again"
    return Report(plan_id, "interrupted", (), message, journal=journal)


def cut_short(plan: Plan, started: Container[str], ended: Mapping[str, StepResult]) -> Report:
    """The run ends now, in the middle of steps: nobody will read back what those did."""
    error = StepError(
        int(Code.INTERNAL),
        Code.INTERNAL.title,
        "the run was ended while this step was running. What the catalog holds is not known; apply again.",
    )
    steps = tuple(
        ended.get(s.id) or (StepResult(s, "unknown", error) if s.id in started else StepResult(s, "not_run"))
        for s in plan.steps
    )
    why = "ended at once by a second signal: running steps were not waited for"
    return Report(plan.plan_id, "interrupted", steps, f"{_counted(steps)}; {why}")


def _outcome(plan: Plan, steps: tuple[StepResult, ...], landed: bool, halt: Halt | None) -> Outcome:
    """Unfinished beats refused: exit code 5 wins over 3. An interrupted run says so, whatever else happened. Applied is
    only what ran: a step that did not, for whatever reason, is told of."""
    counts = Counter(s.status for s in steps)
    if halt == SIGNAL:
        return "interrupted"
    if counts["unknown"]:
        return "partial"
    if counts["failed"] or halt is not None:
        return "partial" if landed else "failed"
    if any(s.verdict != "allowed" for s in plan.steps):
        return "refused"
    if counts["not_run"]:
        return "partial" if landed else "failed"
    return "applied" if plan.steps else "no_changes"


def _message(
    plan: Plan, steps: tuple[StepResult, ...], halt: Halt | None, why: str, unreachable: Collection[str]
) -> str:
    if not plan.steps:
        return "no changes"
    parts = [_counted(steps)]
    if halt is not None:
        parts.append(why)
    for name in sorted(unreachable):
        kept = sum(1 for s in steps if s.step.catalog == name and s.status == "not_run" and not s.held_back)
        if kept:
            number = "1 step was" if kept == 1 else f"{kept} steps were"
            parts.append(f"catalog {name} does not answer any more: {number} not run; apply again when it does")
    first = next((s for s in steps if s.error is not None and s.status in ("failed", "unknown")), None)
    if first is not None and first.error is not None:
        what, _, reason = first.error.message.partition(": ")
        told = what if reason and reason in why else first.error.message
        parts.append(f"{first.step.id} {first.step.action} {first.step.key}: {told}")
    held = why_blocked(steps)
    return "; ".join([*parts, held] if held else parts)


def _counted(steps: tuple[StepResult, ...]) -> str:
    return counted(s.ending for s in steps)
