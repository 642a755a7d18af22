"""What an inventory run found, in sum: the tables themselves are in the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.diagnostic import Diagnostic
from reconciler.model.errors import ReadError
from reconciler.model.plan import Json, Plan

FIGURES = ("tables", "unreadable", "rows", "bytes", "fragments", "small_fragments")


@dataclass(frozen=True, slots=True)
class ReadCatalog:
    """`problems`: why it could not be listed completely. Then more tables may be there than were counted."""

    name: str
    figures: Mapping[str, int | None]
    """Of FIGURES; only `tables` is known when nothing was opened."""
    problems: tuple[ReadError, ...] = ()

    @property
    def tables(self) -> int:
        return self.figures["tables"] or 0

    def to_json(self) -> dict[str, Json]:
        return {
            "catalog": self.name,
            "complete": not self.problems,
            **{name: self.figures.get(name) for name in FIGURES},
            "problems": [p.data for p in self.problems],  # type: ignore[misc]
        }


@dataclass(frozen=True, slots=True)
class Uncompared:
    """Why there is no diff though one was asked for. What was read is a result all the same."""

    message: str
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_json(self) -> dict[str, Json]:
        return {"message": self.message, "diagnostics": [{**d.to_json()} for d in self.diagnostics]}


@dataclass(frozen=True, slots=True)
class Inventory:
    run: str | None
    """None: a dry run, nothing was written."""
    history: str
    version: int | None
    catalogs: tuple[ReadCatalog, ...]
    diff: Plan | None = None
    """What `plan` would say of the same manifests."""
    uncompared: Uncompared | None = None

    @property
    def unread(self) -> bool:
        """Something is not known."""
        return self.uncompared is not None or any(c.problems or c.figures.get("unreadable") for c in self.catalogs)

    @property
    def nothing_read(self) -> bool:
        """No table, and no answer either that there is none."""
        unknown = self.uncompared is not None
        return bool(self.catalogs) and all((c.problems or unknown) and not c.tables for c in self.catalogs)

    def to_json(self) -> dict[str, Json]:
        """Without the diff."""
        return {
            "run": self.run,
            "history": self.history,
            "version": self.version,
            "catalogs": [c.to_json() for c in self.catalogs],
        }
