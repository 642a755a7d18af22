"""What the tests say: documents in, plans and reports out, through the same parts as the command line."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from contract.backends import Backend, Site
from contract.outsider import Ident, Outsider
from reconciler.catalog.base import Catalog
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan, scope_of
from reconciler.engine.execute import execute
from reconciler.engine.observe import observe
from reconciler.manifest.load import Loaded, load
from reconciler.model.desired import Desired
from reconciler.model.diagnostic import has_errors
from reconciler.model.plan import Plan, Step
from reconciler.model.report import Report

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

    @property
    def has_namespaces(self) -> bool:
        return self.site.capabilities.ident_problem("Namespace", ("n",)) is None

    @property
    def has_properties(self) -> bool:
        return self.site.capabilities.holds_properties("Table", self.t("t"))

    def t(self, name: str) -> Ident:
        """A table where this backend puts them."""
        return (*self.backend.home, name)

    def home(self, **spec: Any) -> list[Doc]:
        """The documents that tables need around them."""
        return [namespace(self.backend.home, **spec)] if self.backend.home else []

    def make_home(self) -> None:
        """The same by the outsider."""
        if self.backend.home:
            self.outsider.create_namespace(self.backend.home)

    def with_properties(self, **properties: str) -> Doc:
        """As part of a table's spec, where the backend has a place for them."""
        return {"properties": properties} if self.has_properties else {}

    def many(self, count: int) -> int:
        """That many, or fewer where each one costs much."""
        return count if self.backend.stride == 1 else max(3, count // 3)

    def copy(self) -> Lake:
        return replace(self, site=self.site.copy(), management=dict(self.management))

    # the way of a run

    def load(self, docs: Sequence[Doc]) -> Loaded:
        spec = {**self.site.options, "management": self.management}
        catalog = _document("Catalog", {"name": "lake"}, spec)
        file = self.folder / f"m{next(_numbers)}.yaml"
        file.write_text(yaml.safe_dump_all([catalog, *docs], sort_keys=False, allow_unicode=True), "utf-8")
        return load([str(file)], capabilities_of=lambda _: self.site.capabilities)

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
        snapshot = observe(catalog or self.site.open(), scope_of(desired, "lake"))
        return make_plan(desired, {"lake": snapshot}, {"lake": self.site.capabilities}, PlanOptions(**options))

    def apply(self, plan: Plan, catalog: Catalog | None = None, **how: Any) -> Report:
        how.setdefault("sleep", lambda seconds: None)
        return execute(plan, {"lake": catalog or self.site.open()}, **how)

    def reach(self, docs: Sequence[Doc], **options: Any) -> Report:
        """Plans and applies, and both must be clean: no step held back, nothing left to do."""
        plan = self.plan(docs, **options)
        assert [held(s) for s in plan.steps if s.verdict != "allowed"] == []
        report = self.apply(plan)
        assert report.outcome in ("applied", "no_changes"), report.message
        assert steps(self.plan(docs, **options)) == []
        return report

    def unchanged_by(self, action: Callable[[], Any]) -> Any:
        before = self.outsider.raw()
        result = action()
        assert self.outsider.raw() == before
        return result


def steps(plan: Plan) -> list[tuple[str, Ident]]:
    return [(s.action, s.change.ident) for s in plan.steps]


def held(step: Step) -> tuple[str, Ident, str, str | None]:
    return step.action, step.change.ident, step.verdict, step.blocked_by


def held_back(plan: Plan) -> list[tuple[str, Ident, str, str | None]]:
    return [held(s) for s in plan.steps if s.verdict != "allowed"]


def cut(plan: Plan, count: int) -> Plan:
    """The plan as a run that dies after `count` steps carries it out."""
    return replace(plan, steps=plan.steps[:count])
