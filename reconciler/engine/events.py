"""What happens during a run, for a log that programs read: one event per step, and how far the run is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from reconciler.engine.journal import Journal
from reconciler.engine.progress import EVERY, Line, status_line
from reconciler.model.lease_event import WORRYING
from reconciler.model.plan import Json, Step
from reconciler.model.report import Outcome, StepResult

Tell = Callable[[str, str, str, Mapping[str, object]], None]
"""Level, event, message, further fields."""


def told_steps(journal: Journal, tell: Tell | None) -> Journal:
    return journal if tell is None else StepEvents(journal, tell)


class StepEvents:
    """Tells what the journal is told, after it: the journal's line is on disk by then."""

    def __init__(self, journal: Journal, tell: Tell) -> None:
        self._journal, self._tell = journal, tell

    def start(self, step: Step) -> None:
        self._journal.start(step)
        self._tell("info", "step_started", f"{step.action} {step.key}", _of(step))

    def end(self, *results: StepResult) -> None:
        self._journal.end(*results)
        for result in results:
            if result.held_back:
                self._held_back(result)
                continue
            step, error = result.step, result.error
            fields = {**_of(step), "status": result.status, "seconds": round(result.seconds, 3)}
            fields |= {"attempts": result.attempts, "error": error.to_json() if error else None}
            level = "error" if result.status in ("failed", "unknown") else "info"
            why = f": {error.message}" if error else ""
            self._tell(level, "step_ended", f"{result.status}: {step.action} {step.key}{why}", fields)

    def _held_back(self, result: StepResult) -> None:
        step = result.step
        message = f"{step.verdict}: {step.action} {step.key}: {step.reason}"
        self._tell("warning", "step_held_back", message, {**_of(step), **result.why_held_back()})

    def lease(self, event: Mapping[str, Json]) -> None:
        self._journal.lease(event)
        self._tell(
            "error" if event.get("state") in WORRYING else "info",
            "lease",
            f"lease of catalog {event.get('catalog')}: {event.get('state')}",
            {k: v for k, v in event.items() if k != "event"},
        )

    def finish(self, outcome: Outcome) -> None:
        self._journal.finish(outcome)


def _of(step: Step) -> dict[str, object]:
    return {
        "step": step.id,
        "action": step.action,
        "catalog": step.catalog,
        "object": {"kind": step.change.kind, "id": list(step.change.ident)},
    }


class ProgressEvents:
    """As seldom as the lines for people in a log."""

    def __init__(self, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._started = self._last = clock()

    def update(self, done: int, total: int, running: Sequence[str]) -> None:
        fields = {"done": done, "total": total, "running": list(running)}
        self._at_times(lambda seconds: status_line(done, total, running, seconds), fields)

    def show(self, line: Line) -> None:
        self._at_times(line, {})

    def close(self) -> None:
        pass

    def _at_times(self, line: Line, fields: Mapping[str, object]) -> None:
        now = self._clock()
        if now - self._last >= EVERY:
            self._last = now
            seconds = now - self._started
            self._tell("info", "progress", line(seconds), {**fields, "seconds": round(seconds, 3)})
