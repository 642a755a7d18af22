"""What exists and cannot be read is blocked: never absent, never written over."""

from __future__ import annotations

from contract.lake import Lake, held_back, namespace, steps, table
from contract.sample import FOREIGN, FOREIGN_ROWS

COLUMNS = {"id": "int64"}


def test_a_table_that_cannot_be_read_is_blocked(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS), table(lake.t("good"), COLUMNS)])
    lake.outsider.spoil(lake.t("t"))
    docs = [
        *lake.home(),
        table(lake.t("t"), {**COLUMNS, "x": "string"}),
        table(lake.t("good"), {**COLUMNS, "x": "string"}),
    ]
    before = lake.outsider.raw_of(lake.t("t"))
    plan = lake.plan(docs)
    assert [h[1:] for h in held_back(plan)] == [(lake.t("t"), "blocked", "unreadable")]
    assert not plan.catalogs["lake"].complete
    assert any(lake.t("t")[-1] in p.message or "cannot be read" in p.message for p in plan.catalogs["lake"].problems)
    assert ("add_columns", lake.t("good")) in steps(plan)
    assert lake.apply(plan).outcome == "refused"
    assert lake.outsider.raw_of(lake.t("t")) == before


def test_a_table_that_was_spoiled_after_the_plan(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    plan = lake.plan([*lake.home(), table(lake.t("t"), {**COLUMNS, "x": "string"})])
    lake.outsider.spoil(lake.t("t"))
    report = lake.unchanged_by(lambda: lake.apply(plan))
    assert report.outcome == "failed"
    assert "nothing was written" in report.message


def test_an_unreadable_table_keeps_its_namespace(lake: Lake) -> None:
    x = lake.ns("x")
    if not lake.has_namespaces:
        assert lake.refusals([namespace(x)]) == ["M408"]
        return
    lake.reach([namespace(x)])
    lake.outsider.create_table((*x, "theirs"), FOREIGN, FOREIGN_ROWS)
    lake.outsider.spoil((*x, "theirs"))
    plan = lake.plan([namespace(x, state="absent")])
    assert held_back(plan) == [("drop_namespace", x, "blocked", "not_empty")]
    lake.unchanged_by(lambda: lake.apply(plan))


def test_an_unreadable_table_that_nobody_declares_is_in_nobodys_way(lake: Lake) -> None:
    lake.make_home()
    lake.outsider.create_table(lake.t("theirs"), FOREIGN, FOREIGN_ROWS)
    lake.outsider.spoil(lake.t("theirs"))
    before = lake.outsider.raw_of(lake.t("theirs"))
    plan = lake.plan([table(lake.t("t"), COLUMNS)], prune=True)
    assert lake.apply(plan).outcome == "applied"
    assert lake.plan([table(lake.t("t"), COLUMNS)], prune=True).steps == ()
    assert lake.outsider.raw_of(lake.t("theirs")) == before


def test_spoiled_data_of_a_deregistered_table_is_not_created_anew(stored: Lake) -> None:
    stored.reach([*stored.home(), table(stored.t("t"), COLUMNS)])
    stored.outsider.append(stored.t("t"), FOREIGN_ROWS)
    stored.reach([*stored.home(), table(stored.t("t"), state="absent")])
    stored.outsider.spoil(stored.t("t"))
    plan = stored.plan([*stored.home(), table(stored.t("t"), COLUMNS)])
    assert {(s.verdict, s.blocked_by) for s in plan.steps} == {("blocked", "unreadable")}
    stored.unchanged_by(lambda: stored.apply(plan))


def test_prune_does_not_take_what_cannot_be_read(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS), table(lake.t("good"), COLUMNS)])
    lake.outsider.spoil(lake.t("t"))
    before = lake.outsider.raw_of(lake.t("t"))
    plan = lake.plan(lake.home(), prune=True)
    assert held_back(plan) == [("deregister_table", lake.t("t"), "blocked", "unreadable")]
    assert ("deregister_table", lake.t("good")) in steps(plan)
    assert not plan.catalogs["lake"].complete
    assert lake.apply(plan).outcome == "refused"
    assert lake.outsider.raw_of(lake.t("t")) == before


def test_prune_does_not_take_what_was_spoiled_after_the_plan(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    plan = lake.plan(lake.home(), prune=True)
    lake.outsider.spoil(lake.t("t"))
    assert lake.unchanged_by(lambda: lake.apply(plan)).outcome == "failed"


def test_a_manifest_lets_go_of_a_table_that_cannot_be_read(stored: Lake) -> None:
    stored.reach([*stored.home(), table(stored.t("t"), COLUMNS)])
    stored.outsider.spoil(stored.t("t"))
    plan = stored.plan([*stored.home(), table(stored.t("t"), state="absent")], prune=True)
    assert held_back(plan) == []
    assert stored.apply(plan).outcome == "applied"
