"""The values of a column in another type: all of them unchanged in meaning, or an error that shows the first that is
not. Arrow's safe casts, and what they lack: numbers that count units of time, bytes that hold text, times of day in
text, blobs.

For a change that a manifest declares; what a source brings goes through `conform`, which guesses at nothing.

The module stands alone, as `checksum` does: Spark carries it to executors that do not have this program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_UTC = ("UTC", "Etc/UTC", "GMT", "+00:00")
_HAS_ZONE = r"(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"
_HAS_TIME = r"\d[ Tt]\d"
_HEXADECIMAL = r"^-?0[xX]"
_INFINITE = r"(?i)^\s*[+-]?inf"
SHOWN = 80
_PROBLEMS: tuple[type[Exception], ...] = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


class Misfit(ValueError):
    """A value that does not fit."""


def cast(values: Any, wanted: Any) -> Any:
    """Raises ArrowInvalid when a value does not fit, ArrowNotImplementedError or ArrowTypeError when none would."""
    made = _cast(values, wanted)
    need_finite(values, made)
    return made


def need_finite(values: Any, made: Any) -> None:
    """Arrow makes infinity of a number that is too large for the new type. Raises ArrowInvalid."""
    if (count := infinities(made)) and count > infinities(values):
        raise pa.ArrowInvalid(f"a number is too large for {made.type}")


def need_digits_kept(decimals: Any, floats: Any) -> None:
    """A float has 15 digits of a decimal (float32: 6): more of them are lost without a word. Raises ArrowInvalid."""
    try:
        kept = floats.cast(pa.string()).cast(decimals.type).equals(decimals)
    except pa.ArrowInvalid:
        kept = False
    if not kept:
        raise pa.ArrowInvalid(f"{floats.type} does not have all digits of a value")


def infinities(values: Any) -> int:
    """How many values are infinite, or texts that say so, at any depth."""
    types = pa.types
    kind = values.type
    if isinstance(values, pa.ExtensionArray):
        return infinities(values.storage)
    if types.is_dictionary(kind):
        return infinities(values.dictionary_decode())
    if types.is_struct(kind):
        return sum(infinities(part) for part in values.flatten())
    if types.is_map(kind):
        start, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
        return infinities(values.keys[start:end]) + infinities(values.items[start:end])
    if types.is_nested(kind):
        return infinities(values.flatten())
    if types.is_floating(kind):
        found = pc.is_inf(values.cast(pa.float64()))
    elif _is_text(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        found = pc.match_substring_regex(values, _INFINITE)
    else:
        return 0
    return pc.sum(found).as_py() or 0


def _cast(values: Any, wanted: Any) -> Any:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if values.type == wanted:
        return values
    types = pa.types
    if isinstance(wanted, pa.BaseExtensionType):
        return _blobs(values)
    if types.is_dictionary(values.type):
        return _cast(values.dictionary_decode(), wanted)
    if types.is_dictionary(wanted):
        return _cast(values, wanted.value_type).dictionary_encode().cast(wanted)
    if _is_text(values.type) and types.is_timestamp(wanted) and wanted.tz in _UTC:
        return _instants(values.cast(pa.string()), wanted)
    if _is_text(values.type) and types.is_time(wanted):
        return _times_of_day(values.cast(pa.string()), wanted)
    if _is_text(values.type) and types.is_integer(wanted):
        _need_digits(values)
    if types.is_boolean(wanted) and is_number(values.type):
        return _truths(values)
    if types.is_integer(values.type) and types.is_decimal(wanted):
        return values.cast(pa.string()).cast(wanted)  # Arrow would ask for room for all integers.
    if types.is_decimal(values.type) and types.is_floating(wanted):
        return _floats(values, wanted)
    if types.is_integer(values.type) and types.is_float16(wanted):
        return _halves(values, wanted)
    if types.is_integer(values.type) and types.is_time(wanted):
        return _within_a_day(values.cast(pa.int32() if types.is_time32(wanted) else pa.int64()), wanted)
    try:
        return values.cast(wanted)
    except pa.ArrowNotImplementedError:
        between = _between(values.type, wanted)
        if between is None:
            raise
        return _cast(_cast(values, between), wanted)


def counts_time(found: Any, wanted: Any) -> bool:
    """Are there numbers that are to become times, at any depth? Nothing in them says what they count."""
    found, wanted = _values(found), _values(wanted)
    types = pa.types
    if is_number(found):
        return is_time(wanted)
    if types.is_struct(found) and types.is_struct(wanted):
        there = {field.name: field.type for field in found}
        return any(counts_time(there[f.name], f.type) for f in wanted if f.name in there)
    if types.is_map(found) and types.is_map(wanted):
        return counts_time(found.key_type, wanted.key_type) or counts_time(found.item_type, wanted.item_type)
    both = hasattr(found, "value_type") and hasattr(wanted, "value_type")
    return both and counts_time(found.value_type, wanted.value_type)


def is_time(type_: Any) -> bool:
    types = pa.types
    return bool(types.is_timestamp(type_) or types.is_duration(type_) or types.is_time(type_))


def _values(type_: Any) -> Any:
    if isinstance(type_, pa.BaseExtensionType):
        return _values(type_.storage_type)
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def need_cast(name: str, found: Any, wanted: Any) -> None:
    """Raises Misfit when no value of the one type has a counterpart in the other, or when nothing says which one."""
    if counts_time(found, wanted):
        raise Misfit(
            f"column {name}: {found} cannot be made {wanted}: nothing says what the numbers count; SQL "
            "does with to_timestamp_seconds(x), or _millis, _micros, _nanos, and with arrow_cast(x, 'Duration(Second)')"
        )
    error = _problem(pa.nulls(1, found), wanted)
    if error is not None:
        raise Misfit(f"column {name}: {found} cannot be made {wanted}: {_line(error)}") from error


def cast_all(name: str, values: Any, wanted: Any) -> Any:
    """Raises Misfit with the first value that does not fit."""
    try:
        return cast(values, wanted)
    except _PROBLEMS as error:
        first = _first_misfit(values, wanted)
        alone = _problem(first, wanted)
        told = f"the value {shown(first)}" if alone is not None else "a value"
        raise Misfit(f"column {name}: {told} cannot be made {wanted}: {_line(alone or error)}") from error


def misfits(values: Any, wanted: Any, start: int = 0) -> Iterator[int]:
    """The places of the values that do not fit, in order; of several that only together do not fit, the first."""
    if _problem(values, wanted) is None:
        return
    if len(values) <= 1:
        yield start
        return
    half = len(values) // 2
    found = False
    for part, at in ((_part(values, 0, half), start), (_part(values, half, len(values)), start + half)):
        for place in misfits(part, wanted, at):
            found = True
            yield place
    if not found:
        yield start


def _first_misfit(values: Any, wanted: Any) -> Any:
    """As an array of one value, which fits when only several together do not."""
    while len(values) > 1:
        half = _part(values, 0, len(values) // 2)
        values = _part(values, len(half), len(values)) if _problem(half, wanted) is None else half
    return values


def _part(values: Any, start: int, end: int) -> Any:
    """Without the items of other rows: Arrow casts all items that a slice of lists or maps still holds."""
    return values.take(pa.array(range(start, end))) if pa.types.is_nested(values.type) else values[start:end]


def _problem(values: Any, wanted: Any) -> Exception | None:
    try:
        cast(values, wanted)
    except _PROBLEMS as error:
        return error
    return None


def shown(values: Any) -> str:
    text = repr(values[0].as_py())
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _is_text(type_: Any) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def is_number(type_: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def _between(found: Any, wanted: Any) -> Any:
    """The type on the way for which Arrow has both casts, or None."""
    types = pa.types
    numbers = (is_number(found), is_number(wanted))
    if types.is_binary(found) or types.is_large_binary(found) or types.is_fixed_size_binary(found):
        ways = [pa.string()]
    elif all(numbers) or (any(numbers) and _counts(wanted if numbers[0] else found)):
        ways = [pa.int64(), pa.int32()] if not all(numbers) else [pa.float64()]
    elif _is_text(found) and types.is_duration(wanted):
        ways = [pa.int64()]
    else:
        return None
    return next((way for way in ways if way != found and _has_cast(found, way) and _goes_on(way, wanted)), None)


def _counts(type_: Any) -> bool:
    return bool(pa.types.is_temporal(type_) or pa.types.is_boolean(type_))


def _goes_on(way: Any, wanted: Any) -> bool:
    """By Arrow's own cast, or by one of those above."""
    counted = pa.types.is_integer(way) and pa.types.is_decimal(wanted)
    told = _is_text(way) and (pa.types.is_time(wanted) or pa.types.is_duration(wanted))
    return counted or told or _has_cast(way, wanted)


def _has_cast(found: Any, wanted: Any) -> bool:
    try:
        pa.array([], found).cast(wanted)
    except _PROBLEMS:
        return False
    return True


def _need_digits(texts: Any) -> None:
    """Arrow takes `0x10` for 16."""
    if pc.any(pc.match_substring_regex(texts, _HEXADECIMAL)).as_py():
        raise pa.ArrowInvalid("a number is written in decimal digits, without 0x")


def _instants(texts: Any, wanted: Any) -> Any:
    """What names no zone is taken for UTC, as in SQL; Arrow would refuse it."""
    zoned = pc.and_(pc.match_substring_regex(texts, _HAS_ZONE), pc.match_substring_regex(texts, _HAS_TIME))
    nothing = pa.scalar(None, pa.string())
    known = pc.if_else(zoned, texts, nothing).cast(wanted)
    local = pc.if_else(zoned, nothing, texts).cast(pa.timestamp(wanted.unit)).cast(wanted)
    return pc.coalesce(known, local)


def _times_of_day(texts: Any, wanted: Any) -> Any:
    moments = pc.binary_join_element_wise(pa.scalar("1970-01-01T"), texts, pa.scalar(""))
    return moments.cast(pa.timestamp(wanted.unit)).cast(wanted)


def _halves(whole: Any, wanted: Any) -> Any:
    """Arrow makes infinity of what is too large, and rounds beyond 2048; of other floats it refuses both."""
    made = whole.cast(wanted)
    if not made.cast(pa.float64()).equals(whole.cast(pa.float64())):
        raise pa.ArrowInvalid("an integer that float16 does not have")
    return made


def _floats(decimals: Any, wanted: Any) -> Any:
    """The nearest: what Arrow computes is often the one beside it."""
    texts = decimals.cast(pa.string())
    return texts.cast(pa.float64()).cast(wanted) if pa.types.is_float16(wanted) else texts.cast(wanted)


def _within_a_day(counted: Any, wanted: Any) -> Any:
    """Arrow takes any number for a time of day."""
    day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[wanted.unit]
    if pc.any(pc.or_(pc.less(counted, 0), pc.greater_equal(counted, day))).as_py():
        raise pa.ArrowInvalid("a number outside of a day is no time of day")
    return counted.cast(wanted)


def _truths(numbers: Any) -> Any:
    """0 and 1, and no other number."""
    whole = cast(numbers, pa.int64())
    truths = whole.cast(pa.bool_())
    if not truths.cast(pa.int64()).equals(whole):
        raise pa.ArrowInvalid("only 0 and 1 are truth values")
    return truths


def _blobs(values: Any) -> Any:
    import lance

    return lance.blob_array(values.cast(pa.large_binary()).to_pylist())


def need_readable(uri: str, fragment: Any, columns: dict[str, str], schema: Any, options: Any) -> None:
    """pylance 14 writes dictionaries whose index is smaller than 32 bits so that nobody can read the column once a file
    has many rows, and says nothing. So what was written of such columns is read back before it is committed.
    `columns`: what those are called in the end that have another name now. Raises Misfit."""
    from lance.file import LanceFileReader

    small = [field.name for field in schema if _small_dictionary(field.type)]
    for file in fragment.files if small else ():
        reader = LanceFileReader(f"{uri}/data/{file.path}", options)
        here = [name for name in small if name in reader.metadata().schema.names]
        if not here:
            continue
        try:
            for _ in LanceFileReader(f"{uri}/data/{file.path}", options, columns=here).read_all().to_batches():
                pass
        except Exception as error:
            names = " and ".join(columns.get(name, name) for name in here)
            raise Misfit(
                f"column {names}: Lance cannot read what it wrote of a dictionary with a small index: declare it with "
                f"the index int32 ({_line(error)})"
            ) from error


def _small_dictionary(type_: Any) -> bool:
    types = pa.types
    if types.is_dictionary(type_):
        return bool(type_.index_type.bit_width < 32)
    if isinstance(type_, pa.BaseExtensionType):
        return _small_dictionary(type_.storage_type)
    return any(_small_dictionary(type_.field(n).type) for n in range(type_.num_fields))
