"""Invariants 6 and 7: answers that are lost, writes that are refused, listings that stop half way."""

from __future__ import annotations

import pytest

from contract import scenario
from contract.faults import Unlucky, blind, busy, lost_answer, refusing
from contract.lake import Lake, cut, held_back, namespace, steps, table
from contract.scenario import Day

COLUMNS = {"id": "int64"}


def test_lost_answers_of_every_step_converge(day: Day) -> None:
    plan = day.plan()
    unlucky = Unlucky(day.lake.site.open(), after=lost_answer)
    report = day.lake.apply(plan, unlucky)
    assert (report.outcome, report.count("done")) == ("applied", len(plan.steps)), report.message
    assert unlucky.writes == len(plan.steps), "a write that had landed was sent again"
    day.ended_well()


def test_lost_answers_while_everything_is_new(lake: Lake) -> None:
    docs = scenario.before(lake)
    undisturbed = lake.copy()
    undisturbed.reach(scenario.before(undisturbed))
    report = lake.apply(lake.plan(docs), Unlucky(lake.site.open(), after=lost_answer))
    assert report.outcome == "applied", report.message
    assert lake.comparable() == undisturbed.comparable()


def test_a_busy_catalog_is_asked_again(day: Day) -> None:
    report = day.lake.apply(day.plan(), Unlucky(day.lake.site.open(), before=busy))
    assert report.outcome == "applied", report.message
    assert {s.attempts for s in report.steps} == {3}
    day.ended_well()


@pytest.mark.parametrize("action", ["create_dataset", "alter_columns"])
def test_after_a_refused_write_nothing_is_deleted(day: Day, action: str) -> None:
    report = day.lake.apply(day.plan(), Unlucky(day.lake.site.open(), before=refusing(action)))
    assert report.outcome == "partial"
    failed = [s for s in report.steps if s.status == "failed"]
    assert {s.step.action for s in failed} == {action}
    assert {s.error.name for s in failed if s.error} == {"PermissionDenied"}
    assert {s.status for s in report.steps if s.step.deletes} == {"not_run"}
    lost = {s.step.key for s in failed}
    later = {s.step.id for s in report.steps if s.status == "not_run" and not s.step.deletes}
    assert all(s.step.key in lost for s in report.steps if s.step.id in later), "only what needs it is held up"
    day.lake.reach(day.docs, adopt=True)
    day.ended_well()


def test_a_step_that_fails_leaves_its_object_as_it_was(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    docs = [*lake.home(), table(lake.t("t"), {**COLUMNS, "more": "string"})]
    plan = lake.plan(docs)
    unlucky = Unlucky(lake.site.open(), before=refusing("add_columns"))
    assert lake.unchanged_by(lambda: lake.apply(cut(plan, 1), unlucky)).outcome == "failed"


def test_half_a_listing_deletes_nothing(lake: Lake) -> None:
    docs = [*lake.home(), table(lake.t("a"), COLUMNS), table(lake.t("b"), COLUMNS)]
    lake.reach(docs)
    rest = lake.home() or [table(lake.t("a"), COLUMNS)]
    blinded = Unlucky(lake.site.open(), gaps=(blind(),))
    for plan in (
        lake.plan(rest, blinded, prune=True),
        lake.plan([*lake.home(), table(lake.t("a"), state="absent"), table(lake.t("b"), state="absent")], blinded),
    ):
        assert not plan.catalogs["lake"].complete
        assert "half way" in plan.catalogs["lake"].problems[0].message
        assert {(s.verdict, s.blocked_by) for s in plan.steps} <= {("blocked", "incomplete_listing")}
        lake.unchanged_by(lambda plan=plan: lake.apply(plan, blinded))


def test_half_a_listing_creates_nothing_that_may_be_there(lake: Lake) -> None:
    docs = [*lake.home(), table(lake.t("a"), COLUMNS)]
    lake.reach(docs)
    plan = lake.plan(docs, Unlucky(lake.site.open(), gaps=(blind(),)))
    first, *rest = held_back(plan)
    assert first[2:] == ("blocked", "incomplete_listing")
    assert {h[2:] for h in rest} <= {first[2:], ("blocked", "needs_blocked_step")}
    assert len(steps(plan)) == 1 + len(rest)
    assert lake.unchanged_by(lambda: lake.apply(plan)).outcome == "refused"


def test_a_gap_holds_up_only_what_is_in_it(lake: Lake) -> None:
    a, b = lake.ns("a"), lake.ns("b")
    if not lake.has_namespaces:
        assert lake.refusals([namespace(a)]) == ["M408"]
        return
    names = [a, b]
    lake.reach([d for n in names for d in (namespace(n), table((*n, "t"), COLUMNS))])
    blinded = Unlucky(lake.site.open(), gaps=(blind(a),))
    absent = [d for n in names for d in (namespace(n, state="absent"), table((*n, "t"), state="absent"))]
    plan = lake.plan(absent, blinded)
    assert {s.change.ident for s in plan.steps if s.verdict == "allowed"} == {(*b, "t"), b}
    lake.apply(plan, blinded)
    assert set(lake.outsider.state().namespaces) == {a}
    assert set(lake.outsider.state().tables) == {(*a, "t")}
