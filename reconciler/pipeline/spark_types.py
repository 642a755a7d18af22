"""Columns on their way through Spark's own engine (a sort, a query): Arrow types that Spark takes, and back.

Spark has no fixed-size lists, dictionaries, unsigned or half-precision numbers, and counts time in microseconds. What
it lacks travels as something that holds every value and sorts alike; the table's own types are restored by a cast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from reconciler.model.spark import ZONE

_NUMBERS = {
    pa.float16(): pa.float32(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.int64(),
    pa.time32("s"): pa.int32(),
    pa.time32("ms"): pa.int32(),
    pa.time64("us"): pa.int64(),
    pa.time64("ns"): pa.int64(),
}


_SPARK = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", ZONE),
    "timestamp_ntz": pa.timestamp("us"),
    "daytimeinterval": pa.duration("us"),
    "time": pa.time64("ns"),
    "varchar": pa.string(),
    "char": pa.string(),
    "void": pa.null(),
}
"""By Spark's own name of the type. pyspark's `to_arrow_schema` takes other arguments from version to version, and fails
on a timestamp without them."""
_Carry = Callable[[pa.DataType, str], pa.DataType]


def arrow_schema(schema: Any) -> pa.Schema:
    """What Spark gives to Python for the columns of a DataFrame. Raises ValueError for a column that it cannot give."""
    return pa.schema([pa.field(f.name, _from_spark(f.dataType, f.name), f.nullable) for f in schema.fields])


def _from_spark(type_: Any, name: str) -> pa.DataType:
    kind = type_.typeName()
    match kind:
        case "array":
            return pa.list_(pa.field("element", _from_spark(type_.elementType, name), type_.containsNull))
        case "map":
            value = pa.field("value", _from_spark(type_.valueType, name), type_.valueContainsNull)
            return pa.map_(_from_spark(type_.keyType, name), value)
        case "struct":
            return pa.struct([pa.field(f.name, _from_spark(f.dataType, name), f.nullable) for f in type_.fields])
        case "decimal":
            return pa.decimal128(type_.precision, type_.scale)
    if kind not in _SPARK:
        raise ValueError(f"column {name!r}: Spark cannot hand over {type_.simpleString()}: cast it in the SQL")
    return _SPARK[kind]


def carried_schema(schema: pa.Schema) -> pa.Schema:
    """For a sort. Raises ValueError for a column that cannot be carried."""
    return pa.schema([pa.field(f.name, _carried(f.type, f.name, _counted)) for f in schema])


def queried_schema(schema: pa.Schema) -> pa.Schema:
    """For a query, which speaks of times as times: in microseconds, so that a value with nanoseconds cannot be carried.
    Raises ValueError for a column that cannot be carried."""
    return pa.schema([pa.field(f.name, _carried(f.type, f.name, _in_micros)) for f in schema])


def _counted(_type: pa.DataType, _name: str) -> pa.DataType:
    return pa.int64()


def _in_micros(type_: pa.DataType, _name: str) -> pa.DataType:
    if pa.types.is_duration(type_):
        return pa.duration("us")
    return pa.timestamp("us", ZONE if type_.tz else None)


def _carried(type_: pa.DataType, name: str, time: _Carry) -> pa.DataType:
    types = pa.types
    if isinstance(type_, pa.ExtensionType) or types.is_decimal256(type_) or types.is_null(type_):
        raise ValueError(f"column {name}: Spark cannot carry the type {type_}")
    if types.is_dictionary(type_):
        return _carried(type_.value_type, name, time)
    if types.is_timestamp(type_) or types.is_duration(type_):
        return time(type_, name)
    if types.is_fixed_size_binary(type_):
        return pa.binary()
    if types.is_fixed_size_list(type_) or types.is_list(type_) or types.is_large_list(type_):
        return pa.list_(_carried(type_.value_type, name, time))
    if types.is_struct(type_):
        return pa.struct([pa.field(f.name, _carried(f.type, name, time)) for f in type_])
    if types.is_map(type_):
        return pa.map_(_carried(type_.key_type, name, time), _carried(type_.item_type, name, time))
    return _NUMBERS.get(type_, type_)
