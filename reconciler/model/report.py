"""What a run of apply did: always written, also after a failure or a signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reconciler.model.lease import LeaseUse
from reconciler.model.plan import FORMAT_VERSION, Json, Step
from reconciler.model.run_context import RunContext

Status = Literal["done", "skipped", "failed", "unknown", "not_run"]
Outcome = Literal["applied", "no_changes", "partial", "refused", "stale", "failed", "interrupted"]
STALE_ADVICE = "Make a new plan with `reconciler plan` and review it."
"""How the message of a stale plan ends."""


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
        }
        return out if self.location is None else {**out, "location": self.location}


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

    def count(self, status: Status) -> int:
        return sum(1 for s in self.steps if s.status == status)

    def to_json(self) -> dict[str, Json]:
        statuses: tuple[Status, ...] = ("done", "skipped", "failed", "unknown", "not_run")
        return {
            "format_version": FORMAT_VERSION,
            "plan_id": self.plan_id,
            "outcome": self.outcome,
            "message": self.message,
            "steps": [s.to_json() for s in self.steps],
            "summary": {s: self.count(s) for s in statuses},
            "leases": [use.to_json() for use in self.leases],
            "run": self.run.to_json() if self.run is not None else None,
        }

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
