"""Invariants 1, 2, 4, 5, 8, 10 and 14: one state in the end, however the run went."""

from __future__ import annotations

import json
import random

import pytest

from contract.lake import Lake, cut, held_back, steps, table
from contract.scenario import Day
from reconciler.model.plan_json import plan_from_json, plan_to_json


def test_plan_after_apply_is_empty_and_a_second_apply_writes_nothing(day: Day) -> None:
    assert day.lake.apply(day.plan()).outcome == "applied"
    plan = day.plan()
    assert (plan.steps, plan.orphans, plan.unowned) == ((), (), ())
    assert day.lake.unchanged_by(lambda: day.lake.apply(plan)).outcome == "no_changes"


def test_every_kind_of_step_is_in_the_scenario(day: Day) -> None:
    """Otherwise the tests below would prove less than they say."""
    plan = day.plan()
    assert held_back(plan) == []
    expected = {"declare_table", "create_dataset", "create_index", "update_table", "adopt", "add_columns",
                "alter_columns", "drop_columns", "replace_index", "drop_index", "deregister_table"}  # fmt: skip
    if day.lake.backend.rows:
        expected |= {"refresh_index"}
    if day.lake.has_namespaces:
        expected |= {"drop_namespace"}
        expected |= {"rename_table"} if day.lake.renames_tables else set()
        expected |= {"rename_namespace"} if day.lake.renames_namespaces else set()
    if day.lake.at and day.lake.changes_namespaces:
        expected |= {"update_namespace"}
    if day.lake.changes_tables and day.lake.site.capabilities.replaces_tables:
        expected |= {"replace_table"}
    assert {s.action for s in plan.steps} == expected


@pytest.mark.parametrize("parallelism", [1, 8])
def test_one_at_a_time_and_all_at_once_end_alike(day: Day, parallelism: int) -> None:
    assert day.lake.apply(day.plan(), parallelism=parallelism).outcome == "applied"
    day.ended_well()


def test_a_run_that_dies_after_any_step_is_finished_by_the_next(day: Day) -> None:
    while (plan := day.plan()).steps:
        assert held_back(plan) == []
        report = day.lake.apply(cut(plan, 1))
        assert report.outcome == "applied", report.message
    day.ended_well()


def test_a_saved_plan_goes_on_where_it_died(day: Day) -> None:
    saved = day.plan()
    for count in range(len(saved.steps)):
        report = day.lake.apply(cut(saved, count))
        assert report.count("failed") == 0, (count, report.message)
        assert report.count("skipped") >= count - 1
    report = day.lake.apply(saved)
    assert report.outcome == "applied"
    assert report.count("skipped") >= len(saved.steps) - 1
    day.ended_well()
    again = day.lake.unchanged_by(lambda: day.lake.apply(saved))
    assert (again.outcome, again.count("skipped")) == ("applied", len(saved.steps))


def test_the_order_of_manifests_does_not_matter(day: Day) -> None:
    first = day.plan()
    for seed in range(3):
        other = day.plan(random.Random(seed).sample(day.docs, len(day.docs)))
        assert (steps(other), other.manifests_digest) == (steps(first), first.manifests_digest)


def test_a_plan_survives_json(day: Day) -> None:
    plan = day.plan()
    again = plan_from_json(json.loads(json.dumps(plan_to_json(plan))))
    assert again.plan_id == plan.plan_id
    assert plan_to_json(again) == plan_to_json(plan)
    assert day.lake.apply(again).outcome == "applied"
    day.ended_well()


def test_a_plan_without_changes_reads_little_and_writes_nothing(lake: Lake) -> None:
    docs = lake.home() + [table(lake.t(f"t{i:02}"), {"id": "int64"}) for i in range(12)]
    lake.reach(docs)
    catalog = lake.site.open()
    stats = getattr(catalog, "stats", None)
    if stats is None:
        before = catalog.calls.writes  # type: ignore[attr-defined]
        assert lake.plan(docs, catalog).steps == ()
        assert catalog.calls.writes == before  # type: ignore[attr-defined]
        return
    assert lake.unchanged_by(lambda: lake.plan(docs, catalog)).steps == ()
    assert (stats.writes, stats.opens) == (0, 12)
    assert stats.manifest_scans <= 1
    assert stats.listings <= lake.backend.listings + 12 * lake.backend.loads


@pytest.mark.slow
def test_thirty_tables(lake: Lake) -> None:
    docs = lake.home() + [table(lake.t(f"t{i:02}"), {"id": "int64 not null"}) for i in range(30)]
    report = lake.apply(lake.plan(docs), parallelism=8)
    assert (report.outcome, report.count("done")) == ("applied", 60 + len(lake.home()))
    assert lake.plan(docs).steps == ()
    assert len(lake.outsider.state().tables) == 30
