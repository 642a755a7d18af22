"""`pipeline verify --against`: what makes two tables different. The tasks run in this process."""

from __future__ import annotations

import decimal
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import Run, catalog, reconciler, table, write
from pipeline.in_process import InProcess

from reconciler.pipeline.session import SparkOptions
from reconciler.verbs import tables, verify


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def here(_options: SparkOptions) -> Iterator[Any]:
        yield InProcess()

    monkeypatch.setattr(tables, "session", here)
    monkeypatch.setattr(verify, "missing", lambda _options: None)


def against(folder: Path, one: Any, other: Any, *more: str) -> Run:
    """A column, or a whole table."""
    for name, values in (("a", one), ("b", other)):
        shutil.rmtree(folder / "lake" / f"{name}.lance", ignore_errors=True)
        rows = values if isinstance(values, pa.Table) else pa.table({"c": values})
        lance.write_dataset(rows, str(folder / "lake" / f"{name}.lance"), data_storage_version="2.2")
    bare = table("a").replace("spec:\n  schema: [{name: id, type: int64}]", "spec: {}")
    write(folder, catalog(), bare)
    return reconciler(folder, "pipeline", "verify", "m.yaml", "--format", "json", *(more or ("--against", "lake:b")))


def detail(run: Run) -> str:
    """Of a comparison that fails."""
    assert run.code == 2, run.out + run.err
    ((only,),) = [[c for c in row["checks"] if not c["ok"]] for row in run.json["tables"]]
    assert only["name"] == "against"
    return str(only["detail"])


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (pa.array([1000], pa.timestamp("s")), pa.array([1000], pa.timestamp("us")), "timestamp[s] here, timestamp[us]"),
        (
            pa.array([decimal.Decimal("1.00")], pa.decimal128(10, 2)),
            pa.array([decimal.Decimal("0.0100")], pa.decimal128(10, 4)),
            "decimal128(10, 2) here, decimal128(10, 4)",
        ),
        (pa.array([255], pa.uint8()), pa.array([-1], pa.int8()), "uint8 here, int8"),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.array([1], pa.timestamp("us")), "timestamp[us, tz=UTC] here,"),
        (
            pa.array([[1.0]], pa.list_(pa.float32(), 1)),
            pa.array([[1.0]], pa.list_(pa.float32())),
            "fixed_size_list<float32>[1] here, list<float32>",
        ),
        (pa.array([{"x": 1}]), pa.array([{"y": 1}]), "struct<x: int64> here, struct<y: int64>"),
        (pa.array([], pa.int8()), pa.array([], pa.uint8()), "int8 here, uint8"),
    ],
    ids=["unit", "scale", "sign", "zone", "size", "field", "no rows"],
)
def test_columns_are_compared_first(tmp_path: Path, one: pa.Array, other: pa.Array, told: str) -> None:
    found = detail(against(tmp_path, one, other))
    assert found.startswith(f"column c is {told}")
    assert found.endswith(" there")


def test_a_column_that_only_one_has(tmp_path: Path) -> None:
    run = against(tmp_path, pa.table({"a": [1], "b": [1]}), pa.table({"b": [1], "c": [1]}))
    assert detail(run) == "column a is only here, column c is only there"


def test_rows_of_other_columns_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = verify._readings
    monkeypatch.setattr(
        verify, "_readings", lambda sources, *more: read.extend(s.place.uri for s in sources) or real(sources, *more)
    )
    detail(against(tmp_path, pa.array([1]), pa.array([1.0])))
    assert [Path(uri).name for uri in read] == ["a.lance"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.array(["a", "a", None], pa.large_string())),
        (pa.array([b"a"]), pa.array([b"a"], pa.large_binary())),
        (pa.array([[1], []]), pa.array([[], [1]], pa.large_list(pa.int64()))),
        (pa.table({"a": [1], "b": ["x"]}), pa.table({"b": ["x"], "a": [1]})),
    ],
    ids=["dictionary", "binary", "list", "order"],
)
def test_layout_is_no_difference(tmp_path: Path, one: Any, other: Any) -> None:
    run = against(tmp_path, one, other)
    assert run.code == 0, run.out


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([0.0], [-0.0]),
        ([float("nan")], [None]),
        ([""], [None]),
        ([[6.0, 21.0, 14.0, 27.0]], [[6.0, 27.0, 14.0, 21.0]]),
        (["2024-02-14T04:55:05"], ["2024-07-14T04:05:05"]),
    ],
    ids=str,
)
def test_values_that_differ(tmp_path: Path, one: list[Any], other: list[Any]) -> None:
    kind = pa.list_(pa.float32(), 4) if isinstance(one[0], list) else pa.array(one).type
    found = detail(against(tmp_path, pa.array(one, kind), pa.array(other, kind)))
    assert found.startswith("as many rows, but the checksum is v2:")


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("v1", "checksums of version v1 cannot be compared with those of v2: take it again with pipeline verify"),
        ("v2", "this is a checksum, write CATALOG:ID of a table"),
    ],
)
def test_a_checksum_that_was_kept(tmp_path: Path, version: str, told: str) -> None:
    kept = f"{version}:b8b6407f308b5cde111b8935f3bb8183"
    run = against(tmp_path, pa.array([1]), pa.array([1]), "--against", kept)
    assert run.code == 1
    assert f"--against {kept}: {told}" in run.err
