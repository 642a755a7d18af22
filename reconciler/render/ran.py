"""Steps that ran, from a report or a journal, as one kind of thing: every format of both is made of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from reconciler.model.finding import Finding
from reconciler.model.ident import ObjectKey
from reconciler.model.lease_event import WORRYING, LeaseEvent
from reconciler.model.plan_json import finding_from
from reconciler.model.report import STALE_ADVICE, StaleObject, counted, stale_object_from, title_of
from reconciler.model.run_record import STATUSES, JournalRecord, RunRecord, StepRecord

NEVER_ENDED = "never_ended"
WORDS = {
    "failed": "failed",
    "unknown": "unknown",
    NEVER_ENDED: "never ended",
    "not_run": "not run",
    "done": "done",
    "skipped": "skipped",
}
"""In the order in which a person wants to see them."""
ATTACHED = "attached to its existing data"
FINE = ("applied", "no_changes")
"""Outcomes that nobody has to look into."""
_MOST_LEASES = 20


@dataclass(frozen=True, slots=True)
class Ran:
    id: str
    action: str
    key: ObjectKey | None
    status: str
    problem: str = ""
    note: str = ""
    started: str = ""
    seconds: float = 0.0
    before: int | None = None
    after: int | None = None
    """Versions of the dataset."""
    verdict: str = ""
    """Of a step that the plan did not allow."""
    purpose: str = ""
    """What such a step would be for: the end of `problem`, which begins with what blocks it."""

    @property
    def ending(self) -> str:
        return self.verdict or self.status

    @property
    def word(self) -> str:
        return self.verdict or WORDS[self.status]


@dataclass(frozen=True, slots=True)
class Run:
    """`outcome` is empty for a run of which nobody knows how it ended."""

    outcome: str
    message: str
    plan_id: str
    steps: Sequence[Ran]
    begun: str = ""
    finished: str = ""
    about: Sequence[str] = ()
    """Who ran it, from which commit, and where to read on: each a part of one line."""
    leases: Sequence[LeaseEvent] = ()
    """What a journal says of them."""
    findings: Sequence[Finding] = ()
    """What a report says of the policy."""
    stale: Sequence[StaleObject] = ()
    """What changed since the plan was made."""
    expired: Sequence[str] = ()
    """Tags of earlier runs that were deleted because of their age: a line for each table."""

    @property
    def title(self) -> str:
        done = sum(1 for s in self.steps if s.status == "done")
        return title_of(self.outcome, done) if self.outcome else "No end"

    @property
    def who(self) -> str:
        return ", ".join(self.about)

    @property
    def counted(self) -> str:
        return counted(s.ending for s in self.steps)

    @property
    def told(self) -> str:
        """The message without what is listed beside it: reasons of steps, fields that changed."""
        if self.stale:
            what = "1 object is" if len(self.stale) == 1 else f"{len(self.stale)} objects are"
            return f"nothing was written: {what} not as the plan expects. {STALE_ADVICE}"
        return without_reasons(self.message, self.steps)

    @property
    def main_leases(self) -> list[LeaseEvent]:
        """A few: they stand before the steps and must not take their room. Of many, what went wrong goes first."""
        worst = sorted(range(len(self.leases)), key=lambda n: self.leases[n].state not in WORRYING)[:_MOST_LEASES]
        return [self.leases[n] for n in sorted(worst)]

    @property
    def by_urgency(self) -> list[Ran]:
        order = list(WORDS)
        return sorted(self.steps, key=lambda s: order.index(s.status))


def each_reason_once(steps: Iterable[Ran]) -> Iterator[Ran]:
    """For a list that is read from the top: what blocks several steps of an object is said with the first of them."""
    said = None
    for step in steps:
        why = step.problem.removesuffix(f"; {step.purpose}")
        again = step.purpose and said == (step.key, why)
        yield replace(step, problem=f"{step.verdict} as above; {step.purpose}") if again else step
        said = (step.key, why) if step.verdict else None


def run_of_report(report: Mapping[str, Any]) -> Run:
    """From the report's JSON. Raises KeyError, TypeError, ValueError when it is none."""
    steps = [_of_result(r) for r in report["steps"]]
    outcome, message = str(report["outcome"]), str(report.get("message") or "")
    plan_id = str(report.get("plan_id") or "")
    found = tuple(finding_from(f) for f in report.get("findings") or ())
    stale = tuple(stale_object_from(s) for s in report.get("stale") or ())
    about = _about(report.get("run"), timed=True)
    return Run(outcome, message, plan_id, steps, about=about, findings=found, stale=stale, expired=_expired(report))


def _expired(report: Mapping[str, Any]) -> list[str]:
    lines = []
    for found in report.get("expired_tags") or ():
        key = ObjectKey(str(found["catalog"]), tuple(map(str, found["object"]["id"])), found["object"]["kind"])
        count = len(found["tags"])
        done = f"{count} {'tag' if count == 1 else 'tags'} of earlier runs, older than tagRetention, deleted"
        lines.append(f"{key}: {done if found.get('problem') is None else found['problem']}")
    return lines


def runs_of_journal(journal: JournalRecord) -> list[Run]:
    return [_of_run(run, last=run is journal.runs[-1]) for run in journal.runs]


def _of_result(result: Mapping[str, Any]) -> Ran:
    if result["status"] not in STATUSES:
        raise ValueError(f"unknown status {result['status']}")
    key = ObjectKey(str(result["catalog"]), tuple(map(str, result["object"]["id"])), result["object"]["kind"])
    return Ran(
        str(result["id"]),
        str(result["action"]),
        key,
        result["status"],
        _problem(result.get("error")) or held_back(result),
        ATTACHED if result.get("attached") else _note(result.get("version_before"), result.get("tag")),
        seconds=float(result.get("seconds") or 0),
        before=result.get("version_before"),
        after=result.get("version_after"),
        verdict=str(result.get("verdict") or ""),
        purpose=str(result.get("purpose") or ""),
    )


def _of_run(run: RunRecord, last: bool) -> Run:
    message = ""
    if run.outcome is None:
        message = "the journal ends without an outcome: the run was killed" + (", or it is not over" if last else "")
    steps = [_of_record(s) for s in run.steps.values()]
    about = _about(run.header.get("run"))
    end, leases = run.finished or "", tuple(run.leases)
    return Run(run.outcome or "", message, run.plan_id, steps, run.begun, end, about, leases)


def _of_record(step: StepRecord) -> Ran:
    problem = _problem(step.error) or held_back(step.held_back or {})
    if step.status is None:
        problem = "it began, and the journal has no end of it: what the catalog holds is not known; apply again"
    return Ran(
        step.id,
        step.action,
        step.key,
        step.status or NEVER_ENDED,
        problem,
        _note(step.version_before, step.tag),
        step.started or "",
        _seconds(step.started, step.ended),
        verdict=str((step.held_back or {}).get("verdict") or ""),
        purpose=str((step.held_back or {}).get("purpose") or ""),
    )


def _about(run: object, timed: bool = False) -> Sequence[str]:
    """`timed`: with the time, which a journal has on every line."""
    if not isinstance(run, Mapping):
        return ()
    by = f" by {run['by']}" if run.get("by") else ""
    at = f" at {run['at']}" if timed and run.get("at") else ""
    changed = " with changes" if run.get("dirty") else ""
    commit = f"commit {run['commit']}{changed}" if run.get("commit") else ""
    version = f"reconciler {run['tool_version']}" if run.get("tool_version") else ""
    parts = (f"run{by}{at}" if by or at else "", commit, version, str(run.get("url") or ""))
    return [part for part in parts if part]


def _problem(error: Mapping[str, Any] | None) -> str:
    return "" if error is None else f"{error['name']} ({error['code']}): {error['message']}"


def held_back(result: Mapping[str, Any]) -> str:
    """Why the plan did not allow the step; empty of one that it allowed, and in a report of an earlier version."""
    if not result.get("verdict"):
        return ""
    word = f" by {result['blocked_by']}" if result.get("blocked_by") else ""
    return f"{result['verdict']}{word}: {result.get('reason') or ''}"


def without_reasons(message: str, steps: Iterable[Ran]) -> str:
    """A message ends with why steps were blocked. Where each step has its reason beside it, that is said once."""
    starts = (message.find(f"; {s.id} {s.action} {s.key}: ") for s in steps if s.verdict)
    return message[: min((at for at in starts if at >= 0), default=len(message))]


def _note(version: object, tag: object) -> str:
    return "" if tag is None else f"version {version} is tagged {tag}"


def _seconds(started: str | None, ended: str | None) -> float:
    try:
        passed = datetime.fromisoformat(ended or "") - datetime.fromisoformat(started or "")
    except (ValueError, TypeError):  # A time with a zone and one without do not subtract.
        return 0.0
    return max(0.0, passed.total_seconds())
