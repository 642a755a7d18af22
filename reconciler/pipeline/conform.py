"""Values of a source as the table's types: what would change on the way is an error.

Stricter than `column_casts`, which serves a type change that somebody declared: here nobody has asked for one, so a
number is no truth value and a moment is no day. Only here lists and structs are gone into, field by field.

The module stands alone, as `checksum` does: Spark carries it to executors that do not have this program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class ValueProblem(ValueError):
    """What is wrong with a column's values."""


def conform(batch: Any, target: Any, wanted: Mapping[str, str]) -> Any:
    """The batch with exactly the target's columns. `wanted`: column of the target -> column of the batch."""
    arrays = []
    for field in target:
        index = batch.schema.get_field_index(wanted[field.name])
        array = batch.column(index) if index >= 0 else pa.nulls(batch.num_rows, field.type)
        try:
            array = array if array.type == field.type else to_type(array, field.type)
            _no_nulls(array, field)
        except (pa.ArrowException, ValueError) as error:
            raise ValueProblem(f"column {field.name!r}: {error}{_first_bad(array, field)}") from error
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _first_bad(array: Any, field: Any) -> str:
    """The first value that fails alone, and its row in the batch; empty when none does."""
    low, high = 0, len(array)
    if array.type == field.type or not high:
        return ""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fails(array.slice(low, middle - low), field.type) else (middle, high)
    shown = repr(array[low].as_py())
    return f" (first at {shown[:80]})" if _fails(array.slice(low, 1), field.type) else ""


def _fails(array: Any, type_: Any) -> bool:
    try:
        to_type(array, type_)
    except (pa.ArrowException, ValueError):
        return True
    return False


def _no_nulls(array: Any, field: Any) -> None:
    """Arrow lets nulls into NOT NULL columns, fields and items without a word. Below a null nothing counts."""
    if not field.nullable and array.null_count:
        raise ValueProblem("a null, and the column is NOT NULL")
    children = [child for child in _children(field.type) if not child.nullable or _strict(child.type)]
    if not children:
        return
    sliced = pa.types.is_map(field.type)  # `items` of a slice would be those of all rows
    present = array.filter(array.is_valid()) if array.null_count or sliced else array
    for child in children:
        if pa.types.is_struct(field.type):
            _no_nulls(pc.struct_field(present, [child.name]), child)
        elif pa.types.is_map(field.type):
            _no_nulls(present.items, child)
        else:
            _no_nulls(present.flatten(), child)


def _children(type_: Any) -> list[Any]:
    """Of a map the values: its keys are never null."""
    if pa.types.is_struct(type_):
        return list(type_)
    if pa.types.is_map(type_):
        return [type_.item_field]
    return [type_.value_field] if _is_list(type_) else []


def _strict(type_: Any) -> bool:
    return any(not child.nullable or _strict(child.type) for child in _children(type_))


def _is_list(type_: Any) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def to_type(array: Any, type_: Any) -> Any:
    """As pyarrow casts, but never with loss where it would be silent about it. Raises ArrowException or ValueError.
    A time without a zone counts as UTC; a fraction may be rounded to a smaller float or to a decimal."""
    source = array.type
    types = pa.types
    if source == type_:
        return array
    if types.is_null(source):
        return pa.nulls(len(array), type_)
    if isinstance(type_, pa.BaseExtensionType):
        return _to_extension(array, type_)
    if isinstance(source, pa.BaseExtensionType):
        return to_type(array.storage, type_)
    if types.is_dictionary(source) and not types.is_dictionary(type_):
        return to_type(array.dictionary_decode(), type_)
    if types.is_dictionary(type_) and not types.is_dictionary(source):
        return to_type(array, type_.value_type).dictionary_encode().cast(type_)
    if _is_list(source) and _is_list(type_):
        return _to_list(array, type_)
    if types.is_struct(source) and types.is_struct(type_):
        return _to_struct(array, type_)
    return _to_plain(array, type_)


def _to_plain(array: Any, type_: Any) -> Any:
    source = array.type
    types = pa.types
    if types.is_timestamp(source) and (types.is_date(type_) or types.is_time(type_)):
        raise ValueProblem(f"{source} says more than {type_}")
    if types.is_boolean(type_) and not (types.is_string(source) or types.is_large_string(source)):
        raise ValueProblem(f"{source} is neither true nor false")
    if types.is_time(type_) and types.is_string(source):
        text = pc.binary_join_element_wise("1970-01-01T", array, "")
        return text.cast(pa.timestamp(type_.unit)).cast(type_)
    if types.is_integer(source) and types.is_decimal(type_):
        wide = pa.decimal256(76, type_.scale) if type_.scale <= 56 else type_
        return array.cast(wide).cast(type_)
    result = array.cast(type_)
    if types.is_floating(source) and types.is_floating(type_) and type_.bit_width < source.bit_width:
        lost = pc.and_(pc.is_inf(result.cast(pa.float64())), pc.is_finite(array.cast(pa.float64())))
        if pc.any(lost).as_py():
            raise ValueProblem(f"a value is too large for {type_}")
    return result


def _to_list(array: Any, type_: Any) -> Any:
    """Items first, by the same rules; then the lists, with every length looked at where it is fixed."""
    if pa.types.is_fixed_size_list(type_):
        if pa.types.is_fixed_size_list(array.type) and array.type.list_size != type_.list_size:
            raise ValueProblem(f"a list of {array.type.list_size} items, and the column has {type_.list_size}")
        lengths = pc.list_value_length(array)
        other = pc.not_equal(lengths, type_.list_size)
        if pc.any(other).as_py():
            found = lengths.filter(other)[0].as_py()
            raise ValueProblem(f"a list of {found} items, and the column has {type_.list_size}")
    if array.type.value_type == type_.value_type:
        return array.cast(type_)
    valid = array.is_valid() if array.null_count else None
    present = array if valid is None else array.filter(valid)
    items = to_type(present.flatten(), type_.value_type)
    if pa.types.is_fixed_size_list(type_):
        made = pa.FixedSizeListArray.from_arrays(items, type=type_)
    else:
        sizes = pc.list_value_length(present).cast(pa.int64())
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(sizes)])
        kind, width = (pa.LargeListArray, pa.int64()) if pa.types.is_large_list(type_) else (pa.ListArray, pa.int32())
        made = kind.from_arrays(offsets.cast(width), items, type=type_)
    if valid is None:
        return made
    places = pc.if_else(valid, pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1), None)
    return made.take(places)


def _to_struct(array: Any, type_: Any) -> Any:
    have = {field.name for field in array.type}
    if len(array.type) and not have & {field.name for field in type_}:
        raise ValueProblem(f"{array.type} has no field of {type_}")
    children = []
    for field in type_:
        if field.name in have:
            child = to_type(pc.struct_field(array, [field.name]), field.type)
        elif field.nullable:
            child = pa.nulls(len(array), field.type)
        else:
            raise ValueProblem(f"the field {field.name!r} is missing and NOT NULL")
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=array.is_null() if array.null_count else None)


def _to_extension(array: Any, type_: Any) -> Any:
    """A blob of Lance is a struct with the bytes in `data`; of any other type the storage is cast."""
    storage = type_.storage_type
    if type_.extension_name == "lance.blob.v2" and not pa.types.is_struct(array.type):
        children = [to_type(array, storage.field(0).type)]
        children += [pa.nulls(len(array), storage.field(i).type) for i in range(1, storage.num_fields)]
        mask = array.is_null() if array.null_count else None
        made = pa.StructArray.from_arrays(children, fields=list(storage), mask=mask)
    else:
        made = to_type(array, storage)
    return pa.ExtensionArray.from_storage(type_, made)
