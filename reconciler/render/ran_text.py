"""A journal for people: what ran when, how it ended, what never ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model.lease_event import WORRYING, LeaseEvent
from reconciler.render.ran import Ran, Run, each_reason_once
from reconciler.render.safe_text import safe

_MARKS = {
    "failed": "FAILED",
    "unknown": "UNKNOWN",
    "never_ended": "NO END",
}


def journal_text(runs: Sequence[Run], unreadable: int) -> str:
    lines = [line for run in runs for line in (*_run(run), "")][:-1]
    if unreadable:
        lines.append(f"{unreadable} {'line' if unreadable == 1 else 'lines'} could not be read")
    return "".join(f"{line}\n" for line in lines)


def _run(run: Run) -> Iterator[str]:
    yield f"{safe(run.begun) or 'At an unknown time'}  run of plan {safe(run.plan_id) or '(unknown)'}"
    if run.who:
        yield f"  {safe(run.who)}"
    yield from (_lease(event) for event in run.leases if event.state != "lost")
    for step in each_reason_once(run.steps):
        yield from _step(step)
    yield from (_lease(event) for event in run.leases if event.state == "lost")
    end = f"{safe(run.finished)}  {safe(run.title)}" if run.finished else safe(run.title)
    told = "; ".join(part for part in (run.counted, safe(run.message)) if part)
    yield f"{end}: {told}" if told else end


def _lease(event: LeaseEvent) -> str:
    """What was lost is told after the steps, since it is why there are no more."""
    when = f"  {safe(event.time)}  " if event.time else "  "
    mark = event.state.upper() if event.state in WORRYING else "lease"
    return f"{when}{mark:8} {safe(event.sentence)}"


def _step(step: Ran) -> Iterator[str]:
    began = f"  {safe(step.started)}  " if step.started else "  "
    took = f"  {step.seconds:.2f} s" if step.seconds else ""
    what = "  ".join(safe(part) for part in (step.id, step.action, str(step.key or "")) if part)
    yield f"{began}{_MARKS.get(step.ending, step.word):8} {what}{took}"
    yield from (f"           {safe(line)}" for line in (step.problem, step.note) if line)
