"""Backfill and rewrite of columns, with the tasks in this process: which values, which types, what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
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
    register,
    rewrite,
    rows,
    written,
)

from reconciler.catalog.base import WriteContext
from reconciler.core.fields import plain
from reconciler.model.arrow import Field
from reconciler.model.change import RewriteColumns
from reconciler.model.errors import CatalogError, Code
from reconciler.pipeline import column_casts
from reconciler.pipeline.session import GaveUp

LEFT = [n for n in range(40) if n not in DELETED]
FORMATS: list[dict[str, Any]] = [
    {"data_storage_version": "2.1"},
    {"data_storage_version": "2.0"},
    {"data_storage_version": "2.2", "enable_stable_row_ids": True},
]


class NoSpark(Local):
    def spark(self) -> tuple[Any, int]:
        raise AssertionError("no Spark is needed")


def refused(uri: str, change: Any, running: Local | None = None) -> CatalogError:
    """Nothing is left of it: no column, no tag, no claim."""
    before, shape = content(uri, ["id", "text", "n"]), lance.dataset(uri).schema
    with pytest.raises(CatalogError) as caught:
        evolve(uri, change, running)
    dataset = lance.dataset(uri)
    assert (content(uri, ["id", "text", "n"]), dataset.schema) == (before, shape)
    assert (dataset.tags.list(), dataset.metadata) == ({}, {})
    return caught.value


@pytest.mark.parametrize("options", FORMATS, ids=str)
def test_a_backfill_gives_values_to_the_rows_that_are_left(tmp_path: Path, options: dict[str, Any]) -> None:
    uri = written(tmp_path / "t.lance", **options)
    before = content(uri, ["id", "text", "n"])
    new = (
        field("length", "int16", "length(text)", comment="of the text", metadata={"unit": "chars"}),
        field("twice", "int64", "n * 2", nullable=False),
    )
    done = evolve(uri, backfill(*new))
    assert column(uri, "length") == {n: None if n % 10 == 0 else len(str(n)) for n in LEFT}
    assert column(uri, "twice") == {n: 2 * n for n in LEFT}
    assert [fields_of(uri)[f.name] for f in new] == [plain(f) for f in new]
    assert content(uri, ["id", "text", "n"]) == before
    dataset = lance.dataset(uri)
    assert dataset.tags.list()[CONTEXT.tag or ""]["version"] == done.version_before
    (merge,) = [t for t in dataset.get_transactions(4) if type(t.operation).__name__ == "Merge"]
    assert merge.transaction_properties["reconciler.step"] == "s1"
    dataset.optimize.compact_files()
    assert column(uri, "twice") == {n: 2 * n for n in LEFT}
    lance.dataset(uri).validate()


@pytest.mark.parametrize(
    ("type_", "sql", "value"),
    [
        ("string", "'it''s'", "it's"),
        ("string", "1", "1"),
        ("int8", "7", 7),
        ("uint64", "'7'", 7),
        ("float16", "0.5", 0.5),
        ("bool", "true", True),
        ("bool", "'false'", False),
        ("date32", "'2020-01-31'", dt.date(2020, 1, 31)),
        ("timestamp[s]", "'2020-01-31'", dt.datetime(2020, 1, 31)),
        ("timestamp[us, tz=UTC]", "'2020-01-31 10:00:00'", dt.datetime(2020, 1, 31, 10, tzinfo=dt.UTC)),
        ("time64[us]", "'10:00:00'", dt.time(10)),
        ("duration[s]", "arrow_cast(60, 'Duration(Second)')", dt.timedelta(minutes=1)),
        ("decimal128(10, 2)", "1.5", Decimal("1.50")),
        ("binary", "'ab'", b"ab"),
        ("fixed_size_binary[2]", "'ab'", b"ab"),
        ("large_string", "'a'", "a"),
        ("dictionary<int8, string>", "'a'", "a"),
        ("blob", "'ab'", b"ab"),
        ("string", "concat(text, '!')", "1!"),
        ("int64", "coalesce(n, 0) -- of the row", 1),
        ("int32", "NULL", None),
    ],
)
def test_an_expression_is_cast_to_the_declared_type(tmp_path: Path, type_: str, sql: str, value: Any) -> None:
    uri = written(tmp_path / "t.lance")
    new = field("x", type_, sql)
    evolve(uri, backfill(new))
    assert column(uri, "x")[1] == value
    assert fields_of(uri)["x"] == plain(new)
    lance.dataset(uri).optimize.compact_files()
    assert column(uri, "x")[1] == value


@pytest.mark.parametrize(
    ("new", "code", "told"),
    [
        (field("x", "int16", "length(text)", nullable=False), Code.TABLE_SCHEMA_VALIDATION_ERROR,
         "x has no value in 3 rows, but it is declared NOT NULL"),
        (field("x", "int8", "n * 100"), Code.TABLE_SCHEMA_VALIDATION_ERROR,
         "cannot be made int8"),
        (field("x", "int8", "no_such(text)"), Code.INVALID_INPUT, "no_such"),
        (field("x", "int8", "no_column + 1"), Code.TABLE_SCHEMA_VALIDATION_ERROR, "no_column"),
        (field("x", "list<int8>", "n"), Code.UNSUPPORTED, "column x: int32 cannot be made list"),
        (field("n", "int64", "n"), Code.TABLE_SCHEMA_VALIDATION_ERROR, "there is a column n"),
        (field("x", "int8", function="nobody"), Code.INVALID_INPUT, "the function 'nobody' is not registered"),
    ],
    ids=lambda value: value.name if isinstance(value, Field) else None,
)  # fmt: skip
def test_a_backfill_that_cannot_be_done_leaves_nothing(tmp_path: Path, new: Field, code: Code, told: str) -> None:
    error = refused(written(tmp_path / "t.lance"), backfill(field("good", "int64", "n"), new))
    assert told in error.message
    assert error.code == code


def test_a_registered_function_gives_the_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(register(tmp_path / "package", "of_plain_texts"))
    uri = written(tmp_path / "t.lance")
    new = (field("v", "fixed_size_list<float32>[2]", function="vector"), field("s", "int64", function="size"))
    evolve(uri, backfill(*new, field("sql", "int64", "id")))
    assert column(uri, "v") == {n: [n, 1.0] for n in LEFT}
    assert column(uri, "s") == {n: None if n % 10 == 0 else len(str(n)) for n in LEFT}
    assert column(uri, "sql") == {n: n for n in LEFT}
    again = written(tmp_path / "u.lance")
    assert "not 1 values" in refused(again, backfill(field("x", "int8", function="short"))).message
    assert "cannot be loaded" in refused(again, backfill(field("x", "int8", function="missing"))).message


def test_what_is_there_as_declared_is_not_written_again(tmp_path: Path) -> None:
    uri = written(tmp_path / "t.lance")
    new = backfill(field("x", "int64", "n", nullable=False))
    evolve(uri, new)
    version = lance.dataset(uri).version
    assert evolve(uri, new, NoSpark()).version_after == version
    assert evolve(uri, rewrite(field("n", "int32")), NoSpark()).version_after == version
    assert lance.dataset(uri).version == version


@pytest.mark.parametrize("options", FORMATS, ids=str)
def test_a_rewritten_column_takes_the_place_of_the_old_one(tmp_path: Path, options: dict[str, Any]) -> None:
    """And what the table goes through afterwards: rows that come, columns, indexes, compaction, the way back."""
    uri = written(tmp_path / "t.lance", **options)
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    before = content(uri, ["id", "n"])
    new = (field("text", "int64", comment="a number"), field("n", "string"))
    evolve(uri, rewrite(*new))
    assert lance.dataset(uri).schema.names == ["id", "text", "n"]
    assert [fields_of(uri)[f.name] for f in new] == [*new]
    values = {n: None if n % 10 == 0 else n for n in LEFT}
    assert column(uri, "text") == values
    assert column(uri, "n") == {n: str(n) for n in LEFT}
    assert content(uri, ["id", "n"], CONTEXT.tag) == before
    assert lance.dataset(uri).describe_indices()[0].num_rows_indexed == len(LEFT)
    lance.write_dataset(pa.table({"id": [50], "text": [50], "n": ["50"]}), uri, mode="append")
    lance.dataset(uri).add_columns({"next": "text + 1"})
    lance.dataset(uri).create_scalar_index("text", "BTREE")
    assert lance.dataset(uri).count_rows("text = 50 AND next = 51 AND id = 50") == 1
    lance.dataset(uri).optimize.compact_files()
    assert column(uri, "text") == {**values, 50: 50}
    lance.dataset(uri).validate()
    lance.dataset(uri, version=CONTEXT.tag).restore()
    assert lance.dataset(uri).metadata == {}, "no claim comes back"
    assert content(uri, ["id", "n"]) == before
    assert fields_of(uri)["text"] == field("text", "string")


NESTED = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "point": pa.array([{"x": n, "y": str(n)} if n % 7 else None for n in range(40)]),
        "list": pa.array([[n, 1] if n % 7 else None for n in range(40)], pa.list_(pa.int32())),
        "items": pa.array([[{"a": n}] * (n % 3) for n in range(40)], pa.list_(pa.struct([("a", pa.int32())]))),
        "bytes": pa.array([b"x" * n for n in range(40)], pa.binary()),
        "kind": pa.array([str(n % 3) for n in range(40)]).dictionary_encode(),
        "at": pa.array([n * 1000 for n in range(40)], pa.timestamp("ms")),
    }
)


@pytest.mark.parametrize(
    ("new", "value"),
    [
        (field("point", "struct<x: int64, z: list<int8>, y: int32>"), {"x": 1, "z": None, "y": 1}),
        (field("list", "fixed_size_list<float32>[2]"), [1.0, 1.0]),
        (field("items", "list<struct<a: int32, b: struct<c: string>>>"), [{"a": 1, "b": None}]),
        (field("bytes", "blob"), b"x"),
        (field("bytes", "large_string"), "x"),
        (field("kind", "int32"), 1),
        (field("kind", "dictionary<int8, int64>"), 1),
        (field("at", "string"), "1970-01-01 00:00:01.000"),
        (field("at", "int64"), 1000),
    ],
    ids=str,
)
def test_nested_columns_blobs_and_dictionaries(tmp_path: Path, new: Field, value: Any) -> None:
    uri = written(tmp_path / "t.lance", NESTED, data_storage_version="2.2")
    others = [name for name in NESTED.schema.names if name != new.name]
    before = content(uri, others)
    evolve(uri, rewrite(new))
    assert column(uri, new.name)[1] == value
    assert fields_of(uri)[new.name] == new
    assert content(uri, others) == before
    lance.dataset(uri).optimize.compact_files()
    assert column(uri, new.name)[1] == value
    assert content(uri, others) == before


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (field("text", "date32"), "cannot be made date32"),
        (field("text", "int64", nullable=False), "text has no value in 3 rows"),
        (field("n", "struct<a: int32>"), "column n: int32 cannot be made struct"),
        (field("gone", "int64"), "there is no column gone"),
    ],
    ids=str,
)
def test_a_rewrite_that_cannot_be_done_leaves_nothing(tmp_path: Path, new: Field, told: str) -> None:
    assert told in refused(written(tmp_path / "t.lance"), rewrite(field("id", "string"), new)).message


def test_a_name_that_is_taken_is_no_obstacle(tmp_path: Path) -> None:
    table = rows().append_column("__new_text", pa.array(range(40)))
    uri = written(tmp_path / "t.lance", table)
    evolve(uri, rewrite(field("text", "int64")))
    assert lance.dataset(uri).schema.names == ["id", "text", "n", "__new_text"]
    assert column(uri, "__new_text") == {n: n for n in LEFT}
    assert column(uri, "text")[1] == 1


def test_an_index_that_somebody_made_is_not_lost(tmp_path: Path) -> None:
    uri = written(tmp_path / "t.lance")
    lance.dataset(uri).create_scalar_index("text", "BTREE")
    assert "has the index text_idx" in refused(uri, rewrite(field("text", "int64"))).message
    evolve(uri, rewrite(field("n", "string")))
    assert [i.name for i in lance.dataset(uri).describe_indices()] == ["text_idx"]


def test_an_index_that_the_plan_knows_goes_in_the_commit_of_the_rewrite(tmp_path: Path) -> None:
    """Not before: a rewrite that fails leaves it."""
    uri = written(tmp_path / "t.lance")
    lance.dataset(uri).create_scalar_index("text", "BTREE")
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    refused(uri, RewriteColumns(("t",), (field("text", "date32"),), ("text_idx",)))
    assert {i.name for i in lance.dataset(uri).describe_indices()} == {"text_idx", "id_idx"}
    evolve(uri, RewriteColumns(("t",), (field("text", "int64"),), ("text_idx",)))
    for version in [v["version"] for v in lance.dataset(uri).versions() if v["version"] > 4]:
        at = lance.dataset(uri, version=version)
        names = {i.name for i in at.describe_indices()}
        assert names == ({"text_idx", "id_idx"} if str(at.schema.field("text").type) == "string" else {"id_idx"})


@pytest.mark.parametrize("column_dropped", [True, False])
def test_a_table_without_rows_needs_no_spark(tmp_path: Path, column_dropped: bool) -> None:
    """Nor may an index come to stand for another column: ids of columns stay."""
    uri = str(tmp_path / "t.lance")
    schema = pa.schema([("first", pa.int8()), *rows().schema])
    lance.write_dataset([], uri, schema=schema, data_storage_version="2.2")
    if column_dropped:
        lance.dataset(uri).drop_columns(["first"])
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    new = (field("x", "struct<a: list<int8>, b: blob>", "1", nullable=False, comment="c"), field("b", "blob", "'a'"))
    with pytest.raises(CatalogError, match="cannot be made struct"):
        evolve(uri, backfill(*new), NoSpark())
    new = (field("x", "dictionary<int8, string>", "text", nullable=False, comment="c"), field("b", "blob", "'a'"))
    evolve(uri, backfill(*new), NoSpark())
    evolve(uri, rewrite(field("text", "int64"), field("n", "decimal128(10, 2)")), NoSpark())
    names = [] if column_dropped else ["first"]
    assert lance.dataset(uri).schema.names == [*names, "id", "text", "n", "x", "b"]
    assert fields_of(uri)["x"] == plain(new[0])
    assert fields_of(uri)["text"] == field("text", "int64")
    row = {"first": 1, "id": 7, "text": 5, "n": 1, "x": "a", "b": b"z"}
    there = lance.dataset(uri).schema
    arrays = [column_casts.cast(pa.array([row[f.name]]), f.type) for f in there]
    lance.write_dataset(pa.Table.from_arrays(arrays, schema=there), uri, mode="append", data_storage_version="2.2")
    dataset = lance.dataset(uri)
    assert dataset.count_rows("id = 7 AND text = 5 AND n = 1 AND x = 'a'") == 1
    assert dataset.describe_indices()[0].field_names == ["id"]
    dataset.validate()


def test_a_run_that_is_to_stop_commits_nothing(tmp_path: Path) -> None:
    uri = written(tmp_path / "t.lance")
    running = Local()
    running.stopped = lambda: bool(running.units)
    with pytest.raises((CatalogError, GaveUp), match="the run is to stop"):
        evolve(uri, backfill(field("x", "int64", "n")), running)
    assert lance.dataset(uri).schema.names == ["id", "text", "n"]


def test_no_tag_where_none_is_asked_for(tmp_path: Path) -> None:
    uri = written(tmp_path / "t.lance")
    evolve(uri, backfill(field("x", "int64", "n")), context=WriteContext("p", "s", runner="local"))
    assert lance.dataset(uri).tags.list() == {}
    assert column(uri, "x")[1] == 1
