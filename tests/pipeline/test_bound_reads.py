"""Reads are bound to what was listed: what another program does to a source meanwhile fails the step, and nothing is
committed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pipeline.filled_table import APPEND, Make, rows
from pipeline.in_process import running
from pyarrow import parquet as pq
from servers.moto import Moto

from reconciler.model.errors import CatalogError
from reconciler.pipeline import data_plane, file_reader, frames, listing, pieces, write_task
from reconciler.pipeline.file_reader import FileError, read_batches
from reconciler.pipeline.jobs import done
from reconciler.pipeline.session import SparkError
from reconciler.pipeline.sources import list_source

TARGET = pa.schema([("id", pa.int64())])
WRITERS: dict[str, Callable[[Path], Any]] = {
    "csv": lambda path: path.write_text("id\n" + "".join(f"{n}\n" for n in range(100, 999))),
    "json": lambda path: path.write_text("".join(f'{{"id": {n}}}\n' for n in range(100, 999))),
    "parquet": lambda path: pq.write_table(pa.table({"id": range(100, 999)}), path),
}


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 4)


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def replaced(path: Path) -> None:
    """By another file of the same size and time."""
    was = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().swapcase())
    os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
    other.replace(path)


def removed(path: Path) -> None:
    path.unlink()


CHANGES = [grown, cut, touched, replaced, removed]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("format_", WRITERS)
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, format_: str, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reader, "BATCH_BYTES", 4_000)
    path = tmp_path / f"a.{format_}"
    WRITERS[format_](path)
    (file,) = list_source({"format": format_, "path": str(path)}, {}).files
    bound = {"size": file.size, "stamp": file.stamp, "inode": getattr(file, "inode", None)}
    batches = read_batches(file.uri, format_, {}, None, TARGET, {}, **bound)
    whole = [n for batch in batches for n in batch.column(0).to_pylist()]
    assert whole == list(range(100, 999)), "as it was listed"

    batches = read_batches(file.uri, format_, {}, None, TARGET, {}, **bound)
    next(batches)
    change(path)
    with pytest.raises(FileError, match=rf"a\.{format_}: the file has changed since .* make a new plan"):
        list(batches)
    if change is not removed:
        with pytest.raises(FileError, match="the file has changed since"):
            next(read_batches(file.uri, format_, {}, None, TARGET, {}, **bound))


def test_nothing_more_is_asked_of_a_reader_that_stops_early(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    WRITERS["parquet"](path)
    (file,) = list_source({"format": "parquet", "path": str(path)}, {}).files
    batches = read_batches(file.uri, "parquet", {}, None, TARGET, {}, **file.listed._asdict())
    next(batches)
    path.unlink()
    batches.close()  # type: ignore[attr-defined]


def meanwhile(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Any]) -> None:
    """After the rows of the first file that a task reads, and before it is told that there are no more."""
    read, done = file_reader.read_batches, [False]

    def reads(*arguments: Any, **more: Any) -> Iterator[Any]:
        for batch in read(*arguments, **more):
            if not done[0]:
                done[0] = True
                do()
            yield batch

    monkeypatch.setattr(file_reader, "read_batches", reads)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_step_of_a_file_that_changes(
    make: Make, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    t = make(APPEND)
    t.source(2)
    meanwhile(monkeypatch, lambda: change(t.folder / "raw" / "2.parquet"))
    run = t.run("apply", "m.yaml", "--yes")
    assert run.code == 1
    assert "raw/2.parquet: the file has changed since the source was listed" in run.out
    assert "nothing was committed" in run.out
    assert t.ids() == list(range(20))


@pytest.mark.slow
def test_a_file_that_changes_after_it_was_read(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    t = make(APPEND)
    t.source(2, 3)
    write = write_task.write

    def writes(unit: Any) -> Any:
        answers = list(write(unit))
        for file in unit["files"]:
            touched(Path(file["uri"]))
        return iter(answers)

    monkeypatch.setattr(write_task, "write", writes)
    run = t.run("apply", "m.yaml", "--yes")
    assert run.code == 1
    assert "the source changed while it was read: " in run.out
    assert "raw/2.parquet" in run.out
    assert t.ids() == list(range(20))


@pytest.mark.slow
def test_a_file_that_came_meanwhile_waits_for_the_next_plan(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    t = make(APPEND)
    t.source(2)
    meanwhile(monkeypatch, lambda: t.source(3))
    t.apply()
    assert t.ids() == list(range(30))
    t.apply()
    assert t.ids() == list(range(40))


# views of a query


class Frame:
    def createOrReplaceTempView(self, name: str) -> None:
        pass


def test_a_view_is_what_was_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was listed once more after the listing that the plan is compared with."""
    pq.write_table(rows(0), tmp_path / "a.parquet")
    source = {"format": "sql", "sql": "SELECT * FROM v", "views": {"v": {"format": "parquet", "path": str(tmp_path)}}}
    found = list_source(source, {})
    pq.write_table(rows(10), tmp_path / "b.parquet")
    seen: list[str] = []

    def from_files(spark: Any, slots: int, pieces: Any, *_: Any) -> Frame:
        seen.extend(Path(piece.uri).name for piece in pieces)
        return Frame()

    monkeypatch.setattr(frames, "_from_files", from_files)
    spark = type("Spark", (), {"sql": lambda self, text: Frame(), "catalog": None})()
    with frames.frame_of(running(), spark, 1, source, {}, found, {}):
        assert seen == ["a.parquet"]
    assert changed(source, found) == []
    touched(tmp_path / "a.parquet")
    assert changed(source, found) == [str(tmp_path / "a.parquet")]


def changed(source: dict[str, Any], found: Any) -> list[str]:
    from reconciler.pipeline.sources import changes

    return changes(found, source, {})


class Reader:
    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def format(self, name: str) -> Reader:
        return self

    def options(self, **options: Any) -> Reader:
        self.asked |= options
        return self

    def load(self, path: str) -> Reader:
        return self


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, {"versionAsOf": "3"}),
        ({"versionasof": "2"}, {"versionasof": "2"}),
        ({"timestampAsOf": "2024-12-31"}, {"timestampAsOf": "2024-12-31"}),
    ],
)
def test_delta_is_read_at_the_version_that_was_listed(tmp_path: Path, options: Any, asked: Any) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version in (2, 3):
        (log / f"{version:020}.json").touch()
    source = {"format": "delta", "path": str(tmp_path), "options": options}
    found = list_source(source, {})
    (log / f"{4:020}.json").touch()
    reader = Reader()
    with frames.frame_of(running(), type("Spark", (), {"read": reader})(), 1, source, {}, found, {}):
        assert reader.asked == asked


# S3


def put(moto: Moto, path: str, table: pa.Table) -> None:
    bucket, _, key = path.removeprefix("s3://").partition("/")
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False)  # The same size, whatever the numbers.
    moto.client.put_object(Bucket=bucket, Key=key, Body=sink.getvalue().to_pybytes())


@pytest.fixture
def of_s3(make: Make, moto: Moto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table of a local lake that is filled from a bucket, and a new object there."""
    bucket = moto.make_bucket(f"bound-{os.getpid()}-{abs(hash(tmp_path.name)) % 10**9}")
    source = {"format": "parquet", "path": f"{bucket}/in"}
    for key, value in moto.storage_options.items():
        monkeypatch.setenv(f"BOUND_{key}", value)
        source[f"storage.{key}"] = f"${{env:BOUND_{key}}}"
    t = make(APPEND)
    for number in (0, 1):
        put(moto, f"{bucket}/in/{number}.parquet", rows(number * 10))
    t.spec = {"data": {"source": source, "mode": "replace-if-changed"}}
    return t, f"{bucket}/in/1.parquet"


@pytest.mark.slow
@pytest.mark.parametrize("lance_alone", [False, True], ids=["bound", "lance alone"])
def test_an_object_that_is_written_over_before_it_is_read(
    of_s3: Any, moto: Moto, lance_alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one of the same size. An executor with nothing but Lance does not see it, and the driver does."""
    t, path = of_s3
    if lance_alone:
        monkeypatch.setitem(sys.modules, "reconciler.pipeline.listed_object", None)
    write, done = write_task.write, [False]

    def writes(unit: Any) -> Any:
        if not done[0]:
            done[0] = True
            put(moto, path, rows(70))
        return write(unit)

    before = t.ids()
    monkeypatch.setattr(write_task, "write", writes)
    run = t.run("apply", "m.yaml", "--yes")
    assert run.code == 1, run.out
    assert "in/1.parquet" in run.out
    assert ("the source changed while it was read" if lance_alone else "the file has changed since") in run.out
    assert t.ids() == before
    t.apply()
    assert t.ids() == [*range(10), *range(70, 80)]


@pytest.mark.slow
def test_parts_of_an_object_are_of_one_object(moto: Moto, tmp_path: Path) -> None:
    from reconciler.pipeline.listed_object import ranges

    bucket = moto.make_bucket(f"parts-{os.getpid()}")
    key = "in/a b+ü%20&=/part 1"
    moto.client.put_object(Bucket=bucket.removeprefix("s3://"), Key=key, Body=b"0123456789")
    (file,) = list_source({"format": "csv", "path": f"{bucket}/in"}, moto.storage_options).files
    read = ranges(file.uri, moto.storage_options, file.stamp, listing.SourceError)
    assert (read(0, 4), read(4, 6)) == (b"0123", b"456789")
    for body in (b"9876543210", b"x"):
        moto.client.put_object(Bucket=bucket.removeprefix("s3://"), Key=key, Body=body)
        with pytest.raises(listing.SourceError, match="part 1"):
            read(4, 6)
    moto.client.put_object(Bucket=bucket.removeprefix("s3://"), Key=key, Body=b"0123456789")
    assert read(4, 6) == b"456789", "what was listed, put there once more"
    moto.client.delete_object(Bucket=bucket.removeprefix("s3://"), Key=key)
    with pytest.raises(listing.SourceError, match="part 1"):
        read(4, 6)


def test_what_a_task_of_spark_raises_is_told_as_such() -> None:
    """Where rows go through Spark's engine there is no other way to say it."""
    raised = '  File "x.py", line 1\nreconciler.pipeline.file_reader.FileChangedError: raw/a.csv: the file has changed'
    error = Exception(f"An error occurred\nTraceback (most recent call last):\n{raised}\n\tat org.apache.spark\n")

    def fails() -> None:
        raise error

    with pytest.raises(SparkError) as caught:
        done(fails)
    told = data_plane._told(caught.value)
    assert told.message == "raw/a.csv: the file has changed; nothing was committed"


def test_a_large_file_is_cut_into_pieces_as_it_was_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LARGE", 0)
    path = tmp_path / "a.parquet"
    WRITERS["parquet"](path)
    source = {"format": "parquet", "path": str(path)}
    found = list_source(source, {})
    assert [(p.part, p.inode) for p in pieces.pieces_of(found, source, {})] == [([0], path.stat().st_ino)]
    touched(path)
    with pytest.raises(CatalogError, match=r"a\.parquet: the file has changed"):
        pieces.pieces_of(found, source, {})
