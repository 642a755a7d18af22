"""Two runs on one catalog at the same time end in the one state that both want."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from contract.faults import Unlucky
from contract.lake import Doc, Lake, table
from contract.sample import FOREIGN
from contract.scenario import Day
from reconciler.model.change import Change
from reconciler.model.errors import CatalogError
from reconciler.model.report import Report

EXCUSES = {"ConcurrentModification", "TableAlreadyExists", "NamespaceAlreadyExists", "NamespaceNotFound",
           "TableNotFound"}  # fmt: skip


def fair(report: Report) -> None:
    """Done, stale, or beaten to it: nothing else."""
    assert report.outcome in ("applied", "stale", "partial", "failed"), report.message
    for step in report.steps:
        assert step.status != "unknown", step.error
        assert step.error is None or step.error.name in EXCUSES, step.error


def test_two_appliers_of_the_same_plan(lake: Lake) -> None:
    def wanted(lake: Lake) -> list[Doc]:
        return lake.home() + [table(lake.t(f"t{i}"), {"id": "int64"}, config={"k": "v"}) for i in range(6)]

    docs = wanted(lake)
    undisturbed = lake.copy()
    undisturbed.reach(wanted(undisturbed))
    plan = lake.plan(docs)
    with ThreadPoolExecutor(2) as pool:
        for report in pool.map(lambda _: lake.apply(plan, lake.site.open()), range(2)):
            fair(report)
    lake.reach(docs)
    assert lake.comparable() == undisturbed.comparable()


@pytest.mark.slow
def test_two_appliers_of_every_kind_of_step(day: Day) -> None:
    lake = day.lake
    desired = lake.desired(day.docs)
    plans = [lake.plan_desired(desired, adopt=True) for _ in range(2)]
    assert plans[0].plan_id == plans[1].plan_id
    with ThreadPoolExecutor(2) as pool:
        for report in pool.map(lambda plan: lake.apply(plan, lake.site.open()), plans):
            fair(report)
    lake.reach(day.docs, adopt=True)
    day.ended_well()


def test_an_outsider_at_work_beside_us_loses_nothing(lake: Lake) -> None:
    lake.make_home()
    docs = [table(lake.t(f"t{i}"), {"id": "int64"}) for i in range(8)]
    plan = lake.plan(docs)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for i in range(6):
                lake.outsider.create_table(lake.t(f"theirs{i}"), FOREIGN)
        except BaseException as error:
            failed.append(error)

    other = threading.Thread(target=work)
    other.start()
    report = lake.apply(plan)
    other.join()
    assert report.outcome == "applied", report.message
    ours = {lake.t(f"t{i}") for i in range(8)}
    if not failed:
        assert set(lake.outsider.state().tables) == ours | {lake.t(f"theirs{i}") for i in range(6)}
    assert ours <= set(lake.outsider.state().tables)


@pytest.mark.slow
def test_a_run_that_is_overtaken_by_another_of_the_same_plan(lake: Lake) -> None:
    """The other run finishes everything between our first write and our look at it."""
    docs = [*lake.home(), table(lake.t("t"), {"id": "int64"}, config={"k": "v"})]
    plan = lake.plan(docs)
    overtaken: list[Report] = []

    def overtake(change: Change, attempt: int) -> CatalogError | None:
        if not overtaken:
            overtaken.append(lake.apply(plan))
        return None

    report = lake.apply(plan, Unlucky(lake.site.open(), after=overtake), parallelism=1)
    assert [r.outcome for r in (*overtaken, report)] == ["applied", "applied"], report.message
    assert [s.status for s in report.steps] == ["done"] + ["skipped"] * (len(plan.steps) - 1)
    assert lake.plan(docs).steps == ()
