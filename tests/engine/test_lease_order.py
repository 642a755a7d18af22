"""Which leases a run takes, in which order, and that what was given back stays so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_plans import ns, plan
from test_lease import TTL, Clock, me

from reconciler.app import RunOptions, apply
from reconciler.app_lease import written_to
from reconciler.catalog.fence import fenced, may_write
from reconciler.catalog.memory import MemoryCatalog, MemoryLease
from reconciler.engine.lease import LeaseLog, take
from reconciler.engine.lease_keeper import Guarded, Keeper
from reconciler.model.errors import CatalogError
from reconciler.model.plan import THRESHOLD, Plan
from reconciler.session import Session


def test_leases_are_taken_in_the_order_of_their_places_whatever_the_catalogs_are_called() -> None:
    """Two runs that name their catalogs differently would otherwise each hold what the other waits for."""
    first, second = MemoryLease("1"), MemoryLease("2")
    keeper = Keeper(me("a"), Clock().times())
    keeper.take_all([Guarded("apple", second), Guarded("pear", first)], 0)
    assert [kept.log.place for kept in keeper.kept] == ["1", "2"]
    keeper.release()


def test_a_thread_that_comes_late_does_not_renew_what_was_given_back() -> None:
    records, clock, said = MemoryLease(), Clock(), list[str]()
    keeper = Keeper(me("a"), clock.times(), said.append)
    keeper.take_all([Guarded("lake", records)], 0)
    keeper.release()
    given_back = LeaseLog(records).read()
    clock.now += 10 * TTL
    assert keeper.problem() == "the lease was given back"
    assert LeaseLog(records).read() == given_back
    assert given_back.held is None
    assert ([use.ending for use in keeper.uses()], said) == (["held"], [])


def refused(catalog: MemoryCatalog) -> Plan:
    """One step that a threshold holds back, which refuses the run, and one that would be allowed."""
    made = plan(catalog.world, [ns("a"), ns("b")], blocked=[2])
    return replace(made, steps=(made.steps[0], replace(made.steps[1], blocked_by=THRESHOLD)))


def test_a_run_that_is_refused_waits_for_nobody(tmp_path: Path) -> None:
    """It writes nothing, so that whose turn it is is none of its business."""
    catalog, clock = MemoryCatalog(), Clock()
    made = refused(catalog)
    assert made.refused is not None
    assert written_to(made) == {}
    assert written_to(replace(made, steps=made.steps[:1])) == {"lake": [("a",)]}
    take(LeaseLog(catalog.lease), me("b"), clock.times(), clock.now)
    session = Session(catalogs={"lake": catalog})
    report = apply(made, RunOptions(journal=tmp_path / "j", lock_timeout=0), session)
    assert (report.outcome, report.exit_code, report.leases) == ("refused", 3, ())


def test_what_is_asked_before_a_write_may_write_itself() -> None:
    """A lease is renewed by a write. That one is not fenced, and it is none of the step's."""
    asked: list[str] = []

    def renewing() -> Any:
        asked.append("lease")
        may_write()
        return "gone" if len(asked) > 1 else None

    with fenced(renewing):
        may_write()
    asked.append("another step")
    with fenced(renewing), pytest.raises(CatalogError, match="gone") as caught:
        may_write()
    assert (caught.value.gave_up, caught.value.landed) == (True, False)
    assert asked == ["lease", "another step", "lease"]
