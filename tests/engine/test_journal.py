"""The journal: synced lines, shared syncs, and a disk that is full."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from engine_plans import lake, ns, plan

from reconciler.engine.execute import execute
from reconciler.engine.journal import FileJournal, JournalError, default_path
from reconciler.model.report import StepResult

PLAN_ID = "sha256:" + "ab" * 32


def events(path: Path) -> list[dict[str, object]]:
    """The whole lines: while others write, the last one may be half there."""
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def test_a_run_is_told_in_order_and_every_start_is_on_disk_before_its_write(tmp_path: Path) -> None:
    catalog = lake()
    path = tmp_path / "j.jsonl"
    journal = FileJournal(path, PLAN_ID)

    def look(point: str, subject: object) -> None:
        if point == "before":
            started = [e["object"]["id"] for e in events(path) if e["event"] == "start"]  # type: ignore[index]
            assert list(subject.ident) in started  # type: ignore[attr-defined]

    catalog.fault = look
    report = execute(plan(catalog.world, [ns(f"n{i}") for i in range(20)]), {"lake": catalog}, journal=journal)
    assert report.outcome == "applied"
    told = events(path)
    assert told[0]["event"] == "header"
    assert told[0]["pid"] == os.getpid()
    assert told[-1] == {**told[-1], "event": "finish", "outcome": "applied"}
    for n in range(1, 21):
        assert [e["event"] for e in told if e.get("step") == f"s{n}"] == ["start", "end"]


class Watch:
    """Counts, at every step of the run, the ends that are not on disk yet although the run has gone on from them."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.synced, self.seen = path, 0, 0
        self.behind: list[int] = []
        real = os.fsync

        def fsync(file: int) -> None:
            size = os.fstat(file).st_size
            real(file)
            self.synced = max(self.synced, size)

        monkeypatch.setattr(os, "fsync", fsync)

    def update(self, done: int, total: int, running: list[str]) -> None:
        on_disk = self.path.read_bytes()[: self.synced].count(b'"event":"end"')
        self.seen = done
        if on_disk < done:
            self.behind.append(done)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("parallelism", [1, 8])
def test_every_end_is_on_disk_before_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallelism: int
) -> None:
    path = tmp_path / "j.jsonl"
    watch = Watch(path, monkeypatch)
    catalog, journal = lake(), FileJournal(path, PLAN_ID)
    the_plan = plan(catalog.world, [ns(f"n{i}") for i in range(20)])
    report = execute(the_plan, {"lake": catalog}, parallelism=parallelism, journal=journal, progress=watch)
    assert report.outcome == "applied"
    assert watch.seen > 10
    assert watch.behind == []


def test_lines_of_many_threads_share_syncs_and_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = plan(lake().world, [ns(f"n{i}") for i in range(200)]).steps
    journal = FileJournal(tmp_path / "j.jsonl", PLAN_ID)
    syncs = 0
    real = os.fsync
    gate = threading.Barrier(50)

    def count(file: int) -> None:
        nonlocal syncs
        syncs += 1
        real(file)

    monkeypatch.setattr(os, "fsync", count)

    def work(n: int) -> None:
        gate.wait()
        for step in steps[n::50]:
            journal.start(step)
            journal.end(StepResult(step, "done"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = events(tmp_path / "j.jsonl")
    assert len(told) == 1 + 400
    assert 1 <= syncs <= 400
    for step in steps:
        assert [e["event"] for e in told if e.get("step") == step.id] == ["start", "end"]


def test_an_existing_journal_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    for _ in range(2):
        FileJournal(path, PLAN_ID).finish("applied")
    assert [e["event"] for e in events(path)] == ["header", "finish"] * 2


def test_a_journal_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"file/j\.jsonl"):
        FileJournal(tmp_path / "file" / "j.jsonl", PLAN_ID)
    with pytest.raises(JournalError, match="No space left"):
        FileJournal(Path("/dev/full"), PLAN_ID)


@pytest.mark.parametrize("writes", [0, 2])
def test_a_disk_that_fills_up_stops_the_run_and_the_report_says_so(tmp_path: Path, writes: int) -> None:
    catalog = lake()
    journal = FileJournal(tmp_path / "j.jsonl", PLAN_ID)
    full = os.open("/dev/full", os.O_WRONLY)

    def fill(point: str, subject: object) -> None:
        if point == "before" and catalog.calls.writes == writes - 1:
            os.dup2(full, journal._file)

    if writes == 0:
        os.dup2(full, journal._file)
    catalog.fault = fill
    chain = [ns("a"), ns("a", "b"), ns("a", "b", "c"), ns("a", "b", "c", "d")]
    report = execute(plan(catalog.world, chain), {"lake": catalog}, journal=journal)
    os.close(full)
    assert [s.status for s in report.steps] == ["done"] * writes + ["not_run"] * (4 - writes)
    assert catalog.calls.writes == writes
    assert report.outcome == ("partial" if writes else "failed")
    assert "No space left" in report.message


def test_default_file_names_sort_by_time() -> None:
    from datetime import UTC, datetime

    path = default_path(PLAN_ID, datetime(2026, 11, 16, 3, 4, 5, tzinfo=UTC))
    assert str(path) == ".reconciler/journal/20261116T030405Z-abababababab.jsonl"
