"""What a policy has to say about a plan: a rule, the object that breaks it, and where that is written."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.diagnostic import Severity, Source
from reconciler.model.ident import ObjectKey


@dataclass(frozen=True, slots=True)
class Waiver:
    """Somebody takes the finding on: why, and until when (an ISO date)."""

    reason: str
    until: str


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    severity: Severity
    """An error that is not waived refuses the whole plan; a warning is only told."""
    key: ObjectKey | None
    """None when it is about the plan as a whole."""
    message: str
    hint: str = ""
    source: Source | None = None
    waiver: Waiver | None = None

    @property
    def refuses(self) -> bool:
        return self.severity == "error" and self.waiver is None
