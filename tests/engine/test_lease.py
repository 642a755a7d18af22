"""Whose turn it is, with a clock that stands still unless it is moved, and with many runs in any order."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from engine_plans import ns, plan, table
from hypothesis import given
from hypothesis import strategies as st

from reconciler.catalog.memory import MemoryCatalog, MemoryLease
from reconciler.engine.execute import execute
from reconciler.engine.lease import LeaseLog, Me, Refused, Seen, Taken, Times, free, take, taken_away
from reconciler.engine.lease_keeper import FRESH, Guarded, Keeper, LeaseRefused, LeaseUnavailable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.lease import Holder, Lease, lease_from

TTL = 60.0
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Clock:
    """`skew`: how far the wall clock of this machine is off. `during`: what happens while somebody pauses."""

    now: float = 0.0
    skew: float = 0.0
    during: Callable[[], None] = lambda: None
    pauses: int = 0

    def pause(self, seconds: float) -> bool:
        self.pauses += 1
        self.now += seconds
        self.during()
        return False

    def times(self, ended: bool = False) -> Times:
        return Times(
            TTL,
            lambda: self.now,
            lambda: START + timedelta(seconds=self.now + self.skew),
            self.pause,
            lambda holder: ended,
        )


def me(name: str) -> Me:
    return Me(name, Holder(user=name, host="h", pid=1))


def taken(log: LeaseLog, who: str, clock: Clock, timeout: float = 0.0) -> Taken:
    got = take(log, me(who), clock.times(), clock.now + timeout)
    assert isinstance(got, Taken), got
    return got


def test_a_free_lease_is_taken_and_given_back_with_a_growing_token() -> None:
    log, clock = LeaseLog(MemoryLease()), Clock()
    tokens = []
    for who in "abc":
        got = taken(log, who, clock)
        assert got.seen.lease is not None
        tokens.append(got.seen.number)
        assert log.swap(got.seen, free(got.seen.lease)) is not None
    assert tokens == sorted(set(tokens))
    assert clock.pauses == 0


def test_a_held_lease_is_refused_without_waiting_when_told_so() -> None:
    log, clock = LeaseLog(MemoryLease()), Clock()
    taken(log, "a", clock)
    got = take(log, me("b"), clock.times(), clock.now)
    assert isinstance(got, Refused)
    assert got.lease.run == "a"
    assert clock.pauses == 0


SKEWS = [-86400.0, -660.0, 0.0, 660.0, 86400.0]
"""Of the wall clock of one machine against that of another."""


@pytest.mark.parametrize("skew", SKEWS)
def test_a_holder_that_renews_is_waited_for_to_the_end(skew: float) -> None:
    log, clock = LeaseLog(MemoryLease()), Clock(skew=skew)
    theirs = Clock()
    keeper = Keeper(me("a"), theirs.times())
    got = taken(log, "a", theirs)
    state = {"seen": got.seen}

    def renew() -> None:
        theirs.now = clock.now
        made = log.swap(state["seen"], me("a").lease(theirs.times()))
        assert made is not None, "nobody may take a lease that is renewed"
        state["seen"] = made

    clock.during = renew
    refused = take(log, me("b"), clock.times(), clock.now + 10 * TTL)
    assert isinstance(refused, Refused)
    assert refused.waited >= 10 * TTL
    assert keeper.problem() is None


@pytest.mark.parametrize("skew", SKEWS)
def test_a_holder_that_is_gone_is_noticed_by_ones_own_clock(skew: float) -> None:
    """Whatever the two clocks say of the time of day: a lease that seems to be over for a day may be a live one."""
    log, clock = LeaseLog(MemoryLease()), Clock()
    taken(log, "a", clock)
    other = Clock(now=clock.now, skew=skew)
    got = take(log, me("b"), other.times(), other.now + TTL + 15)
    assert isinstance(got, Taken)
    assert got.over is not None
    assert got.over.run == "a"
    assert TTL <= got.waited <= TTL + other.times().poll + 0.1


@pytest.mark.parametrize(("theirs", "ours"), [(60.0, 5.0), (5.0, 60.0)])
def test_a_lease_lasts_as_long_as_its_holder_said(theirs: float, ours: float) -> None:
    """Its holder renews it in the rhythm of its own time to live, not in that of whoever waits."""
    log, clock = LeaseLog(MemoryLease()), Clock()
    first = replace(clock.times(), ttl=theirs)
    assert isinstance(take(log, me("a"), first, clock.now), Taken)
    waiting = replace(clock.times(), ttl=ours)
    assert isinstance(take(log, me("b"), waiting, clock.now + theirs - 1), Refused)
    got = take(log, me("c"), waiting, clock.now + 2 * theirs)
    assert isinstance(got, Taken)
    assert theirs <= got.waited <= theirs + waiting.poll + 0.1


def test_a_process_that_ended_delays_nobody() -> None:
    log, clock = LeaseLog(MemoryLease()), Clock()
    taken(log, "a", clock)
    assert isinstance(take(log, me("b"), clock.times(ended=True), clock.now), Taken)
    assert clock.pauses == 0


def test_one_run_holds_the_lease_of_one_place_once() -> None:
    records, clock = MemoryLease(), Clock()
    keeper = Keeper(me("a"), clock.times())
    keeper.take_all([Guarded("lake", records), Guarded("pond", records)], 0)
    assert [kept.catalog for kept in keeper.kept] == ["lake"]
    keeper.release()
    assert LeaseLog(records).read().held is None


def test_all_or_none() -> None:
    first, second, clock = MemoryLease("1"), MemoryLease("2"), Clock()
    taken(LeaseLog(second), "b", clock)
    keeper = Keeper(me("a"), clock.times())
    with pytest.raises(LeaseRefused, match=r"pond.*held by b@h"):
        keeper.take_all([Guarded("pond", second), Guarded("lake", first)], 0)
    assert LeaseLog(first).read().held is None
    assert LeaseLog(second).read().lease is not None


def test_a_holder_that_slept_renews_before_it_writes() -> None:
    records, clock = MemoryLease(), Clock()
    keeper = Keeper(me("a"), clock.times())
    keeper.take_all([Guarded("lake", records)], 0)
    clock.now += 10 * TTL
    assert keeper.lost, "without asking it cannot know"
    assert keeper.problem() is None, "nobody has taken it"
    keeper.release()


def test_a_holder_that_slept_too_long_has_lost_it() -> None:
    records, clock = MemoryLease(), Clock()
    said: list[str] = []
    keeper = Keeper(me("a"), clock.times(), said.append)
    keeper.take_all([Guarded("lake", records)], 0)
    keeper._end.set()  # the thread sleeps with its process
    for thread in keeper._threads:
        thread.join()
    keeper._end.clear()
    got = take(LeaseLog(records), me("b"), clock.times(), clock.now + 2 * TTL)
    assert isinstance(got, Taken)
    problem = keeper.problem()
    assert problem is not None
    assert "b@h" in problem
    keeper.release()
    assert LeaseLog(records).read() == got.seen, "what is another's is not given back"
    assert [use.ending for use in keeper.uses()] == ["lost"]
    assert any("no further step" in line for line in said)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_run_that_ended_before_its_next_renewal_finds_out_that_it_was_lost(by_hand: bool) -> None:
    records, clock = MemoryLease(), Clock()
    said: list[str] = []
    keeper = Keeper(me("a"), clock.times(), said.append)
    keeper.take_all([Guarded("lake", records)], 0)
    log = LeaseLog(records)
    seen = log.read()
    assert seen.lease is not None
    newest = log.swap(seen, taken_away(seen.lease) if by_hand else me("b").lease(clock.times()))
    assert keeper.problem() is None, "it has just looked"
    keeper.release()
    assert [use.ending for use in keeper.uses()] == ["lost"]
    assert log.read() == newest
    assert ("reconciler unlock" if by_hand else "held by b@h") in said[0]
    assert "plan again" in said[0]


@pytest.mark.parametrize("passed", [FRESH, TTL / 3], ids=["a look", "a renewal"])
def test_a_lease_that_was_given_back_in_our_name_is_lost(passed: float) -> None:
    """As an earlier version of `reconciler unlock` leaves it: the record names this run, and says that it is free."""
    records, clock = MemoryLease(), Clock()
    keeper = Keeper(me("a"), clock.times())
    keeper.take_all([Guarded("lake", records)], 0)
    log = LeaseLog(records)
    seen = log.read()
    assert seen.lease is not None
    given_back = log.swap(seen, free(seen.lease))
    clock.now += passed
    problem = keeper.problem()
    assert problem is not None
    assert "taken away with `reconciler unlock`" in problem
    keeper.release()
    assert log.read() == given_back


@pytest.mark.parametrize("late", [False, True])
def test_a_run_that_has_come_and_gone_is_no_unlock(late: bool) -> None:
    """Its lease is given back by now: whoever took over from a run that was too slow is named all the same."""
    records, clock = MemoryLease(), Clock()
    said: list[str] = []
    keeper = Keeper(me("a"), clock.times(), said.append)
    keeper.take_all([Guarded("lake", records)], 0)
    log = LeaseLog(records)
    theirs = me("b").lease(clock.times())
    seen = log.swap(log.read(), theirs)
    assert seen is not None
    assert log.swap(seen, free(theirs)) is not None
    clock.now += TTL if late else FRESH
    problem = keeper.problem()
    assert problem is not None
    assert "b@h" in problem
    assert "had it meanwhile" in problem
    assert ("did not renew it in time" if late else "taken away from this run") in problem
    assert "reconciler unlock" not in problem
    keeper.release()


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_lease_that_was_taken_away_is_seen_by_the_next_write(by_hand: bool) -> None:
    """Long before a renewal is due: the token is looked for at a write."""
    records, clock = MemoryLease(), Clock()
    keeper = Keeper(me("a"), clock.times())
    keeper.take_all([Guarded("lake", records)], 0)
    log = LeaseLog(records)
    seen = log.read()
    assert seen.lease is not None
    log.swap(seen, taken_away(seen.lease) if by_hand else me("b").lease(clock.times()))
    clock.now += FRESH
    problem = keeper.problem()
    assert problem is not None
    assert ("reconciler unlock" if by_hand else "held by b@h") in problem
    keeper.release()


GONE = "its record is gone: somebody removed memory or what is in it, and not with `reconciler unlock`"


@pytest.mark.parametrize("passed", [FRESH, TTL / 3], ids=["a look", "a renewal"])
@pytest.mark.parametrize("others", [False, True], ids=["nobody", "others"])
def test_a_record_that_somebody_removed_is_a_lost_lease(passed: float, others: bool) -> None:
    """Not only a look notices: a renewal does not make the record again, as if nobody could have come meanwhile."""
    records, clock = MemoryLease(), Clock()
    keeper = Keeper(me("a"), clock.times())
    log = LeaseLog(records)
    for _ in range(3):  # So that another run starts from a lower number.
        assert log.swap(log.read(), free(me("z").lease(clock.times()))) is not None
    keeper.take_all([Guarded("lake", records)], 0)
    records.records.clear()
    theirs = taken(log, "b", clock).seen if others else Seen()
    clock.now += passed
    problem = keeper.problem()
    assert problem is not None
    assert GONE in problem
    keeper.release()
    assert log.read() == theirs, "and what another has by now stays"
    assert [use.ending for use in keeper.uses()] == ["lost"]


def test_a_renewal_never_makes_a_removed_record_again() -> None:
    """By itself: with a short time to live it comes before the look of a writer."""
    records, clock = MemoryLease(), Clock()
    keeper = Keeper(me("a"), clock.times())
    keeper.take_all([Guarded("lake", records)], 0)
    records.records.clear()
    clock.now += TTL / 3
    keeper._renew(keeper.kept[0])
    assert GONE in (keeper.known() or "")
    assert not records.records
    keeper.release()


def test_a_lease_that_is_waited_for_and_removed_is_free() -> None:
    log, clock = LeaseLog(records := MemoryLease()), Clock()
    taken(log, "a", clock)
    clock.during = records.records.clear
    got = taken(log, "b", clock, timeout=TTL)
    assert (got.seen.number, got.waited < TTL) == (1, True)


def test_a_look_that_fails_says_nothing_until_a_renewal_is_overdue() -> None:
    records, clock = Failing(), Clock()
    keeper = Keeper(me("a"), clock.times())
    keeper.take_all([Guarded("lake", records)], 0)
    records.error = CatalogError(Code.SERVICE_UNAVAILABLE, "away")
    clock.now += TTL / 2
    assert keeper.problem() is None
    clock.now += TTL / 3
    problem = keeper.problem()
    assert problem is not None
    assert "away" in problem
    keeper.release()


def test_looks_are_rare_and_one_is_for_all_threads() -> None:
    """One a second, however much is written; nobody writes while another thread of the run still asks."""
    records, clock = Failing(), Clock()
    keeper = Keeper(me("a"), clock.times())
    keeper.take_all([Guarded("lake", records)], 0)
    before = records.looks
    for _ in range(100):
        clock.now += 0.1
        assert keeper.problem() is None
    assert records.looks - before in (9, 10)
    clock.now += FRESH
    before = records.looks
    with keeper.kept[0].looking.lock:
        threads = [threading.Thread(target=keeper.problem) for _ in range(4)]
        for thread in threads:
            thread.start()
        threads[0].join(0.1)
        assert all(thread.is_alive() for thread in threads)
        assert records.looks == before
    for thread in threads:
        thread.join(30)
    assert records.looks == before + 1
    keeper.release()


def test_a_record_that_is_not_listed_keeps_nobody_apart() -> None:
    @dataclass
    class Blind(MemoryLease):
        def numbers(self) -> list[int]:
            return []

    with pytest.raises(LeaseUnavailable, match="is not listed there"):
        Keeper(me("a"), Clock().times()).take_all([Guarded("lake", Blind())], 0)


@dataclass
class Failing(MemoryLease):
    """`lost_answers`: creates that land and say that nobody knows; `error`: for everything."""

    lost_answers: int = 0
    error: CatalogError | None = None
    looks: int = 0

    def numbers(self) -> list[int]:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return super().numbers()

    def create(self, number: int, text: str) -> bool:
        if self.error is not None:
            raise self.error
        made = super().create(number, text)
        if self.lost_answers:
            self.lost_answers -= 1
            raise CatalogError(Code.SERVICE_UNAVAILABLE, "cut off", unknown_outcome=True)
        return made


def test_a_lost_answer_is_looked_up() -> None:
    records, clock = Failing(lost_answers=1), Clock()
    assert taken(LeaseLog(records), "a", clock).seen.number == 1


def test_a_store_that_fails_is_borne_until_it_would_be_too_late() -> None:
    records, clock = Failing(), Clock()
    keeper = Keeper(me("a"), clock.times())
    keeper.take_all([Guarded("lake", records)], 0)
    records.error = CatalogError(Code.SERVICE_UNAVAILABLE, "down", unknown_outcome=True)
    clock.now += TTL / 2
    assert keeper.problem() is None
    clock.now += TTL / 2
    problem = keeper.problem()
    assert problem is not None
    assert "renewed" in problem
    keeper.release()


def test_a_lease_that_may_not_be_written_says_what_is_needed() -> None:
    records = Failing("the vault", error=CatalogError(Code.PERMISSION_DENIED, "no"))
    with pytest.raises(LeaseUnavailable, match=r"lake.*PermissionDenied \(15\): no.*kept in the vault"):
        Keeper(me("a"), Clock().times()).take_all([Guarded("lake", records)], 0)


def test_a_server_that_cannot_keep_one_is_told_and_used_without() -> None:
    said: list[str] = []
    keeper = Keeper(me("a"), Clock().times(), said.append)
    keeper.take_all([Guarded("lake", Failing(error=CatalogError(Code.UNSUPPORTED, "no such call")))], 0)
    assert keeper.problem() is None
    assert "has no lease" in said[0]
    keeper.release()


def test_a_superseded_number_that_is_free_again_is_not_taken_for_the_newest() -> None:
    """A run that slept between its look and its write."""
    records, clock = MemoryLease(), Clock()
    log = LeaseLog(records)
    old = taken(log, "a", clock).seen
    assert old.lease is not None
    newer = log.swap(old, free(old.lease))
    assert newer is not None
    assert newer.lease is not None
    newest = log.swap(newer, replace(newer.lease, run="b", held=True))
    assert newest is not None
    assert list(records.records) == [newest.number]
    assert log.swap(old, me("c").lease(clock.times())) is None
    assert log.read() == newest


def record(**other: str) -> str:
    """A good one but for these parts of its text."""
    text = Lease("r", True, TTL, "then", "later", Holder(host="h", pid=3)).to_text()
    for name, value in other.items():
        text = text.replace(f'"{name}":{json.dumps(json.loads(text).get(name, 3))}', f'"{name}":{value}')
    return text


GARBAGE = {
    "empty": "",
    "cut": "{",
    "list": "[]",
    "text": '"x"',
    "later": '{"format": 2}',
    "no holder": '{"format": 1, "holder": 3}',
    "deep": "[" * 200_000,
    "endless pid": record(pid="1e400"),
    "long pid": record(pid="9" * 300),
    "no pid": record(pid="-1"),
    "no time": record(ttl="NaN"),
    "endless time": record(ttl="1e400"),
    "odd held": record(held="[]"),
    "long number": record(ttl="9" * 5000),
}


def test_a_good_record_is_read() -> None:
    assert lease_from(record()).holder.host == "h"
    assert lease_from(record(ttl="0")).ttl == 1
    assert lease_from(record(ttl="1e9")).ttl == 3600


def test_what_others_wrote_stays_on_its_line() -> None:
    lease = Lease(
        "r", True, TTL, "then\nor", "later\r\n", Holder("u\nerror: gone", "h\u2028", 3, "c\x85\td", "x" * 999)
    )
    read = lease_from(lease.to_text())
    assert read.sentence.splitlines() == [read.sentence]
    assert "u error: gone@h (pid 3, `c d`, " in read.sentence
    assert len(read.holder.url) == 500


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE)
def test_a_record_that_cannot_be_read_is_somebodys_and_ends(text: str) -> None:
    read = lease_from(text)
    assert (read.held, read.ttl, read.holder) == (True, TTL, Holder())
    assert lease_from(free(read).to_text()) == free(read), "what unlock leaves can be read"
    records, clock = MemoryLease(), Clock()
    records.create(7, text)
    assert isinstance(take(LeaseLog(records), me("a"), clock.times(), clock.now), Refused)
    got = take(LeaseLog(records), me("a"), clock.times(), clock.now + 2 * TTL)
    assert isinstance(got, Taken)
    assert got.seen.number == 8


def test_a_record_reads_back_as_it_was_written() -> None:
    lease = Lease("r", True, TTL, "then", "later", Holder("u", "h", 3, "c", "url", "p", "b", "s", "t"))
    assert lease_from(lease.to_text()) == lease
    assert json.loads(lease.to_text())["holder"]["pid"] == 3


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["take", "renew", "give", "late"])), max_size=40))
def test_never_two_holders_whatever_the_order(moves: list[tuple[int, str]]) -> None:
    """Every run believes what it last saw, however long ago: a swap succeeds only on the newest."""
    log, clock = LeaseLog(MemoryLease()), Clock()
    known = [Seen()] * 4
    owner: int | None = None
    tokens: list[int] = []
    for who, move in moves:
        if move == "late":
            known[who] = log.read()
            continue
        held = move != "give"
        made = log.swap(known[who], replace(me(str(who)).lease(clock.times()), held=held))
        seen = known[who].held
        if made is None:
            assert log.read() != known[who]
            continue
        assert owner is None or seen is not None, "it was free when another held it"
        known[who] = made
        if held and owner != who:
            tokens.append(made.number)
        owner = who if held else None
    assert tokens == sorted(set(tokens))


def test_of_many_threads_one_holds_it_at_a_time() -> None:
    records = MemoryLease()
    inside: list[str] = []
    overlaps: list[str] = []

    def run(name: str) -> None:
        times = Times(TTL, pause=lambda seconds: threading.Event().wait(0.001))
        for n in range(5):
            keeper = Keeper(Me(f"{name}{n}", Holder(host="h")), times)
            keeper.take_all([Guarded("lake", records)], 60)
            inside.append(name)
            overlaps.extend(inside[1:])
            inside.remove(name)
            keeper.release()

    threads = [threading.Thread(target=run, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == []
    assert len(records.records) == 1


def test_no_write_is_sent_once_the_lease_is_lost() -> None:
    """Steps that ended before stay, running ones send nothing more, others are not started."""
    catalog = MemoryCatalog()
    made = plan(catalog.world, [ns("a"), *table("a", "t")])

    def lost() -> str | None:
        return "gone" if catalog.calls.writes else None

    report = execute(made, {"lake": catalog}, parallelism=1, guard=lost, lost=lost)
    assert (report.outcome, report.exit_code) == ("partial", 5)
    assert [step.status for step in report.steps] == ["done", "not_run", "not_run"]
    assert "gone" in report.message
    assert catalog.calls.writes == 1


def test_a_lease_that_is_lost_right_before_the_write() -> None:
    catalog, asked = MemoryCatalog(), iter([None, "gone"])
    made = plan(catalog.world, [ns("a")])
    report = execute(made, {"lake": catalog}, parallelism=1, guard=lambda: "gone", lost=lambda: next(asked))
    assert (report.outcome, report.exit_code, catalog.calls.writes) == ("failed", 1, 0)
    assert report.steps[0].status == "failed"
    assert report.steps[0].error is not None
    assert report.steps[0].error.message == "it was not written: gone"
    assert report.message == (
        "1 failed; no further step was started: gone; apply again; s1 create_namespace lake:a: it was not written"
    )
