"""Every type of the grammar, through pyarrow and through files, with rows in them."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from reconciler.catalog.arrow_convert import (
    UnknownArrowType,
    from_arrow_field,
    from_arrow_schema,
    from_arrow_type,
    to_arrow_field,
    to_arrow_schema,
    to_arrow_type,
)
from reconciler.catalog.lance_types import type_problem
from reconciler.model.arrow import Field, Struct, parse_type

DAY, MOMENT = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30)
UTC = MOMENT.replace(tzinfo=dt.UTC)
SAMPLES: dict[str, Any] = {
    "null": None, "bool": True, "int8": -1, "int16": -1, "int32": -1, "int64": -1,
    "uint8": 1, "uint16": 1, "uint32": 1, "uint64": 1, "float16": 1.5, "float32": 1.5, "float64": 1.5,
    "string": "x", "large_string": "x", "binary": b"x", "large_binary": b"x", "fixed_size_binary[4]": b"abcd",
    "date32": DAY, "date64": DAY, "timestamp[s]": MOMENT, "timestamp[ms]": MOMENT, "timestamp[us, tz=UTC]": UTC,
    "timestamp[ns, tz=+05:30]": UTC, "time32[s]": dt.time(1), "time32[ms]": dt.time(1), "time64[us]": dt.time(1),
    "time64[ns]": dt.time(1), "duration[s]": dt.timedelta(1), "duration[ms]": dt.timedelta(1),
    "duration[us]": dt.timedelta(1), "duration[ns]": dt.timedelta(1), "decimal128(38, 10)": decimal.Decimal("1.5"),
    "decimal128(5, -2)": decimal.Decimal("100"), "decimal256(76, 10)": decimal.Decimal("1.5"),
    "dictionary<int8, string>": "x", "dictionary<uint16, large_string>": "x", "dictionary<int32, int64>": 1,
    "dictionary<int32, float64>": 1.5, "dictionary<int32, binary>": b"x", "dictionary<int64, bool>": True,
}  # fmt: skip
NESTED = {
    "list<{}>": lambda v: [v, v],
    "list<list<{}>>": lambda v: [[v], []],
    "large_list<{}>": lambda v: [v],
    "fixed_size_list<{}>[2]": lambda v: [v, v],
    "list<fixed_size_list<{}>[2]>": lambda v: [[v, v]],
    "struct<a: {}, \"b c\": int32 not null>": lambda v: {"a": v, "b c": 1},
    "list<struct<a: {}>>": lambda v: [{"a": v}],
    "map<string, {}>": lambda v: [("k", v)],
    "map<{}, string>": lambda v: [(v, "k")],
    "struct<m: map<string, list<{}>>>": lambda v: {"m": [("k", [v])]},
}  # fmt: skip
ALL = {**SAMPLES, **{n.format(t): f(v) for n, f in NESTED.items() for t, v in SAMPLES.items()}}
STORABLE = {t: v for t, v in ALL.items() if type_problem(parse_type(t)) is None}


@pytest.mark.parametrize("text", [*ALL, "blob", "list<blob>", "struct<a: blob>", "list<int32 not null>"])
def test_a_type_survives_pyarrow(text: str) -> None:
    if text.startswith("map<null"):
        return  # pyarrow itself has no such type; type_problem refuses it
    type_ = parse_type(text)
    assert from_arrow_type(to_arrow_type(type_)) == type_


def test_every_storable_type_holds_rows(tmp_path: Path) -> None:
    types = list(STORABLE)
    fields = tuple(Field(f"c{i}", parse_type(t)) for i, t in enumerate(types))
    schema = to_arrow_schema(fields, {"k": "v"})
    empty = lance.write_dataset([], str(tmp_path / "t"), schema=schema, data_storage_version="2.2")
    assert from_arrow_schema(empty.schema) == (fields, {"k": "v"})
    columns = [pa.array([STORABLE[t], STORABLE[t]], type=schema.field(i).type) for i, t in enumerate(types)]
    rows = pa.table(columns, schema=schema)
    lance.write_dataset(rows, str(tmp_path / "t"), mode="append")
    back = lance.dataset(str(tmp_path / "t"))
    assert from_arrow_schema(back.schema) == (fields, {"k": "v"})
    assert back.to_table().to_pylist() == rows.to_pylist()


def test_what_is_refused_is_what_lance_cannot_store() -> None:
    refused = set(ALL) - set(STORABLE)
    assert not refused & set(SAMPLES)
    for text in refused:
        assert "fixed_size_list<" in text or text == "map<null, string>", text
    assert "fixed_size_list<float32>[2]" in STORABLE
    for text in ("fixed_size_list<string>[2]", "list<fixed_size_list<struct<a: int8>>[2]>", "fixed_size_list<blob>[2]"):
        assert "fixed-width" in (type_problem(parse_type(text)) or "")
    for text in (
        "dictionary<int8, date32>",
        "list<dictionary<int8, timestamp[us]>>",
        "map<string, dictionary<int8, blob>>",
    ):
        assert "dictionary" in (type_problem(parse_type(text)) or "")
    assert "struct" in (type_problem(Struct(())) or "")


@pytest.mark.parametrize("text", ["dictionary<int32, date32>", "dictionary<int32, decimal128(10, 2)>"])
def test_lance_refuses_the_schema(text: str, tmp_path: Path) -> None:
    schema = to_arrow_schema((Field("c", parse_type(text)),))
    with pytest.raises(OSError, match="Cannot encode dictionary"):
        lance.write_dataset([], str(tmp_path / "t"), schema=schema, data_storage_version="2.2")


def test_lance_takes_the_schema_but_not_the_rows(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("c", pa.list_(pa.dictionary(pa.int8(), pa.string()), 2))])
    lance.write_dataset([], str(tmp_path / "t"), schema=schema, data_storage_version="2.2")
    with pytest.raises(OSError, match="no field encoding"):
        lance.write_dataset(
            pa.table([pa.array([["a", "b"]], schema.field(0).type)], schema), str(tmp_path / "t"), mode="append"
        )


def test_fields_keep_comments_metadata_and_nullability(tmp_path: Path) -> None:
    inner = Struct((Field("x", parse_type("int32"), False, "inner", {"unit": "m"}), Field("b", parse_type("blob"))))
    fields = (
        Field("id", parse_type("int64"), False, "the key", {"a": "1", "lance-encoding:compression": "zstd"}),
        Field("s", inner, True, "", {}),
        Field("photo", parse_type("blob"), True, "large", {"x": "y"}),
        Field("photos", parse_type("list<blob>")),
    )
    made = lance.write_dataset([], str(tmp_path / "t"), schema=to_arrow_schema(fields), data_storage_version="2.2")
    assert from_arrow_schema(made.schema)[0] == fields


@pytest.mark.parametrize("type_", [pa.json_(), pa.uuid()])
def test_other_extension_types_come_back_as_they_were(type_: Any, tmp_path: Path) -> None:
    made = lance.write_dataset(
        [], str(tmp_path / "a"), schema=pa.schema([pa.field("c", type_)]), data_storage_version="2.2"
    )
    read = from_arrow_field(made.schema.field(0))
    again = lance.write_dataset(
        [], str(tmp_path / "b"), schema=pa.schema([to_arrow_field(read)]), data_storage_version="2.2"
    )
    assert again.schema.equals(made.schema)
    assert from_arrow_field(again.schema.field(0)) == read


def test_blobs_of_older_files(tmp_path: Path) -> None:
    old = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    made = lance.write_dataset([], str(tmp_path / "t"), schema=pa.schema([old]), data_storage_version="2.0")
    assert from_arrow_field(made.schema.field(0)) == Field("b", parse_type("blob"))


@pytest.mark.parametrize("type_", [pa.string_view(), pa.month_day_nano_interval(), pa.decimal32(5, 2)])
def test_types_without_a_name_are_named_in_the_error(type_: Any) -> None:
    with pytest.raises(UnknownArrowType, match="column 'odd'"):
        from_arrow_schema(pa.schema([pa.field("odd", type_)]))
