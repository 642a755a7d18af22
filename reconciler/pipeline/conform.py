"""Values of a source as the table's types: what would change on the way is an error.

Stricter than `column_casts`, which serves a type change that somebody declared: here nobody has asked for one, so a
number is no truth value and a moment is no day. Only here lists and structs are gone into, field by field.

The module stands alone but for `column_casts`, as `checksum` does: Spark carries both to executors that do not have
this program.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.pipeline import column_casts

SHOWN = 20
"""Columns of a source that a message names."""


Convert = Callable[[Any, Any], Any]
"""Values and a type: the values in that type."""


class ValueProblem(ValueError):
    """What is wrong with a column's values, and at which place the first of them is."""

    def __init__(self, message: str, place: int | None = None) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True)
class Rules:
    """What a manifest lets a source differ in."""

    typed: bool = False
    """The source has types of its own, which must be of the same family as the declared ones. Texts (csv, json) become
    what is declared."""
    casts: frozenset[str] = frozenset()
    """Columns that may be cast to another family (`cast: true`)."""
    nulls: frozenset[str] = frozenset()
    """Columns that are null where the source lacks them (`missing: null`)."""
    units: tuple[tuple[str, str], ...] = ()
    """Columns of times that numbers of the source count, and in what (`unit: s`)."""

    @property
    def unit_of(self) -> dict[str, str]:
        return dict(self.units)

    folds: bool = False
    """The rows go through Spark, to which names that differ only in case are one."""

    def may_lack(self, field: Any) -> bool:
        return bool(field.nullable and field.name in self.nulls)


TEXT = Rules()


def conform(batch: Any, target: Any, wanted: Mapping[str, str], rules: Rules = TEXT) -> Any:
    """The batch with exactly the target's columns. `wanted`: column of the target -> column of the batch."""
    need_columns(batch.schema.names, target, wanted, rules)
    arrays = []
    for field in target:
        index = batch.schema.get_field_index(wanted[field.name])
        array = batch.column(index) if index >= 0 else pa.nulls(batch.num_rows, field.type)
        if problem := type_problem(array.type, field, rules):
            raise ValueProblem(f"column {field.name!r}: {problem}")
        convert = converter(array.type, field, rules)
        try:
            made = convert(array, field.type)
            _no_nulls(made, field)
        except (pa.ArrowException, ValueError) as error:
            place = _first_bad(array, field, convert)
            first = f" (first at {repr(array[place].as_py())[:80]})" if place is not None else ""
            raise ValueProblem(f"column {field.name!r}: {error}{first}", place) from error
        arrays.append(made)
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def need_columns(have: Sequence[str], target: Any, wanted: Mapping[str, str], rules: Rules) -> None:
    """Raises ValueProblem when a column is missing that may not be, or is there more than once."""
    if double := ambiguous(have, target, wanted, rules):
        raise ValueProblem(double)
    if missing := missing_fields(have, target, wanted, rules):
        raise ValueProblem(lacking(missing, have, wanted))


def ambiguous(have: Sequence[str], target: Any, columns: Mapping[str, str], rules: Rules) -> str | None:
    """Why it is not plain which column of the source is meant by one of the table: there are two of the name, or Spark
    would take another one for it."""
    wanted = {columns.get(field.name, field.name): field for field in target}
    if double := repeated(have, wanted):
        return f"the source has more than one column {double!r}: rename one of them"
    alike: dict[str, list[str]] = {}
    for name in have if rules.folds else ():
        alike.setdefault(name.lower(), []).append(name)
    for name, field in wanted.items():
        found = alike.get(name.lower(), [name])
        if len(found) > 1:
            named = " and ".join(repr(one) for one in found)
            return f"the source has the columns {named}, which are one column to Spark: rename one of them"
        if found != [name] and rules.may_lack(field):
            return f"the source has {found[0]!r} and not {name!r}, which are one column to Spark: rename it"
    return None


def repeated(have: Sequence[str], names: Iterable[str]) -> str | None:
    """The first of the names that is there more than once, so that nothing says which one is meant."""
    return next((name for name in names if have.count(name) > 1), None)


def missing_fields(have: Sequence[str], target: Any, columns: Mapping[str, str], rules: Rules) -> list[Any]:
    """The fields that the source must have and lacks; all of them when it has none: that is another source."""
    there = set(have)
    lacks = [f for f in target if columns.get(f.name, f.name) not in there]
    return lacks if len(lacks) == len(target) else [f for f in lacks if not rules.may_lack(f)]


def lacking(missing: Sequence[Any], have: Sequence[str], columns: Mapping[str, str]) -> str:
    """The message about fields of the table that the source has no columns for."""
    names = [columns.get(f.name, f.name) for f in missing]
    quoted = ", ".join(repr(name) for name in names)
    shown = f"{', '.join(have[:SHOWN])}{f' and {len(have) - SHOWN} more' if len(have) > SHOWN else ''}"
    near = {f.name: found for f, name in zip(missing, names, strict=True) if (found := _nearest(name, have))}
    example = f": {{{', '.join(f'{name}: {found}' for name, found in near.items())}}}" if near else ""
    ways = [f"map {'it' if len(missing) == 1 else 'them'} with `columns{example}`"]
    if any(f.nullable for f in missing):
        ways.append("`missing: null`")
    if strict := [f.name for f in missing if not f.nullable]:
        ways[-1] += f" ({', '.join(strict)} {'is' if len(strict) == 1 else 'are'} NOT NULL)"
    kind = "column" if len(missing) == 1 else "columns"
    return f"the source has no {kind} {quoted}; it has {shown or 'none'}: {', or '.join(ways)}"


def _nearest(name: str, have: Sequence[str]) -> str | None:
    spelt = {other.lower(): other for other in have}
    return next((spelt[found] for found in difflib.get_close_matches(name.lower(), spelt, 1, 0.8)), None)


def converter(given: Any, field: Any, rules: Rules) -> Convert:
    """What makes the values of a type those of the field, once `type_problem` has found nothing."""
    if (unit := rules.unit_of.get(field.name)) is not None and column_casts.counts_time(given, field.type):
        return partial(_from_counts, unit)
    crosses = rules.typed and field.name in rules.casts and _apart(given, field.type) is not None
    crosses = crosses or (rules.typed and field.name in rules.casts and _rounds(given, field.type))
    return column_casts.cast if crosses else to_type


def _from_counts(unit: str, array: Any, type_: Any) -> Any:
    counts = to_type(array, _times(array.type, type_, None))
    return to_type(column_casts.cast(counts, _times(array.type, type_, unit)), type_)


def _times(given: Any, wanted: Any, unit: str | None) -> Any:
    """The source's type with integers for the numbers that count, or with times of that unit."""
    given, wanted = _plain(given), _plain(wanted)
    if column_casts.is_number(given) and column_casts.is_time(wanted):
        return pa.int64() if unit is None else _of_unit(wanted, unit)
    match _kind(given) if _kind(given) == _kind(wanted) else None:
        case "struct":
            types = {f.name: f.type for f in wanted}
            return pa.struct([f.with_type(_times(f.type, types.get(f.name, f.type), unit)) for f in given])
        case "map":
            key, item = (_times(a, b, unit) for a, b in _pairs(given, wanted))
            return pa.map_(key, item)
        case "list":
            return pa.list_(_times(given.value_type, wanted.value_type, unit))
    return given


def _of_unit(wanted: Any, unit: str) -> Any:
    if pa.types.is_duration(wanted):
        return pa.duration(unit)
    if pa.types.is_timestamp(wanted):
        return pa.timestamp(unit, "UTC" if wanted.tz else None)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _rounds(given: Any, wanted: Any) -> bool:
    """Does a decimal become a float, at any depth?"""
    given, wanted = _plain(given), _plain(wanted)
    if pa.types.is_decimal(given):
        return bool(pa.types.is_floating(wanted))
    return any(_rounds(a, b) for a, b in _pairs(given, wanted))


# families of types


def type_problem(given: Any, field: Any, rules: Rules) -> str | None:
    """Why a source with types has another family than the field, or lacks fields inside of it. A cast that is asked for
    is about the family alone: fields that are not there are no matter of types."""
    if not rules.typed:
        return None
    if lost := _lost(given, field.type, field.name in rules.nulls):
        return lost
    unit = rules.unit_of.get(field.name)
    if column_casts.counts_time(given, field.type):
        return f"the source has {given}, and {uncounted(field)}" if unit is None else None
    if unit is not None and not pa.types.is_null(given):
        return f"`unit` is for numbers, and the source has {given}: remove it"
    why = _apart(given, field.type) if field.name not in rules.casts else None
    return why and f"{why}: cast it in the source, or write `columns: {{{field.name}: {{cast: true}}}}`"


def uncounted(field: Any) -> str:
    hint = f"write `columns: {{{field.name}: {{unit: s}}}}` (or ms, us, ns)"
    return f"nothing says what its numbers count: {hint}"


def _lost(given: Any, wanted: Any, lackable: bool) -> str | None:
    given, wanted = _plain(given), _plain(wanted)
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        have = [f.name for f in given]
        lacks = [f for f in wanted if f.name not in have]
        if len(lacks) < len(wanted):
            lacks = [f for f in lacks if not (lackable and f.nullable)]
        if lacks:
            return lost_fields(lacks, have)
        if double := repeated(have, (f.name for f in wanted)):
            return f"its struct has more than one field {double!r}"
    return next((why for a, b in _pairs(given, wanted) if (why := _lost(a, b, lackable))), None)


def lost_fields(lacks: Sequence[Any], have: Sequence[str]) -> str:
    """The message about fields of a struct that the source does not have."""
    near = {f.name: found for f in lacks if (found := _nearest(f.name, have))}
    meant = f" (did you mean {', '.join(near.values())}?)" if near else ""
    null = ", or write `missing: null`" if all(f.nullable for f in lacks) else ""
    names = ", ".join(repr(f.name) for f in lacks)
    return f"its struct has no field {names}{meant}; it has {', '.join(have) or 'none'}: add it in the source{null}"


def _apart(given: Any, wanted: Any) -> str | None:
    given, wanted = _plain(given), _plain(wanted)
    if pa.types.is_null(given) or given == wanted:
        return None
    if _kind(given) is None or _kind(given) != _kind(wanted):
        same = _family(given) == _family(wanted)
        return None if same else f"the source has {given} ({_family(given)}), the table {wanted} ({_family(wanted)})"
    return next((why for a, b in _pairs(given, wanted) if (why := _apart(a, b))), None)


def _kind(type_: Any) -> str | None:
    types = pa.types
    if types.is_struct(type_):
        return "struct"
    return "map" if types.is_map(type_) else "list" if _is_list(type_) else None


def _pairs(given: Any, wanted: Any) -> list[tuple[Any, Any]]:
    """The types inside of two types of one kind that belong together."""
    match _kind(given) if _kind(given) == _kind(wanted) else None:
        case "struct":
            have = {f.name: f.type for f in given}
            return [(have[f.name], f.type) for f in wanted if f.name in have]
        case "map":
            return [(given.key_type, wanted.key_type), (given.item_type, wanted.item_type)]
        case "list":
            return [(given.value_type, wanted.value_type)]
    return []


def unused_fields(given: Any, wanted: Any, name: str) -> list[str]:
    """Fields inside of a source's column that the table does not have, as `column.field`."""
    given, wanted = _plain(given), _plain(wanted)
    if _kind(given) == _kind(wanted) == "struct":
        types = {f.name: f.type for f in wanted}
        own = [f"{name}.{f.name}" for f in given if f.name not in types]
        return own + [
            n for f in given if f.name in types for n in unused_fields(f.type, types[f.name], f"{name}.{f.name}")
        ]
    return [n for a, b in _pairs(given, wanted) for n in unused_fields(a, b, name)]


def _plain(type_: Any) -> Any:
    """Without encodings; a blob of Lance is bytes."""
    if isinstance(type_, pa.BaseExtensionType):
        return pa.large_binary() if type_.extension_name == "lance.blob.v2" else _plain(type_.storage_type)
    return _plain(type_.value_type) if pa.types.is_dictionary(type_) else type_


def _family(type_: Any) -> str:
    types = pa.types
    families = {
        "number": types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_),
        "text": types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_),
        "bytes": _is_bytes(type_),
        "truth value": types.is_boolean(type_),
        "date": types.is_date(type_),
        "time of day": types.is_time(type_),
        "timestamp": types.is_timestamp(type_),
        "duration": types.is_duration(type_),
        "list": _is_list(type_),
    }
    return next((name for name, found in families.items() if found), str(type_).partition("<")[0])


def _is_bytes(type_: Any) -> bool:
    types = pa.types
    wide = types.is_binary(type_) or types.is_large_binary(type_) or types.is_binary_view(type_)
    return bool(wide or types.is_fixed_size_binary(type_))


def _first_bad(array: Any, field: Any, convert: Convert) -> int | None:
    """The place of the first value that fails alone; None when none does."""
    low, high = 0, len(array)
    if array.type == field.type or not high:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fails(array.slice(low, middle - low), field.type, convert) else (middle, high)
    return low if _fails(array.slice(low, 1), field.type, convert) else None


def _fails(array: Any, type_: Any, convert: Convert) -> bool:
    try:
        convert(array, type_)
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
    if types.is_integer(source) and types.is_float16(type_):
        return column_casts.cast(array, type_)  # Arrow would make infinity of what is too large.
    if types.is_decimal(source) and types.is_floating(type_):
        result = column_casts.cast(array, type_)
        column_casts.need_digits_kept(array, result)
        return result
    result = array.cast(type_)
    column_casts.need_finite(array, result)
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
