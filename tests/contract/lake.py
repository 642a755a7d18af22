"""What the tests say: documents in, plans and reports out, through the same parts as the command line."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from contract.backends import Backend, Site
from contract.outsider import Ident, Outsider
from reconciler.catalog.base import Catalog
from reconciler.catalog.registry import known_types, plugin_options
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan, scope_of
from reconciler.core.value_checks import value_checks
from reconciler.engine.execute import execute
from reconciler.engine.observe import observe
from reconciler.manifest.load import Loaded, load
from reconciler.manifest.plugin_options import PluginTypes
from reconciler.model.change import (
    Change,
    RenameNamespace,
    RenameTable,
    ReplaceTable,
    SyncColumns,
    UpdateNamespace,
    UpdateTable,
)
from reconciler.model.desired import Desired
from reconciler.model.diagnostic import has_errors
from reconciler.model.plan import Plan, Step
from reconciler.model.report import Report, StepResult
from reconciler.model.state import Marks
from reconciler.pipeline.value_check import with_findings

Doc = dict[str, Any]
US = "team-a"
_numbers = itertools.count()


def namespace(ident: Ident, **spec: Any) -> Doc:
    return _document("Namespace", {"catalog": "lake", "id": list(ident)}, spec)


def table(ident: Ident, columns: Mapping[str, str] | Sequence[Doc] | None = None, **spec: Any) -> Doc:
    """`columns` in short: name -> type, with ` not null` at the end where no nulls are allowed."""
    if isinstance(columns, Mapping):
        columns = [_column(name, type_) for name, type_ in columns.items()]
    if columns:
        spec["schema"] = list(columns)
    return _document("Table", {"catalog": "lake", "id": list(ident)}, spec)


def _column(name: str, type_: str) -> Doc:
    text = type_.removesuffix(" not null")
    return {"name": name, "type": text} | ({} if text == type_ else {"nullable": False})


def _document(kind: str, metadata: Doc, spec: Doc) -> Doc:
    return {"apiVersion": "reconciler.lance/v1", "kind": kind, "metadata": metadata, "spec": spec}


@dataclass
class Lake:
    """A fresh catalog of one backend, and our way to work on it."""

    backend: Backend
    site: Site
    folder: Path
    management: Doc = field(default_factory=lambda: {"owner": US})

    @property
    def outsider(self) -> Outsider:
        return self.site.outsider

    # what this backend has

    @property
    def has_namespaces(self) -> bool:
        return self.site.capabilities.ident_problem("Namespace", self.ns("n")) is None

    @property
    def nests(self) -> bool:
        """Namespaces inside namespaces."""
        return self.site.capabilities.ident_problem("Namespace", self.ns("n", "m")) is None

    @property
    def has_properties(self) -> bool:
        return self.site.capabilities.holds_properties("Table", self.t("t"))

    def can(self, change: Change) -> bool:
        return self.site.capabilities.refuses(change) is None

    @property
    def changes_namespaces(self) -> bool:
        """Properties can be changed after creation."""
        return self.can(UpdateNamespace(self.ns("n"), {"a": "b"}, (), Marks()))

    @property
    def changes_tables(self) -> bool:
        if not self.has_properties:
            return False
        if self.site.capabilities.replaces_tables:
            return self.can(ReplaceTable(self.t("t"), {"a": "b"}, (), Marks()))
        return self.can(UpdateTable(self.t("t"), {"a": "b"}, (), Marks()))

    @property
    def renames_tables(self) -> bool:
        return self.can(RenameTable(self.t("new"), self.t("old")))

    @property
    def renames_namespaces(self) -> bool:
        return self.has_namespaces and self.can(RenameNamespace(self.ns("new"), self.ns("old")))

    @property
    def words(self) -> frozenset[str]:
        """The allow words without which this backend does less than others. The tests give them, because what is
        behind them must hold the rest of the contract too; test_allow_words.py leaves them out."""
        capabilities = self.site.capabilities
        needed = {"drop_namespace": capabilities.drop_needs_allow, "replace_table": capabilities.replaces_tables}
        return frozenset(word for word, needs in needed.items() if needs)

    # names

    def ns(self, *names: str) -> Ident:
        return (*self.site.container, *names)

    @property
    def at(self) -> Ident:
        """The namespace of the tests' tables; the root where they are in none."""
        return self.ns(*self.backend.home) if self.backend.home else ()

    def t(self, name: str) -> Ident:
        """A table where this backend puts them."""
        return (*self.at, name)

    def home(self, **spec: Any) -> list[Doc]:
        """The documents that tables need around them."""
        return [namespace(self.at, **spec)] if self.at else []

    def make_home(self) -> None:
        """The same by the outsider."""
        if self.at:
            self.outsider.create_namespace(self.at)

    def with_properties(self, **properties: str) -> Doc:
        """As part of a table's spec, where the backend has a place for them."""
        return {"properties": properties} if self.has_properties else {}

    def comparable(self) -> tuple[object, ...]:
        """What the outsider sees: equal for two sites in the same state."""
        return self.outsider.state().comparable(self.site.container)

    def copy(self) -> Lake:
        return replace(self, site=self.site.copy(), management=dict(self.management))

    # the way of a run

    def load(self, docs: Sequence[Doc]) -> Loaded:
        spec = {**self.site.options, "management": self.management}
        catalog = _document("Catalog", {"name": "lake"}, spec)
        file = self.folder / f"m{next(_numbers)}.yaml"
        with file.open("w", encoding="utf-8") as out:
            yaml.dump_all([catalog, *docs], out, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
        return self.read(file)

    def read(self, file: Path) -> Loaded:
        plugins = PluginTypes(known_types, plugin_options)
        return load([str(file)], capabilities_of=lambda _: self.site.capabilities, plugins=plugins)

    def desired(self, docs: Sequence[Doc]) -> Desired:
        loaded = self.load(docs)
        assert not has_errors(loaded.diagnostics), loaded.diagnostics
        return loaded.desired

    def refusals(self, docs: Sequence[Doc]) -> list[str]:
        """The codes of the errors that validation finds."""
        return [d.code for d in self.load(docs).diagnostics if d.severity == "error"]

    def plan(self, docs: Sequence[Doc], catalog: Catalog | None = None, **options: Any) -> Plan:
        return self.plan_desired(self.desired(docs), catalog, **options)

    def plan_desired(self, desired: Desired, catalog: Catalog | None = None, **options: Any) -> Plan:
        options.setdefault("allow", self.words)
        catalog = catalog or self.site.open()
        snapshots = {"lake": observe(catalog, scope_of(desired, "lake", options.get("prune", False)))}

        def made() -> Plan:
            return make_plan(desired, snapshots, {"lake": self.site.capabilities}, PlanOptions(**options))

        plan = made()
        asked = value_checks(plan.steps, snapshots)
        if asked:
            snapshots = with_findings(asked, snapshots, {"lake": catalog}, pytest.fail)
            plan = made()
        return plan

    def apply(self, plan: Plan, catalog: Catalog | None = None, **how: Any) -> Report:
        how.setdefault("sleep", lambda seconds: None)
        return execute(plan, {"lake": catalog or self.site.open()}, **how)

    def reach(self, docs: Sequence[Doc], **options: Any) -> Report:
        """Plans and applies, and both must be clean: no step held back, nothing left to do."""
        plan = self.plan(docs, **options)
        assert [held(s) for s in plan.steps if s.verdict != "allowed"] == []
        report = self.apply(plan)
        assert report.outcome in ("applied", "no_changes"), report.message
        assert self.plan(docs, **options).steps == ()
        return report

    def unchanged_by(self, action: Callable[[], Any]) -> Any:
        before = self.outsider.raw()
        result = action()
        assert self.outsider.raw() == before
        return result


def is_projection(step: Step) -> bool:
    """The columns that a catalog shows follow the schema (test_projection.py): every schema change has this step more
    on some backends, and the other tests do not count it."""
    change = step.change
    return isinstance(change, SyncColumns) or (isinstance(change, ReplaceTable) and not change.set and not change.unset)


def steps(plan: Plan) -> list[tuple[str, Ident]]:
    return [(s.action, s.change.ident) for s in plan.steps if not is_projection(s)]


def held(step: Step) -> tuple[str, Ident, str, str | None]:
    return step.action, step.change.ident, step.verdict, step.blocked_by


def held_back(plan: Plan) -> list[tuple[str, Ident, str, str | None]]:
    return [held(s) for s in plan.steps if s.verdict != "allowed" and not is_projection(s)]


def main(report: Report) -> list[StepResult]:
    """The steps of a report, without those of the projection."""
    return [s for s in report.steps if not is_projection(s.step)]


def cut(plan: Plan, count: int) -> Plan:
    """The plan as a run that dies after `count` steps carries it out."""
    return replace(plan, steps=plan.steps[:count])
