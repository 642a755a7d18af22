"""Tables of every kind of column that Lance stores, as Hypothesis makes them."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

_DAY = datetime.date(1970, 1, 1)


def _integers(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


def _decimals(precision: int) -> st.SearchStrategy[decimal.Decimal]:
    whole = st.integers(-(10**precision) + 1, 10**precision - 1)
    return whole.map(lambda n: decimal.Context(prec=precision + 5).scaleb(decimal.Decimal(n), -2))


PLAIN: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), _integers(8)),
    (pa.int16(), _integers(16)),
    (pa.int64(), _integers(64)),
    (pa.uint32(), _integers(32, False)),
    (pa.uint64(), _integers(64, False)),
    (pa.float16(), st.floats(width=16)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), st.text(st.characters(codec="utf-8"), max_size=20)),
    (pa.large_string(), st.text(st.characters(codec="utf-8"), max_size=9)),
    (pa.binary(), st.binary(max_size=20)),
    (pa.large_binary(), st.binary(max_size=9)),
    (pa.binary(5), st.binary(min_size=5, max_size=5)),
    (pa.decimal128(20, 2), _decimals(20)),
    (pa.decimal256(50, 2), _decimals(50)),
    (pa.date32(), st.integers(-9999, 9999).map(lambda n: _DAY + datetime.timedelta(n))),
    (pa.timestamp("us", tz="UTC"), _integers(50)),
    (pa.timestamp("ns"), _integers(60)),
    (pa.time64("us"), st.integers(0, 86_399_999_999)),
    (pa.duration("ms"), _integers(40)),
]


def _nested(inner: tuple[pa.DataType, st.SearchStrategy[Any]]) -> list[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    type_, values = inner
    some = st.none() | values
    pairs = st.lists(st.tuples(st.text("ab", max_size=2), some), max_size=3)
    return [
        (pa.list_(type_), st.lists(some, max_size=4)),
        (pa.large_list(type_), st.lists(some, max_size=3)),
        (pa.list_(type_, 3), st.lists(some, min_size=3, max_size=3)),
        (pa.list_(type_, 8), st.lists(some, min_size=8, max_size=8)),
        (
            pa.struct([("x", type_), ("y", pa.int32())]),
            st.fixed_dictionaries({"x": some, "y": st.none() | _integers(32)}),
        ),
        (pa.map_(pa.string(), type_), pairs),
    ]


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pa.Array:
    type_, values = draw(st.sampled_from(PLAIN))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        type_, values = draw(st.sampled_from(_nested((type_, values))))
    return array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), type_)


def array(values: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array(values, type_)


@st.composite
def tables(draw: st.DrawFn, least: int = 1) -> pa.Table:
    rows = draw(st.integers(least, 6))
    count = draw(st.integers(1, 3))
    return pa.table({f"c{n}": draw(columns(rows)) for n in range(count)})
