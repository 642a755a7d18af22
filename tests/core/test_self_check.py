"""The self-check proved by itself: a planner that is broken on purpose, and a plan that is refused because of the
simulation. Each case also shows that nothing else would have noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.catalog.memory import MemoryCapabilities, place
from reconciler.core import planner
from reconciler.core.draft import Draft
from reconciler.core.errors import InternalError
from reconciler.core.options import PlanOptions
from reconciler.core.plan_catalog import CatalogPlan, plan_catalog
from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.observed import Absent, Present, Snapshot
from reconciler.model.plan import Plan
from reconciler.model.state import DatasetState, Marks, NamespaceState, TableState

HERE = Source("here.yaml")
US = Marks("us")
ID = (Field("id", parse_type("int64")),)
TWO = (*ID, Field("n", parse_type("string")))


def live() -> Snapshot:
    """`old` and `gone` are ours; `old.t` needs a column, `gone` is to be dropped with its table."""

    def table(*ident: str) -> Present:
        return Present(TableState(place(ident), {}, US, DatasetState(ID, owner="us")))

    spaces = {i: Present(NamespaceState({}, US)) for i in (("old",), ("gone",), ("from",))}
    return Snapshot(spaces, {i: table(*i) for i in (("old", "t"), ("gone", "t"))})  # type: ignore[arg-type]


def wanted() -> Desired:
    spaces = [
        DesiredNamespace("lake", ("new",), HERE),
        DesiredNamespace("lake", ("new", "inner"), HERE),
        DesiredNamespace("lake", ("old",), HERE, {"team": "x"}),
        DesiredNamespace("lake", ("to",), HERE, renamed_from=("from",)),
        DesiredNamespace("lake", ("gone",), HERE, absent=True),
    ]
    tables = [
        DesiredTable("lake", ("new", "inner", "t"), HERE, fields=ID),
        DesiredTable("lake", ("old", "t"), HERE, {"k": "v"}, fields=TWO),
        DesiredTable("lake", ("gone", "t"), HERE, absent=True),
    ]
    spec = CatalogSpec("lake", "memory", {}, Management("us"), HERE)
    return Desired({"lake": spec}, {"lake": {n.ident: n for n in spaces}}, {"lake": {t.ident: t for t in tables}})


def make() -> Plan:
    return planner.make_plan(wanted(), {"lake": live()}, {"lake": MemoryCapabilities()}, PlanOptions())


Sabotage = Callable[[CatalogPlan], None]


def without(kind: type[c.Change]) -> Sabotage:
    def sabotage(plan: CatalogPlan) -> None:
        plan.drafts[:] = [d for d in plan.drafts if not isinstance(d.change, kind)]
        plan.deletes[:] = [d for d in plan.deletes if not isinstance(d.change, kind)]

    return sabotage


def changed(kind: type[c.Change], edit: Callable[[Draft], None]) -> Sabotage:
    def sabotage(plan: CatalogPlan) -> None:
        for draft in (*plan.drafts, *plan.deletes):
            if isinstance(draft.change, kind):
                edit(draft)

    return sabotage


def nothing_at_all(plan: CatalogPlan) -> None:
    plan.drafts.clear()
    plan.deletes.clear()


def creates_backwards(plan: CatalogPlan) -> None:
    plan.drafts.reverse()


def deletes_backwards(plan: CatalogPlan) -> None:
    plan.deletes.reverse()


def deletes_first(plan: CatalogPlan) -> None:
    drop = next(d for d in plan.deletes if isinstance(d.change, c.DropNamespace))
    plan.deletes.remove(drop)
    plan.drafts.insert(0, drop)


def one_twice(plan: CatalogPlan) -> None:
    plan.drafts.append(next(d for d in plan.drafts if isinstance(d.change, c.CreateNamespace)))


def other_yields(draft: Draft) -> None:
    draft.yields = Present(NamespaceState({"surprise": "1"}, US))


def other_properties(draft: Draft) -> None:
    """The change and its result agree with each other, only not with the manifest."""
    assert isinstance(draft.change, c.UpdateNamespace)
    draft.change = replace(draft.change, set={"team": "wrong"})
    draft.yields = Present(NamespaceState({"team": "wrong"}, draft.change.marks))


def other_column(draft: Draft) -> None:
    assert isinstance(draft.change, c.AddColumns)
    draft.change = replace(draft.change, fields=(Field("n", parse_type("int8")),))


def expects_absence(draft: Draft) -> None:
    draft.expect = Absent()


def into_nowhere(draft: Draft) -> None:
    assert isinstance(draft.change, c.RenameNamespace)
    draft.change = replace(draft.change, ident=("nowhere", "to"))


SABOTAGES: dict[str, Sabotage] = {
    "no step at all": nothing_at_all,
    "a namespace is not created": without(c.CreateNamespace),
    "a namespace is not updated": without(c.UpdateNamespace),
    "a namespace is not renamed": without(c.RenameNamespace),
    "a namespace is not dropped": without(c.DropNamespace),
    "a table is not declared": without(c.DeclareTable),
    "a table is not updated": without(c.UpdateTable),
    "a table is not deregistered": without(c.DeregisterTable),
    "no dataset is written": without(c.CreateDataset),
    "a column is not added": without(c.AddColumns),
    "children before their parents": creates_backwards,
    "a namespace is dropped before its table": deletes_backwards,
    "a drop before everything else": deletes_first,
    "a namespace is created twice": one_twice,
    "the result is not what the change does": changed(c.CreateNamespace, other_yields),
    "the change is not what the manifest says": changed(c.UpdateNamespace, other_properties),
    "a column of another type": changed(c.AddColumns, other_column),
    "the object looks otherwise before": changed(c.UpdateNamespace, expects_absence),
    "a rename to another place": changed(c.RenameNamespace, into_nowhere),
}


def break_planner(monkeypatch: pytest.MonkeyPatch, sabotage: Sabotage, times: int) -> None:
    left = times

    def broken(*args: object) -> CatalogPlan:
        nonlocal left
        plan = plan_catalog(*args)  # type: ignore[arg-type]
        if left > 0:
            left -= 1
            sabotage(plan)
        return plan

    monkeypatch.setattr(planner, "plan_catalog", broken)


def test_the_plan_is_good_when_the_planner_is() -> None:
    kinds = {type(s.change) for s in make().steps if s.verdict == "allowed"}
    assert kinds == {
        c.CreateNamespace, c.UpdateNamespace, c.RenameNamespace, c.DropNamespace, c.DeclareTable, c.UpdateTable,
        c.DeregisterTable, c.CreateDataset, c.AddColumns,
    }  # fmt: skip


@pytest.mark.parametrize("name", SABOTAGES)
@pytest.mark.parametrize("times", [1, sys.maxsize], ids=["once", "always"])
def test_a_wrong_plan_is_an_internal_error(monkeypatch: pytest.MonkeyPatch, name: str, times: int) -> None:
    """`always`: planning once more gives the same mistake, so it has to be seen by other means."""
    break_planner(monkeypatch, SABOTAGES[name], times)
    with pytest.raises(InternalError):
        make()


@pytest.mark.parametrize("name", SABOTAGES)
def test_nothing_but_the_simulation_refuses_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    good = make()
    break_planner(monkeypatch, SABOTAGES[name], 1)
    monkeypatch.setattr(planner, "check", lambda *_: None)
    assert make().steps != good.steps


MANIFEST = """
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: ./lake, management: {owner: us}}
---
apiVersion: reconciler.lance/v1
kind: Namespace
metadata: {catalog: lake, id: [a]}
---
apiVersion: reconciler.lance/v1
kind: Namespace
metadata: {catalog: lake, id: [a, b]}
"""


@pytest.mark.parametrize("arguments", [["plan", "-o", "p.json"], ["apply", "--yes"], ["drift"]], ids=lambda a: a[0])
def test_it_is_never_shown_saved_or_applied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    from reconciler.cli import run

    monkeypatch.chdir(tmp_path)
    Path("m.yaml").write_text(MANIFEST)
    break_planner(monkeypatch, creates_backwards, 1)
    assert run([arguments[0], "m.yaml", *arguments[1:]]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "internal error: InternalError: create_namespace a.b is not legal" in shown.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.yaml"]
