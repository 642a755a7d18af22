"""Columns on their way through Spark's own engine (a sort, a query): Arrow types that Spark takes, and back.

Spark has no fixed-size lists, dictionaries, unsigned or half-precision numbers, and counts time in microseconds. What
it lacks travels as something that holds every value and sorts alike; the table's own types are restored by a cast.
"""

from __future__ import annotations

import pyarrow as pa

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


def carried_schema(schema: pa.Schema) -> pa.Schema:
    """Raises ValueError for a column that cannot be carried."""
    return pa.schema([pa.field(f.name, _carried(f.type, f.name)) for f in schema])


def _carried(type_: pa.DataType, name: str) -> pa.DataType:
    types = pa.types
    if isinstance(type_, pa.ExtensionType) or types.is_decimal256(type_) or types.is_null(type_):
        raise ValueError(f"column {name}: Spark cannot carry the type {type_}")
    if types.is_dictionary(type_):
        return _carried(type_.value_type, name)
    if types.is_timestamp(type_):
        return pa.int64()
    if types.is_duration(type_):
        return pa.int64()
    if types.is_fixed_size_binary(type_):
        return pa.binary()
    if types.is_fixed_size_list(type_) or types.is_list(type_) or types.is_large_list(type_):
        return pa.list_(_carried(type_.value_type, name))
    if types.is_struct(type_):
        return pa.struct([pa.field(f.name, _carried(f.type, name)) for f in type_])
    if types.is_map(type_):
        return pa.map_(_carried(type_.key_type, name), _carried(type_.item_type, name))
    return _NUMBERS.get(type_, type_)
