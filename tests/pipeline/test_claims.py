"""Two runs and one table: whatever the order of their reads, claims and commits, the rows are in once."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance.fragment import write_fragments

from reconciler.catalog.base import DataPlace, WriteContext
from reconciler.catalog.fence import fenced
from reconciler.catalog.lance_data import CLAIM_KEY, LOST, RECORD_KEY, load_claim, record_of
from reconciler.catalog.lance_rows import row_state
from reconciler.model.data import DataRecord
from reconciler.model.errors import CatalogError, Code
from reconciler.pipeline import claims, row_commit
from reconciler.pipeline.claims import Clock, Held, claimed

SCHEMA = pa.schema([("id", pa.int64())])
RECORD = DataRecord("sha256:one", {"path": "stamp"})
CONTEXT = WriteContext("sha256:0123456789", "s1")


@pytest.fixture
def place(tmp_path: Path) -> DataPlace:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset([], uri, schema=SCHEMA)
    return DataPlace(uri)


def files(place: DataPlace, count: int = 3) -> Any:
    return write_fragments(pa.table({"id": list(range(count))}), place.uri, schema=SCHEMA, mode="append")


def append(held: Held, record: DataRecord = RECORD) -> Any:
    return held.commit(LanceOperation.Append(files(held.place)), record)


def now(place: DataPlace) -> Any:
    return lance.dataset(place.uri)


def record(place: DataPlace) -> DataRecord | None:
    return record_of(now(place), now(place).metadata)


@contextmanager
def killed() -> Iterator[None]:
    """What a run leaves that ends between two lines: its claim is not given back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_give_back", lambda held: None)
        yield


def forget_process(place: DataPlace) -> None:
    """The claim as another process would have left it that is gone now."""
    dataset = now(place)
    claim = load_claim(dataset.metadata[CLAIM_KEY])
    assert claim is not None
    dataset.update_metadata({CLAIM_KEY: replace(claim, born="another").dumped()})


def test_a_claim_is_given_back_with_the_record(place: DataPlace) -> None:
    with claimed(place, CONTEXT) as held:
        assert held.known is None
        append(held)
        assert CLAIM_KEY in now(place).metadata
    assert CLAIM_KEY not in now(place).metadata
    noted = json.loads(now(place).metadata[RECORD_KEY])
    assert (noted["digest"], noted["files"]) == ("sha256:one", {"path": "stamp"})
    assert noted["rows"] == {"version": 3, "digest": row_state(now(place)).digest}
    assert record(place) == RECORD
    assert now(place).count_rows() == 3


def test_a_step_that_fails_leaves_no_claim_and_no_record(place: DataPlace) -> None:
    with pytest.raises(ZeroDivisionError), claimed(place, CONTEXT):
        raise ZeroDivisionError
    assert CLAIM_KEY not in now(place).metadata
    assert record(place) is None


def test_one_commit_for_one_claim(place: DataPlace) -> None:
    with claimed(place, CONTEXT) as held:
        append(held)
        append(held)  # The answer to the first was lost, say.
    assert now(place).count_rows() == 3


@pytest.mark.parametrize("said", ["Commit conflict for version 3", "operation timed out"])
def test_a_commit_that_meets_itself_has_landed(place: DataPlace, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """Its answer was lost, and it was sent again by whoever sends it: what it met is what it had written."""
    commit = claims.committed

    def twice(where: DataPlace, operation: Any, version: int, properties: Any) -> Any:
        done = commit(where, operation, version, properties)
        if RECORD_KEY in properties:
            raise OSError(said)
        return done

    monkeypatch.setattr(claims, "committed", twice)
    with claimed(place, CONTEXT) as held:
        append(held)
    assert now(place).count_rows() == 3
    assert record(place) == RECORD


def test_what_a_killed_run_committed_is_known_before_it_is_noted(place: DataPlace) -> None:
    with killed(), claimed(place, CONTEXT) as held:
        append(held)
    assert RECORD_KEY not in now(place).metadata
    assert record(place) == replace(RECORD, noted=False)
    assert "process" in (claims.settle(place, CONTEXT) or ""), "it might be alive"
    forget_process(place)
    assert claims.settle(place, CONTEXT) is None
    assert claims.settle(place, CONTEXT) is None
    assert record(place) == RECORD
    assert json.loads(now(place).metadata[RECORD_KEY])["digest"] == RECORD.digest


def test_without_the_history_nothing_is_concluded(place: DataPlace) -> None:
    with killed(), claimed(place, CONTEXT) as held:
        append(held)
    now(place).update_metadata({"other": "1"})
    now(place).cleanup_old_versions(older_than=timedelta(0))
    assert record(place) == LOST


def test_a_restore_is_followed(place: DataPlace) -> None:
    """The claim comes back with the version; whether the rows do, its transactions tell."""
    with killed(), claimed(place, CONTEXT) as held:
        append(held)
        filled = now(place).version
        lance.dataset(place.uri, version=held.version).restore()
    assert now(place).count_rows() == 0
    assert CLAIM_KEY in now(place).metadata
    assert record(place) is None
    lance.dataset(place.uri, version=filled).restore()
    found = record(place)
    assert found is not None
    assert (found.digest, found.noted, found.external) == ("sha256:one", False, None)
    restored = now(place).version
    lance.dataset(place.uri, version=held.version).restore()
    now(place).tags.create("kept", restored)
    now(place).cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    assert record(place) == LOST, "what was restored is not there any more"


def test_a_run_that_was_only_slow_is_refused_after_its_claim_was_taken(place: DataPlace) -> None:
    with killed():
        slow = claimed(place, CONTEXT)
        held = slow.__enter__()
        forget_process(place)
        with claimed(place, WriteContext("sha256:other", "s1")) as second:
            assert second.known is None
            append(second)
        with pytest.raises(CatalogError) as refused:
            append(held)
        assert refused.value.code == Code.CONCURRENT_MODIFICATION
        with pytest.raises(CatalogError, match="another run took over"):
            held.pin_again()
        slow.__exit__(None, None, None)
    assert now(place).count_rows() == 3


def test_a_run_that_was_only_slow_does_not_go_on_where_the_claim_was_given_back(place: DataPlace) -> None:
    """Whoever took it over is done: no claim at all is not this run's claim."""
    with killed():
        slow = claimed(place, CONTEXT)
        held = slow.__enter__()
        forget_process(place)
    with claimed(place, WriteContext("sha256:other", "s1")) as second:
        append(second)
    assert CLAIM_KEY not in now(place).metadata
    with pytest.raises(CatalogError, match="another run took over") as refused:
        held.pin_again()
    assert refused.value.code == Code.CONCURRENT_MODIFICATION
    slow.__exit__(None, None, None)
    assert now(place).count_rows() == 3
    assert CLAIM_KEY not in now(place).metadata


def test_a_commit_before_the_fence_is_seen_by_who_takes_over(place: DataPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old run commits after the new one has written its claim and before its fence."""
    with killed():
        slow = claimed(place, CONTEXT)
        held = slow.__enter__()
        forget_process(place)
        fenced = claims._fenced

        def late(new: Held, needed: bool) -> Held:
            append(held)
            return fenced(new, needed)

        monkeypatch.setattr(claims, "_fenced", late)
        with claimed(place, WriteContext("sha256:other", "s1")) as second:
            assert second.known == replace(RECORD, noted=False)
        slow.__exit__(None, None, None)
    assert now(place).count_rows() == 3


def test_a_live_claim_is_waited_for(place: DataPlace) -> None:
    waited: list[float] = []
    slow = claimed(place, CONTEXT)
    held = slow.__enter__()

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            append(held)
            slow.__exit__(None, None, None)

    with claimed(place, CONTEXT, Clock(sleep=sleep)) as second:
        assert second.known == RECORD
    assert len(waited) == 2


HOURS = 5 * 3600.0


class Watching:
    """A clock that goes on as one waits; what happens to the claim meanwhile is told by a function."""

    def __init__(self, meanwhile: Callable[[float], object] = lambda passed: None) -> None:
        self.passed = 0.0
        self._meanwhile = meanwhile

    def sleep(self, seconds: float) -> None:
        self.passed += max(seconds, 10.0)  # Fewer rounds.
        self._meanwhile(self.passed)

    def clock(self) -> Clock:
        return Clock(now=lambda: self.passed, sleep=self.sleep)


def elsewhere(place: DataPlace, skew: float, passed: float = 0.0) -> str:
    """The claim as a run on another machine writes it, whose clock is wrong by so much."""
    claim = load_claim(now(place).metadata[CLAIM_KEY])
    assert claim is not None
    until = time.time() + passed + skew + claims.LASTS
    text = replace(claim, host="elsewhere", born="another", run="another", until=until).dumped()
    now(place).update_metadata({CLAIM_KEY: text})
    return text


@pytest.fixture(params=[-HOURS, 0.0, HOURS], ids=["behind", "right", "ahead"])
def skew(request: pytest.FixtureRequest) -> float:
    return float(request.param)


def test_the_claim_of_a_run_elsewhere_that_is_gone_is_taken_over(place: DataPlace, skew: float) -> None:
    """No process of this machine says anything about one of another. Its clock does not count, nor does ours: what
    counts is how long nothing has been heard of it."""
    with killed(), claimed(place, CONTEXT):
        elsewhere(place, skew)
    watching = Watching()
    with claimed(place, CONTEXT, watching.clock()) as second:
        append(second)
    assert claims.LASTS < watching.passed < claims.WAITS
    assert now(place).count_rows() == 3


def test_the_claim_of_a_run_elsewhere_that_lives_is_never_taken_over(place: DataPlace, skew: float) -> None:
    with killed(), claimed(place, CONTEXT):
        elsewhere(place, skew)
    watching = Watching(lambda passed: elsewhere(place, skew, passed) if passed % claims.RENEWED == 0 else None)
    told = pytest.raises(CatalogError, match=r"another run is filling .*elsewhere")
    with told, claimed(place, CONTEXT, watching.clock()):
        pass
    claim = load_claim(now(place).metadata[CLAIM_KEY])
    assert claim is not None
    assert claim.host == "elsewhere"


def test_what_a_run_elsewhere_left_is_settled_when_it_is_gone(place: DataPlace, skew: float) -> None:
    """Maintenance does not wait for a run that says it is at work; one whose time seems to be over is watched."""
    with killed(), claimed(place, CONTEXT):
        text = elsewhere(place, skew)
    assert claims.is_left(text) == (skew < 0)
    renewing = Watching(lambda passed: elsewhere(place, skew, passed))
    assert "elsewhere" in (claims.settle(place, CONTEXT, renewing.clock()) or ""), "it is alive"
    assert CLAIM_KEY in now(place).metadata
    silent = Watching()
    left = claims.settle(place, CONTEXT, silent.clock())
    if skew < 0:
        assert left is None
        assert silent.passed > claims.LASTS
        assert CLAIM_KEY not in now(place).metadata
    else:
        assert "elsewhere" in (left or "")
        assert silent.passed == 0


@pytest.mark.parametrize("how", [row_commit.adding, row_commit.replacing], ids=["adding", "replacing"])
@pytest.mark.parametrize("start", ["filled", "empty"])
def test_a_run_that_slept_does_not_commit_after_another_took_over(place: DataPlace, start: str, how: Any) -> None:
    """Its claim ended while it lived: a machine that was suspended renews nothing."""
    if start == "filled":
        lance.write_dataset(pa.table({"id": [7]}), place.uri, mode="append")
    with killed():
        sleeping = claimed(place, CONTEXT)
        held = sleeping.__enter__()
        operation = how(held.dataset, files(place))
        claim = load_claim(now(place).metadata[CLAIM_KEY])
        assert claim is not None
        now(place).update_metadata({CLAIM_KEY: replace(claim, host="elsewhere").dumped()})
        with claimed(place, WriteContext("sha256:other", "s1"), Watching().clock()) as second:
            second.commit(how(second.dataset, files(place)), RECORD)
        with pytest.raises(CatalogError) as refused:
            held.commit(operation, RECORD)
        assert refused.value.code == Code.CONCURRENT_MODIFICATION
        with pytest.raises(CatalogError, match="another run took over"):
            held.pin_again()
        sleeping.__exit__(None, None, None)
    kept = 1 if start == "filled" and how is row_commit.adding else 0
    assert now(place).count_rows() == 3 + kept


def test_a_claim_that_cannot_be_given_back_is_not_waited_for(place: DataPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that failed because the disk was full has no room for that either, and its process lives on."""

    def full(held: Held) -> None:
        raise CatalogError(Code.INTERNAL, "the disk is full")

    monkeypatch.setattr(claims, "_give_back", full)
    with pytest.raises(ZeroDivisionError), claimed(place, CONTEXT):
        raise ZeroDivisionError
    monkeypatch.undo()
    assert CLAIM_KEY in now(place).metadata
    with claimed(place, CONTEXT, Clock(stopped=lambda: True)) as held:
        append(held)
    assert now(place).count_rows() == 3


def test_a_store_that_confirms_no_claim_is_given_up(place: DataPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was tried without end."""
    tried = [0]

    def slow(*_: Any) -> None:
        tried[0] += 1
        assert tried[0] < 100
        raise CatalogError(Code.THROTTLING, "slow down", unknown_outcome=True)

    monkeypatch.setattr(claims, "committed", slow)
    with pytest.raises(CatalogError, match="slow down") as told, claimed(place, CONTEXT):
        pass
    assert not told.value.unknown_outcome, "no row was touched"
    assert tried == [claims.UNANSWERED]


def test_it_is_not_waited_for_when_the_run_is_to_stop(place: DataPlace) -> None:
    with claimed(place, CONTEXT):
        stopping = Clock(stopped=lambda: True)
        told = pytest.raises(CatalogError, match=rf"another run is filling .*process {os.getpid()}")
        with told, claimed(place, CONTEXT, stopping):
            pass


def test_many_at_once_append_once(place: DataPlace) -> None:
    started = threading.Barrier(4)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            started.wait()
            with claimed(place, CONTEXT, Clock(sleep=lambda _: threading.Event().wait(0.02))) as held:
                if held.known is None:
                    append(held)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert now(place).count_rows() == 3
    assert CLAIM_KEY not in now(place).metadata


def test_a_claim_is_renewed_and_rows_still_get_in(place: DataPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "RENEWED", 0.01)
    with claimed(place, CONTEXT) as held:
        first = held.claim.until
        for _ in range(500):
            claim = load_claim(now(place).metadata[CLAIM_KEY])
            if claim is not None and claim.until > first:
                break
            threading.Event().wait(0.01)
        else:
            pytest.fail("it was not renewed")
        append(held)
    assert now(place).count_rows() == 3


def test_a_claim_is_not_renewed_by_a_run_that_may_not_write(place: DataPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own thread, but behind the same fence."""
    asked: list[str] = []
    lost: list[str] = []

    def problem() -> str | None:
        asked.append(threading.current_thread().name)
        return lost[0] if lost else None

    monkeypatch.setattr(claims, "RENEWED", 0.01)
    with suppress(CatalogError), fenced(problem), claimed(place, CONTEXT):
        lost.append("it was lost")
        version = now(place).version
        seen = len(asked)
        for _ in range(500):
            if len(asked) >= seen + 3:
                break
            threading.Event().wait(0.01)
        assert set(asked[seen:]) == {"claim"}
    assert now(place).version - version in (0, 1), "one may have been under way"


@pytest.mark.parametrize("late", [False, True])
def test_a_commit_that_lands_after_nobody_waits_for_it(
    place: DataPlace, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Its answer is lost, and it is not there yet when it is looked for."""
    commit = claims.committed
    kept: list[Any] = []

    def lost(where: DataPlace, operation: Any, version: int, properties: Any) -> Any:
        if RECORD_KEY in properties and not kept:
            kept.append((where, operation, version, properties))
            raise CatalogError(Code.SERVICE_UNAVAILABLE, "timed out", unknown_outcome=True)
        return commit(where, operation, version, properties)

    monkeypatch.setattr(claims, "committed", lost)
    with pytest.raises(CatalogError, match="timed out"), claimed(place, CONTEXT) as held:
        append(held)
    assert CLAIM_KEY in now(place).metadata
    if not late:
        commit(*kept[0])
    with claimed(place, CONTEXT) as held:  # At once: this process knows that the other one is left.
        if held.known is None:
            append(held)
    if late:
        with pytest.raises(Exception, match=r"preempted|incompatible"):
            commit(*kept[0])
    assert now(place).count_rows() == 3
    assert record(place) == RECORD


def test_somebody_elses_text_under_our_key_is_no_free_table(place: DataPlace) -> None:
    now(place).update_metadata({CLAIM_KEY: "mine"})
    with pytest.raises(CatalogError, match="cannot read"), claimed(place, CONTEXT):
        pass
    assert record(place) == LOST


def test_an_append_of_others_goes_by(place: DataPlace) -> None:
    with claimed(place, CONTEXT) as held:
        lance.write_dataset(pa.table({"id": [7]}), place.uri, mode="append")
        append(held)
    assert now(place).count_rows() == 4
