"""Which step may start when: what a step needs, and what it only comes after."""

from __future__ import annotations

from collections.abc import Callable

from engine_plans import columns, copy_of, dataset, declare, ns, step

from reconciler.catalog.memory import MemoryCatalog, place
from reconciler.core.world import World
from reconciler.engine.execute import execute
from reconciler.engine.graph import Graph
from reconciler.model import change as c
from reconciler.model.arrow import parse_type
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Present
from reconciler.model.plan import Plan, Step, Summary
from reconciler.model.report import Status
from reconciler.model.state import DatasetState, Index, TableState

T = ("n", "t")
CHANGES: list[c.Change] = [
    c.AlterColumns(T, (c.ColumnAlteration("a", type=parse_type("int64")),), ("a_idx",)),
    c.AlterColumns(T, (c.ColumnAlteration("b", type=parse_type("int64")),), ("b_idx",)),
    c.CreateIndex(T, Index("a_idx", "a", "btree")),
    c.CreateIndex(T, Index("b_idx", "b", "btree")),
    c.AddColumns(T, columns(e="int8")),
]
NEEDS = ((), (), ("s1",), ("s2",), ())


def steps() -> list[Step]:
    world = World(locate=place)
    for change in (ns("n"), declare(*T), dataset(*T, a="int32", b="int32")):
        world.apply(change)
    for name in ("a", "b"):
        world.apply(c.CreateIndex(T, Index(f"{name}_idx", name, "btree")))
    world = copy_of(world)
    return [step(world, n, change, needs) for n, (change, needs) in enumerate(zip(CHANGES, NEEDS, strict=True), 1)]


def run(ends: dict[str, Status]) -> list[list[str]]:
    """What may start at the same time, until nothing may."""
    graph = Graph(steps())
    started = []
    while ready := graph.take_ready():
        started.append([s.id for s in ready])
        for s in ready:
            graph.ended(s, ends.get(s.id, "done"))
    return started


def test_the_steps_of_one_object_run_one_at_a_time() -> None:
    assert run({}) == [["s1"], ["s2"], ["s3"], ["s4"], ["s5"]]


def test_what_does_not_need_a_step_that_failed_runs_in_its_turn() -> None:
    assert run({"s1": "failed"}) == [["s1"], ["s2"], ["s4"], ["s5"]]
    assert run({"s2": "failed"}) == [["s1"], ["s2"], ["s3"], ["s5"]]
    assert run({"s1": "failed", "s2": "failed"}) == [["s1"], ["s2"], ["s5"]]
    assert run({"s3": "failed"}) == [["s1"], ["s2"], ["s3"], ["s4"], ["s5"]]


def test_nothing_runs_on_an_object_of_which_nobody_knows_what_it_is() -> None:
    assert run({"s1": "unknown"}) == [["s1"]]
    assert run({"s2": "unknown"}) == [["s1"], ["s2"]]


def applied(meddle: Callable[[World], object] = lambda world: None) -> tuple[list[Status], TableState]:
    """The cast of `a` is refused, and somebody else may change the table at that moment."""
    world = World(locate=place)
    for change in (ns("n"), declare(*T), dataset(*T, a="int32", b="int32")):
        world.apply(change)
    for name in ("a", "b"):
        world.apply(c.CreateIndex(T, Index(f"{name}_idx", name, "btree")))
    catalog = MemoryCatalog(world)

    def fault(point: str, subject: object) -> None:
        if point == "before" and subject == CHANGES[0]:
            meddle(world)
            raise CatalogError(Code.TABLE_SCHEMA_VALIDATION_ERROR, "a value does not fit")

    catalog.fault = fault
    simulated = copy_of(world)
    planned = [step(simulated, n, x, needs) for n, (x, needs) in enumerate(zip(CHANGES, NEEDS, strict=True), 1)]
    the_plan = Plan("sha256:p", "0", "sha256:m", {}, tuple(planned), (), (), Summary())
    report = execute(the_plan, {"lake": catalog}, sleep=lambda seconds: None)
    found = world.find("Table", T)
    assert isinstance(found, Present)
    assert isinstance(found.state, TableState)
    return [s.status for s in report.steps], found.state


def test_a_column_that_fails_leaves_the_others_to_their_steps() -> None:
    statuses, state = applied()
    assert statuses == ["failed", "done", "not_run", "done", "done"]
    assert isinstance(state.dataset, DatasetState)
    assert [(f.name, str(f.type)) for f in state.dataset.fields] == [("a", "int32"), ("b", "int64"), ("e", "int8")]
    assert sorted(i.name for i in state.dataset.indexes) == ["a_idx", "b_idx"]


def test_what_somebody_else_changed_meanwhile_stops_the_others_too() -> None:
    update = c.UpdateDataset(T, {"theirs": "1"}, {}, {}, "us", ())
    statuses, state = applied(lambda world: world.apply(update))
    assert statuses == ["failed", "failed", "not_run", "not_run", "failed"]
    assert isinstance(state.dataset, DatasetState)
    assert [(f.name, str(f.type)) for f in state.dataset.fields] == [("a", "int32"), ("b", "int32")]
