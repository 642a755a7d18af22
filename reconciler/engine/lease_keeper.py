"""The leases of one run: taken in one order by all runs, renewed in the background, looked at before every write.

A holder that was asleep (a stopped process, a suspended machine), or whose lease a person has removed, must not write
on what it knew before. So every single write is fenced: it leaves only when the token of this run, the number of its
record, was the newest of the place within the last second, by a look that is taken if need be. Where the place cannot
be looked at just then, the last renewal counts until it is too long ago: so long no other run takes the lease, only a
person could. Then it is renewed first, and that succeeds only if nobody has taken it meanwhile. What remains is a pause
between the look and the write itself; the preconditions of each object stand behind it.

A place that does not answer must not make more of it than that. A look waits for a few seconds only, and keeps nobody
from renewing; and as questions take time, whether a renewal is too long ago is judged after the last of them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.catalog.base import LeaseRecords
from reconciler.engine.lease import UNLOCKED, LeaseLog, Me, RecordGone, Refused, Seen, Taken, Times, free, take
from reconciler.model.errors import CatalogError, Code, ReadError
from reconciler.model.lease import Ending, Lease, LeaseUse
from reconciler.model.plan import Json

Note = Callable[[Mapping[str, Json]], None]
FRESH = 1.0
"""Seconds for which a look at the records is good."""
LOOK = 3.0
"""Seconds that a writer waits for one."""


@dataclass(frozen=True)
class Guarded:
    """A catalog and one of the places that guard what is to be written there."""

    catalog: str
    records: LeaseRecords


class Look:
    """The number of the newest record, asked in a thread of its own: nobody waits longer for it than he wants to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """One asks, the others wait for what it sees."""
        self._thread: threading.Thread | None = None
        self._begun = 0.0
        self._seen: int | None = None

    def newest(self, log: LeaseLog, times: Times) -> tuple[int | None, float]:
        """And when it was asked for. None: it cannot be seen now. A question that is still open is not asked twice."""
        if self._thread is None:
            self._begun, self._seen = times.now(), None
            self._thread = threading.Thread(target=self._ask, args=(log,), name="look", daemon=True)
            self._thread.start()
        self._thread.join(LOOK)
        if self._thread.is_alive():
            return None, self._begun
        self._thread = None
        return self._seen, self._begun

    def _ask(self, log: LeaseLog) -> None:
        with contextlib.suppress(Exception):
            self._seen = log.newest()


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
    lock: threading.RLock = field(default_factory=threading.RLock)
    """To change the records, and what is known of them."""
    looking: Look = field(default_factory=lambda: Look())

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
        self.error = ReadError(error.code, error.message)
        super().__init__(f"the lease of catalog {catalog} cannot be taken: {self.error.text}{rights}")


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
    _end: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    """One for each lease: a place that does not answer keeps no other lease from being renewed."""

    # taking

    def take_all(self, guarded: Iterable[Guarded], timeout: float) -> None:
        """`timeout`: seconds for all of them together. Sorted by place, so that two runs never wait for each other. All
        or none. Two catalogs that are one place share its lease. Raises LeaseRefused and LeaseUnavailable."""
        until = self.times.now() + timeout
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
        self.kept.append(kept)
        thread = threading.Thread(target=self._keep, args=(kept,), name="lease", daemon=True)
        self._threads.append(thread)
        thread.start()
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
        if self._end.is_set():
            return self.known() or "the lease was given back"
        for kept in self.kept:
            if self._overdue(kept):
                self._renew(kept)
            elif self.times.now() - kept.looked >= FRESH:
                self._look(kept)
        for kept in self.kept:  # The answers may have taken long.
            if self._overdue(kept):
                self._renew(kept)
        for kept in self.kept:
            if kept.lost is None and self._overdue(kept):
                self._lose(kept, "it could not be renewed in time")
        return self.known()

    def known(self) -> str | None:
        """The same as far as it is known, without asking: for who must not wait."""
        return next((kept.lost for kept in self.kept if kept.lost is not None), None)

    @property
    def lost(self) -> bool:
        """As far as is known, without asking; a renewal that is overdue counts."""
        return any(kept.lost is not None or self._overdue(kept) for kept in self.kept)

    def _overdue(self, kept: Kept) -> bool:
        return self.times.now() - kept.confirmed >= self.times.trusted

    def _look(self, kept: Kept) -> None:
        """A look that fails says nothing: until a renewal is overdue the lease is taken to be held."""
        with kept.looking.lock:
            if self._end.is_set() or kept.lost is not None or self.times.now() - kept.looked < FRESH:
                return
            newest, asked = kept.looking.newest(kept.log, self.times)
            if newest is None:
                return
            if newest != kept.seen.number:
                self._look_closer(kept, newest)
            kept.looked = asked

    def _look_closer(self, kept: Kept, newest: int) -> None:
        """It may be a renewal of our own, which another thread was about to note."""
        with kept.lock:
            if newest == kept.seen.number or self._end.is_set():
                return
            with contextlib.suppress(CatalogError):
                if (why := self._taken(kept)) is not None:
                    self._lose(kept, why)

    def _taken(self, kept: Kept) -> str | None:
        """Who has the lease now; None when it is this run, of which a renewal has landed after all."""
        now = kept.log.read()
        if not self._mine(now):
            return self._whose(kept, now)
        kept.seen = now
        return None

    def _keep(self, kept: Kept) -> None:
        """A renewal that failed is tried again soon: there are several before it would be too late."""
        while kept.lost is None and not self._end.wait(self.times.renewal / 4):
            if self.times.now() - kept.confirmed >= self.times.renewal:
                self._renew(kept)

    def _renew(self, kept: Kept) -> None:
        """Where another thread is at it and gets no answer, it is not waited for."""
        if not kept.lock.acquire(timeout=LOOK):
            return
        try:
            asked = self.times.now()
            if self._end.is_set() or kept.lost is not None or asked - kept.confirmed < self.times.renewal:
                return  # It is given back or lost, or another thread has just done it.
            self._renewed(kept, asked)
        finally:
            kept.lock.release()

    def _renewed(self, kept: Kept, asked: float) -> None:
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
        try:
            made = kept.log.swap(kept.seen, lease)
            if made is not None:
                return made
            if (why := self._taken(kept)) is not None:
                return why
            return kept.log.swap(kept.seen, lease)
        except RecordGone:
            return self._gone(kept)

    def _mine(self, now: Seen) -> bool:
        return now.lease is not None and now.lease.run == self.me.run and now.lease.held

    def _whose(self, kept: Kept, now: Seen) -> str:
        if now.lease is None or now.number < kept.seen.number:  # Numbers do not go down by themselves.
            return self._gone(kept)
        if now.lease.run in (self.me.run, self.me.run + UNLOCKED):
            return "it was taken away with `reconciler unlock`"
        had = f"it is {now.lease.sentence}" if now.lease.held else f"{now.lease.holder.named} had it meanwhile"
        late = self.times.now() - kept.confirmed >= self.times.ttl
        why = "because this run did not renew it in time" if late else "after it was taken away from this run"
        return f"{had}, {why}"

    def _gone(self, kept: Kept) -> str:
        where = f"somebody removed {kept.log.place} or what is in it"
        return (
            f"its record is gone: {where}, and not with `reconciler unlock`; other runs may have found the catalog free"
        )

    def _lose(self, kept: Kept, why: str, then: str = "no further step is started") -> None:
        if kept.lost is not None:
            return
        kept.lost = f"the lease of catalog {kept.catalog} was lost: {why}"
        self.say(f"{kept.lost}; {then}")
        self._note("lost", kept.catalog, kept.log.place, token=kept.token, why=why)

    # giving back

    def release(self) -> None:
        """Never fails: what cannot be given back expires. What another has by now was lost: a run may end before it
        would have found out by a renewal."""
        self._end.set()
        for thread in self._threads:
            thread.join()
        for kept in reversed(self.kept):
            with contextlib.suppress(Exception):
                self._give_back(kept)

    def _give_back(self, kept: Kept) -> None:
        if kept.lost is not None:  # A renewal of ours may have landed after all: nobody has to wait for it.
            kept.seen = kept.log.read()
            if self._mine(kept.seen):
                self._swapped(kept, free(self.me.lease(self.times, kept.since)))
            return
        made = self._swapped(kept, free(self.me.lease(self.times, kept.since)))
        if isinstance(made, str):
            self._lose(kept, made, "this run had written all it would: plan again to see whether that holds")

    def uses(self) -> Sequence[LeaseUse]:
        """After `release`: only then it is known that a lease was held to the end."""
        return tuple(kept.use() for kept in self.kept)
