"""The right to change the rows of a table, and the one commit that does.

Lance refuses neither a second Append of the same files nor an Append that knows nothing of another run's. What it does
refuse is two changes of one metadata key that start from the same version. So a data step first writes its claim under
one key; two that start together cannot both have it. Who finds a claim waits for it, and takes it over when its run is
gone: by writing its own claim and then a fence, an empty Project, with which every commit of rows conflicts that was
begun before. Only then are the records read. So whatever the old run does late is either seen or refused; no clock
decides about rows.

When is its run gone? The end that is written in a claim is by the clock of its machine, which may be wrong by any
amount. So the waiter watches: a claim that stayed the same for as long as it lasts, by the waiter's own clock, is of a
run that no longer renews it. Two short cuts: its process ran on this machine and is gone, or it gave up in this one.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reconciler.catalog.base import DataPlace, WriteContext
from reconciler.catalog.fence import may_write
from reconciler.catalog.lance_data import (
    CLAIM_KEY,
    LOST,
    PLAN_PROPERTY,
    RECORD_KEY,
    RUN_PROPERTY,
    STEP_PROPERTY,
    Claim,
    described,
    dump_record,
    is_ours,
    load_claim,
    record_of,
    renewed_record,
)
from reconciler.catalog.lance_errors import is_conflict, translated
from reconciler.catalog.lance_rows import account_of, row_state, transactions
from reconciler.model.data import DataRecord, ExternalRows, RowState
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import APPLIED_BY_KEY

LASTS = 180.0
RENEWED = 60.0
WAITS = 300.0
"""Seconds for which a claim counts that nobody renews, after which it is renewed, and for which another run's is waited
for."""
POLL = 1.0
ATTEMPTS = 20
UNANSWERED = 3
"""Writes of a claim without an answer, each of which the store's own client has repeated."""


@dataclass(frozen=True)
class Clock:
    """`now` only counts what has passed. For tests."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    stopped: Callable[[], bool] = lambda: False


REAL = Clock()


@dataclass
class Held:
    """A table whose rows are ours to change, seen from the version after which no other run may have changed them."""

    place: DataPlace
    claim: Claim
    dataset: Any
    """At the pinned version."""
    applied_by: str = ""
    """The run, noted beside the rows once they are in."""
    known: DataRecord | None = None
    """What this run knows of the rows, for the case that the history that tells is cleaned up while it is at work. Lost
    while a commit of it may have landed."""

    @property
    def version(self) -> int:
        return int(self.dataset.version)

    def know(self, dataset: Any) -> None:
        """From the dataset right after the claim, or after a commit of this run."""
        record = record_of(dataset, dataset.metadata)
        self.known = record if record is None or record.lost else described(dataset, record)

    def external(self, since: RowState) -> ExternalRows | None:
        """What others did to the rows since then, up to this moment."""
        return changed_since(self.place, since)

    def latest(self) -> Any:
        """The dataset of this moment."""
        return opened(self.place)

    def pin_again(self) -> None:
        """The latest version instead, if the claim is still ours there."""
        latest = opened(self.place)
        self._need_claim(latest)
        self.dataset = latest

    def _need_claim(self, dataset: Any) -> None:
        found = load_claim(dataset.metadata.get(CLAIM_KEY))
        if found is None or found.run != self.claim.run:
            holder = f": {found.holder} has it" if found is not None else ""
            raise CatalogError(
                Code.CONCURRENT_MODIFICATION,
                f"another run took over the rows of {self.place.uri} while this one was at work{holder}; nothing of "
                "this one was committed",
            )

    def commit(self, operation: Any, record: DataRecord | None = None) -> Any:
        """The rows, once: a commit of this run that is there already counts. Its record describes the rows of the
        pinned version and this commit: what others append in between is no part of it. Raises CatalogError; a conflict
        with somebody else's change is CONCURRENT_MODIFICATION and leaves nothing behind."""
        found = self._landed()
        if found is not None:
            return found
        properties = self._names()
        if record is not None:
            properties[RECORD_KEY] = dump_record(replace(record, rows=row_state(self.dataset)))
        known, self.known = self.known, LOST
        try:
            with translated(f"commit the rows of {self.place.uri}", write=True):
                found = committed(self.place, operation, self.version, properties)
        except CatalogError as error:
            conflict = error.code == Code.CONCURRENT_MODIFICATION  # Perhaps with itself: sent again.
            found = self._landed() if error.unknown_outcome or conflict else None  # Raises: then it is still unknown.
            if found is None:
                self.known = self.known if error.unknown_outcome else known
                raise
        with contextlib.suppress(Exception):  # The rows are in. It is read again when the claim is given back.
            if record is not None and int(found.version) == self.version + 1:
                self.known = replace(record, rows=row_state(found))
            else:
                self.know(found)
        return found

    def _names(self) -> dict[str, str]:
        return {PLAN_PROPERTY: self.claim.plan, STEP_PROPERTY: self.claim.step, RUN_PROPERTY: self.claim.run}

    def _landed(self) -> Any:
        """The latest version, if a transaction since the pinned one carries this run's step."""
        latest = opened(self.place)
        since = int(latest.version) - self.version
        for transaction in transactions(latest, since):
            names = (transaction.transaction_properties or {}) if transaction is not None else {}
            if all(names.get(key) == value for key, value in self._names().items()):
                return latest
        return None


def opened(place: DataPlace, version: int | None = None) -> Any:
    import lance

    with translated(f"open the dataset {place.uri}", write=False):
        return lance.dataset(place.uri, version=version, storage_options=dict(place.storage_options) or None)


def changed_since(place: DataPlace, since: RowState) -> ExternalRows | None:
    """What others did to the rows since then, up to this moment. Raises CatalogError."""
    dataset = opened(place)
    with translated(f"read the history of {place.uri}"):
        return account_of(dataset, since, is_ours, lambda _: False).external


def committed(place: DataPlace, operation: Any, version: int, properties: Mapping[str, str]) -> Any:
    from lance import LanceDataset
    from lance.dataset import Transaction

    transaction = Transaction(read_version=version, operation=operation, transaction_properties=dict(properties))
    may_write()
    return LanceDataset.commit(place.uri, transaction, storage_options=dict(place.storage_options) or None)


@contextmanager
def claimed(
    place: DataPlace, context: WriteContext, clock: Clock = REAL, watch: _Watch | None = None
) -> Iterator[Held]:
    """The claim is given back together with the record of what landed; where that fails, the next run finds both. It
    stays when nobody knows whether the rows are in: whoever comes next takes it over. Raises CatalogError."""
    held = _acquired(place, context, clock, watch or _Watch(clock))
    renewal = _Renewal(held)
    renewal.start()
    try:
        held.know(held.dataset)
        yield held
    except BaseException as error:
        renewal.stop()
        if isinstance(error, CatalogError) and error.unknown_outcome:
            _left.add(held.claim.run)  # The commit may yet land: only a fence ends that.
            raise
        with contextlib.suppress(CatalogError):  # What went wrong first is what has to be told.
            _ended(held)
        raise
    renewal.stop()
    _ended(held)


def settle(place: DataPlace, context: WriteContext, clock: Clock = REAL) -> str | None:
    """Ends what a run that is gone has left: what landed is noted, the claim is given back. The holder of a claim that
    is still alive is the answer, and nothing is done then. One whose end has passed by this machine's clock is watched
    before that. Raises CatalogError."""
    watch = _Watch(clock)
    first = found = _found(opened(place))
    while found is not None and not watch.is_gone(found):
        if found != first or not _looks_over(found) or clock.stopped():
            return found.holder
        clock.sleep(POLL)
        found = _found(opened(place))
    if found is None:
        return None
    with claimed(place, context, clock, watch):
        return None


def renew_record(place: DataPlace) -> None:
    """Binds the record of the rows to their files as they are now, where it is known that they are the same rows: the
    history that proves it may go afterwards. Raises CatalogError."""
    from lance import LanceOperation

    for attempt in range(ATTEMPTS):
        dataset = opened(place)
        with translated(f"read the history of {place.uri}"):
            notes = renewed_record(dataset)
        if not notes:
            return
        try:
            with translated(f"note the rows of {place.uri}", write=True):
                update = LanceOperation.UpdateMap({**notes})
                committed(place, LanceOperation.UpdateConfig(table_metadata_updates=update), dataset.version, {})
                return
        except CatalogError as error:
            if error.code != Code.CONCURRENT_MODIFICATION or attempt == ATTEMPTS - 1:
                raise


def is_left(text: str | None) -> bool:
    """A claim whose run seems to be gone: `settle` finds out. Not one that cannot be read: whose it is is not known."""
    try:
        found = load_claim(text)
    except ValueError:
        return False
    return found is not None and (_has_ended(found) or _looks_over(found))


class _Watch:
    """Claims as one waiter sees them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: Claim | None = None
        self._since = 0.0

    def is_gone(self, claim: Claim) -> bool:
        """Its process is gone, or it has been the same for as long as a claim lasts."""
        if claim != self._seen:
            self._seen, self._since = claim, self._clock.now()
        return _has_ended(claim) or self._clock.now() - self._since > LASTS


def _acquired(place: DataPlace, context: WriteContext, clock: Clock, watch: _Watch) -> Held:
    run = uuid.uuid4().hex
    give_up = clock.now() + WAITS
    fence, unanswered = False, 0
    while True:
        dataset = opened(place)
        found = _found(dataset)
        if found is not None and found.run == run:
            return _fenced(Held(place, found, dataset, context.applied_by), fence)
        if found is not None and not watch.is_gone(found):
            if clock.stopped() or clock.now() >= give_up:
                message = f"another run is filling {place.uri}: {found.holder}; apply again later"
                raise CatalogError(Code.CONCURRENT_MODIFICATION, message)
            clock.sleep(POLL)
            continue
        fence = found is not None
        base = found.base if found is not None else int(dataset.version)
        mine = _claim(run, context, base, time.time())
        try:
            _written(place, dataset, {CLAIM_KEY: mine.dumped()}, mine)
        except CatalogError as error:  # Read again: only the answer may be lost.
            unanswered += 1
            if not error.unknown_outcome:
                raise
            if unanswered >= UNANSWERED or clock.stopped():
                _left.add(run)  # It may be there.
                raise CatalogError(error.code, error.message) from error


def _claim(run: str, context: WriteContext, base: int, now: float) -> Claim:
    pid = os.getpid()
    return Claim(run, context.plan_id, context.step_id, base, socket.gethostname(), pid, _born(pid), now + LASTS)


def _found(dataset: Any) -> Claim | None:
    try:
        return load_claim(dataset.metadata.get(CLAIM_KEY))
    except ValueError as error:
        raise CatalogError(Code.INVALID_TABLE_STATE, f"{dataset.uri}: {error}: remove it by hand") from error


_left: set[str] = set()
"""Runs of this process that are over, and whose claims stayed: an outcome was unknown, or they could not be removed."""


def _has_ended(claim: Claim) -> bool:
    return claim.run in _left or (claim.host == socket.gethostname() and _born(claim.pid) != claim.born)


def _looks_over(claim: Claim) -> bool:
    """By this machine's clock, which may be as wrong as that of the machine that wrote the claim."""
    return time.time() > claim.until


def _born(pid: int) -> str:
    """Empty for a process that is not there. The name of a process is any bytes, in brackets."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[19].decode()
    except OSError:
        pass
    if Path("/proc/self").exists():
        return ""
    try:  # No /proc: the process alone has to do.
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"


def _written(place: DataPlace, dataset: Any, notes: Mapping[str, str | None], claim: Claim) -> Any:
    """The dataset afterwards, or None when somebody else was faster. Raises CatalogError."""
    from lance import LanceOperation

    operation = LanceOperation.UpdateConfig(table_metadata_updates=LanceOperation.UpdateMap(dict(notes)))
    names = {PLAN_PROPERTY: claim.plan, STEP_PROPERTY: claim.step}
    try:
        with translated(f"claim the rows of {place.uri}", write=True):
            return committed(place, operation, dataset.version, names)
    except CatalogError as error:
        if error.code == Code.CONCURRENT_MODIFICATION or is_conflict(error):
            return None
        raise


def _fenced(held: Held, needed: bool) -> Held:
    """After a claim was taken over: no commit of rows gets in that was begun by the run that had it before."""
    from lance import LanceOperation

    if not needed:
        return held
    for _ in range(ATTEMPTS):
        held.pin_again()
        try:
            with translated(f"fence the rows of {held.place.uri}", write=True):
                operation = LanceOperation.Project(held.dataset.lance_schema)
                held.dataset = committed(held.place, operation, held.version, held._names())
                return held
        except CatalogError as error:
            if error.code != Code.CONCURRENT_MODIFICATION:
                raise
    raise CatalogError(Code.CONCURRENT_MODIFICATION, f"{held.place.uri} is being written to all the time: apply again")


def _ended(held: Held) -> None:
    try:
        _give_back(held)
    except CatalogError:  # A full disk, say. This process lives on, and will not commit for that claim any more.
        _left.add(held.claim.run)
        raise


def _give_back(held: Held) -> None:
    """And what landed is noted where it does not depend on old transactions any more."""
    unanswered = 0
    for _ in range(ATTEMPTS):
        latest = opened(held.place)
        found = load_claim(latest.metadata.get(CLAIM_KEY))
        if found is None or found.run != held.claim.run:
            return
        record = _to_note(held, latest)
        if record is not None and record.lost:
            return
        notes: dict[str, str | None] = {CLAIM_KEY: None}
        if record is not None:
            notes[RECORD_KEY] = dump_record(record)
        if held.applied_by and held._landed() is not None:
            notes[APPLIED_BY_KEY] = held.applied_by
        try:
            if _written(held.place, latest, notes, held.claim) is not None:
                return
        except CatalogError as error:
            unanswered += 1
            if not error.unknown_outcome:
                raise
            if unanswered >= UNANSWERED:
                break
    _left.add(held.claim.run)


def _to_note(held: Held, latest: Any) -> DataRecord | None:
    record = record_of(latest, latest.metadata)
    if record is None:
        return None
    return held.known if record.lost else described(latest, record)


class _Renewal:
    """Keeps the claim alive while the tasks run. Metadata alone: a commit of rows goes by it. A write like any other:
    behind the fence of the thread that has the claim."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._done = threading.Event()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="claim", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(RENEWED):
            with contextlib.suppress(Exception):  # Not renewed is not lost: the next one may get through.
                latest = opened(self._held.place)
                self._held._need_claim(latest)
                claim = replace(self._held.claim, until=time.time() + LASTS)
                _written(self._held.place, latest, {CLAIM_KEY: claim.dumped()}, claim)
