"""What was declared where: the input of the cross-document rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reconciler.manifest.problem import Path, Problem
from reconciler.model.desired import CatalogSpec, DesiredNamespace, DesiredObject, DesiredTable
from reconciler.model.diagnostic import Source
from reconciler.model.ident import Ident, Kind, ObjectKey
from reconciler.model.policy import Policy

Report = Callable[[Problem], None]
Place = Callable[[Path], Source]
"""Where a part of the document stands in its file."""


@dataclass(slots=True)
class Entry:
    """One declared object, and a way to report a problem at a place in its document."""

    declared: DesiredObject
    report: Report
    place: Place | None = None

    @property
    def kind(self) -> Kind:
        return "Table" if isinstance(self.declared, DesiredTable) else "Namespace"

    def error(self, code: str, path: Path, message: str, hint: str = "") -> None:
        self.report(Problem(code, path, message, hint))

    def warning(self, code: str, path: Path, message: str, hint: str = "") -> None:
        self.report(Problem(code, path, message, hint, severity="warning"))


@dataclass(slots=True)
class CatalogEntry:
    spec: CatalogSpec
    report: Report
    place: Place | None = None


@dataclass(slots=True)
class PolicyEntry:
    policy: Policy
    written: Any
    """The document."""
    report: Report


@dataclass(slots=True)
class Registry:
    catalogs: dict[str, CatalogEntry] = field(default_factory=dict)
    broken_catalogs: set[str] = field(default_factory=set)
    """Named by a document with errors: known, so that nothing else is reported because of it."""
    broken_objects: set[tuple[str, Ident]] = field(default_factory=set)
    namespaces: dict[str, dict[Ident, Entry]] = field(default_factory=dict)
    tables: dict[str, dict[Ident, Entry]] = field(default_factory=dict)
    policies: dict[str, PolicyEntry] = field(default_factory=dict)

    def add_catalog(self, entry: CatalogEntry) -> None:
        first = self.catalogs.setdefault(entry.spec.name, entry)
        if first is not entry:
            message = f"the catalog {entry.spec.name!r} is already declared at {first.spec.source}"
            entry.report(Problem("M401", ("metadata", "name"), message, "remove or rename one of them"))

    def add_policy(self, entry: PolicyEntry) -> None:
        first = self.policies.setdefault(entry.policy.name, entry)
        if first is not entry:
            message = f"the policy {entry.policy.name!r} is already declared at {first.policy.source}"
            entry.report(Problem("M540", ("metadata", "name"), message, "rename one: several policies add up"))

    def add(self, entry: Entry) -> None:
        declared = entry.declared
        store = self.namespaces if isinstance(declared, DesiredNamespace) else self.tables
        first = store.setdefault(declared.catalog, {}).setdefault(declared.ident, entry)
        if first is not entry:
            message = f"this {entry.kind.lower()} is already declared at {first.declared.source}"
            entry.error("M400", ("metadata", "id"), message, "merge the two documents")

    def place(self, of: ObjectKey | str, path: Path) -> Source | None:
        """`of`: an object, or the name of a catalog."""
        entry: Entry | CatalogEntry | None
        if isinstance(of, str):
            entry = self.catalogs.get(of)
        else:
            entry = (self.tables if of.kind == "Table" else self.namespaces).get(of.catalog, {}).get(of.ident)
        return entry.place(path) if entry is not None and entry.place is not None else None

    def known_catalog(self, name: str) -> bool:
        return name in self.catalogs or name in self.broken_catalogs
