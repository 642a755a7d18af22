"""A disk that is full while rows or columns are written: the table is as it was, the message says what to do, and the
next run does the rest."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pipeline.filled_table import APPEND, EACH, REPLACE, FilledTable, filled
from servers.spark import need_java

from reconciler.catalog.lance_data import CLAIM_KEY, RECORD_KEY
from reconciler.pipeline import claims

pytestmark = pytest.mark.slow
KIB = 1024
MANY = 4000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    mount = [*as_root, "mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small tmpfs needs the right to mount: root, or sudo without a password")
    yield folder
    subprocess.run([*as_root, "umount", "-l", str(folder)], check=True)


def _no_fixture(name: str) -> Any:
    raise AssertionError(name)


def fill(folder: Path, leave: int = 0) -> Path:
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4 * KIB)
    if leave:
        os.truncate(filler, filler.stat().st_size - leave)
    return filler


def on(disk: Path, mode: str, **spec: Any) -> FilledTable:
    need_java()
    table = filled(disk, _no_fixture, "dir-v1", mode, **spec)
    some = random.Random(0)
    texts = [some.randbytes(40).hex() for _ in range(MANY)]
    big = pa.table({"id": range(100, 100 + MANY), "text": texts})
    pq.write_table(big, table.folder / "raw" / "big.parquet")
    return table


def refused(table: FilledTable, filler: Path) -> None:
    live, tags = table.dataset().to_table(), dict(table.dataset().tags.list())
    run = table.run("apply", "m.yaml", "--yes")
    assert run.code == 1, run.out + run.err
    assert "the disk is full: free some space and run again" in run.out, run.out
    assert ".rs:" not in run.out
    assert table.dataset().to_table() == live
    assert dict(table.dataset().tags.list()) == tags
    filler.unlink()


def whole(table: FilledTable) -> None:
    table.apply()
    assert table.ids() == [*range(2 * EACH), *range(100, 100 + MANY)]
    assert CLAIM_KEY not in table.dataset().metadata
    table.need_settled()


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
@pytest.mark.parametrize("leave", [0, 64 * KIB], ids=["no-room-for-a-claim", "no-room-for-the-rows"])
def test_while_rows_are_written(small_disk: Path, mode: str, leave: int) -> None:
    table = on(small_disk, mode)
    refused(table, fill(small_disk, leave))
    whole(table)


def test_at_the_commit(small_disk: Path) -> None:
    """The files of the rows are there, and the file of the version is not."""
    table, commit = on(small_disk, APPEND), claims.committed

    def committed(place: Any, operation: Any, version: int, properties: Mapping[str, str]) -> Any:
        if RECORD_KEY not in properties:
            return commit(place, operation, version, properties)
        filler = fill(small_disk)
        try:
            return commit(place, operation, version, properties)
        finally:
            os.truncate(filler, 0)  # Whoever lacks the room to end its lease is waited for.

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "committed", committed)
        refused(table, small_disk / "filler")
    whole(table)


def test_while_a_column_is_written(small_disk: Path) -> None:
    table = on(small_disk, APPEND)
    table.apply()
    table.columns.append({"name": "more", "type": "string", "backfill": {"sql": "text || text"}})
    refused(table, fill(small_disk, 64 * KIB))
    whole(table)
    assert "more" in table.dataset().schema.names
