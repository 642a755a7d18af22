"""An integer of a backfill that is too large for its type is an error: pylance's own arithmetic wraps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pipeline.evolve_runs import backfill, column, evolve, field

from reconciler.model.errors import CatalogError, Code
from reconciler.pipeline import write_task
from reconciler.pipeline.conform import ValueProblem
from reconciler.pipeline.sql_operations import operations

MOST, LEAST, HUGE = 2**31 - 1, -(2**31), 2**63 - 1
ROWS = pa.table(
    {
        "id": pa.array([0, 1, 2], pa.int64()),
        "a": pa.array([1, MOST, None], pa.int32()),
        "b": pa.array([2, 1, 3], pa.int32()),
        "low": pa.array([0, LEAST, 0], pa.int32()),
        "wide": pa.array([0, HUGE, 0], pa.int64()),
        "tiny": pa.array([0, 100, 0], pa.int8()),
        "u": pa.array([1, 0, 1], pa.uint64()),
        "text": ["x", "5", "y"],
    }
)
TOO_LARGE = {
    "a + b": "a + b",
    "a * 2 - 1": "a * 2",
    "coalesce(a, b) + coalesce(b, a)": "coalesce(a, b) + coalesce(b, a)",
    "low - b": "low - b",
    "-low": "-low",
    "wide + 1": "wide + 1",
    "tiny * tiny": "tiny * tiny",
    "u - 1": "u - 1",
    "cast(a + b as bigint)": "a + b",
    "length(text) + `a` /* as written */": "length(text) + `a`",
    "cast(wide as bigint) * 2 % 7": "CAST(wide AS BIGINT) * 2",
    "strpos(text, '5') + A": "strpos(text, '5') + A",
}
FINE: dict[str, list[Any]] = {
    "cast(a as bigint) + b": [3, MOST + 1, None],
    "a % 7 + b / 2": [2, 1, None],
    "b - a": [1, 1 - MOST, None],
    "-a": [-1, -MOST, None],
    "cast(text = '5' as int)": [0, 1, 0],
}


def table(folder: Path) -> str:
    return str(lance.write_dataset(ROWS, str(folder / "t.lance"), max_rows_per_file=2).uri)


@pytest.mark.parametrize("sql", TOO_LARGE)
def test_a_backfill_that_wraps_fails(tmp_path: Path, sql: str) -> None:
    uri = table(tmp_path)
    with pytest.raises(CatalogError, match=rf"column x: {re.escape(TOO_LARGE[sql])} is too large for") as raised:
        evolve(uri, backfill(field("x", "int64", sql)))
    assert raised.value.code == Code.TABLE_SCHEMA_VALIDATION_ERROR
    assert "x" not in lance.dataset(uri).schema.names


@pytest.mark.parametrize("sql", FINE)
def test_a_backfill_that_does_not_is_as_ever(tmp_path: Path, sql: str) -> None:
    uri = table(tmp_path)
    evolve(uri, backfill(field("x", "int64", sql)))
    assert list(column(uri, "x").values()) == FINE[sql]


def test_what_fills_a_column_that_the_source_lacks() -> None:
    (batch,) = ROWS.to_batches()
    for sql in TOO_LARGE:
        with pytest.raises(ValueProblem, match=rf"column x: {re.escape(TOO_LARGE[sql])} is too large for"):
            write_task._by_sql(batch, {"x": sql}, {"x": operations(sql)})
    for sql, values in FINE.items():
        assert write_task._by_sql(batch, {"x": sql}, {"x": operations(sql)})["x"].to_pylist() == values


def test_an_operation_is_written_as_it_was() -> None:
    sql = "strpos(st['x'], 'a') + now() - interval '1 day' * -`A b`.c"
    found = [operation["sql"] for operation in operations(sql)]
    assert found == ["-`A b`.c", "INTERVAL '1' DAY * -`A b`.c", "strpos(st['x'], 'a') + now()", found[-1]]
    assert found[-1].startswith("strpos(st['x'], 'a') + now() - INTERVAL")
    assert operations("a +") == operations("'a + b'") == operations("-5") == []
