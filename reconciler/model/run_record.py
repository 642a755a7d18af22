"""A journal read back: what ran when, how it ended, what never ended. For people; no decision is taken from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.ident import ObjectKey
from reconciler.model.lease_event import LeaseEvent, lease_event
from reconciler.model.plan import FORMAT_VERSION

STATUSES = ("done", "skipped", "failed", "unknown", "not_run")


class NotAJournal(ValueError):
    """No line of it is one that a journal has."""


@dataclass
class StepRecord:
    """`status` is None for a step that began and never ended. A step that was skipped never began: then only its id is
    known."""

    id: str
    action: str = ""
    key: ObjectKey | None = None
    started: str | None = None
    ended: str | None = None
    status: str | None = None
    attempts: int = 0
    error: Mapping[str, Any] | None = None
    version_before: int | None = None
    version_after: int | None = None
    tag: str | None = None
    held_back: Mapping[str, Any] | None = None
    """Of a step that the plan did not allow: its `verdict`, `blocked_by` and `reason`."""

    def to_json(self) -> dict[str, Any]:
        key = self.key
        return {
            "id": self.id,
            "action": self.action or None,
            "catalog": key.catalog if key else None,
            "object": {"kind": key.kind, "id": list(key.ident)} if key else None,
            "started": self.started,
            "ended": self.ended,
            "status": self.status,
            "attempts": self.attempts,
            "error": self.error,
            "version_before": self.version_before,
            "version_after": self.version_after,
            "tag": self.tag,
            **(self.held_back or {}),
        }


@dataclass
class RunRecord:
    """One run: a file that was named twice has several. `outcome` is None when the run was killed, or is not over."""

    header: Mapping[str, Any]
    steps: dict[str, StepRecord] = field(default_factory=dict)
    outcome: str | None = None
    finished: str | None = None
    leases: list[LeaseEvent] = field(default_factory=list)

    @property
    def plan_id(self) -> str:
        return str(self.header.get("plan_id") or "")

    @property
    def begun(self) -> str:
        return str(self.header.get("time") or "")

    @property
    def never_ended(self) -> list[StepRecord]:
        return [s for s in self.steps.values() if s.status is None]

    def count(self) -> dict[str, int]:
        counts = {status: sum(1 for s in self.steps.values() if s.status == status) for status in STATUSES}
        return {**counts, "never_ended": len(self.never_ended)}

    def to_json(self) -> dict[str, Any]:
        header = {k: v for k, v in self.header.items() if k not in ("event", "time")}
        return header | {
            "begun": self.begun or None,
            "finished": self.finished,
            "outcome": self.outcome,
            "leases": [event.to_json() for event in self.leases],
            "steps": [s.to_json() for s in self.steps.values()],
            "summary": self.count(),
        }


@dataclass
class JournalRecord:
    runs: list[RunRecord] = field(default_factory=list)
    unreadable: int = 0
    """Lines that are none of a journal: a process that is killed may leave half a line."""

    def to_json(self) -> dict[str, Any]:
        """`schemas/journal.schema.json`."""
        runs = [r.to_json() for r in self.runs]
        return {"format_version": FORMAT_VERSION, "runs": runs, "unreadable_lines": self.unreadable}


def journal_from(lines: Iterable[str]) -> JournalRecord:
    """Reads what it can and counts what it cannot. Raises NotAJournal when it can read nothing."""
    found = JournalRecord()
    for line in lines:
        if not line.strip():
            continue
        try:
            _take(found, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            found.unreadable += 1
    if not found.runs:
        raise NotAJournal("no line of it is one of a journal")
    return found


def _take(found: JournalRecord, event: Mapping[str, Any]) -> None:
    """An event that a later version adds is passed over."""
    kind = event["event"]
    if kind == "header":
        found.runs.append(RunRecord(event))
        return
    told = lease_event(event) if kind == "lease" else None
    if told is None and kind not in ("start", "end", "finish"):
        return
    run = found.runs[-1] if found.runs else RunRecord({})
    if told is not None:
        run.leases.append(told)
    elif kind == "start":
        _started(run, event)
    elif kind == "end":
        _ended(run, event)
    else:
        run.outcome, run.finished = str(event["outcome"]), str(event.get("time") or "") or None
    if not found.runs:
        found.runs.append(run)  # The beginning of the file is gone.


def _started(run: RunRecord, event: Mapping[str, Any]) -> None:
    key = _key(event)
    step = run.steps.setdefault(str(event["step"]), StepRecord(str(event["step"])))
    step.action, step.key, step.started = str(event["action"]), key, str(event.get("time") or "") or None


def _key(event: Mapping[str, Any]) -> ObjectKey:
    kind = event["object"]["kind"]
    if kind not in ("Namespace", "Table"):
        raise ValueError("no step of a plan")
    return ObjectKey(str(event["catalog"]), tuple(map(str, event["object"]["id"])), kind)


def _ended(run: RunRecord, event: Mapping[str, Any]) -> None:
    error = event.get("error")
    if event["status"] not in STATUSES or not (error is None or {"name", "code", "message"} <= error.keys()):
        raise ValueError("no end of a step")
    key = _key(event) if "verdict" in event else None
    step = run.steps.setdefault(str(event["step"]), StepRecord(str(event["step"])))
    step.status, step.ended = str(event["status"]), str(event.get("time") or "") or None
    step.attempts, step.error = int(event.get("attempts") or 0), error
    step.version_before, step.version_after = event.get("version_before"), event.get("version_after")
    step.tag = event.get("tag")
    if key is not None:
        step.action, step.key = str(event["action"]), key
        word = event.get("blocked_by")
        step.held_back = {
            "verdict": str(event["verdict"]),
            "blocked_by": None if word is None else str(word),
            "reason": str(event.get("reason") or ""),
            **({"purpose": str(event["purpose"])} if event.get("purpose") else {}),
        }
