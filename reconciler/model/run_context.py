"""Which run this is: who started it, when, from which commit. For reports, and for `reconciler.applied-by` on what it
writes; never compared with anything, so no plan has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.plan import Json

LONGEST = 255
"""Characters of `applied_by`: the shortest limit of a property value among the catalogs (Unity)."""
_SHORT_COMMIT = 12


@dataclass(frozen=True, slots=True)
class RunContext:
    at: str
    """When it started: UTC, ISO 8601."""
    by: str
    """The CI's user, or user@host."""
    tool_version: str
    commit: str | None = None
    """The HEAD of the manifests' git repository; None when they are in none."""
    dirty: bool | None = None
    """The manifests are not as that commit has them; None without a commit, or when git did not say."""
    url: str | None = None
    """The CI run."""

    def to_json(self) -> dict[str, Json]:
        return {
            "at": self.at,
            "by": self.by,
            "commit": self.commit,
            "dirty": self.dirty,
            "url": self.url,
            "tool_version": self.tool_version,
        }

    def applied_by(self) -> str:
        """Compact JSON of at most `LONGEST` characters. What does not fit goes: first the URL, then the end of `by`."""
        values = {"at": self.at, "by": self.by}
        if self.commit is not None:
            values["commit"] = self.commit[:_SHORT_COMMIT] + ("+" if self.dirty else "")
        full = _dumped({**values, "run": self.url} if self.url is not None else values)
        if len(full) <= LONGEST:
            return full
        while len(text := _dumped(values)) > LONGEST:
            values["by"] = values["by"][: max(0, len(values["by"]) - (len(text) - LONGEST))]
        return text


@dataclass(frozen=True, slots=True)
class AppliedBy:
    """The note of a run on a live object, read back. Anybody can write there: nothing is concluded from it."""

    at: str
    by: str
    commit: str | None = None
    run: str | None = None

    def to_json(self) -> dict[str, Json]:
        return {"at": self.at, "by": self.by, "commit": self.commit, "run": self.run}


def load_applied_by(text: str | None) -> AppliedBy | None:
    """None for what no run of ours has written."""
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, Mapping) or not isinstance(value.get("at"), str):
        return None
    known = {k: v for k in ("at", "by", "commit", "run") if isinstance(v := value.get(k), str)}
    return AppliedBy(known["at"], known.get("by", ""), known.get("commit"), known.get("run"))


def _dumped(values: Mapping[str, str]) -> str:
    """ASCII: the characters that a service counts are then the same everywhere."""
    return json.dumps(values, separators=(",", ":"))
