"""What a run of apply did: always written, also after a failure or a signal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reconciler.model.finding import Finding
from reconciler.model.lease import LeaseUse
from reconciler.model.plan import FORMAT_VERSION, PARENT_BLOCKED, Json, Step
from reconciler.model.plan_json import finding_to_json
from reconciler.model.run_context import RunContext

Status = Literal["done", "skipped", "failed", "unknown", "not_run"]
Outcome = Literal["applied", "no_changes", "partial", "refused", "stale", "failed", "interrupted"]
STALE_ADVICE = "Make a new plan with `reconciler plan` and review it."
"""How the message of a stale plan ends."""
MOST_REASONS = 3
"""Held-back steps that a message tells of; the report has all."""


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
    def held_back(self) -> bool:
        """It did not run because the plan does not allow it, whatever else happened."""
        return self.status == "not_run" and self.step.verdict != "allowed"

    def why_held_back(self) -> dict[str, Json]:
        """As in the plan, which is gone when somebody reads the report. Empty of any other step."""
        if not self.held_back:
            return {}
        return {"verdict": self.step.verdict, "blocked_by": self.step.blocked_by, "reason": self.step.reason}

    def to_json(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "id": self.step.id,
            "action": self.step.action,
            "catalog": self.step.catalog,
            "object": {"kind": self.step.change.kind, "id": list(self.step.change.ident)},
            "status": self.status,
            "error": self.error.to_json() if self.error else None,
            "attempts": self.attempts,
            "seconds": round(self.seconds, 3),
            "version_before": self.version_before,
            "version_after": self.version_after,
            "tag": self.tag,
            **self.why_held_back(),
        }
        return out if self.location is None else {**out, "location": self.location}


def told_of_held_back(steps: Sequence[StepResult]) -> str:
    """How many and why. A step that only waits for a blocked one is no reason of its own. Nothing is cut here: secrets
    are taken out later, and half of one would be past knowing."""
    held = [s.step for s in steps if s.held_back]
    if not held:
        return ""
    counts = Counter(s.verdict for s in held)
    reasons = [s for s in held if s.blocked_by != PARENT_BLOCKED] or held
    told = [f"{s.id} {s.action} {s.key}: {s.reason}" for s in reasons[:MOST_REASONS]]
    told += [f"and {len(held) - len(told)} more"] if len(held) > len(told) else []
    return f"{', '.join(f'{n} {verdict}' for verdict, n in sorted(counts.items()))}: {'; '.join(told)}"


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
        return out | {"findings": [finding_to_json(f) for f in self.findings]} if self.findings else out

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
