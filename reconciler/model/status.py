"""Where the catalogs stand: what is ours, whose the rest is, what differs, who applied last."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.errors import ReadError
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import FORMAT_VERSION, Json, Summary
from reconciler.model.report import Difference
from reconciler.model.run_context import AppliedBy
from reconciler.model.state import Index


@dataclass(frozen=True, slots=True)
class Pending:
    """One object that is not as declared, with its steps in a word each."""

    key: ObjectKey
    actions: tuple[str, ...]
    verdict: str
    """`allowed`, or how the first step that is blocked is."""
    differences: tuple[Difference, ...] = ()
    """Field by field: live, then declared."""

    def to_json(self) -> dict[str, Json]:
        fields: list[Json] = [{"field": d.field, "live": d.before, "declared": d.after} for d in self.differences]
        return {
            "object": _object(self.key),
            "actions": list(self.actions),
            "verdict": self.verdict,
            "differences": fields,
        }


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    name: str
    type: str
    owner: str
    complete: bool
    problems: tuple[ReadError, ...]
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
    indexes: tuple[tuple[ObjectKey, Index], ...] = ()
    """The live indexes of the declared tables, whoever owns them."""
    tags: tuple[tuple[ObjectKey, int], ...] = ()
    """Declared tables of ours that have tags of apply, with how many."""
    tags_unread: int = 0
    """Tables whose tags could not be listed."""
    tag_retention: int | None = None
    """Seconds after which they are deleted; None: never."""
    other_tables: int = 0
    """Live tables of other formats: in no other number here."""
    left_out_other_tables: int = 0

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
            "problems": [p.to_json() for p in self.problems],  # type: ignore[misc]
            "live": {"namespaces": self.namespaces, "tables": self.tables, "other_tables": self.other_tables},
            "owned": {"namespaces": self.owned_namespaces, "tables": self.owned_tables},
            "summary": {
                "create": s.create,
                "update": s.update,
                "delete": s.delete,
                "blocked": s.blocked,
                "unsupported": s.unsupported,
            },
            "pending": [p.to_json() for p in self.pending],
            "orphans": [_object(key) for key in self.orphans],
            "unowned": [_object(key) for key in self.unowned],
            "others": [{"object": _object(key), "owner": owner} for key, owner in self.others],
            "left_out": {
                "live": {
                    "namespaces": self.left_out_namespaces,
                    "tables": self.left_out_tables,
                    "other_tables": self.left_out_other_tables,
                },
                "declared": [_object(key) for key in self.left_out],
            },
            "indexes": [_index(key, index) for key, index in self.indexes],
            "tags": {
                "count": sum(count for _, count in self.tags),
                "tables": [{"object": _object(key), "count": count} for key, count in self.tags],
                "unread": self.tags_unread,
                "retention_seconds": self.tag_retention,
            },
            "last_applied": self.last.to_json() if self.last is not None else None,
            "applied": [{"object": _object(key), **by.to_json()} for key, by in self.applied],
        }


@dataclass(frozen=True, slots=True)
class FleetStatus:
    catalogs: tuple[CatalogStatus, ...]

    def to_json(self) -> dict[str, Json]:
        return {"format_version": FORMAT_VERSION, "catalogs": {c.name: c.to_json() for c in self.catalogs}}


def _index(key: ObjectKey, index: Index) -> dict[str, Json]:
    """Both numbers are null when they could not be read."""
    return {
        "object": _object(key),
        "index": index.name,
        "column": index.column,
        "type": index.type,
        "rows": index.rows,
        "indexed_rows": index.indexed_rows,
    }


def _object(key: ObjectKey) -> dict[str, Json]:
    return {"kind": key.kind, "id": [*key.ident]}
