"""What a run of apply did: always written, also after a failure or a signal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.model.errors import ReadError
from reconciler.model.finding import Finding
from reconciler.model.ident import ObjectKey
from reconciler.model.lease import LeaseUse
from reconciler.model.plan import FORMAT_VERSION, PARENT_BLOCKED, Json, Step, reasons_of
from reconciler.model.plan_json import finding_to_json
from reconciler.model.run_context import RunContext

Status = Literal["done", "skipped", "failed", "unknown", "not_run"]
Outcome = Literal["applied", "no_changes", "partial", "refused", "stale", "failed", "interrupted"]
STALE_ADVICE = "Make a new plan with `reconciler plan` and review it."
"""How the message of a stale plan ends."""
MOST_REASONS = 3
"""Blocked objects that a message tells of; the report has all."""


@dataclass(frozen=True, slots=True)
class StepError:
    code: int
    name: str
    message: str

    def to_json(self) -> dict[str, Json]:
        return {"code": self.code, "name": self.name, "message": self.message}


@dataclass(frozen=True, slots=True)
class StepResult:
    step: Step
    status: Status
    error: StepError | None = None
    attempts: int = 0
    seconds: float = 0.0
    version_before: int | None = None
    version_after: int | None = None
    tag: str | None = None
    """The tag that holds the version before a destructive or rewriting step."""
    location: str | None = None
    """Where the dataset is that has the tag."""

    @property
    def ending(self) -> str:
        """The status, or the verdict of a step that the plan did not allow."""
        return self.step.verdict if self.held_back else self.status

    @property
    def held_back(self) -> bool:
        """It did not run because the plan does not allow it, whatever else happened."""
        return self.status == "not_run" and self.step.verdict != "allowed"

    def why_held_back(self) -> dict[str, Json]:
        """As in the plan, which is gone when somebody reads the report. Empty of any other step."""
        if not self.held_back:
            return {}
        step = self.step
        out: dict[str, Json] = {"verdict": step.verdict, "blocked_by": step.blocked_by, "reason": step.reason}
        return out | {"purpose": step.purpose} if step.purpose else out

    def error_json(self) -> Json:
        """Of a step that the plan did not allow: what could not be read, if that was the reason."""
        if self.error is not None:
            return self.error.to_json()
        return self.step.error.to_json() if self.held_back and self.step.error else None  # type: ignore[return-value]

    def to_json(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "id": self.step.id,
            "action": self.step.action,
            "catalog": self.step.catalog,
            "object": {"kind": self.step.change.kind, "id": list(self.step.change.ident)},
            "status": self.status,
            "error": self.error_json(),
            "attempts": self.attempts,
            "seconds": round(self.seconds, 3),
            "version_before": self.version_before,
            "version_after": self.version_after,
            "tag": self.tag,
            **self.why_held_back(),
            **({"attached": True} if self.step.reattaches else {}),
        }
        return out if self.location is None else {**out, "location": self.location}


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of an object; None where it is not there."""

    field: str
    before: Json
    after: Json

    def to_json(self) -> dict[str, Json]:
        return {"field": self.field, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class StaleObject:
    """An object that is no longer as the plan expects it."""

    key: ObjectKey
    problem: str
    differences: tuple[Difference, ...] = ()
    """Field by field; empty when the plan does not hold what it compared."""

    def to_json(self) -> dict[str, Json]:
        return {
            "catalog": self.key.catalog,
            "object": {"kind": self.key.kind, "id": list(self.key.ident)},
            "problem": self.problem,
            "differences": [d.to_json() for d in self.differences],
        }


@dataclass(frozen=True, slots=True)
class ExpiredTags:
    """Tags of earlier runs on a table that this one changed: deleted because of their age, or why not."""

    key: ObjectKey
    tags: tuple[str, ...] = ()
    problem: str | None = None

    def to_json(self) -> dict[str, Json]:
        return {
            "catalog": self.key.catalog,
            "object": {"kind": self.key.kind, "id": list(self.key.ident)},
            "tags": list(self.tags),
            "problem": self.problem,
        }


def stale_object_from(value: Mapping[str, Any]) -> StaleObject:
    key = ObjectKey(str(value["catalog"]), tuple(map(str, value["object"]["id"])), value["object"]["kind"])
    found = tuple(Difference(str(d["field"]), d["before"], d["after"]) for d in value["differences"])
    return StaleObject(key, str(value["problem"]), found)


def why_blocked(steps: Sequence[StepResult]) -> str:
    """Why steps were not allowed, each reason of an object once. A step that only waits for a blocked one has none of
    its own. Nothing is cut here: secrets are taken out later, and half of one would be past knowing."""
    held = [s.step for s in steps if s.held_back]
    groups: dict[tuple[ObjectKey, str], list[Step]] = {}
    for s in [s for s in held if s.blocked_by != PARENT_BLOCKED] or held:
        groups.setdefault((s.key, s.blocking_reason), []).append(s)
    shown = [*groups.values()][:MOST_REASONS]
    told = [f"{g[0].id} {g[0].action} {g[0].key}: {'; '.join(reasons_of(g))}" for g in shown]
    more = len(held) - sum(map(len, shown))
    return "; ".join([*told, *([f"and {more} more"] if more else [])])


def title_of(outcome: str, done: int) -> str:
    """How a run ended, for a person. `refused` is said of blocked steps too, and then others may be done."""
    if outcome == "partial" or (outcome == "refused" and done):
        return "Partly applied"
    return outcome.replace("_", " ").capitalize()


def counted(statuses: Iterable[str]) -> str:
    """`2 done, 1 blocked`: statuses of steps; of those that the plan did not allow, the verdict."""
    counts = Counter(statuses)
    return ", ".join(f"{counts[word]} {word.replace('_', ' ')}" for word in _COUNTED if counts[word])


_COUNTED = ("done", "skipped", "failed", "unknown", "never_ended", "blocked", "unsupported", "not_run")


@dataclass(frozen=True, slots=True)
class Report:
    plan_id: str
    outcome: Outcome
    steps: tuple[StepResult, ...]
    message: str = ""
    """One sentence for a person: why the run ended as it did."""
    leases: tuple[LeaseUse, ...] = ()
    run: RunContext | None = None
    """Who ran it, when and from which commit."""
    findings: tuple[Finding, ...] = ()
    """What the policy says about the plan, which is gone when somebody reads the report."""
    stale: tuple[StaleObject, ...] = ()
    """What changed since the plan was made."""
    expired: tuple[ExpiredTags, ...] = ()
    error: ReadError | None = None
    """What a catalog said, when that ended the run before its first step."""
    journal: str | None = None
    """The file that has the steps as they happened; None without one."""

    @property
    def summary(self) -> str:
        """How it ended and why, in one line."""
        return f"{title_of(self.outcome, self.count('done')).lower()}: {self.message}"

    def count(self, status: Status) -> int:
        return sum(1 for s in self.steps if s.status == status)

    def to_json(self) -> dict[str, Json]:
        statuses: tuple[Status, ...] = ("done", "skipped", "failed", "unknown", "not_run")
        out: dict[str, Json] = {
            "format_version": FORMAT_VERSION,
            "plan_id": self.plan_id,
            "outcome": self.outcome,
            "message": self.message,
            "steps": [s.to_json() for s in self.steps],
            "summary": {s: self.count(s) for s in statuses},
            "leases": [use.to_json() for use in self.leases],
            "run": self.run.to_json() if self.run is not None else None,
        }
        if self.findings:
            out["findings"] = [finding_to_json(f) for f in self.findings]
        if self.stale:
            out["stale"] = [s.to_json() for s in self.stale]
        if self.expired:
            out["expired_tags"] = [e.to_json() for e in self.expired]
        if self.error is not None:
            out["error"] = self.error.to_json()  # type: ignore[assignment]
        if self.journal is not None:
            out["journal"] = self.journal
        return out

    @property
    def exit_code(self) -> int:
        if self.outcome == "refused" and any(use.ending == "refused" for use in self.leases):
            return LEASE_HELD
        return EXIT_CODES[self.outcome]


EXIT_CODES: dict[Outcome, int] = {
    "applied": 0, "no_changes": 0, "failed": 1, "refused": 3, "stale": 4, "partial": 5, "interrupted": 130,
}  # fmt: skip
LEASE_HELD = 6
"""Refused because another run holds the lease."""
