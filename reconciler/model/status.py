"""Where the catalogs stand: what is ours, whose the rest is, what differs, who applied last."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.ident import ObjectKey
from reconciler.model.plan import FORMAT_VERSION, Json, Summary
from reconciler.model.run_context import AppliedBy


@dataclass(frozen=True, slots=True)
class Pending:
    """One object that is not as declared, with its steps in a word each."""

    key: ObjectKey
    actions: tuple[str, ...]
    verdict: str
    """`allowed`, or how the first step that is held back is."""


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    name: str
    type: str
    owner: str
    complete: bool
    problems: tuple[str, ...]
    namespaces: int
    tables: int
    """What is live; the next two are ours of it."""
    owned_namespaces: int
    owned_tables: int
    summary: Summary
    pending: tuple[Pending, ...]
    orphans: tuple[ObjectKey, ...]
    unowned: tuple[ObjectKey, ...]
    applied: tuple[tuple[ObjectKey, AppliedBy], ...]
    """Of every object of ours that says so."""
    others: tuple[tuple[ObjectKey, str | None], ...] = ()
    """What is live and not ours, with its owner; None when it has none."""
    left_out: tuple[ObjectKey, ...] = ()
    """Declared objects that --target leaves out. All figures are of what it selects; the next two of what is live
    besides."""
    left_out_namespaces: int = 0
    left_out_tables: int = 0

    @property
    def last(self) -> AppliedBy | None:
        """The newest of them. The times are of one form, so their order is that of the texts."""
        return max((by for _, by in self.applied), key=lambda by: by.at, default=None)

    def to_json(self) -> dict[str, Json]:
        s = self.summary
        return {
            "type": self.type,
            "owner": self.owner,
            "complete": self.complete,
            "problems": list(self.problems),
            "live": {"namespaces": self.namespaces, "tables": self.tables},
            "owned": {"namespaces": self.owned_namespaces, "tables": self.owned_tables},
            "summary": {
                "create": s.create,
                "update": s.update,
                "delete": s.delete,
                "blocked": s.blocked,
                "unsupported": s.unsupported,
            },
            "pending": [
                {"object": _object(p.key), "actions": list(p.actions), "verdict": p.verdict} for p in self.pending
            ],
            "orphans": [_object(key) for key in self.orphans],
            "unowned": [_object(key) for key in self.unowned],
            "others": [{"object": _object(key), "owner": owner} for key, owner in self.others],
            "left_out": {
                "live": {"namespaces": self.left_out_namespaces, "tables": self.left_out_tables},
                "declared": [_object(key) for key in self.left_out],
            },
            "last_applied": self.last.to_json() if self.last is not None else None,
            "applied": [{"object": _object(key), **by.to_json()} for key, by in self.applied],
        }


@dataclass(frozen=True, slots=True)
class FleetStatus:
    catalogs: tuple[CatalogStatus, ...]

    def to_json(self) -> dict[str, Json]:
        return {"format_version": FORMAT_VERSION, "catalogs": {c.name: c.to_json() for c in self.catalogs}}


def _object(key: ObjectKey) -> dict[str, Json]:
    return {"kind": key.kind, "id": [*key.ident]}
