"""What others do to a table, and what clocks do, while `pipeline maintain` is at work on it."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from pipeline.maintain_lake import ALL, INDEX, in_process, lake, later, maintain, outcomes, parts, path, without_spark

from reconciler.catalog import store_clock
from reconciler.pipeline import maintain as driver


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    without_spark(monkeypatch)


def test_a_tag_that_is_made_after_the_decision_holds_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the run has said which versions go."""
    lake(tmp_path, "t", spec="maintenance: {cleanup: {olderThan: 1h}}")
    reader = lance.dataset(str(path(tmp_path)), version=3)
    told = reader.to_table()

    def meanwhile(*arguments: Any, **more: Any) -> Iterator[dict[str, Any]]:
        if arguments[1]:
            assert 3 in arguments[1][0]["versions"]
            lance.dataset(str(path(tmp_path))).tags.create("keep", 3)
        yield from in_process(*arguments, **more)

    monkeypatch.setattr(driver, "answers", meanwhile)
    later(monkeypatch, 1)
    assert outcomes(maintain(tmp_path, "--format", "json")) == [None, None, "done"]
    assert lance.dataset(str(path(tmp_path)), version="keep").to_table() == told
    assert reader.to_table() == told
    assert [v["version"] for v in lance.dataset(str(path(tmp_path))).versions()] == [3, 8]


def test_a_tag_that_came_too_late_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lance had read the tags by then."""
    lake(tmp_path, "t", spec="maintenance: {cleanup: {olderThan: 1h}}")
    dataset = lance.dataset(str(path(tmp_path)))
    dataset.tags.create("late", 3)
    tag = path(tmp_path) / "_refs" / "tags" / "late.json"
    text = tag.read_bytes()
    tag.unlink()
    real = lance.LanceDataset.cleanup_old_versions

    def slow(*arguments: Any, **more: Any) -> Any:
        found = real(*arguments, **more)
        tag.write_bytes(text)
        return found

    monkeypatch.setattr(lance.LanceDataset, "cleanup_old_versions", slow)
    later(monkeypatch, 1)
    run = maintain(tmp_path, "--format", "json")
    assert run.code == 5
    assert parts(run)["cleanup"]["outcome"] == "failed"
    assert "lead to nothing: late" in str(parts(run)["cleanup"])


def test_a_tag_that_is_set_again_after_the_decision_is_young(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same plan was applied again: its tag has the name that it had, and leads to other rows."""
    mine = "reconciler-0123456789ab-s1"
    lake(tmp_path, "t", spec="maintenance: {cleanup: {olderThan: 14d}}")
    file = path(tmp_path) / "_refs" / "tags" / f"{mine}.json"
    lance.dataset(str(path(tmp_path))).tags.create(mine, 3)
    then = (datetime.now(UTC) - timedelta(days=40)).strftime("%Y-%m-%dT%H:%M:%SZ")
    file.write_text(json.dumps({**json.loads(file.read_text()), "createdAt": then, "updatedAt": then}))
    assess = driver.assess

    def meanwhile(subjects: Any) -> Any:
        found = list(assess(subjects))
        lance.dataset(str(path(tmp_path))).tags.update(mine, 4)
        return found

    monkeypatch.setattr(driver, "assess", meanwhile)
    run = maintain(tmp_path, "--format", "json")
    assert parts(run)["tags"]["reason"] == "1 tag of apply is older than management.tagRetention"
    assert parts(run)["tags"]["after"] == {"removed": 0}
    assert lance.dataset(str(path(tmp_path))).tags.list()[mine]["version"] == 4


@pytest.mark.parametrize("hours", [-5, 5])
def test_nothing_is_removed_by_a_clock_that_is_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """The disk stamps what is written now with another time. Behind, it only keeps things longer."""
    mine = "reconciler-0123456789ab-s1"
    lake(tmp_path, "t", spec="maintenance: {cleanup: {olderThan: 1h}}")
    lance.dataset(str(path(tmp_path))).tags.create(mine, 3)
    versions = len(lance.dataset(str(path(tmp_path))).versions())
    wrong = time.time() + hours * 3600
    monkeypatch.setattr(store_clock, "time", SimpleNamespace(time=lambda: wrong))
    later(monkeypatch, 40)
    run = maintain(tmp_path, "--format", "json")
    dataset = lance.dataset(str(path(tmp_path)))
    if hours > 0:
        assert run.code == 5
        assert re.search(rf"clock of this machine is (4h 59m|5h) ahead of that of {path(tmp_path)}", run.out)
        assert (len(dataset.versions()), list(dataset.tags.list())) == (versions, [mine])
    else:
        assert run.code == 0
        assert (len(dataset.versions()), list(dataset.tags.list())) == (1, [])
    assert [p.name for p in path(tmp_path).iterdir() if p.name.startswith(".tmp") or "time" in p.name] == []


def test_a_reader_at_an_old_version_goes_on_during_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads a version that was replaced less than `olderThan` ago, in the middle of all parts and after them."""
    lake(tmp_path, "t", spec=INDEX + ALL)
    reader = lance.dataset(str(path(tmp_path)), version=lance.dataset(str(path(tmp_path))).version - 2)
    told, batches = reader.to_table(), reader.to_batches(batch_size=10)
    got = [next(batches)]

    def meanwhile(*arguments: Any, **more: Any) -> Iterator[dict[str, Any]]:
        for answer in in_process(*arguments, **more):
            got.extend(itertools.islice(batches, 1))
            assert reader.to_table() == told
            yield answer

    monkeypatch.setattr(driver, "answers", meanwhile)
    later(monkeypatch, 13)
    done = maintain(tmp_path, "--format", "json")
    assert outcomes(done)[:2] == ["done", "done"]
    later(monkeypatch, 13.5)
    maintain(tmp_path, "--format", "json")
    assert pa.Table.from_batches([*got, *batches]).to_pylist() == told.to_pylist()
    assert lance.dataset(str(path(tmp_path)), version=reader.version).to_table() == told
