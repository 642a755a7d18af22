"""One dataset that two catalogs declare is altered once, by the first of them."""

from __future__ import annotations

import pytest

from reconciler.catalog.memory import MemoryCapabilities
from reconciler.core.planner import PlanError, PlanOptions, make_plan
from reconciler.model.arrow import Field, parse_type
from reconciler.model.data import DataSpec
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.observed import Present, Snapshot
from reconciler.model.state import DatasetState, Marks, TableState

HERE = Source("m.yaml")
WANTED = (Field("id", parse_type("int64")), Field("new", parse_type("string")))


def plan_of(
    *places: str, properties: dict[str, str] | None = None, data: tuple[DataSpec | None, ...] = ()
) -> list[tuple[str, str]]:
    """Catalogs a, b, ... each with a table t at the given place, whose dataset lacks the column `new`."""
    catalogs, tables, snapshots = {}, {}, {}
    for name, place in zip("abc", places, strict=False):
        catalogs[name] = CatalogSpec(name, "memory", {}, Management(owner="us"), HERE)
        source = data["abc".index(name)] if data else None
        tables[name] = {("t",): DesiredTable(name, ("t",), HERE, properties or {}, fields=WANTED, data=source)}
        dataset = DatasetState(WANTED[:1], owner="us")
        snapshots[name] = Snapshot({}, {("t",): Present(TableState(place, {}, Marks("us"), dataset))})
    capabilities = dict.fromkeys(catalogs, MemoryCapabilities())
    plan = make_plan(Desired(catalogs, {}, tables), snapshots, capabilities, PlanOptions())
    return [(s.catalog, s.action) for s in plan.steps]


def test_the_first_catalog_alters_the_dataset() -> None:
    assert plan_of("s3://lake/t", "s3://lake/t/") == [("a", "add_columns")]


def test_different_places_are_altered_each() -> None:
    assert plan_of("s3://lake/t", "s3://lake/u") == [("a", "add_columns"), ("b", "add_columns")]


def test_the_catalog_entries_are_managed_in_both() -> None:
    steps = plan_of("file:///lake/t", "/lake/t", properties={"team": "x"})
    assert steps == [("a", "update_table"), ("b", "update_table"), ("a", "add_columns")]


def test_rows_come_from_one_source() -> None:
    """The second manifest's would be left out without a word."""
    one, other = (DataSpec({"format": "csv", "path": path}, "append") for path in ("x", "y"))
    for data in ((one, other), (one, None), (None, one)):
        with pytest.raises(PlanError) as refused:
            plan_of("/lake/t", "/lake/t", data=data)
        assert [d.code for d in refused.value.diagnostics] == ["P103"]
    assert plan_of("/lake/t", "/lake/t", data=(one, one)) == [("a", "add_columns")], "no source was looked at here"


def steps_of_two(entry: str | None, data: str | None, options: PlanOptions) -> list[tuple[str, str, str, str | None]]:
    """Catalogs a and b of ours with one dataset, whose mark is `data`; b's entry has the mark `entry`."""
    catalogs = {name: CatalogSpec(name, "memory", {}, Management(owner="us"), HERE) for name in "ab"}
    tables = {name: {("t",): DesiredTable(name, ("t",), HERE, {"p": "1"}, fields=WANTED[:1])} for name in "ab"}
    dataset = DatasetState(WANTED[:1], owner=data)
    marks = {"a": Marks("us"), "b": Marks(entry)}
    snapshots = {n: Snapshot({}, {("t",): Present(TableState("/lake/t", {}, marks[n], dataset))}) for n in "ab"}
    plan = make_plan(Desired(catalogs, {}, tables), snapshots, dict.fromkeys("ab", MemoryCapabilities()), options)
    return [(s.catalog, s.action, s.verdict, s.blocked_by) for s in plan.steps]


def test_whose_the_data_is_counts_for_an_entry_that_follows() -> None:
    """Its adoption writes into the data."""
    ours = ("a", "update_table", "allowed", None)
    blocked = ("b", "update_table", "blocked", "foreign_owner")
    assert steps_of_two(None, "them", PlanOptions(adopt=True)) == [ours, blocked]
    taken = steps_of_two(None, "them", PlanOptions(take_over=frozenset({"them"})))
    assert ("b", "adopt", "allowed", None) in taken
    assert ("b", "adopt", "allowed", None) in steps_of_two(None, "us", PlanOptions(adopt=True))


def test_an_entry_of_ours_is_ours_whosever_the_data_is() -> None:
    both = [("a", "update_table", "allowed", None), ("b", "update_table", "allowed", None)]
    assert steps_of_two("us", "them", PlanOptions()) == both


def test_an_entry_that_follows_is_nobody_elses() -> None:
    """As declared, and ours: what the data is, the leader looks after."""
    catalogs = {n: CatalogSpec(n, "memory", {}, Management(owner=o), HERE) for n, o in (("a", "us"), ("b", "them"))}
    tables = {name: {("t",): DesiredTable(name, ("t",), HERE, fields=WANTED[:1])} for name in "ab"}
    dataset = DatasetState(WANTED[:1], owner="us")
    marks = {"a": Marks("us"), "b": Marks("them")}
    snapshots = {n: Snapshot({}, {("t",): Present(TableState("/lake/t", {}, marks[n], dataset))}) for n in "ab"}
    capabilities = dict.fromkeys("ab", MemoryCapabilities())
    plan = make_plan(Desired(catalogs, {}, tables), snapshots, capabilities, PlanOptions())
    assert (plan.steps, plan.unowned) == ((), ())
    alone = make_plan(Desired(catalogs, {}, tables), {"b": snapshots["b"]}, capabilities, PlanOptions())
    assert [key.catalog for key in alone.unowned] == ["b"], "alone it would change the data"
