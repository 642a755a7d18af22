"""Values in another type: what they become, and what is said of those that cannot."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from reconciler.catalog.arrow_convert import to_arrow_type
from reconciler.model.arrow import parse_type
from reconciler.pipeline.column_casts import Misfit, cast, cast_all, need_cast
from reconciler.pipeline.conform import Rules, ValueProblem, conform

UTC = dt.UTC
NEW_YEAR = dt.datetime(2020, 1, 1, tzinfo=UTC)


def arrow(text: str) -> Any:
    return to_arrow_type(parse_type(text))


@pytest.mark.parametrize(
    ("found", "value", "wanted", "becomes"),
    [
        ("string", "-7", "int64", -7),
        ("string", "1.5", "float16", 1.5),
        ("string", "true", "bool", True),
        ("string", "1.25", "decimal128(10, 2)", Decimal("1.25")),
        ("string", "2020-01-01", "date32", dt.date(2020, 1, 1)),
        ("string", "2020-01-01 10:00:00", "timestamp[ms]", dt.datetime(2020, 1, 1, 10)),
        ("string", "2020-01-01", "timestamp[us, tz=UTC]", NEW_YEAR),
        ("large_string", "2020-01-01T01:00:00+01:00", "timestamp[us, tz=UTC]", NEW_YEAR),
        ("string", "2020-01-01T00:00:00Z", "timestamp[us, tz=UTC]", NEW_YEAR),
        ("string", "10:30", "time32[s]", dt.time(10, 30)),
        ("large_string", "10:30:00.5", "time64[us]", dt.time(10, 30, 0, 500_000)),
        ("string", "90", "duration[s]", dt.timedelta(seconds=90)),
        ("string", "a", "dictionary<int8, string>", "a"),
        ("string", "12", "dictionary<int8, int64>", 12),
        ("string", "abcd", "fixed_size_binary[4]", b"abcd"),
        ("binary", b"abc", "string", "abc"),
        ("binary", b"2020-01-01", "date32", dt.date(2020, 1, 1)),
        ("int32", 5, "string", "5"),
        ("int32", 5, "float64", 5.0),
        ("float64", 5.0, "int8", 5),
        ("float16", 1.0, "decimal128(10, 2)", Decimal("1.00")),
        ("int64", 18_262, "date32", dt.date(2020, 1, 1)),
        ("date32", dt.date(2020, 1, 1), "int64", 18_262),
        ("bool", True, "int8", 1),
        ("bool", True, "float16", 1.0),
        ("float16", 1.0, "bool", True),
        ("int32", 5, "decimal128(10, 2)", Decimal("5.00")),
        ("dictionary<int8, string>", "7", "int64", 7),
        ("list<int64>", [1, 2], "fixed_size_list<float32>[2]", [1.0, 2.0]),
        ("list<string>", ["1"], "large_list<int64>", [1]),
        ("struct<a: int32>", {"a": 1}, "struct<b: string, a: string>", {"b": None, "a": "1"}),
        ("list<struct<a: int32>>", [{"a": 1}], "list<struct<a: int32, b: list<int8>>>", [{"a": 1, "b": None}]),
        ("map<string, int32>", [("k", 1)], "map<string, string>", [("k", "1")]),
    ],
)
def test_a_value_becomes(found: str, value: Any, wanted: str, becomes: Any) -> None:
    type_ = arrow(wanted)
    need_cast("x", arrow(found), type_)
    result = cast_all("x", pa.array([None, value, None], arrow(found)).slice(1), type_)
    assert result.type == type_
    assert result.to_pylist() == [becomes, None]


def test_blobs() -> None:
    made = cast_all("x", pa.array(["a", None]), arrow("blob"))
    assert made.type == arrow("blob")
    assert [b and b["data"] for b in made.storage.to_pylist()] == [b"a", None]


@pytest.mark.parametrize(
    ("found", "values", "wanted", "shown"),
    [
        ("string", ["1", "2", "x3", "4", "y"], "int64", "'x3'"),
        ("float64", [1.0, 2.5], "int64", "2.5"),
        ("int64", [1, 300, 400], "int8", "300"),
        ("int64", [0, 1, 2], "bool", "2"),
        ("int64", [1, 10**9], "decimal128(10, 2)", "1000000000"),
        ("int64", [1, 2**53 + 1], "float64", "9007199254740993"),
        ("list<int64>", [[1, 2], None, [3]], "fixed_size_list<int64>[2]", "[3]"),
        ("binary", [b"a", b"\xff"], "string", "b'\\xff'"),
        ("string", ["2020-01-01", "2020-01-01T00:00:00Z", "soon"], "timestamp[us, tz=UTC]", "'soon'"),
        ("string", ["10:00", "25:00"], "time32[s]", "'25:00'"),
        ("string", ["1.5", "inf", "1e39"], "float32", "'1e39'"),
        ("binary", [b"nan", b"-Infinity", b"1e400"], "float64", "b'1e400'"),
        ("float64", [1.0, float("inf"), 1e300], "float32", "1e+300"),
        ("decimal128(38, 0)", [Decimal(1), Decimal(70_000)], "float16", "Decimal('70000')"),
        ("list<int64>", [[1], None, [70_000]], "list<float16>", "[70000]"),
        ("struct<a: list<float64>>", [{"a": [1.0]}, {"a": [1e39]}], "struct<a: list<float32>>", "{'a': [1e+39]}"),
        ("map<string, float64>", [[], None, [("k", 1e39)]], "map<string, float32>", "[('k', 1e+39)]"),
        ("string", ["x" * 200], "int64", "'" + "x" * 79 + "…"),
    ],
)
def test_the_first_value_that_does_not_fit_is_shown(found: str, values: list[Any], wanted: str, shown: str) -> None:
    with pytest.raises(Misfit) as caught:
        cast_all("x", pa.array(values, arrow(found)), arrow(wanted))
    assert str(caught.value).startswith(f"column x: the value {shown} cannot be made {arrow(wanted)}: ")


def test_values_that_only_together_do_not_fit() -> None:
    with pytest.raises(Misfit, match="column x: a value cannot be made dictionary"):
        cast_all("x", pa.array([str(n) for n in range(300)]), arrow("dictionary<int8, string>"))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ("int64", "binary"),
        ("int8", "duration[s]"),
        ("uint64", "timestamp[s, tz=UTC]"),
        ("float64", "timestamp[us]"),
        ("decimal128(10, 2)", "time64[us]"),
        ("struct<a: list<int64>>", "struct<a: list<timestamp[us]>>"),
        ("bool", "timestamp[s]"),
        ("time32[s]", "timestamp[s]"),
        ("int64", "null"),
        ("struct<a: int32>", "string"),
        ("fixed_size_list<int64>[2]", "fixed_size_list<int64>[3]"),
        ("struct<a: int32>", "struct<a: int32, b: int32 not null>"),
        ("struct<a: large_binary>", "struct<a: blob>"),
    ],
)
def test_types_without_a_cast_are_told_apart_without_a_value(found: str, wanted: str) -> None:
    with pytest.raises(Misfit, match=r"column x: .* cannot be made"):
        need_cast("x", arrow(found), arrow(wanted))


@pytest.mark.parametrize(
    ("values", "wanted", "bad"),
    [
        (pa.array([1, 70_000, 2]), pa.float16(), "70000"),
        (pa.array([1, 2049], pa.int32()), pa.float16(), "2049"),
        (pa.array([0, -3]), pa.time64("us"), "-3"),
        (pa.array([0, 86_400], pa.int32()), pa.time32("s"), "86400"),
    ],
)
def test_numbers_that_arrow_would_change(values: Any, wanted: Any, bad: str) -> None:
    """It makes infinity and other times of day of them."""
    with pytest.raises(Misfit, match=f"the value {bad} cannot be made"):
        cast_all("c", values, wanted)
    assert cast(values.slice(0, 1), wanted).type == wanted


def test_a_source_with_such_numbers() -> None:
    target = pa.schema([("c", pa.float16())])
    with pytest.raises(ValueProblem, match=r"first at 70000"):
        conform(pa.record_batch([pa.array([1, 70_000])], ["c"]), target, {"c": "c"}, Rules(typed=True))
    for values in ([1.5, 1e39], ["1.5", "1e39"]):
        target = pa.schema([("c", pa.float32())])
        with pytest.raises(ValueProblem, match=r"too large for float .*first at .?1e\+?39"):
            conform(pa.record_batch([pa.array(values)], ["c"]), target, {"c": "c"}, Rules())
    target = pa.schema([("c", pa.bool_())])
    rules = Rules(typed=True, casts=frozenset("c"))
    with pytest.raises(ValueProblem, match=r"truth values \(first at 7\)"):
        conform(pa.record_batch([pa.array([1, 7])], ["c"]), target, {"c": "c"}, rules)
