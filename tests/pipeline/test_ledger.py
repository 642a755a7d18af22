"""The ledger of `append`: a file is taken once, whatever pattern finds it, and what cannot be told is asked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pipeline.filled_table import APPEND, FilledTable, Make, rows
from pyarrow import parquet as pq
from servers.moto import Moto

from reconciler.pipeline import materialize, source_state
from reconciler.pipeline.source_state import hashed

pytestmark = pytest.mark.slow
BEFORE, MORE = list(range(20)), list(range(30))
SKIP, ADD = "allow:skip_files", "allow:add_files"


def of(t: FilledTable, path: str) -> None:
    """From here on the rows come from there."""
    t.spec = {"data": {"source": {"format": "parquet", "path": f"{t.folder}/{path}"}, "mode": APPEND}}


def put(t: FilledTable, name: str, start: int) -> Path:
    path = t.folder / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(rows(start), path)
    return path


def touch(t: FilledTable, name: str, second: int = 1) -> None:
    os.utime(t.folder / name, ns=(0, second * 10**9))


def earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of an earlier version: paths below the folder before the first wildcard."""
    for module in (source_state, materialize):
        monkeypatch.setattr(module, "keyed", lambda listing: {hashed(f.name): f for f in listing.files})


@pytest.fixture(params=["now", "earlier"])
def filled(request: pytest.FixtureRequest, make: Make, monkeypatch: pytest.MonkeyPatch) -> FilledTable:
    """With files 0 and 1 in, whose ledger this version wrote or an earlier one."""
    with monkeypatch.context() as patch:
        if request.param == "earlier":
            earlier(patch)
        t = make(APPEND)
    t.need_settled()
    return t


def test_another_pattern_finds_the_same_files(filled: FilledTable) -> None:
    t = filled
    put(t, "other/0.parquet", 20)
    of(t, "*/*.parquet")
    t.apply()
    assert t.ids() == MORE
    t.need_settled()
    of(t, "raw/0.parquet")
    t.need_settled()
    of(t, "**/*.parquet")
    t.need_settled()


def test_a_touched_file_under_a_wider_pattern_is_asked_for(filled: FilledTable) -> None:
    """Its rows came twice."""
    t = filled
    put(t, "other/2.parquet", 20)
    touch(t, "raw/0.parquet")
    of(t, "*/*.parquet")
    word, reason = t.blocked()
    assert word == SKIP
    for said in ("touched: ", "raw/0.parquet", "1 new file: ", "other/2.parquet", "`skip_files`", "`add_files`"):
        assert said in reason
    t.apply(code=3)
    assert t.ids() == BEFORE
    t.apply("--allow", "skip_files")
    assert t.ids() == MORE
    t.need_settled()
    touch(t, "raw/0.parquet", 2)
    assert t.blocked()[0] == SKIP, "the word was for that run"


@pytest.mark.parametrize("word", ["skip_files", "add_files"])
def test_a_file_that_was_written_over(filled: FilledTable, word: str) -> None:
    t = filled
    put(t, "raw/1.parquet", 50)
    assert t.blocked()[0] == SKIP
    version = int(t.dataset().version)
    t.apply("--allow", word)
    assert t.ids() == (BEFORE if word == "skip_files" else [*BEFORE, *range(50, 60)])
    assert int(t.dataset().version) > version
    t.need_settled()
    t.source(2)
    t.apply()
    assert t.ids()[:30] == MORE


@pytest.mark.parametrize("size", [10, 200_000], ids=["small", "large"])
def test_a_copy_of_now_and_a_file_that_was_moved_and_touched_are_asked_for(make: Make, size: int) -> None:
    """Their places and times are new: only what is in them tells that it is in the table."""
    t = make(APPEND)
    pq.write_table(rows(100, size), t.folder / "raw" / "2.parquet", compression="none")
    t.apply()
    before = t.ids()
    shutil.copyfile(t.folder / "raw" / "2.parquet", t.folder / "raw" / "copy.parquet")
    blocked, reason = t.blocked()
    assert (blocked, "copy.parquet" in reason, "under another path" in reason) == (SKIP, True, True)
    (t.folder / "raw" / "copy.parquet").rename(t.folder / "raw" / "moved.parquet")
    (t.folder / "raw" / "2.parquet").unlink()
    touch(t, "raw/moved.parquet")
    assert t.blocked()[0] == SKIP
    t.apply("--allow", "skip_files")
    assert t.ids() == before
    t.need_settled()


def test_a_copy_of_what_an_earlier_version_took_is_asked_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It noted no content: the file that is in says it, while it is there."""
    with monkeypatch.context() as patch:
        patch.setattr(source_state, "_looked_into", lambda listing, files, seen, taken: files)
        t = make(APPEND)
    t.need_settled()
    shutil.copyfile(t.folder / "raw" / "1.parquet", t.folder / "raw" / "copy.parquet")
    assert t.blocked()[0] == SKIP
    t.apply("--allow", "skip_files")
    assert t.ids() == BEFORE


@pytest.mark.parametrize("word", ["skip_files", "add_files"])
def test_a_copy_that_kept_its_time_is_asked_for(make: Make, word: str) -> None:
    """Beside the file: its rows came twice. The same content in another place may be other rows."""
    t = make(APPEND)
    shutil.copy2(t.folder / "raw" / "1.parquet", t.folder / "raw" / "copy.parquet")
    blocked, reason = t.blocked()
    assert blocked == SKIP
    assert "under another path: " in reason
    assert "raw/copy.parquet" in reason
    t.apply("--allow", word)
    assert t.ids() == sorted([*BEFORE, *(range(10, 20) if word == "add_files" else ())])
    t.need_settled()


def test_a_folder_that_moved_is_asked_for(make: Make) -> None:
    t = make(APPEND)
    (t.folder / "raw").rename(t.folder / "moved")
    of(t, "moved")
    assert t.blocked()[0] == SKIP
    t.apply("--allow", "skip_files")
    assert t.ids() == BEFORE
    t.need_settled()
    (t.folder / "moved").rename(t.folder / "again")
    of(t, "again")
    t.apply("--allow", "add_files")
    assert t.ids() == sorted(2 * BEFORE), "as it was asked for"
    t.need_settled()


def test_another_inode_is_the_same_file(make: Make) -> None:
    """As rsync and restores from a backup leave it."""
    t = make(APPEND)
    path = t.folder / "raw" / "0.parquet"
    shutil.copy2(path, t.folder / "copy")
    (t.folder / "copy").replace(path)
    t.need_settled()


def test_a_file_behind_a_link_is_one_file(make: Make) -> None:
    t = make(APPEND)
    put(t, "real/2.parquet", 20)
    (t.folder / "link").symlink_to("real")
    of(t, "link")
    put(t, "real/3.parquet", 30)
    t.apply()
    assert t.ids() == list(range(40))
    of(t, "real")
    t.need_settled()
    touch(t, "real/2.parquet")
    assert t.blocked()[0] == SKIP
    of(t, "link")
    assert t.blocked()[0] == SKIP
    (t.folder / "link").unlink()
    put(t, "next/2.parquet", 70)
    (t.folder / "link").symlink_to("next")
    assert t.blocked()[0] == SKIP, "another file at a place that is known"


def test_both_words_are_no_answer(make: Make) -> None:
    t = make(APPEND)
    touch(t, "raw/0.parquet")
    word, reason = t.blocked("--allow", "skip_files", "--allow", "add_files")
    assert word == "data_unaccounted"
    assert "allow one" in reason


def test_a_saved_plan_says_what_is_skipped(make: Make) -> None:
    t = make(APPEND)
    touch(t, "raw/0.parquet")
    assert t.run("plan", "m.yaml", "-o", "plan.json", "--allow", "skip_files").code == 0
    done: Any = t.run("apply", "--plan", "plan.json", "--yes")
    assert done.code == 0, done.out
    assert t.ids() == BEFORE
    t.need_settled()


def test_the_ledger_has_one_entry_for_a_file(make: Make) -> None:
    t = make(APPEND)
    real = t.folder.resolve() == t.folder

    def entries() -> int:
        from reconciler.catalog.lance_data import RECORD_KEY, load_record

        return len(load_record(t.dataset().metadata[RECORD_KEY]).files)

    assert entries() == (2 if real else 4)
    touch(t, "raw/0.parquet")
    t.apply("--allow", "skip_files")
    assert entries() == (2 if real else 4)


# S3


def send(moto: Moto, path: str, start: int) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(rows(start), sink)
    bucket, _, key = path.removeprefix("s3://").partition("/")
    moto.client.put_object(Bucket=bucket, Key=key, Body=sink.getvalue().to_pybytes())


def test_objects_are_known_by_place_and_etag(make: Make, moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = moto.make_bucket(f"ledger-{os.getpid()}")
    t = make(APPEND)
    source = {"format": "parquet"}
    for key, value in moto.storage_options.items():
        monkeypatch.setenv(f"LEDGER_{key}", value)
        source[f"storage.{key}"] = f"${{env:LEDGER_{key}}}"

    def at(path: str) -> None:
        t.spec = {"data": {"source": {**source, "path": f"{bucket}/{path}"}, "mode": APPEND}}

    send(moto, f"{bucket}/g/2024/a.parquet", 100)
    at("g/2024/*.parquet")
    t.apply()
    send(moto, f"{bucket}/g/2025/a.parquet", 110)
    send(moto, f"{bucket}/g/2024/a.parquet", 100)  # The same content has the same etag: it is the same object.
    at("g/*/*.parquet")
    t.apply()
    assert t.ids() == [*BEFORE, *range(100, 120)]
    t.need_settled()
    send(moto, f"{bucket}/h/copy.parquet", 110)
    at("*/**/*.parquet")
    word, reason = t.blocked()
    assert word == SKIP
    assert "under another path: " in reason
    assert f"{bucket}/h/copy.parquet" in reason
    t.apply("--allow", "skip_files")
    t.need_settled()
    send(moto, f"{bucket}/g/2025/a.parquet", 150)
    assert t.blocked()[0] == SKIP
    t.apply("--allow", "add_files")
    assert t.ids() == [*BEFORE, *range(100, 120), *range(150, 160)]
    t.need_settled()
