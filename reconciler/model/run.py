"""A run as it ended: what those learn of it who did not watch."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.model.plan import Plan
from reconciler.model.report import Report

RUNNING = "running"
OUTCOMES = (
    "applied", "no_changes", "drift", "partial", "refused", "stale", "locked", "failed", "interrupted", RUNNING,
)  # fmt: skip
"""Those of a report; `drift`: the live catalogs differ from the manifests, or were not read completely; `locked`;
`running`: it has not ended yet, or was killed."""
DONE, CHECK_FAILED = "done", "check_failed"
"""Of commands that compare nothing with manifests: what was asked for is done; the rows break a check."""
LOCKED = 6
"""A report calls it refused."""
_BY_CODE = {2: "drift", 3: "refused", 4: "stale", 5: "partial", LOCKED: "locked", 130: "interrupted"}
_CAME_TO_A_RESULT = {"apply": (0,), "drift": (0, 2), "plan": (0, 2)}
VERIFY = "pipeline verify"


@dataclass(frozen=True)
class Run:
    command: str
    started: float
    """Seconds since 1970."""
    seconds: float
    exit_code: int
    plan: Plan | None = None
    """None when there was no plan: then nothing is known of the catalogs, which is not the same as zero."""
    report: Report | None = None
    problems: tuple[str, ...] = field(default=())
    """What was told as an error, in order."""

    @property
    def outcome(self) -> str:
        if self.report is not None and self.exit_code != LOCKED:
            return self.report.outcome
        if self.exit_code == 0:
            return self._compared
        if self.exit_code == 2 and self.command == VERIFY:
            return CHECK_FAILED
        return _BY_CODE.get(self.exit_code, "failed")

    @property
    def _compared(self) -> str:
        """`plan` ends with 0 whatever it finds, unless it was asked to tell."""
        if self.plan is None:
            return DONE
        same = not self.plan.has_changes and all(catalog.complete for catalog in self.plan.catalogs.values())
        return "no_changes" if same else "drift"

    @property
    def ended(self) -> float:
        return self.started + self.seconds

    @property
    def succeeded(self) -> bool:
        """It did what it is for: `drift` and `plan` have compared, whatever they found; all else is done, or was."""
        return self.exit_code in _CAME_TO_A_RESULT.get(self.command, (0,))
