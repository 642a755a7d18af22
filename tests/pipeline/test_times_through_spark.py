"""Times, decimals, intervals and what holds them, through Spark: from queries over files and from a database. Every
value arrives as it is, whatever the time zone of the machine."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.cli_runs import catalog, process, reconciler, table, write
from pipeline.one_session import one_session
from servers.postgres import driver, postgres

from reconciler.pipeline.spark_types import arrow_schema, queried_schema

__all__ = ["one_session"]
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
UTC, WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")
ODD = 2**53 + 1
"""Microseconds that no float64 has."""
FAR = -62_135_596_800_000_000
"""The first microsecond of year 1."""


def test_types_of_spark_are_known_without_a_session() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    at, wall = types.TimestampType(), types.TimestampNTZType()
    given: dict[str, tuple[Any, pa.DataType]] = {
        "at": (at, UTC),
        "wall": (wall, WALL),
        "d": (types.DateType(), pa.date32()),
        "n": (types.DecimalType(30, 2), pa.decimal128(30, 2)),
        "span": (types.DayTimeIntervalType(), pa.duration("us")),
        "many": (types.ArrayType(at), pa.list_(pa.field("element", UTC))),
        "by": (types.MapType(types.StringType(), wall, False), pa.map_(pa.string(), pa.field("value", WALL, False))),
        "in": (types.StructType([types.StructField("a", at, False)]), pa.struct([pa.field("a", UTC, False)])),
        "code": (types.VarcharType(3), pa.string()),
        "none": (types.NullType(), pa.null()),
    }
    schema = types.StructType([types.StructField(name, type_) for name, (type_, _) in given.items()])
    assert arrow_schema(schema) == pa.schema([(name, wanted) for name, (_, wanted) in given.items()])
    for other in (types.YearMonthIntervalType(), types.CalendarIntervalType()):
        with pytest.raises(ValueError, match="column 'odd': Spark cannot hand over interval"):
            arrow_schema(types.StructType([types.StructField("odd", other)]))


def test_a_query_has_times_at_any_depth() -> None:
    given = pa.struct(
        [("a", pa.timestamp("ns", "Asia/Tokyo")), ("b", pa.list_(pa.timestamp("s"))), ("c", pa.time32("s"))]
    )
    found = queried_schema(pa.schema([("x", given), ("span", pa.duration("ms"))]))
    wanted = pa.struct([("a", UTC), ("b", pa.list_(WALL)), ("c", pa.int32())])
    assert found == pa.schema([("x", wanted), ("span", pa.duration("us"))])


NESTED = pa.struct([("a", UTC), ("b", pa.list_(WALL))])
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "at": pa.array([ODD, -1, None], pa.timestamp("us", "Europe/Berlin")),
        "wall": pa.array([ODD, FAR, None], WALL),
        "sec": pa.array([ODD // 10**6, -1, None], pa.timestamp("s")),
        "ns": pa.array([1_700_000_000_123_456_000, -1000, None], pa.timestamp("ns", "UTC")),
        "d": pa.array([datetime.date(1500, 1, 1), datetime.date(9999, 12, 31), None]),
        "span": pa.array([ODD, -1, None], pa.duration("us")),
        "n": pa.array(["1234567890123456789012345678.25", "-0.01", None]).cast(pa.decimal128(30, 2)),
        "nested": pa.array([{"a": ODD, "b": [FAR, None]}, None, {"a": None, "b": []}], NESTED),
    }
)
SCHEMA = (
    '[{name: id, type: int32}, {name: at, type: "timestamp[us, tz=UTC]"}, {name: wall, type: "timestamp[us]"}, '
    '{name: sec, type: "timestamp[s]"}, {name: ns, type: "timestamp[ns, tz=UTC]"}, {name: d, type: date32}, '
    '{name: span, type: "duration[us]"}, {name: n, type: "decimal128(30, 2)"}, '
    '{name: nested, type: "struct<a: timestamp[us, tz=UTC], b: list<timestamp[us]>>"}, '
    '{name: literal, type: "timestamp[us, tz=UTC]"}]'
)


def declare(folder: Path, source: str, schema: str = SCHEMA) -> None:
    write(folder, catalog(), table("t", schema=schema, spec=f"data: {{source: {source}, mode: once}}"))


def _counts(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_duration(type_))


def found(folder: Path) -> list[dict[str, Any]]:
    rows = lance.dataset(folder / "lake" / "t.lance").to_table()
    counted = [column.cast(pa.int64()) if _counts(column.type) else column for column in rows.columns]
    return sorted(pa.table(counted, rows.column_names).to_pylist(), key=lambda row: int(row["id"]))


@pytest.mark.slow
def test_from_a_query_over_files(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "v.parquet")
    names = ", ".join(ROWS.column_names)
    sql = f"select {names}, timestamp'2024-07-01 00:00:00' as literal from v"
    declare(tmp_path, f'{{format: sql, sql: "{sql}", views: {{v: {{format: parquet, path: v.parquet}}}}}}')
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert run.code == 0, run.err + run.out
    rows = found(tmp_path)
    assert [row["at"] for row in rows] == [ODD, -1, None]
    assert [row["wall"] for row in rows] == [ODD, FAR, None]
    assert [row["sec"] for row in rows] == [ODD // 10**6, -1, None]
    assert [row["ns"] for row in rows] == [1_700_000_000_123_456_000, -1000, None]
    assert [row["span"] for row in rows] == [ODD, -1, None]
    assert {row["literal"] for row in rows} == {1_719_792_000_000_000}, "a time without a zone counts as UTC"
    for name in ("d", "n", "nested"):
        assert [row[name] for row in rows] == ROWS.column(name).to_pylist(), name


@pytest.mark.slow
def test_what_a_query_cannot_hold_is_an_error(tmp_path: Path) -> None:
    fine = pa.table({"id": pa.array([1], pa.int32()), "ns": pa.array([1001], pa.timestamp("ns"))})
    pq.write_table(fine, tmp_path / "v.parquet")
    views = "views: {v: {format: parquet, path: v.parquet}}"
    declare(tmp_path, f"{{format: sql, sql: select id from v, {views}}}", "[{name: id, type: int32}]")
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert run.code != 0
    assert "column 'ns': Spark cannot carry a value" in run.out + run.err
    declare(tmp_path, "{format: sql, sql: \"select interval '1' month as id\"}", "[{name: id, type: string}]")
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert "column 'id': Spark cannot hand over interval month: cast it in the SQL" in run.out + run.err


SETUP = """
create table events (id int, at timestamptz, wall timestamp, d date, n numeric(30,2), span interval, times timestamp[]);
insert into events values
  (1, '2024-03-10 02:30:00.123456+00', '2024-03-10 02:30:00.123456', '1500-01-01', 123.45, '2 days',
   '{2024-03-10 02:30:00}'),
  (2, '2255-06-05 23:47:34.740993+00', '2255-06-05 23:47:34.740993', '9999-12-31', -1.10, null, null),
  (3, null, null, null, null, null, null);
"""
COLUMNS = (
    '[{name: id, type: int32}, {name: at, type: "timestamp[us, tz=UTC]"}, {name: wall, type: "timestamp[us]"}, '
    '{name: d, type: date32}, {name: n, type: "decimal128(30, 2)"}, {name: span, type: string}, '
    '{name: times, type: "list<timestamp[us]>"}]'
)
GAP = 1_710_037_800_123_456
"""2024-03-10 02:30 as it reads in UTC. New York had no such time."""


@pytest.mark.slow
def test_from_postgresql_on_a_machine_with_another_zone(tmp_path: Path) -> None:
    jar = driver()
    with postgres() as server:
        server.run(SETUP)
        login = f"url: '{server.url}', table: events, user: reader, driver: org.postgresql.Driver"
        declare(tmp_path, f"{{format: jdbc, {login}}}", COLUMNS)
        spark = ("--master", "local[2,4]", "--conf", f"spark.jars={jar}")
        run = process(tmp_path, "apply", "m.yaml", "--yes", *spark, env={"TZ": "America/New_York"})
    assert run.code == 0, run.err + run.out
    rows = found(tmp_path)
    assert [row["at"] for row in rows] == [GAP, ODD, None]
    assert [row["wall"] for row in rows] == [GAP, ODD, None]
    assert [row["d"] for row in rows] == [datetime.date(1500, 1, 1), datetime.date(9999, 12, 31), None]
    assert [str(row["n"]) for row in rows] == ["123.45", "-1.10", "None"]
    assert [row["span"] for row in rows] == ["2 days", None, None]
    assert rows[0]["times"] == [datetime.datetime(2024, 3, 10, 2, 30)]
