"""Invariants 3 and 11: what is not ours stays as it is, and what changed since the plan stops the run."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from contract import scenario
from contract.faults import Unlucky
from contract.lake import Lake, cut, held_back, namespace, steps, table
from contract.sample import FOREIGN, FOREIGN_ROWS
from contract.scenario import Day
from reconciler.model.change import Change as AnyChange
from reconciler.model.errors import CatalogError
from reconciler.model.plan_json import plan_from_json, plan_to_json

COLUMNS = {"id": "int64"}


def test_what_is_not_ours_is_the_same_to_the_last_bit(lake: Lake) -> None:
    lake.make_home()
    theirs = [lake.t("their_first"), lake.t("their_second")]
    spaces = [lake.at] if lake.at else []
    if lake.has_namespaces:
        lake.outsider.create_namespace(lake.ns("their"), {"a": "b"})
        spaces.append(lake.ns("their"))
        theirs.append(lake.ns("their", "t"))
    for ident in theirs:
        lake.outsider.create_table(ident, FOREIGN, FOREIGN_ROWS)
    theirs.append(lake.t("their_empty"))
    lake.outsider.declare_table(theirs[-1])
    before = {ident: lake.outsider.raw_of(ident) for ident in (*spaces, *theirs)}
    lake.reach([table(lake.t("orders"), COLUMNS)])
    lake.reach([table(lake.t("orders"), {**COLUMNS, "x": "string"}, config={"a": "b"})])
    plan = lake.plan([table(lake.t("other"), COLUMNS)], prune=True)
    assert held_back(plan) == []
    assert lake.apply(plan).outcome == "applied"
    assert set(lake.outsider.state().tables) == {*theirs, lake.t("other")}
    assert {ident: lake.outsider.raw_of(ident) for ident in (*spaces, *theirs)} == before
    assert [(o.kind, o.ident) for o in plan.orphans] == []


def test_prune_and_absent_never_touch_what_is_not_ours(lake: Lake) -> None:
    lake.make_home()
    lake.outsider.create_table(lake.t("theirs"), FOREIGN, FOREIGN_ROWS)
    absent = [table(lake.t("theirs"), state="absent")]
    if lake.at:
        absent.append(namespace(lake.at, state="absent"))
    plan = lake.plan(absent, prune=True, adopt=True)
    assert {(s.verdict, s.blocked_by) for s in plan.steps} == {("blocked", "not_owned")}
    assert lake.unchanged_by(lambda: lake.apply(plan)).outcome == "refused"


Change = Callable[[Lake], None]


def _rows(lake: Lake) -> None:
    lake.outsider.append(lake.t("orders"), scenario.ROWS)


def _config(lake: Lake) -> None:
    lake.outsider.set_config(lake.t("orders"), {"theirs": "1"})


def _taken(lake: Lake) -> None:
    lake.outsider.create_table(lake.t("fresh"), FOREIGN)


def _properties(lake: Lake) -> None:
    """Of a namespace that the plan changes; where it changes none, of the table."""
    if lake.at and lake.changes_namespaces:
        lake.outsider.set_properties("Namespace", lake.at, {"theirs": "1"})
    else:
        _config(lake)


@pytest.mark.parametrize("change", [_config, _taken, _properties], ids=lambda c: c.__name__[1:])
def test_a_change_since_the_plan_makes_it_stale(day: Day, change: Change) -> None:
    plan = day.plan()
    change(day.lake)
    report = day.lake.unchanged_by(lambda: day.lake.apply(plan))
    assert report.outcome == "stale"
    assert {s.status for s in report.steps} == {"not_run"}
    assert "Make a new plan" in report.message
    found = {(s.key.ident, d.field): (d.before, d.after) for s in report.stale for d in s.differences}
    lake = day.lake
    if change is _taken:
        expected: dict[tuple[tuple[str, ...], str], tuple[object, object]] = {
            (lake.t("fresh"), "state"): ("absent", "present")
        }
    elif change is _properties and lake.at and lake.changes_namespaces:
        expected = {(lake.at, "properties.theirs"): (None, "1")}
    else:
        expected = {(lake.t("orders"), "config.theirs"): (None, "1")}
    assert found == expected


@pytest.mark.parametrize("count", [0, 1, 2])
def test_what_the_plan_did_itself_is_no_change_of_a_stale_plan(lake: Lake, count: int) -> None:
    """A run that was cut after `count` steps on the table, then somebody else, then the same plan again."""
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS, config={"k": "1"})])
    docs = [*lake.home(), table(lake.t("t"), {**COLUMNS, "more": "string"}, config={"k": "2"})]
    plan = plan_from_json(json.loads(json.dumps(plan_to_json(lake.plan(docs)))))
    lake.apply(cut(plan, count))
    lake.outsider.set_config(lake.t("t"), {"theirs": "1"})
    report = lake.unchanged_by(lambda: lake.apply(plan))
    (stale,) = report.stale
    assert [(d.field, d.before, d.after) for d in stale.differences] == [("config.theirs", None, "1")]


def test_new_rows_do_not_make_a_plan_stale(day: Day) -> None:
    plan = day.plan()
    _rows(day.lake)
    assert day.lake.apply(plan).outcome == "applied"
    rows = day.lake.outsider.state().tables[day.lake.t("orders")].rows
    assert rows is None or len(rows) == 2 * len(scenario.ROWS)


def test_an_object_that_vanished_makes_a_plan_stale(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    plan = lake.plan([*lake.home(), table(lake.t("t"), {**COLUMNS, "more": "string"})])
    gone = lake.plan([*lake.home(), table(lake.t("t"), state="absent")])
    lake.apply(gone)
    report = lake.unchanged_by(lambda: lake.apply(plan))
    assert report.outcome == "stale"
    assert [(d.field, d.before) for s in report.stale for d in s.differences] == [("state", "present")]


def test_a_namespace_that_was_filled_meanwhile_is_not_dropped(lake: Lake) -> None:
    a, b = lake.ns("a"), lake.ns("b")
    if not lake.has_namespaces:
        assert lake.refusals([namespace(a, state="absent")]) == ["M408"]
        return
    lake.reach([namespace(a), namespace(b)])
    plan = lake.plan([namespace(a, state="absent"), namespace(b, state="absent")])
    lake.outsider.create_table((*a, "theirs"), FOREIGN, FOREIGN_ROWS)
    assert lake.unchanged_by(lambda: lake.apply(plan)).outcome == "stale"


def test_a_namespace_that_is_filled_during_the_run_is_not_dropped(lake: Lake) -> None:
    """The last look comes right before the drop, and the catalog itself refuses after that."""
    a = lake.ns("a")
    if not lake.has_namespaces:
        assert lake.refusals([namespace(a, state="absent")]) == ["M408"]
        return
    lake.reach([namespace(a)])
    plan = lake.plan([namespace(a, state="absent")])

    def fill(change: AnyChange, attempt: int) -> CatalogError | None:
        lake.outsider.create_table((*a, "theirs"), FOREIGN, FOREIGN_ROWS)
        return None

    report = lake.apply(plan, Unlucky(lake.site.open(), before=fill))
    (step,) = report.steps
    assert (step.status, step.error and step.error.name) == ("failed", "NamespaceNotEmpty")
    assert set(lake.outsider.state().tables) == {(*a, "theirs")}
    assert set(lake.outsider.state().namespaces) == {a}


def test_a_table_that_appears_during_the_run_is_left_alone(lake: Lake) -> None:
    """Declared by somebody else between our last look and our write."""
    lake.make_home()
    plan = lake.plan([table(lake.t("t"), COLUMNS)])
    seen: list[object] = []

    def take(change: AnyChange, attempt: int) -> CatalogError | None:
        if not seen:
            lake.outsider.create_table(lake.t("t"), FOREIGN, FOREIGN_ROWS)
            seen.append(lake.outsider.raw_of(lake.t("t")))
        return None

    report = lake.apply(plan, Unlucky(lake.site.open(), before=take))
    assert [s.status for s in report.steps] == ["failed", "not_run"]
    assert [lake.outsider.raw_of(lake.t("t"))] == seen
    assert steps(lake.plan([table(lake.t("t"), COLUMNS)])) == []
