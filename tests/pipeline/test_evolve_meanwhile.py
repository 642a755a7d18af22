"""What others do to the table while columns are written, and runs that are cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import REPO, environment
from pipeline.evolve_cut import CHANGE
from pipeline.evolve_runs import (
    CONTEXT,
    DELETED,
    Local,
    backfill,
    column,
    content,
    evolve,
    field,
    fields_of,
    rewrite,
    rows,
    written,
)

from reconciler.model.errors import CatalogError, Code
from reconciler.pipeline import claims
from reconciler.pipeline import evolve as evolve_module

LEFT = [n for n in range(40) if n not in DELETED]
X = field("x", "int64", "n * 3", nullable=False)


def append(uri: str, start: int = 40, count: int = 5) -> None:
    lance.write_dataset(rows(start + count).slice(start), uri, mode="append")


def meanwhile(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """One before each commit: when the columns are written, and after the last look at the table."""
    left, commit = list(acts), claims.committed

    def committed(place: Any, operation: Any, version: int, properties: Mapping[str, str]) -> Any:
        if left and isinstance(operation, lance.LanceOperation.Merge):
            left.pop(0)()
        return commit(place, operation, version, properties)

    monkeypatch.setattr(claims, "committed", committed)


def test_rows_that_come_meanwhile_are_filled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, running = written(tmp_path / "t.lance"), Local()
    meanwhile(monkeypatch, lambda: append(uri), lambda: append(uri, 45))
    done = evolve(uri, backfill(X), running)
    everyone = [*LEFT, *range(40, 50)]
    assert column(uri, "x") == {n: 3 * n for n in everyone}
    assert sorted(running.units) == [[0], [1], [2], [3], [4], [5]], "each fragment once"
    tags = lance.dataset(uri).tags.list()
    assert tags[CONTEXT.tag or ""]["version"] == done.version_before
    assert lance.dataset(uri, version=done.version_before).count_rows() == len(everyone), "the way back keeps them"


def test_a_fragment_that_changed_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, running = written(tmp_path / "t.lance"), Local()
    meanwhile(
        monkeypatch,
        lambda: lance.dataset(uri).delete("id = 11"),
        lambda: lance.dataset(uri).update({"n": "100"}, where="id = 21"),
    )
    evolve(uri, backfill(X), running)
    assert column(uri, "x") == {n: 300 if n == 21 else 3 * n for n in LEFT if n != 11}
    assert (running.units.count([0]), running.units.count([1])) == (1, 2)


def test_compaction_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = written(tmp_path / "t.lance")
    meanwhile(monkeypatch, lambda: lance.dataset(uri).optimize.compact_files())
    evolve(uri, rewrite(field("text", "int64")))
    assert column(uri, "text") == {n: None if n % 10 == 0 else n for n in LEFT}
    lance.dataset(uri).validate()


def test_a_column_of_somebody_else_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the field id that ours had in the files written so far: they are of no use any more."""
    uri, running = written(tmp_path / "t.lance"), Local()
    more = rows(41).slice(40).append_column("theirs", pa.array([1040], pa.int32()))
    meanwhile(
        monkeypatch,
        lambda: lance.dataset(uri).add_columns({"theirs": "arrow_cast(n + 1000, 'Int32')"}),
        lambda: lance.write_dataset(more, uri, mode="append"),
    )
    evolve(uri, backfill(X), running)
    assert column(uri, "x") == {n: 3 * n for n in [*LEFT, 40]}
    assert column(uri, "theirs") == {n: n + 1000 for n in [*LEFT, 40]}
    assert running.units == [[0], [1], [2], [3], [0], [1], [2], [3], [4]]
    lance.dataset(uri).validate()


def test_a_column_without_values_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No fragment changes with it, and yet the schema that was worked out before has no place for it."""
    uri = written(tmp_path / "t.lance")
    meanwhile(monkeypatch, lambda: lance.dataset(uri).add_columns([pa.field("theirs", pa.int8())]))
    evolve(uri, backfill(X))
    assert lance.dataset(uri).schema.names == ["id", "text", "n", "theirs", "x"]
    assert column(uri, "x") == {n: 3 * n for n in LEFT}
    assert set(column(uri, "theirs").values()) == {None}
    lance.dataset(uri).validate()


def test_field_ids_that_become_free_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a dropped column hold its id; once they are compacted, new columns get a lower one. A fragment that
    was not compacted is as it was, but its new file has the higher id."""
    uri = str(tmp_path / "t.lance")
    table = rows(30).append_column("gone", pa.array(range(30)))
    lance.write_dataset(table.slice(0, 20), uri, max_rows_per_file=10)
    lance.dataset(uri).drop_columns(["gone"])
    lance.write_dataset(rows(80).slice(20), uri, mode="append")
    compact = {"target_rows_per_fragment": 50, "materialize_deletions": False}
    meanwhile(monkeypatch, lambda: lance.dataset(uri).optimize.compact_files(**compact))
    running = Local()
    evolve(uri, backfill(X), running)
    assert running.units.count([2]) == 2, "reused at first, and then done again"
    assert column(uri, "x") == {n: 3 * n for n in range(80)}
    lance.dataset(uri).validate()


def test_an_index_of_somebody_else_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = written(tmp_path / "t.lance")
    meanwhile(monkeypatch, lambda: lance.dataset(uri).create_scalar_index("id", "BTREE"))
    evolve(uri, backfill(X))
    assert column(uri, "x") == {n: 3 * n for n in LEFT}
    assert [i.num_rows_indexed for i in lance.dataset(uri).describe_indices()] == [len(LEFT)]


def test_an_index_on_the_column_meanwhile_stops_the_rewrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = written(tmp_path / "t.lance")
    need_time = Local.need_time

    def indexed(running: Local) -> None:
        need_time(running)
        if running.units:
            lance.dataset(uri).create_scalar_index("text", "BTREE")

    monkeypatch.setattr(Local, "need_time", indexed)
    with pytest.raises(CatalogError, match="has the index text_idx"):
        evolve(uri, rewrite(field("text", "int64")))
    assert fields_of(uri)["text"] == field("text", "string")
    assert [i.name for i in lance.dataset(uri).describe_indices()] == ["text_idx"]


def test_a_table_that_never_rests_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = written(tmp_path / "t.lance")
    acts = [lambda start=start: append(uri, start, 1) for start in range(40, 60)]
    meanwhile(monkeypatch, *acts)  # type: ignore[arg-type]
    with pytest.raises(CatalogError, match="were changed 10 times") as caught:
        evolve(uri, backfill(X))
    assert caught.value.code == Code.CONCURRENT_MODIFICATION
    dataset = lance.dataset(uri)
    assert (dataset.tags.list(), dataset.metadata) == ({}, {})
    assert dataset.schema.names == ["id", "text", "n"]
    assert dataset.count_rows() == len(LEFT) + evolve_module.ATTEMPTS


def test_rows_that_come_to_an_empty_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset([], uri, schema=rows().schema)
    meanwhile(monkeypatch, lambda: append(uri))
    evolve(uri, backfill(X))
    assert column(uri, "x") == {n: 3 * n for n in range(40, 45)}


def test_two_backfills_of_one_column_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "POLL", 0.01)
    uri = written(tmp_path / "t.lance")
    runs = [Local(), Local()]
    errors: list[BaseException] = []
    together = threading.Barrier(2)

    def run(running: Local) -> None:
        try:
            together.wait()
            evolve(uri, backfill(X), running)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(running,)) for running in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(len(running.units) for running in runs) == [0, 4], "one of them did the work"
    assert lance.dataset(uri).schema.names == ["id", "text", "n", "x"]
    assert column(uri, "x") == {n: 3 * n for n in LEFT}


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_that_is_killed(tmp_path: Path, moment: str) -> None:
    uri = written(tmp_path / "t.lance")
    before = content(uri, ["id", "text", "n"])
    script = [sys.executable, str(Path(__file__).with_name("evolve_cut.py")), uri]
    env = environment(PYTHONPATH=os.pathsep.join([str(REPO), str(REPO / "tests")]))
    killed = subprocess.run([*script, moment], env=env, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert claims.CLAIM_KEY in lance.dataset(uri).metadata
    assert lance.dataset(uri).count_rows() == len(LEFT), "it can be read at all times"
    assert ("x" in lance.dataset(uri).schema.names) == (moment == "after")
    if moment == "before":
        append(uri)
    done = evolve(uri, CHANGE)
    everyone = [*LEFT, *range(40, 45)] if moment == "before" else LEFT
    assert lance.dataset(uri).schema.names == ["id", "text", "n", "x", "y"]
    assert column(uri, "x") == {n: 3 * n for n in everyone}
    if moment == "after":
        assert content(uri, ["id", "text", "n"]) == before
        assert done.version_before == done.version_after
    else:
        assert lance.dataset(uri, version=CONTEXT.tag).count_rows() == len(everyone), "the way back keeps all rows"
        assert claims.CLAIM_KEY not in lance.dataset(uri).metadata
