"""What `pipeline verify` found out about tables."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.ident import Ident

READ = "read"
"""The check that a table can be read at all. It is listed only when it fails, and then alone or beside the schema."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    name: str
    ok: bool | None
    """None: not looked at, in a dry run."""
    detail: str = ""

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "ok": self.ok, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    catalog: str
    ident: Ident
    checks: tuple[CheckResult, ...]
    rows: int | None = None
    checksum: str | None = None

    @property
    def ok(self) -> bool | None:
        if any(c.ok is False for c in self.checks):
            return False
        return None if any(c.ok is None for c in self.checks) else True

    @property
    def unreadable(self) -> bool:
        return any(c.name == READ and c.ok is False for c in self.checks)

    def to_json(self) -> dict[str, object]:
        return {
            "catalog": self.catalog,
            "id": list(self.ident),
            "rows": self.rows,
            "checksum": self.checksum,
            "checks": [c.to_json() for c in self.checks],
            "ok": self.ok,
        }


@dataclass(frozen=True, slots=True)
class Verification:
    """Ordered by catalog and identifier."""

    tables: tuple[VerifiedTable, ...]

    @property
    def nothing_read(self) -> bool:
        """There were tables, and not one could be read: an error of the run rather than of the data."""
        return bool(self.tables) and all(t.unreadable for t in self.tables)

    def count(self, ok: bool | None) -> int:
        return sum(1 for t in self.tables if t.ok is ok)

    def summary(self) -> dict[str, int]:
        return {
            "tables": len(self.tables),
            "ok": self.count(True),
            "failed": self.count(False),
            "unreadable": sum(1 for t in self.tables if t.unreadable),
            "checks": sum(len(t.checks) for t in self.tables),
            "rows": sum(t.rows or 0 for t in self.tables),
        }

    def to_json(self) -> dict[str, object]:
        return {"tables": [t.to_json() for t in self.tables], "summary": self.summary()}
