"""How a run ended, as one word and one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from reconciler.engine.run_step import Ended
from reconciler.model.plan import Plan
from reconciler.model.report import Outcome, Report, Status, StepResult

Halt = str
SIGNAL: Halt = "signal"
TIMEOUT: Halt = "timeout"
JOURNAL: Halt = "journal"


def nothing_ran(plan: Plan, outcome: Outcome, message: str) -> Report:
    return Report(plan.plan_id, outcome, tuple(StepResult(step, "not_run") for step in plan.steps), message)


def report_of(plan: Plan, ended: Mapping[str, Ended], halt: Halt | None, why: str = "") -> Report:
    """`halt`: what kept steps from starting, None when all of them had their chance; `why`: said of it."""
    steps = tuple(ended[s.id].result if s.id in ended else StepResult(s, "not_run") for s in plan.steps)
    landed = any(e.landed for e in ended.values())
    return Report(plan.plan_id, _outcome(plan, steps, landed, halt), steps, _message(plan, steps, halt, why))


def _outcome(plan: Plan, steps: tuple[StepResult, ...], landed: bool, halt: Halt | None) -> Outcome:
    """Unfinished beats refused: exit code 5 wins over 3. An interrupted run says so, whatever else happened."""
    counts = Counter(s.status for s in steps)
    if halt == SIGNAL:
        return "interrupted"
    if counts["unknown"]:
        return "partial"
    if counts["failed"] or halt is not None:
        return "partial" if landed else "failed"
    if any(s.verdict != "allowed" for s in plan.steps):
        return "refused"
    return "applied" if plan.steps else "no_changes"


def _message(plan: Plan, steps: tuple[StepResult, ...], halt: Halt | None, why: str) -> str:
    if not plan.steps:
        return "no changes"
    counts = Counter(s.status for s in steps)
    words: dict[Status, str] = {
        "done": "done",
        "skipped": "skipped",
        "failed": "failed",
        "unknown": "unknown",
        "not_run": "not run",
    }
    parts = [", ".join(f"{counts[s]} {word}" for s, word in words.items() if counts[s])]
    if halt is not None:
        parts.append(why)
    first = next((s for s in steps if s.error is not None and s.status in ("failed", "unknown")), None)
    if first is not None and first.error is not None:
        parts.append(f"{first.step.id} {first.step.action} {first.step.key}: {first.error.message}")
    return "; ".join(parts)
