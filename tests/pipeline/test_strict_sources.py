"""A source must have every declared column, in a type of the same family: what it lacks blocks the step, and nothing is
written. `missing: null` and `cast: true` ask for the other thing."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.cli_runs import Run, catalog, reconciler, table, write
from pipeline.one_session import one_session

__all__ = ["one_session"]
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
SCHEMA = "[{name: id, type: int64, nullable: false}, {name: product, type: string}]"
ROWS = pa.table({"id": [1, 2], "sku": ["a", "b"], "qty": [3, 4]})
LACKS = "the source has no column 'product'; it has id, sku, qty: map it with `columns`, or `missing: null`"


def _csv(rows: pa.Table, path: Path) -> None:
    lines = [",".join(rows.column_names), *(",".join(str(v) for v in row.values()) for row in rows.to_pylist())]
    path.write_text("\n".join(lines) + "\n")


def _json(rows: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": pq.write_table,
    "csv": _csv,
    "json": _json,
    "lance": lambda rows, path: lance.write_dataset(rows, path),
}


def source(folder: Path, format_: str, rows: pa.Table = ROWS, name: str = "s") -> str:
    WRITERS[format_](rows, folder / f"{name}.{format_}")
    return f"{{format: {format_}, path: {name}.{format_}}}"


def manifest(folder: Path, of: str, more: str = "", schema: str = SCHEMA, mode: str = "once") -> None:
    data = f"data: {{source: {of}, mode: {mode}{more}}}"
    write(folder, catalog(owner="us"), table("t", schema=schema, spec=data))


def step(folder: Path) -> dict[str, Any]:
    run = reconciler(folder, "plan", "m.yaml", "--format", "json")
    assert run.code == 0, run.err
    (found,) = (s for s in run.json["steps"] if s["action"] == "materialize_table")
    return dict(found)


def verdict(folder: Path) -> tuple[str, str]:
    found = step(folder)
    return found["verdict"], found["reason"]


def apply(folder: Path, *more: str) -> Run:
    return reconciler(folder, "apply", "m.yaml", "--yes", "--format", "json", *more)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lance.dataset(folder / "lake" / "t.lance").to_table().to_pylist()
    return found


@pytest.mark.parametrize("format_", WRITERS)
def test_a_column_that_the_source_lacks_blocks_the_step(tmp_path: Path, format_: str) -> None:
    of = source(tmp_path, format_)
    manifest(tmp_path, of)
    found = step(tmp_path)
    assert (found["verdict"], found["blocked_by"]) == ("blocked", "source")
    said = LACKS if format_ != "json" else LACKS.replace("id, sku, qty", "id, qty, sku")
    assert said in found["reason"]
    for more in (", missing: null", ', missing: "null"', ", columns: {product: {missing: null}}"):
        manifest(tmp_path, of, more)
        assert verdict(tmp_path)[0] == "allowed", more
    for more in (", columns: {product: sku}", ", columns: {product: {from: sku}}"):
        manifest(tmp_path, of, more)
        assert verdict(tmp_path)[0] == "allowed", more


def test_it_stands_in_the_text_once(tmp_path: Path) -> None:
    manifest(tmp_path, source(tmp_path, "parquet"))
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert run.out.replace("\n", " ").count("has no column 'product'") == 1, run.out


def test_nothing_but_null_is_taken_for_missing(tmp_path: Path) -> None:
    of = source(tmp_path, "parquet")
    for more in (", missing: skip", ", columns: {product: {missing: true}}", ", columns: {product: {form: sku}}"):
        manifest(tmp_path, of, more)
        run = reconciler(tmp_path, "validate", "m.yaml")
        assert run.code == 1, more
        assert "m.yaml:" in run.out + run.err


def test_a_not_null_column_is_never_missing(tmp_path: Path) -> None:
    of = source(tmp_path, "parquet", ROWS.drop_columns(["id"]))
    manifest(tmp_path, of, ", missing: null, columns: {product: sku}")
    state, reason = verdict(tmp_path)
    assert state == "blocked"
    assert "no column 'id'" in reason
    assert "NOT NULL" in reason


def test_every_file_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    good = ROWS.rename_columns(["id", "product", "qty"])
    for number in range(5):
        pq.write_table(good if number != 3 else ROWS, tmp_path / "raw" / f"{number}.parquet")
    manifest(tmp_path, "{format: parquet, path: raw}")
    state, reason = verdict(tmp_path)
    assert state == "blocked"
    assert "3.parquet: the source has no column 'product'" in reason


def test_a_key_of_json_that_some_row_has_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n' * 200)
    (tmp_path / "b.json").write_text('{"id": 1}\n' * 200 + '{"id": 2, "product": null}\n')
    manifest(tmp_path, "{format: json, path: '*.json'}")
    assert verdict(tmp_path)[0] == "allowed"
    (tmp_path / "b.json").unlink()
    assert verdict(tmp_path)[0] == "blocked"


@pytest.mark.parametrize(
    ("given", "declared"),
    [
        (pa.array([1, 2], pa.int32()), "date32"),
        (pa.array([0, 1]), "bool"),
        (pa.array(["1", "2"]), "int32"),
        (pa.array([1, 2]), "string"),
        (pa.array([1, 2], pa.timestamp("us")), "date32"),
    ],
    ids=str,
)
@pytest.mark.parametrize("format_", ["parquet", "lance"])
def test_a_type_of_another_family(tmp_path: Path, given: pa.Array, declared: str, format_: str) -> None:
    of = source(tmp_path, format_, pa.table({"x": given}))
    schema = f"[{{name: c, type: {declared}}}]"
    manifest(tmp_path, of, ", columns: {c: x}", schema)
    state, reason = verdict(tmp_path)
    assert state == "blocked"
    assert "columns: {c: {cast: true}}" in reason
    manifest(tmp_path, of, ", columns: {c: {from: x, cast: true}}", schema)
    found = step(tmp_path)
    assert found["verdict"] == "allowed"
    assert found["after"]["casts"] == ["c"]


NESTED = pa.table({"s": [{"A": 1, "b": 2}, {"A": 3, "b": 4}]})


CAST = ", columns: {s: {cast: true}}"


@pytest.mark.parametrize(
    ("format_", "type_of_a", "more"),
    [
        ("json", "int64", ""),
        *((f, *case) for f in ("parquet", "lance") for case in [("int64", ""), ("int64", CAST), ("string", CAST)]),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_a_field_that_a_struct_lacks(tmp_path: Path, format_: str, type_of_a: str, more: str, listed: bool) -> None:
    """A cast that is asked for does not make null of fields that are not there."""
    declared = f"struct<a: {type_of_a}, b: int64>"
    rows = NESTED if not listed else pa.table({"s": [[row] for row in NESTED["s"].to_pylist()]})
    type_ = declared if not listed else f"list<{declared}>"
    of = source(tmp_path, format_, rows)
    manifest(tmp_path, of, more, f"[{{name: s, type: '{type_}'}}]")
    state, reason = verdict(tmp_path)
    assert state == "blocked"
    assert "column 's': its struct has no field 'a' (did you mean A?); it has A, b" in reason
    assert "cast: true" not in reason
    manifest(tmp_path, of, ", missing: null" + more, f"[{{name: s, type: '{type_}'}}]")
    assert verdict(tmp_path)[0] == "allowed"


def test_objects_of_json_that_come_late(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"s": null}\n' * 300 + '{"s": {"A": 1}}\n')
    manifest(tmp_path, "{format: json, path: s.json}", "", "[{name: s, type: 'struct<a: int64>'}]")
    assert "its struct has no field 'a'" in verdict(tmp_path)[1]
    (tmp_path / "s.json").write_text('{"s": null}\n' * 300)
    assert verdict(tmp_path)[0] == "allowed", "nothing is known of an object that no row has"


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_two_columns_of_one_name(tmp_path: Path, format_: str) -> None:
    """Nothing says which one is meant. A plan broke off here."""
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["id", "x", "x"])
    if format_ == "csv":
        (tmp_path / "s.csv").write_text("id,x,x\n1,2,3\n")
    else:
        pq.write_table(rows, tmp_path / "s.parquet")
    of = f"{{format: {format_}, path: s.{format_}}}"
    manifest(tmp_path, of, "", "[{name: x, type: int64}]")
    state, reason = verdict(tmp_path)
    assert (state, "more than one column 'x'" in reason) == ("blocked", True), reason
    manifest(tmp_path, of, "", "[{name: id, type: int64}]")
    assert verdict(tmp_path)[0] == "allowed"


@pytest.mark.parametrize(
    ("format_", "name"), [("parquet", "a"), ("csv", "a"), ("json", "a"), ("parquet", "b"), ("csv", "b")]
)
def test_two_columns_of_one_name_are_told_with_the_file(tmp_path: Path, format_: str, name: str) -> None:
    """Also where a column that is missing would be null. A later file of json is read by the step alone."""
    for stem in ("a", "b"):
        WRITERS[format_](pa.table({"id": [1], "x": [2]}), tmp_path / f"{stem}.{format_}")
    file = tmp_path / f"{name}.{format_}"
    if format_ == "parquet":
        pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["id", "x", "x"]), file)
    else:
        file.write_text("id,x,x\n1,2,3\n" if format_ == "csv" else '{"id": 1, "x": 2, "x": 3}\n')
    of = f'{{format: {format_}, path: "*.{format_}"}}'
    manifest(tmp_path, of, ", missing: null", "[{name: id, type: int64}, {name: x, type: int64}]")
    state, reason = verdict(tmp_path)
    assert state == "blocked"
    assert f"{name}.{format_}: " in reason
    assert re.search("more than one .*column 'x'", reason)


def test_columns_that_json_cannot_hold_may_be_missing(tmp_path: Path) -> None:
    schema = "[{name: id, type: int64}, {name: m, type: 'map<string, int64>'}]"
    (tmp_path / "s.json").write_text('{"id": 1}\n')
    manifest(tmp_path, "{format: json, path: s.json}", ", missing: null", schema)
    assert verdict(tmp_path)[0] == "allowed"
    (tmp_path / "s.json").write_text('{"id": 1, "m": {"a": 1}}\n')
    assert "json holds no such values" in verdict(tmp_path)[1]


def test_fields_inside_of_columns_that_nobody_reads(tmp_path: Path) -> None:
    rows = pa.table({"s": [{"a": 1, "more": 2}], "l": [[{"a": 1, "deep": {"x": 1, "y": 2}}]]})
    schema = "[{name: s, type: 'struct<a: int64>'}, {name: l, type: 'list<struct<a: int64, deep: struct<x: int64>>>'}]"
    manifest(tmp_path, source(tmp_path, "parquet", rows), "", schema)
    assert step(tmp_path)["after"]["unused"] == ["s.more", "l.deep.y"]


def test_texts_keep_their_rules(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("n,day,flag\n1,2024-02-03,true\n")
    schema = "[{name: n, type: int32}, {name: day, type: date32}, {name: flag, type: bool}]"
    manifest(tmp_path, "{format: csv, path: s.csv}", "", schema)
    assert verdict(tmp_path)[0] == "allowed"


def test_columns_that_nobody_reads_are_named_once(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for number in range(3):
        pq.write_table(ROWS, tmp_path / "raw" / f"{number}.parquet")
    manifest(tmp_path, "{format: parquet, path: raw}", ", columns: {product: sku}")
    assert step(tmp_path)["after"]["unused"] == ["qty"]
    for format_ in ("text", "markdown"):
        run = reconciler(tmp_path, "plan", "m.yaml", "--format", format_)
        assert run.out.count("source columns not used: qty") == 1, format_
    assert "source columns not used" in reconciler(tmp_path, "plan", "m.yaml", "--format", "html").out


@pytest.mark.slow
@pytest.mark.parametrize("more", ["", ", partitions: 2", ", orderBy: [id]"])
@pytest.mark.parametrize("format_", WRITERS)
def test_missing_null_fills_with_null(tmp_path: Path, format_: str, more: str) -> None:
    manifest(tmp_path, source(tmp_path, format_), f", missing: null{more}")
    run = apply(tmp_path)
    assert run.code == 0, run.err + run.out
    assert sorted(r["id"] for r in rows_of(tmp_path)) == [1, 2]
    assert {r["product"] for r in rows_of(tmp_path)} == {None}
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0


@pytest.mark.slow
def test_files_of_json_without_rows_and_columns_that_it_cannot_hold(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("")
    (tmp_path / "b.json").write_text('{"id": 1}\n')
    schema = "[{name: id, type: int64}, {name: m, type: 'map<string, int64>'}]"
    manifest(tmp_path, "{format: json, path: '*.json'}", ", missing: null", schema)
    run = apply(tmp_path)
    assert run.code == 0, run.err + run.out
    assert rows_of(tmp_path) == [{"id": 1, "m": None}]


@pytest.mark.slow
@pytest.mark.parametrize("more", ["", ", orderBy: [id]"])
def test_a_cast_that_is_asked_for_is_done(tmp_path: Path, more: str) -> None:
    of = source(tmp_path, "parquet", pa.table({"id": [1, 2], "text": ["7", "8"], "days": pa.array([0, 1], pa.int32())}))
    schema = "[{name: id, type: int64}, {name: n, type: int32}, {name: day, type: date32}]"
    casts = ", columns: {n: {from: text, cast: true}, day: {from: days, cast: true}}"
    manifest(tmp_path, of, casts + more, schema)
    run = apply(tmp_path)
    assert run.code == 0, run.err + run.out
    epoch = datetime.date(1970, 1, 1)
    assert sorted(rows_of(tmp_path), key=lambda r: int(r["id"])) == [
        {"id": 1, "n": 7, "day": epoch},
        {"id": 2, "n": 8, "day": epoch + datetime.timedelta(1)},
    ]


def test_numbers_are_times_with_a_unit(tmp_path: Path) -> None:
    of = source(tmp_path, "parquet", pa.table({"epoch": [1_700_000_000]}))
    schema = '[{name: at, type: "timestamp[us, tz=UTC]"}]'
    for more in ("{at: epoch}", "{at: {from: epoch, cast: true}}"):
        manifest(tmp_path, of, f", columns: {more}", schema)
        decided, reason = verdict(tmp_path)
        assert decided == "blocked"
        assert "nothing says what its numbers count: write `columns: {at: {unit: s}}`" in reason
    manifest(tmp_path, of, ", columns: {at: {from: epoch, unit: s}}", schema)
    found = step(tmp_path)
    assert (found["verdict"], found["after"]["units"]) == ("allowed", {"at": "s"})
    manifest(tmp_path, of, ", columns: {at: {from: epoch, unit: ms}}", schema)
    assert step(tmp_path)["after"]["digest"] != found["after"]["digest"], "other rows"


@pytest.mark.slow
def test_numbers_become_the_times_that_they_count(tmp_path: Path) -> None:
    """Through a saved plan."""
    of = source(tmp_path, "csv", pa.table({"epoch": [1_700_000_000]}))
    schema = '[{name: at, type: "timestamp[us, tz=UTC]"}]'
    manifest(tmp_path, of, ", columns: {at: {from: epoch, unit: s}}", schema)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes")
    assert run.code == 0, run.err
    assert [row["at"].timestamp() for row in rows_of(tmp_path)] == [1_700_000_000]


def test_code_in_a_saved_plan_is_judged_where_it_runs(tmp_path: Path) -> None:
    sql = "SELECT 1L AS id, reflect('java.lang.System', 'getenv', 'HOME') AS product"
    manifest(tmp_path, f'{{format: sql, token: x, sql: "{sql}"}}')
    assert reconciler(tmp_path, "plan", "m.yaml").code == 1
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", "--allow-sql-code").code == 0
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes")
    assert run.code != 0
    assert "the SQL calls reflect(), which calls Java" in run.out + run.err


@pytest.mark.slow
def test_a_query_is_judged_by_its_columns_before_it_runs(tmp_path: Path) -> None:
    manifest(tmp_path, '{format: sql, sql: "SELECT 1L AS id, raise_error(2) AS sku"}')
    run = apply(tmp_path)
    assert run.code == 5
    message = run.json["steps"][-1]["error"]["message"]
    assert "the source has no column 'product'; it has id, sku" in message
    assert rows_of(tmp_path) == []
    manifest(tmp_path, "{format: sql, sql: \"SELECT 1L AS id, DATE'2024-01-02' AS product\"}")
    run = apply(tmp_path)
    assert "columns: {product: {cast: true}}" in run.json["steps"][-1]["error"]["message"]
    assert rows_of(tmp_path) == []


TWO: dict[str, tuple[list[str], list[str], str]] = {
    "in the first file": (["id", "ID"], ["id", "ID"], r"a\.parquet: the source has the columns 'id' and 'ID', which"),
    "in a later file": (["id", "at"], ["id", "ID"], r"b\.parquet: the source has the columns 'id' and 'ID', which"),
    "in its place": (["id", "at"], ["ID", "at"], r"b\.parquet: the source has 'ID' and not 'id', which are one"),
    "twice": (["id", "id"], ["id", "at"], r"a\.parquet: the source has more than one column 'id'"),
    "twice in a later file": (["id", "at"], ["at", "at"], r"b\.parquet: the source has more than one column 'at'"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", TWO)
def test_names_that_are_one_to_spark(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a view; the values of one of them were null, or those of the other."""
    monkeypatch.chdir(tmp_path)
    *files, told = TWO[what]
    for name, columns in zip("ab", files, strict=True):
        pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], columns), tmp_path / f"{name}.parquet")
    view = '{format: parquet, path: "*.parquet"}'
    manifest(
        tmp_path,
        f'{{format: sql, sql: "SELECT id FROM v", views: {{v: {view}}}}}',
        schema="[{name: id, type: int64}]",
    )
    run = apply(tmp_path)
    assert run.code == 5, run.out
    message = run.json["steps"][-1]["error"]["message"]
    assert re.search(told, message), message
    assert re.match("the source (cannot be read|does not fit the table): /", message), message
    assert rows_of(tmp_path) == []


@pytest.mark.slow
def test_names_of_a_query_that_are_one_to_spark(tmp_path: Path) -> None:
    manifest(tmp_path, '{format: sql, sql: "SELECT 1L AS id, 2L AS ID"}', schema="[{name: id, type: int64}]")
    run = apply(tmp_path)
    assert "the columns 'id' and 'ID', which are one column to Spark" in run.json["steps"][-1]["error"]["message"]
    manifest(
        tmp_path, '{format: sql, sql: "SELECT 1L AS id, 2L AS X"}', ", missing: null",
        "[{name: id, type: int64}, {name: x, type: int64}]",
    )  # fmt: skip
    run = apply(tmp_path)
    assert "the source has 'X' and not 'x'" in run.json["steps"][-1]["error"]["message"]


@pytest.mark.slow
def test_a_table_is_no_file_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary\n")
    schema = "[{name: value, type: string}]"
    manifest(tmp_path, f"{{format: iceberg, token: x, table: text.`{tmp_path / 'secret'}`}}", "", schema)
    run = apply(tmp_path)
    assert run.code == 5, run.out
    assert "TABLE_OR_VIEW_NOT_FOUND" in run.json["steps"][-1]["error"]["message"]
    assert rows_of(tmp_path) == []


@pytest.mark.slow
def test_a_query_that_is_permitted_everything_is_still_one_of_our_session(tmp_path: Path) -> None:
    """Spark would put the variable of the environment there; and a sum that is too large is an error."""
    schema = "[{name: value, type: string}]"
    manifest(tmp_path, "{format: sql, token: x, sql: \"SELECT '$${env:HOME}' AS value\"}", "", schema)
    assert apply(tmp_path).code == 1
    run = apply(tmp_path, "--allow-sql-code")
    assert run.code == 0, run.out
    assert rows_of(tmp_path) == [{"value": "${env:HOME}"}]
    sql = "SELECT string(id + 1) AS value FROM (SELECT 2147483647 AS id)"
    manifest(tmp_path, f'{{format: sql, token: y, sql: "{sql}"}}', "", schema, "replace-if-changed")
    run = apply(tmp_path)
    assert run.code != 0
    assert "ARITHMETIC_OVERFLOW" in run.out


@pytest.mark.slow
def test_a_file_that_the_plan_did_not_look_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconciler.pipeline import sources

    monkeypatch.setattr(sources, "LOOKED_AT", 1)
    (tmp_path / "raw").mkdir()
    good = ROWS.rename_columns(["id", "product", "qty"])
    for number in range(3):
        pq.write_table(good if number != 1 else ROWS, tmp_path / "raw" / f"{number}.parquet")
    manifest(tmp_path, "{format: parquet, path: raw}", mode="append")
    assert verdict(tmp_path)[0] == "allowed"
    run = apply(tmp_path)
    assert run.code == 5
    assert "1.parquet: the source has no column 'product'" in run.json["steps"][-1]["error"]["message"]
    assert rows_of(tmp_path) == []


@pytest.mark.slow
def test_what_is_in_already_blocks_nothing(tmp_path: Path) -> None:
    """A column that came later: the files of before lack it and are not read again; a new one must have it."""
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "raw" / "1.parquet")
    manifest(tmp_path, "{format: parquet, path: raw}", schema="[{name: id, type: int64}]", mode="append")
    assert apply(tmp_path).code == 0
    manifest(tmp_path, "{format: parquet, path: raw}", schema=SCHEMA.replace(", nullable: false", ""), mode="append")
    assert apply(tmp_path).code == 0
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0
    pq.write_table(pa.table({"id": [2]}), tmp_path / "raw" / "2.parquet")
    assert verdict(tmp_path)[0] == "blocked"
    pq.write_table(pa.table({"id": [2], "product": ["x"]}), tmp_path / "raw" / "2.parquet")
    assert apply(tmp_path).code == 0
    assert sorted((r["id"], r["product"]) for r in rows_of(tmp_path)) == [(1, None), (2, "x")]
