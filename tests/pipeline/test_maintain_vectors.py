"""`pipeline maintain` and declared indexes: they keep, or get, the declared parameters, and the next plan is empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from cli.cli_runs import catalog, reconciler, table, write
from pipeline.maintain_lake import maintain, parts, path, without_spark

SCHEMA = "[{name: id, type: int64}, {name: v, type: 'fixed_size_list<float32>[8]'}]"
UPKEEP = "maintenance: {compact: {minSmallFragments: 2}, indexes: {maxUnindexedRows: 10}}"


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    without_spark(monkeypatch)


def rows(count: int, seed: int, vectors: bool = True) -> pa.Table:
    values = np.random.default_rng(seed).standard_normal((count, 8)).astype("float32")
    column = pa.array([*values] if vectors else [None] * count, pa.list_(pa.float32(), 8))
    return pa.table({"id": pa.array(range(count), pa.int64()), "v": column})


def append(folder: Path, count: int, seed: int = 1, vectors: bool = True) -> None:
    lance.write_dataset(rows(count, seed, vectors), str(path(folder)), mode="append")


def declare(folder: Path, type_: str = "ivf_flat", **params: Any) -> None:
    written = ", ".join(f"{k}: {v}" for k, v in params.items())
    indexes = f"indexes: [{{column: v, type: {type_}, params: {{{written}}}}}]"
    write(folder, catalog(), table("t", schema=SCHEMA, spec=f"{indexes}\n  {UPKEEP}"))


def applied(folder: Path) -> None:
    done = reconciler(folder, "apply", "m.yaml", "--yes")
    assert done.code == 0, done.err


def live(folder: Path) -> Any:
    (index,) = lance.dataset(str(path(folder))).describe_indices()
    return index


def partitions(folder: Path) -> int:
    return len(lance.dataset(str(path(folder))).get_ivf_model("v_idx").centroids)


def planned(folder: Path) -> tuple[int, str]:
    plan = reconciler(folder, "plan", "m.yaml", "--detailed-exitcode")
    return plan.code, plan.out


def filled(folder: Path, count: int = 600, type_: str = "ivf_flat", **params: Any) -> None:
    """A table with rows, and the index over them."""
    write(folder, catalog(), table("t", schema=SCHEMA))
    applied(folder)
    append(folder, count, seed=0)
    declare(folder, type_, **params)
    applied(folder)


def maintained(folder: Path) -> dict[str, Any]:
    run = maintain(folder, "--format", "json")
    assert run.code == 0, run.out + run.err
    return parts(run)["indexes"]


@pytest.mark.parametrize("type_", ["ivf_flat", "ivf_sq", "ivf_hnsw_sq"])
def test_few_rows_are_taken_in_with_the_partitions_that_are_there(tmp_path: Path, type_: str) -> None:
    """Left to itself, Lance joins small partitions: sixteen become one."""
    filled(tmp_path, type_=type_, num_partitions=16)
    append(tmp_path, 100)
    found = maintained(tmp_path)
    assert found["after"]["unindexed_rows"] == {"v_idx": 0}
    assert len(live(tmp_path).segments) == 2
    assert partitions(tmp_path) == 16
    assert planned(tmp_path)[0] == 0, planned(tmp_path)[1]


def test_a_table_that_has_grown_is_trained_anew(tmp_path: Path) -> None:
    filled(tmp_path, 200, num_partitions=16)
    append(tmp_path, 500)
    found = maintained(tmp_path)
    assert found["reason"].endswith("; v_idx is built anew: it was trained on 200 of 700 rows")
    assert (partitions(tmp_path), len(live(tmp_path).segments)) == (16, 1)
    assert planned(tmp_path)[0] == 0, planned(tmp_path)[1]


def test_segments_do_not_pile_up(tmp_path: Path) -> None:
    filled(tmp_path, 2000, num_partitions=4)
    for n in range(9):
        append(tmp_path, 20, seed=n + 1)
        maintained(tmp_path)
    assert len(live(tmp_path).segments) < 8
    assert partitions(tmp_path) == 4


def test_an_index_of_an_empty_table_gets_the_declared_partitions(tmp_path: Path) -> None:
    declare(tmp_path, num_partitions=16)
    applied(tmp_path)
    append(tmp_path, 600)
    found = maintained(tmp_path)
    assert found["reason"].endswith("it covers no row")
    assert partitions(tmp_path) == 16
    assert planned(tmp_path)[0] == 0, planned(tmp_path)[1]


def test_what_somebody_retrained_is_as_declared_afterwards(tmp_path: Path) -> None:
    filled(tmp_path, num_partitions=16)
    given = {"name": "v_idx", "num_partitions": 12, "replace": True}
    lance.dataset(str(path(tmp_path))).create_index("v", "IVF_FLAT", **given)
    append(tmp_path, 100)
    found = maintained(tmp_path)
    assert found["reason"].endswith("; v_idx is built anew: num_partitions 12 -> 16")
    assert partitions(tmp_path) == 16
    assert planned(tmp_path)[0] == 0, planned(tmp_path)[1]


def test_what_nobody_declares_is_kept_by_a_build(tmp_path: Path) -> None:
    filled(tmp_path, 200, num_partitions=16)
    given = {"name": "v_idx", "num_partitions": 12, "metric": "cosine", "replace": True}
    lance.dataset(str(path(tmp_path))).create_index("v", "IVF_FLAT", **given)
    for count in (0, 500):  # Not as declared, then trained on few of the rows.
        append(tmp_path, count)
        assert "v_idx is built anew" in maintained(tmp_path)["reason"]
        assert (partitions(tmp_path), live(tmp_path).details["metric_type"]) == (16, "COSINE")
    assert planned(tmp_path)[0] == 0, planned(tmp_path)[1]


@pytest.mark.parametrize("more", [0, 5])
def test_an_index_that_lacks_no_row_is_as_declared_afterwards(tmp_path: Path, more: int) -> None:
    filled(tmp_path, num_partitions=16)
    given = {"name": "v_idx", "num_partitions": 12, "replace": True}
    lance.dataset(str(path(tmp_path))).create_index("v", "IVF_FLAT", **given)
    append(tmp_path, more)
    assert maintained(tmp_path)["reason"] == "v_idx is built anew: num_partitions 12 -> 16"
    assert partitions(tmp_path) == 16
    assert planned(tmp_path)[0] == 0, planned(tmp_path)[1]
    assert maintained(tmp_path)["decision"] == "skip"


def test_an_adjusted_index_stays_one_through_compaction(tmp_path: Path) -> None:
    """Rows without a vector hide why Lance built fewer: our record knows, and goes along with the segments."""
    write(tmp_path, catalog(), table("t", schema=SCHEMA))
    applied(tmp_path)
    append(tmp_path, 300, seed=0)
    for n in range(4):
        append(tmp_path, 300, seed=n, vectors=False)
    declare(tmp_path, "ivf_pq", num_partitions=4, num_sub_vectors=2)
    applied(tmp_path)
    before = {s.uuid for s in live(tmp_path).segments}
    run = maintain(tmp_path, "--format", "json")
    assert parts(run)["compact"]["outcome"] == "done"
    assert before.isdisjoint(s.uuid for s in live(tmp_path).segments)
    code, out = planned(tmp_path)
    assert code == 0, out
    assert "num_partitions of index v_idx is adjusted: declared 4, built 1" in out


def test_what_cannot_be_trained_waits(tmp_path: Path) -> None:
    declare(tmp_path, "ivf_pq", num_partitions=4, num_sub_vectors=2)
    applied(tmp_path)
    append(tmp_path, 100)
    found = maintained(tmp_path)
    assert found["decision"] == "skip"
    assert found["reason"].endswith("there are too few vectors to train v_idx")


def test_no_version_is_without_the_index(tmp_path: Path) -> None:
    filled(tmp_path, 200, num_partitions=16)
    append(tmp_path, 500)
    before = lance.dataset(str(path(tmp_path))).version
    maintained(tmp_path)
    after = lance.dataset(str(path(tmp_path))).version
    for version in range(before, after + 1):
        assert [i.name for i in lance.dataset(str(path(tmp_path)), version=version).describe_indices()] == ["v_idx"]


def test_a_text_index_that_somebody_built_otherwise_is_as_declared_afterwards(tmp_path: Path) -> None:
    """Lance would take the rows in with the parameters that the index has."""
    schema = "[{name: id, type: int64}, {name: s, type: string}]"
    index = "indexes: [{column: s, type: inverted, params: {language: German, with_position: true}}]"
    write(tmp_path, catalog(), table("t", schema=schema, spec=f"{index}\n  {UPKEEP}"))
    text = pa.table({"id": pa.array(range(100), pa.int64()), "s": ["some text"] * 100})
    applied(tmp_path)
    lance.write_dataset(text, str(path(tmp_path)), mode="append")
    applied(tmp_path)
    lance.write_dataset(text, str(path(tmp_path)), mode="append")
    assert "built anew" not in maintained(tmp_path)["reason"]  # As declared: it takes them in.
    given = {"name": "s_idx", "language": "French", "with_position": True, "replace": True}
    lance.dataset(str(path(tmp_path))).create_scalar_index("s", "INVERTED", **given)
    lance.write_dataset(text, str(path(tmp_path)), mode="append")
    assert maintained(tmp_path)["reason"].endswith("; s_idx is built anew: language French -> German")
    assert (live(tmp_path).details["language"], live(tmp_path).num_rows_indexed) == ("German", 300)
    assert planned(tmp_path)[0] == 0, planned(tmp_path)[1]
