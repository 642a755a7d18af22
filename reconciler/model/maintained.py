"""What `pipeline maintain` decided about tables, and did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from reconciler.model.ident import Ident

COMPACT, INDEXES, CLEANUP = PARTS = ("compact", "indexes", "cleanup")
TAGS = "tags"
"""Tags of apply that are older than management.tagRetention; only where there are some."""
Outcome = Literal["done", "failed", "unknown", "not_run"]
"""failed: a compaction that did leaves the table as it was. unknown: it was cut off."""
Figures = Mapping[str, object]
_NONE: Figures = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Decision:
    """The same in a dry run and in the run after it, as long as the table is the same."""

    part: str
    run: bool
    reason: str
    before: Figures = field(default_factory=lambda: _NONE, hash=False)


@dataclass(frozen=True, slots=True)
class Result:
    """Of a part that was to run."""

    outcome: Outcome
    detail: str = ""
    after: Figures = field(default_factory=lambda: _NONE, hash=False)


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    catalog: str
    ident: Ident
    decisions: tuple[Decision, ...] = ()
    results: Mapping[str, Result] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """By part; none in a dry run."""
    error: str | None = None
    """Why nothing is known about it; there are no decisions then."""
    version: int | None = None
    rows: int | None = None
    bytes: int | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None or any(r.outcome != "done" for r in self.results.values())

    def to_json(self) -> dict[str, object]:
        return {
            "catalog": self.catalog,
            "id": list(self.ident),
            "version": self.version,
            "rows": self.rows,
            "bytes": self.bytes,
            "error": self.error,
            "parts": [_part(d, self.results.get(d.part)) for d in self.decisions],
        }


def _part(decision: Decision, result: Result | None) -> dict[str, object]:
    return {
        "part": decision.part,
        "decision": "run" if decision.run else "skip",
        "reason": decision.reason,
        "before": dict(decision.before),
        "outcome": result.outcome if result else None,
        "detail": result.detail if result else "",
        "after": dict(result.after) if result else None,
    }


@dataclass(frozen=True, slots=True)
class Maintained:
    """Ordered by catalog and identifier."""

    tables: tuple[MaintainedTable, ...]
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        return any(t.failed for t in self.tables)

    @property
    def changed(self) -> bool:
        """Something may have been: indexes and versions that failed may have been done in part."""
        return any(
            r.outcome in ("done", "unknown") or (r.outcome == "failed" and part != COMPACT)
            for t in self.tables
            for part, r in t.results.items()
        )

    def summary(self) -> dict[str, int]:
        results = [r.outcome for t in self.tables for r in t.results.values()]
        return {
            "tables": len(self.tables),
            "to_run": sum(d.run for t in self.tables for d in t.decisions),
            "skipped": sum(not d.run for t in self.tables for d in t.decisions),
            "done": results.count("done"),
            "failed": results.count("failed"),
            "unknown": results.count("unknown"),
            "not_run": results.count("not_run"),
            "unreadable": sum(t.error is not None for t in self.tables),
        }

    def to_json(self) -> dict[str, object]:
        return {"tables": [t.to_json() for t in self.tables], "summary": self.summary()}
