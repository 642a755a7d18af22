"""What a code or a word of ours means, with an example and the fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["diagnostic", "policy", "error", "blocked_by", "exit code", "outcome", "status", "action", "word"]
KINDS: dict[Kind, str] = {
    "diagnostic": "Diagnostics of validate and plan",
    "policy": "Rules of a policy",
    "error": "Errors of catalogs",
    "blocked_by": "Why a step is blocked (`blocked_by`), with the allow words",
    "exit code": "Exit codes",
    "outcome": "Outcomes of a run",
    "status": "Statuses of a step",
    "action": "Actions of a step",
    "word": "Words and signs in plans, status, reports and journals",
}


@dataclass(frozen=True, slots=True)
class Repeated:
    """A text that is too long to write out."""

    text: str
    times: int
    before: str = ""
    after: str = ""

    @property
    def whole(self) -> str:
        return self.before + self.text * self.times + self.after


Example = str | Mapping[str, str] | Repeated
"""One file, files by name, or a long one."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How to run an example. Without `alone` a catalog `lake` with the namespace `n` is declared beside it."""

    alone: bool = False
    paths: Mapping[str, list[str]] = field(default_factory=dict)
    encoding: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    """Codes that follow from the same mistake."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    code: str
    kind: Kind
    title: str
    means: str
    fix: str
    bad: Example | None = None
    good: Example | None = None
    not_run: str = ""
    """Why the example is not executed in tests; empty when it is."""
    setting: Setting = field(default_factory=Setting)
    names: tuple[str, ...] = ()
    """Other ways to ask for it."""

    def to_json(self) -> dict[str, object]:
        return {
            "code": self.code,
            "kind": self.kind,
            "title": self.title,
            "means": self.means,
            "fix": self.fix,
            "bad": _shown(self.bad),
            "good": _shown(self.good),
        }


def _shown(example: Example | None) -> object:
    if isinstance(example, Repeated):
        return {"before": example.before, "text": example.text, "times": example.times, "after": example.after}
    return example if example is None or isinstance(example, str) else dict(example)
