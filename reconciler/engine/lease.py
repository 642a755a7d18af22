"""Whose turn it is to write to a catalog. Two runs never hold the lease of one place at a time.

The lease is the newest of numbered records. All that is asked of a catalog is that of several who create a record one
succeeds: to take, renew or give back is to create the record with the next number, and who comes second has lost. The
numbers never go down (a lease that was given back leaves its record), so the number with which it was taken is a token
that grows from holder to holder.

When is a holder gone? Its written expiry is by its own clock, which may be wrong by any amount (a zone taken for
another, a virtual machine that was restored): nobody concludes from it. A waiter watches: a record that did not change
for its whole time to live, by the waiter's own clock, is of a holder that no longer renews. The one short cut is a
process of this very machine that has ended. So a run that crashed on another machine delays the next one by its time
to live, and that is less than what is waited by default.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from reconciler.catalog.base import LeaseRecords
from reconciler.catalog.fence import counting
from reconciler.engine.lease_holder import has_ended
from reconciler.model.errors import CatalogError, Code
from reconciler.model.lease import DEFAULT_TTL, LAST_NUMBER, Holder, Lease, lease_from

_ROUNDS = 5
_MOMENT = 0.05
_LONGEST = 2.0


def elapsing() -> float:
    """Seconds that also pass while the machine sleeps, where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


def asleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


@dataclass(frozen=True)
class Times:
    """`pause` gives True when the run is to stop."""

    ttl: float = DEFAULT_TTL
    now: Callable[[], float] = elapsing
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    pause: Callable[[float], bool] = asleep
    ended: Callable[[Holder], bool] = has_ended

    @property
    def poll(self) -> float:
        return min(2.0, self.ttl / 10)

    @property
    def renewal(self) -> float:
        return self.ttl / 3

    @property
    def trusted(self) -> float:
        """For how long after its last renewal a holder may write: less than others wait before they take over."""
        return self.ttl * 5 / 6


@dataclass(frozen=True, slots=True)
class Seen:
    number: int = 0
    lease: Lease | None = None

    @property
    def held(self) -> Lease | None:
        return self.lease if self.lease is not None and self.lease.held else None


class RecordGone(CatalogError):
    """Somebody removed the record that the new one was to follow. It is missed, not replaced: others may have found no
    lease at all since then."""


class LeaseLog:
    """The records of one place as one value that is read and swapped."""

    def __init__(self, records: LeaseRecords) -> None:
        self._records = records
        self.place = records.place

    def newest(self) -> int:
        return max(self._records.numbers(), default=0)

    def read(self) -> Seen:
        for _ in range(_ROUNDS):
            number = self.newest()
            if not number:
                return Seen()
            text = self._records.read(number)
            if text is not None:
                return Seen(number, lease_from(text))
        raise CatalogError(Code.CONCURRENT_MODIFICATION, f"the lease in {self.place} changes all the time: try again")

    def swap(self, seen: Seen, lease: Lease) -> Seen | None:
        """None when it is not as it was seen, or when it is not known whether the record was made: read again. A number
        may be free again because its record was superseded and dropped: so the newest is looked for afterwards. Raises
        RecordGone: only who makes the next record drops the one before, so a hand did."""
        number, text = seen.number + 1, lease.to_text()
        if number > LAST_NUMBER:
            message = f"record {seen.number} in {self.place} has the last number there is, and no run counts so far"
            raise CatalogError(Code.INVALID_INPUT, f"{message}: remove it by hand")
        if not self._made(number, text):
            return None
        numbers = self._records.numbers()
        if max(numbers, default=number) > number:
            self._drop([number])
            return None
        if number not in numbers:  # A lease that others do not see keeps nobody apart.
            raise CatalogError(Code.INTERNAL, f"record {number} in {self.place} was created, and is not listed there")
        if seen.number and seen.number not in numbers:
            self._drop([number])
            raise RecordGone(Code.CONCURRENT_MODIFICATION, f"record {seen.number} of the lease in {self.place} is gone")
        self._drop([n for n in numbers if n < number])
        return Seen(number, lease)

    def _made(self, number: int, text: str) -> bool:
        """A call that counts its sendings is repeated until they are spent, each time after a look."""
        with counting():
            while True:
                try:
                    failure, made = None, self._records.create(number, text)
                except CatalogError as error:
                    if not error.unknown_outcome and error.code is not Code.CONCURRENT_MODIFICATION:
                        raise
                    failure, made = error, False
                there = text if made else self._records.read(number)
                if there is not None or failure is None or not failure.sendings:
                    return there == text
                if failure.spent:
                    raise failure
                self._pause(failure)

    def _pause(self, failure: CatalogError) -> None:
        time.sleep(min(_LONGEST, _MOMENT * 2.0**failure.sendings))

    def _drop(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            with contextlib.suppress(CatalogError):  # The next one does it.
                self._records.drop(number)


@dataclass(frozen=True, slots=True)
class Me:
    """This run."""

    run: str
    holder: Holder

    def lease(self, times: Times, since: str = "", held: bool = True) -> Lease:
        now = times.wall()
        begun = since or _stamp(now)
        return Lease(self.run, held, times.ttl, begun, _stamp(now + timedelta(seconds=times.ttl)), self.holder)


@dataclass(frozen=True, slots=True)
class Taken:
    """`over`: the lease that nobody renewed any more. `shared`: this run has it already, under another name."""

    seen: Seen
    at: float
    """When it was asked for, by `Times.now`: it is counted from then."""
    waited: float
    over: Lease | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """`lease` is that of the other run. `stopped`: this run is to stop, and did not wait to the end."""

    lease: Lease
    waited: float
    stopped: bool = False


def take(
    log: LeaseLog, me: Me, times: Times, until: float, told: Callable[[Lease], None] = lambda lease: None
) -> Taken | Refused:
    """Waits until `until` (by `times.now`) at most. `told` hears of a lease that is waited for, whenever its holder is
    another. Raises CatalogError."""
    began = watched_from = times.now()
    watched = Seen()
    heard = ""
    beaten = 0
    while True:
        asked = times.now()
        seen = log.read()
        held = seen.held
        if held is not None and held.run == me.run:
            return Taken(seen, asked, asked - began, shared=True)
        if seen != watched:
            watched, watched_from = seen, asked
        wait = times.poll
        if held is None or is_over(held, times, asked - watched_from):
            made = None
            with contextlib.suppress(RecordGone):
                made = log.swap(seen, me.lease(times))
            if made is not None:
                return Taken(made, asked, asked - began, held)
            beaten, wait = beaten + 1, _MOMENT
        if times.now() >= until and (held is not None or beaten >= _ROUNDS):
            if held is None:
                raise CatalogError(Code.CONCURRENT_MODIFICATION, f"the lease in {log.place} cannot be taken: try again")
            return Refused(held, times.now() - began)
        if held is not None and held.run != heard:
            heard = held.run
            told(held)
        if times.pause(min(wait, max(_MOMENT, until - times.now()))):
            return Refused(held or me.lease(times), times.now() - began, stopped=True)


def is_over(lease: Lease, times: Times, unchanged: float) -> bool:
    """`unchanged`: seconds for which it has been seen as it is."""
    return unchanged >= lease.ttl or times.ended(lease.holder)


def free(lease: Lease) -> Lease:
    """The record that a lease leaves when it is given back."""
    return replace(lease, held=False)


UNLOCKED = "-unlocked"


def taken_away(lease: Lease) -> Lease:
    """As `reconciler unlock` leaves it: never the text that the holder itself would write, who could not tell then."""
    return replace(free(lease), run=lease.run + UNLOCKED)


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
