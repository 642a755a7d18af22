"""Rows that a plan brings are in the indexes at the end of the same apply. The tasks run in this process, without a
JVM: what Spark does with them is tested elsewhere."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.cli_runs import Run, catalog, reconciler, table, write
from pipeline.in_process import InProcess

from reconciler.pipeline import data_plane

SCHEMA = '[{name: id, type: int64}, {name: v, type: "fixed_size_list<float32>[4]"}]'
INDEXES = "indexes: [{column: id, type: btree}, {column: v, type: ivf_flat, params: {num_partitions: 3}}]\n  "


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_plane, "session", lambda options: nullcontext(InProcess()))


def raw(folder: Path, start: int, count: int) -> None:
    (folder / "raw").mkdir(exist_ok=True)
    ids = list(range(start, start + count))
    vectors = pa.array([[float(n % 9), 1.0, 2.0, float(n)] for n in ids], pa.list_(pa.float32(), 4))
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "v": vectors}), folder / "raw" / f"{start}.parquet")


def declare(folder: Path, mode: str | None, management: str = "") -> None:
    data = f"data: {{source: {{format: parquet, path: raw}}, mode: {mode}}}" if mode else ""
    owner = catalog().replace("owner: team", f"owner: team{management}")
    write(folder, owner, table("t", schema=SCHEMA, spec=INDEXES + data))


def actions(folder: Path) -> list[str]:
    return [s["action"] for s in reconciler(folder, "plan", "m.yaml", "--format", "json").json["steps"]]


def apply(folder: Path) -> Run:
    run = reconciler(folder, "apply", "m.yaml", "--yes", "--format", "json")
    assert run.code == 0, run.err + run.out
    return run


def unindexed(folder: Path) -> dict[str, int]:
    dataset: Any = lance.dataset(str(folder / "lake" / "t.lance"))
    return {d.name: dataset.count_rows() - d.num_rows_indexed for d in dataset.describe_indices()}


COVERED = {"id_idx": 0, "v_idx": 0}


def partitions(folder: Path) -> int:
    dataset: Any = lance.dataset(str(folder / "lake" / "t.lance"))
    return int(dataset.stats.index_stats("v_idx")["indices"][0]["num_partitions"])


def test_a_new_table_is_filled_before_it_is_indexed(tmp_path: Path) -> None:
    raw(tmp_path, 0, 30)
    declare(tmp_path, "append")
    apply(tmp_path)
    assert (unindexed(tmp_path), partitions(tmp_path), actions(tmp_path)) == (COVERED, 3, [])


@pytest.mark.parametrize("mode", ["once", "append", "replace-if-changed"])
@pytest.mark.parametrize("management", ["", ", indexRefresh: {maxRows: 5}"])
def test_an_index_from_before_the_rows_takes_them_in(tmp_path: Path, mode: str, management: str) -> None:
    """Of any number: an index that is created after them is built over all of them too."""
    declare(tmp_path, None)
    apply(tmp_path)
    raw(tmp_path, 0, 30)
    declare(tmp_path, mode, management)
    assert actions(tmp_path) == ["materialize_table", "refresh_index", "refresh_index"]
    assert {s["status"] for s in apply(tmp_path).json["steps"]} == {"done"}
    assert (unindexed(tmp_path), partitions(tmp_path), actions(tmp_path)) == (COVERED, 3, [])


def test_rows_that_are_replaced(tmp_path: Path) -> None:
    raw(tmp_path, 0, 30)
    declare(tmp_path, "replace-if-changed")
    apply(tmp_path)
    raw(tmp_path, 0, 50)
    assert actions(tmp_path) == ["materialize_table", "refresh_index", "refresh_index"]
    apply(tmp_path)
    assert (unindexed(tmp_path), partitions(tmp_path), actions(tmp_path)) == (COVERED, 3, [])
    assert lance.dataset(str(tmp_path / "lake" / "t.lance")).count_rows() == 50


def test_rows_that_are_appended(tmp_path: Path) -> None:
    """Few rows are left unindexed, as those of any other writer are."""
    raw(tmp_path, 0, 30)
    declare(tmp_path, "append")
    apply(tmp_path)
    raw(tmp_path, 100, 2)
    told = {s["action"]: s["status"] for s in apply(tmp_path).json["steps"]}
    assert told == {"materialize_table": "done", "refresh_index": "skipped"}
    assert (unindexed(tmp_path), actions(tmp_path)) == ({"id_idx": 2, "v_idx": 2}, [])
    raw(tmp_path, 200, 30)
    apply(tmp_path)
    assert (unindexed(tmp_path), actions(tmp_path)) == (COVERED, [])


def test_a_large_table_is_left_to_maintain(tmp_path: Path) -> None:
    raw(tmp_path, 0, 30)
    declare(tmp_path, "append", ", indexRefresh: {maxRows: 29}")
    apply(tmp_path)
    raw(tmp_path, 100, 30)
    assert actions(tmp_path) == ["materialize_table"]
    apply(tmp_path)
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert "index id_idx covers 30 of 60 rows: run `reconciler pipeline maintain PATH`" in run.out
