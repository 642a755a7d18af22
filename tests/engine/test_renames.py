"""A plan that moves namespaces inside moved namespaces: checked before the first write, resumed from every point."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from engine_plans import OURS, columns, declare, lake, ns, plan, table

from reconciler.engine.execute import execute
from reconciler.model import change as c
from reconciler.model.ident import Ident
from reconciler.model.state import Marks

LIVE: list[c.Change] = [ns("a"), ns("a", "b"), ns("a", "empty"), ns("a", "b", "c"), *table("a", "b", "t")]


def move(target: str, source: str) -> c.RenameNamespace:
    return c.RenameNamespace(tuple(target.split(".")), tuple(source.split(".")))


def new_column(ident: Ident) -> c.AddColumns:
    return c.AddColumns(ident, columns(n="string"))


PLANS: dict[str, list[c.Change]] = {
    "table renamed inside": [
        move("z", "a"),
        move("z.y", "z.b"),
        c.RenameTable(("z", "y", "u"), ("z", "y", "t")),
        new_column(("z", "y", "u")),
    ],
    "table keeps its name": [move("z", "a"), move("z.y", "z.b"), new_column(("z", "y", "t"))],
    "three levels": [move("z", "a"), move("z.y", "z.b"), move("z.y.x", "z.y.c"), ns("z", "y", "x", "new")],
    "out of the old one first": [move("m", "a.b"), move("z", "a"), new_column(("m", "t")), ns("z", "new")],
    "out of the new one": [move("m", "a"), move("z", "m.b"), new_column(("z", "t")), ns("m", "new")],
    "a delete inside": [move("z", "a"), move("z.y", "z.b"), c.DropNamespace(("z", "empty"))],
    "a delete two levels down": [move("z", "a"), move("z.y", "z.b"), c.DropNamespace(("z", "y", "c"))],
}


def in_line(changes: Sequence[c.Change]) -> dict[int, list[int]]:
    return {n: [n - 1] for n in range(2, len(changes) + 1)}


@pytest.mark.parametrize("name", PLANS)
def test_killed_after_every_step_and_resumed(name: str) -> None:
    changes = PLANS[name]
    the_plan = plan(lake(*LIVE).world, changes, needs=in_line(changes))
    goal = lake(*LIVE, *changes).world.snapshot()
    for done in range(len(changes) + 1):
        catalog = lake(*LIVE, *changes[:done])
        report = execute(the_plan, {"lake": catalog})
        assert report.outcome == "applied", f"killed after {done} steps: {report.message}"
        assert [s.status for s in report.steps] == ["skipped"] * done + ["done"] * (len(changes) - done)
        assert catalog.world.snapshot() == goal


OUTSIDERS: list[c.Change] = [
    ns("a", "y", theirs="1"),
    ns("a", "b", "c", "guest"),
    c.UpdateNamespace(("a", "b"), {"theirs": "1"}, (), OURS),
    c.UpdateTable(("a", "b", "t"), {"theirs": "1"}, (), OURS),
    c.DeregisterTable(("a", "b", "t")),
]


@pytest.mark.parametrize("outsider", OUTSIDERS, ids=lambda change: f"{change.action} {'.'.join(change.ident)}")
def test_what_others_do_under_the_old_names_makes_the_plan_stale(outsider: c.Change) -> None:
    changes = [move("z", "a"), move("z.y", "z.b"), new_column(("z", "y", "t")), c.DropNamespace(("z", "y", "c"))]
    the_plan = plan(lake(*LIVE).world, changes, needs=in_line(changes))
    catalog = lake(*LIVE, outsider)
    report = execute(the_plan, {"lake": catalog})
    assert report.outcome == "stale"
    assert catalog.calls.writes == 0


def theirs(change: c.CreateNamespace | c.DeclareTable) -> c.Change:
    return type(change)(change.ident, change.properties, Marks())


FILLED: dict[str, tuple[list[c.Change], list[c.Change]]] = {
    "the target of a namespace rename": (
        [ns("first"), move("z", "a")],
        [ns("z"), theirs(ns("z")), declare("z"), theirs(declare("z"))],
    ),
    "one that is updated after its rename": (
        [ns("first"), move("z", "a"), c.UpdateNamespace(("z",), {"q": "1"}, (), OURS)],
        [ns("z"), ns("z", q="1"), theirs(ns("z")), declare("z")],
    ),
    "the target of a table rename": (
        [ns("first"), c.RenameTable(("u",), ("a", "b", "t"))],
        [ns("u"), theirs(ns("u")), declare("u"), theirs(declare("u"))],
    ),
    "the target of a rename inside a renamed namespace": (
        [move("z", "a"), c.RenameTable(("z", "u"), ("z", "b", "t"))],
        [ns("a", "u"), theirs(ns("a", "u")), declare("a", "u")],
    ),
    "a new namespace": ([ns("first"), ns("z")], [theirs(ns("z")), declare("z")]),
    "a new namespace inside a renamed one": ([move("z", "a"), ns("z", "u")], [declare("a", "u"), theirs(ns("a", "u"))]),
    "a new table": ([ns("first"), *table("a", "u")], [ns("a", "u"), theirs(declare("a", "u"))]),
}


@pytest.mark.parametrize(("name", "n"), [(name, n) for name, (_, who) in FILLED.items() for n in range(len(who))])
def test_an_outsider_under_a_name_that_is_to_be_filled_makes_the_plan_stale(name: str, n: int) -> None:
    changes, outsiders = FILLED[name]
    the_plan = plan(lake(*LIVE).world, changes, needs=in_line(changes))
    catalog = lake(*LIVE, outsiders[n])
    report = execute(the_plan, {"lake": catalog})
    assert report.outcome == "stale", report.message
    assert catalog.calls.writes == 0


def test_a_name_that_the_plan_itself_makes_free_is_no_rival() -> None:
    """A table takes the name that a namespace loses, also below a namespace that is made anew."""
    changes: list[c.Change] = [move("z", "a"), *table("a")]
    catalog = lake(*LIVE)
    assert execute(plan(catalog.world, changes, needs=in_line(changes)), {"lake": catalog}).outcome == "applied"
    changes = [move("z", "a"), ns("a", new="1"), *table("a", "b")]
    catalog = lake(*LIVE)
    assert execute(plan(catalog.world, changes, needs=in_line(changes)), {"lake": catalog}).outcome == "applied"
