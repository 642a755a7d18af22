"""The leases of one run: taken in one order by all runs, renewed in the background, looked at before every write.

A holder that was asleep (a stopped process, a suspended machine), or whose lease a person has removed, must not write
on what it knew before. So every single write is fenced: it leaves only when the token of this run, the number of its
record, was the newest of the place within the last second, by a look that is taken if need be. Where the place cannot
be looked at just then, the last renewal counts until it is too long ago: so long no other run takes the lease, only a
person could. Then it is renewed first, and that succeeds only if nobody has taken it meanwhile. What remains is a pause
between the look and the write itself; the preconditions of each object stand behind it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.catalog.base import LeaseRecords
from reconciler.engine.lease import UNLOCKED, LeaseLog, Me, Refused, Seen, Taken, Times, free, take
from reconciler.model.errors import CatalogError, Code
from reconciler.model.lease import Ending, Lease, LeaseUse
from reconciler.model.plan import Json

Note = Callable[[Mapping[str, Json]], None]
FRESH = 1.0
"""Seconds for which a look at the records is good."""


@dataclass(frozen=True)
class Guarded:
    """A catalog and one of the places that guard what is to be written there."""

    catalog: str
    records: LeaseRecords


@dataclass
class Kept:
    catalog: str
    log: LeaseLog
    seen: Seen
    confirmed: float
    token: int
    since: str
    waited: float
    over: Lease | None
    looked: float
    """When it was last seen to be the newest."""
    lost: str | None = None

    def use(self) -> LeaseUse:
        holder = self.over.holder.named if self.over is not None else ""
        ending: Ending = "held" if self.lost is None else "lost"
        return LeaseUse(self.catalog, self.log.place, ending, self.waited, self.token, holder)


class LeaseUnavailable(Exception):
    """The place of the lease cannot be read or written, so nobody knows whose turn it is."""

    def __init__(self, catalog: str, place: str, error: CatalogError) -> None:
        rights = ""
        if error.code in (Code.PERMISSION_DENIED, Code.UNAUTHENTICATED):
            rights = f". The lease is kept in {place}: who applies needs the right to create and remove objects there"
        what = f"{error.code.title} ({int(error.code)}): {error.message}{rights}"
        super().__init__(f"the lease of catalog {catalog} cannot be taken: {what}")


class LeaseRefused(Exception):
    """Another run has it. `stopped`: this run is to stop, and waited no longer."""

    def __init__(self, catalog: str, place: str, refused: Refused) -> None:
        super().__init__(f"the lease of catalog {catalog} is {refused.lease.sentence}")
        self.lease = refused.lease
        self.stopped = refused.stopped
        self.use = LeaseUse(catalog, place, "refused", refused.waited, None, refused.lease.holder.named)


@dataclass
class Keeper:
    me: Me
    times: Times
    say: Callable[[str], None] = lambda text: None
    note: Note = lambda event: None
    kept: list[Kept] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    # taking

    def take_all(self, guarded: Iterable[Guarded], timeout: float) -> None:
        """`timeout`: seconds for all of them together. Sorted by place, so that two runs never wait for each other. All
        or none. Two catalogs that are one place share its lease. Raises LeaseRefused and LeaseUnavailable."""
        until = self.times.now() + timeout
        self._start()
        try:
            for one in sorted(guarded, key=lambda g: (g.records.place, g.catalog)):
                self._take(one, until)
        except BaseException:
            self.release()
            raise

    def _take(self, one: Guarded, until: float) -> None:
        log = LeaseLog(one.records)
        try:
            got = take(log, self.me, self.times, until, lambda lease: self._waiting(one.catalog, log.place, lease))
        except CatalogError as error:
            if error.code is Code.UNSUPPORTED:
                self.say(f"note: catalog {one.catalog} has no lease, its server cannot keep one: {error.message}")
                return
            self._note("unavailable", one.catalog, log.place, why=f"{error.code.title}: {error.message}")
            raise LeaseUnavailable(one.catalog, log.place, error) from error
        if isinstance(got, Refused):
            self._note("refused", one.catalog, log.place, waited_seconds=round(got.waited, 3), by=got.lease.sentence)
            raise LeaseRefused(one.catalog, log.place, got)
        if got.shared:
            return
        assert got.seen.lease is not None
        number, since = got.seen.number, got.seen.lease.since
        kept = Kept(one.catalog, log, got.seen, got.at, number, since, got.waited, got.over, self.times.now())
        with self._lock:
            self.kept.append(kept)
        self._told(kept, got)

    def _waiting(self, catalog: str, place: str, lease: Lease) -> None:
        self.say(f"waiting for the lease of catalog {catalog}, {lease.sentence}")
        self._note("waiting", catalog, place, by=lease.sentence)

    def _told(self, kept: Kept, got: Taken) -> None:
        if got.over is not None:
            self.say(f"the lease of catalog {kept.catalog} was taken over: {got.over.holder.named} no longer renews it")
        over = {"over": got.over.sentence} if got.over is not None else {}
        self._note("taken", kept.catalog, kept.log.place, token=kept.token, waited_seconds=round(got.waited, 3), **over)

    def _note(self, state: str, catalog: str, place: str, **more: Json) -> None:
        """A journal that cannot be written keeps steps from starting by itself."""
        with contextlib.suppress(Exception):
            self.note({"event": "lease", "state": state, "catalog": catalog, "place": place, **more})

    # keeping

    def problem(self) -> str | None:
        """Why nothing more may be written, or None. Asked before every write; quick for a second after a look."""
        for kept in self.kept:
            if kept.lost is None and self._overdue(kept):
                self._renew(kept)
            elif kept.lost is None and self.times.now() - kept.looked >= FRESH:
                self._look(kept)
            if kept.lost is not None:
                return kept.lost
        return None

    @property
    def lost(self) -> bool:
        """As far as is known, without asking."""
        return any(kept.lost is not None or self._overdue(kept) for kept in self.kept)

    def _overdue(self, kept: Kept) -> bool:
        return self.times.now() - kept.confirmed >= self.times.trusted

    def _look(self, kept: Kept) -> None:
        """A look that fails says nothing: until a renewal is overdue the lease is taken to be held. One thread looks,
        the others wait for what it sees."""
        with self._lock:
            asked = self.times.now()
            if asked - kept.looked < FRESH or kept.lost is not None:
                return
            with contextlib.suppress(CatalogError):
                if kept.log.newest() != kept.seen.number and (why := self._taken(kept)) is not None:
                    self._lose(kept, why)
                kept.looked = asked

    def _taken(self, kept: Kept) -> str | None:
        """Who has the lease now; None when it is this run, of which a renewal has landed after all."""
        now = kept.log.read()
        if not self._mine(now):
            return self._whose(now)
        kept.seen = now
        return None

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        """A renewal that failed is tried again soon: there are several before it would be too late."""
        while not self._end.wait(self.times.renewal / 4):
            for kept in list(self.kept):
                if kept.lost is None and self.times.now() - kept.confirmed >= self.times.renewal:
                    self._renew(kept)

    def _renew(self, kept: Kept) -> None:
        with self._lock:
            asked = self.times.now()
            if self._end.is_set() or asked - kept.confirmed < self.times.renewal:
                return  # It was given back, or another thread has just done it.
            try:
                made = self._swapped(kept, self.me.lease(self.times, kept.since))
            except CatalogError as error:
                if self._overdue(kept):
                    self._lose(kept, f"it could not be renewed: {error.message}")
                return
            except Exception as error:
                self._lose(kept, f"it could not be renewed: {type(error).__name__}: {error}")
                return
            if isinstance(made, Seen):
                kept.seen, kept.confirmed, kept.looked = made, asked, asked
            elif made is not None or self._overdue(kept):
                self._lose(kept, made or "it could not be renewed in time")

    def _swapped(self, kept: Kept, lease: Lease) -> Seen | str | None:
        """The new record, or who has the lease now; None when that is not clear yet."""
        made = kept.log.swap(kept.seen, lease)
        if made is not None:
            return made
        if (why := self._taken(kept)) is not None:
            return why
        return kept.log.swap(kept.seen, lease)

    def _mine(self, now: Seen) -> bool:
        return now.lease is not None and now.lease.run == self.me.run and now.lease.held

    def _whose(self, now: Seen) -> str:
        if now.lease is None or now.lease.run in (self.me.run, self.me.run + UNLOCKED):
            return "it was taken away with `reconciler unlock`"
        had = f"it is {now.lease.sentence}" if now.lease.held else f"{now.lease.holder.named} had it meanwhile"
        return f"{had}, because this run did not renew it in time"

    def _lose(self, kept: Kept, why: str, then: str = "no further step is started") -> None:
        kept.lost = f"the lease of catalog {kept.catalog} was lost: {why}"
        self.say(f"{kept.lost}; {then}")
        self._note("lost", kept.catalog, kept.log.place, token=kept.token, why=why)

    # giving back

    def release(self) -> None:
        """Never fails: what cannot be given back expires. What another has by now was lost: a run may end before it
        would have found out by a renewal."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
        for kept in reversed(self.kept):
            if kept.lost is None:
                with contextlib.suppress(CatalogError):
                    self._give_back(kept)

    def _give_back(self, kept: Kept) -> None:
        made = self._swapped(kept, free(self.me.lease(self.times, kept.since)))
        if isinstance(made, str):
            self._lose(kept, made, "this run had written all it would: plan again to see whether that holds")

    def uses(self) -> Sequence[LeaseUse]:
        """After `release`: only then it is known that a lease was held to the end."""
        return tuple(kept.use() for kept in self.kept)
