"""The columns that Unity shows: every type of ours has a mapping that the server takes and gives back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property.prop_types import any_fields, any_types
from servers.unity_checks import TYPE_NAMES, check_columns
from servers.unity_state import State

from reconciler.catalog.unity_columns import columns_of, shown_columns, wire_columns
from reconciler.model.arrow import Field, parse_type
from reconciler.model.state import Column


def _stored(columns: list[dict[str, object]]) -> list[dict[str, object]]:
    """Through the checks of the server, as it stores them."""
    state = State("/server")
    return [state._column(c, "") for c in check_columns({"columns": columns})]


@given(st.lists(any_fields(any_types(), annotated=True), max_size=4, unique_by=lambda f: f.name))
def test_every_type_goes_there_and_comes_back(fields: list[Field]) -> None:
    columns = columns_of(fields)
    wire = wire_columns(columns)
    assert {c["type_name"] for c in wire} <= set(TYPE_NAMES)
    stored = _stored(wire)
    assert shown_columns(list(reversed(stored))) == columns


@pytest.mark.parametrize(
    ("arrow", "name", "text", "spark"),
    [
        ("int8", "BYTE", "tinyint", "byte"),
        ("uint8", "SHORT", "smallint", "short"),
        ("uint16", "INT", "int", "integer"),
        ("uint32", "LONG", "bigint", "long"),
        ("uint64", "DECIMAL", "decimal(20,0)", "decimal(20,0)"),
        ("float16", "FLOAT", "float", "float"),
        ("bool", "BOOLEAN", "boolean", "boolean"),
        ("date64", "DATE", "date", "date"),
        ("timestamp[ns]", "TIMESTAMP_NTZ", "timestamp_ntz", "timestamp_ntz"),
        ("timestamp[s, tz=UTC]", "TIMESTAMP", "timestamp", "timestamp"),
        ("time64[us]", "LONG", "bigint", "long"),
        ("large_string", "STRING", "string", "string"),
        ("blob", "BINARY", "binary", "binary"),
        ("decimal128(10, 2)", "DECIMAL", "decimal(10,2)", "decimal(10,2)"),
        ("decimal128(10, -2)", "DECIMAL", "decimal(12,0)", "decimal(12,0)"),
        ("decimal256(76, 2)", "STRING", "string", "string"),
        ("dictionary<int32, string>", "STRING", "string", "string"),
        ("null", "NULL", "void", "void"),
    ],
)
def test_the_mapping(arrow: str, name: str, text: str, spark: str) -> None:
    (column,) = wire_columns(columns_of([Field("c", parse_type(arrow), False, "why")]))
    assert (column["type_name"], column["type_text"], column["comment"]) == (name, text, "why")
    assert json.loads(column["type_json"]) == {"name": "c", "type": spark, "nullable": False, "metadata": {}}


def test_nested_types_have_all_their_parts() -> None:
    field = Field("c", parse_type("struct<Aa: list<int64 not null>, m: map<string, fixed_size_list<float32>[8]>>"))
    (column,) = wire_columns(columns_of([field]))
    assert column["type_text"] == "struct<Aa:array<bigint>,m:map<string,array<float>>>"
    inner = json.loads(column["type_json"])["type"]["fields"]
    array = {"type": "array", "elementType": "long", "containsNull": False}
    assert inner[0] == {"name": "Aa", "type": array, "nullable": True, "metadata": {}}


def test_a_decimal_has_its_digits() -> None:
    (column,) = wire_columns(columns_of([Field("c", parse_type("decimal128(10, 2)"))]))
    assert (column["type_precision"], column["type_scale"]) == (10, 2)


@pytest.mark.parametrize(
    ("type_json", "type_text", "expected"),
    [
        ('{"type":"long"}', "LONG", "long"),  # what lance-namespace-impls writes
        ('"long"', "bigint", "long"),
        ('{"type":"array","elementType":"float","containsNull":true}', "array<float>", None),
        ("nonsense", "bigint", "bigint"),
        (None, "bigint", "bigint"),
    ],
)
def test_columns_that_others_wrote(type_json: str | None, type_text: str, expected: str | None) -> None:
    (column,) = shown_columns([{"name": "c", "type_json": type_json, "type_text": type_text, "position": 0}])
    assert column.type == (expected or '{"containsNull":true,"elementType":"float","type":"array"}')
    assert column.nullable


def test_a_column_that_is_written_in_another_order_of_keys_is_the_same() -> None:
    shown = {"name": "c", "nullable": False, "position": 0, "comment": "", "type_text": "x",
             "type_json": '{"metadata":{"a":"b"},"nullable":false,"type":"long","name":"c"}'}  # fmt: skip
    assert shown_columns([shown]) == (Column("c", "long", False, None),)
