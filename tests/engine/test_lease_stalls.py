"""A place of the lease that answers late, or not at all: nothing is written on what was true before the question, no
writer waits without end, and no other lease suffers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from test_lease import TTL, Clock, me

from reconciler.catalog.memory import MemoryLease
from reconciler.engine import lease_keeper
from reconciler.engine.lease import LeaseLog, Taken, Times, take
from reconciler.engine.lease_keeper import FRESH, Guarded, Keeper
from reconciler.model.errors import CatalogError, Code

AWAY = CatalogError(Code.SERVICE_UNAVAILABLE, "away")


def nothing() -> None:
    pass


@dataclass
class Slow(MemoryLease):
    """What happens while somebody lists the records, or creates one."""

    listing: Callable[[], None] = nothing
    creating: Callable[[], None] = nothing
    lists: int = 0

    def numbers(self) -> list[int]:
        self.lists += 1
        self.listing()
        return super().numbers()

    def create(self, number: int, text: str) -> bool:
        self.creating()
        return super().create(number, text)


@dataclass
class Site:
    records: Slow = field(default_factory=Slow)
    clock: Clock = field(default_factory=Clock)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keeper = Keeper(me("a"), self.clock.times(), self.said.append)
        self.keeper.take_all([Guarded("lake", self.records)], 0)
        self.kept = self.keeper.kept[0]

    def fails_after(self, seconds: float) -> Callable[[], None]:
        def failing() -> None:
            self.clock.now += seconds
            raise AWAY

        return failing


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.records.listing = made.records.creating = nothing
    made.keeper.release()


def test_a_look_that_took_too_long_lets_nothing_through(site: Site) -> None:
    site.clock.now += FRESH
    site.records.listing, site.records.creating = site.fails_after(TTL), site.fails_after(0)
    problem = site.keeper.problem()
    assert problem is not None
    assert "it could not be renewed: away" in problem


def test_after_such_a_look_it_is_renewed_if_nobody_has_taken_it(site: Site) -> None:
    def slow_once() -> None:
        site.clock.now += TTL
        site.records.listing = nothing
        raise AWAY

    site.clock.now += FRESH
    site.records.listing = slow_once
    assert site.keeper.problem() is None
    assert (site.kept.confirmed, site.kept.seen.number) == (FRESH + TTL, 2)


def test_what_another_took_during_a_look_is_his(site: Site) -> None:
    def taken_meanwhile() -> None:
        site.records.listing = nothing
        got = take(LeaseLog(site.records), me("b"), site.clock.times(), site.clock.now + 2 * TTL)
        assert isinstance(got, Taken)
        raise AWAY

    site.clock.now += FRESH
    site.records.listing = taken_meanwhile
    problem = site.keeper.problem()
    assert problem is not None
    assert "b@h" in problem
    assert "did not renew it in time" in problem


def test_a_renewal_that_took_too_long_is_made_again_or_lost(site: Site) -> None:
    """It counts from when it was begun: others may have waited since then."""
    site.clock.now += TTL
    site.records.creating = lambda: setattr(site.clock, "now", site.clock.now + TTL)
    problem = site.keeper.problem()
    assert problem is not None
    assert "it could not be renewed in time" in problem
    assert site.keeper.known() == problem


def test_a_look_without_an_answer_is_not_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor asked again as long as it is open, and renewals go on beside it."""
    monkeypatch.setattr(lease_keeper, "LOOK", 0.05)
    answer = threading.Event()
    lists = site.records.lists

    def hangs() -> None:
        if threading.current_thread().name == "look":
            answer.wait(60)

    site.records.listing = hangs
    try:
        for _ in range(3):
            site.clock.now += FRESH
            assert site.keeper.problem() is None
        assert site.records.lists == lists + 1
        site.clock.now += TTL / 2
        site.keeper._renew(site.kept)
        assert site.kept.confirmed == site.clock.now
        assert site.keeper.problem() is None, "a renewal is a look"
    finally:
        answer.set()


def test_a_look_counts_from_when_it_was_asked_for(site: Site) -> None:
    site.clock.now += FRESH
    site.records.listing = lambda: setattr(site.clock, "now", site.clock.now + FRESH / 2)
    assert site.keeper.problem() is None
    site.clock.now += FRESH / 2
    lists = site.records.lists
    assert site.keeper.problem() is None
    assert site.records.lists == lists + 1


def test_a_renewal_whose_answer_was_lost_is_found_by_a_look(site: Site) -> None:
    """And the next one is made after it."""
    lease = site.keeper.me.lease(site.clock.times(), site.kept.since)
    assert LeaseLog(site.records).swap(site.kept.seen, lease) is not None
    site.clock.now += FRESH
    assert site.keeper.problem() is None
    assert site.kept.seen.number == 2
    site.clock.now += TTL / 2
    site.keeper._renew(site.kept)
    assert (site.kept.seen.number, site.kept.confirmed) == (3, site.clock.now)


def test_what_is_lost_is_not_renewed_and_said_once(site: Site) -> None:
    site.keeper._lose(site.kept, "of something")
    site.clock.now += TTL
    first = site.keeper.problem()
    assert first == site.keeper.problem() == "the lease of catalog lake was lost: of something"
    assert (site.kept.seen.number, len(site.said)) == (1, 1)


def test_a_renewal_that_landed_after_all_is_given_back(site: Site) -> None:
    site.keeper._lose(site.kept, "of something")
    site.keeper.release()
    assert LeaseLog(site.records).read().held is None


def test_what_is_known_takes_no_question(site: Site) -> None:
    site.records.listing = site.records.creating = site.fails_after(0)
    lists = site.records.lists
    site.clock.now += TTL
    assert site.keeper.known() is None
    assert site.keeper.lost
    assert site.records.lists == lists


def test_a_place_without_an_answer_keeps_no_other_lease_from_being_renewed() -> None:
    answer, good, bad = threading.Event(), Slow(place="1"), Slow(place="2")
    keeper = Keeper(me("a"), Times(ttl=1.2))
    keeper.take_all([Guarded("good", good), Guarded("bad", bad)], 0)
    bad.creating = lambda: answer.wait(60)  # type: ignore[assignment, return-value]
    try:
        kept = keeper.kept[0]
        until = time.monotonic() + 30
        while kept.seen.number < 5 and time.monotonic() < until:
            time.sleep(0.05)
        assert (kept.seen.number >= 5, kept.lost) == (True, None)
        assert keeper.kept[1].seen.number == 1
    finally:
        answer.set()
        keeper.release()
