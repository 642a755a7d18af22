"""The content checksum of a table: the same for the same rows, whatever their order, fragments, files or compaction.

Every cell gets a 64-bit hash of its value, twice with different seeds; a row is the mix of its cells, each bound to the
name of its column; the table is the sum of its rows modulo 2**64, twice: 128 bits. Sums do not care about order and add
up over fragments. It finds accidents (a lost row, a changed cell, a doubled file), not forgery.

What is one value: every NaN is the same, -0.0 is not 0.0, a dictionary counts by its values, a blob by its content, a
null differs from everything else, a map counts entry by entry as stored. A row's hash never depends on other rows.

The module stands alone and imports nothing of ours: Spark carries it to executors that do not have this program.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

VERSION = "v1"
"""Of the encoding: sums of two versions cannot be compared."""
SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_U64 = np.uint64
_STEP = _U64(0x9E3779B97F4A7C15)
_NULL = _U64(0x5BF0_3635_DEC3_8D1F)
_ONES = _U64(0xFFFF_FFFF_FFFF_FFFF)
Words = Any
"""A numpy array of uint64."""


class UnknownType(ValueError):
    """A column whose type has no encoding."""


def row_hashes(batch: Any, seed: int) -> Words:
    """One hash for each row of a RecordBatch. The order of the columns does not count."""
    total = np.zeros(batch.num_rows, _U64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        total += _mixed(_hashes(column, seed) ^ _name(name, seed))
    return _mixed(total)


def add_rows(sums: tuple[int, int], batch: Any) -> tuple[int, int]:
    first, second = (int(row_hashes(batch, seed).sum(dtype=_U64)) for seed in SEEDS)
    return added(sums, (first, second))


def added(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return (one[0] + other[0]) % 2**64, (one[1] + other[1]) % 2**64


def shown(sums: tuple[int, int]) -> str:
    return f"{VERSION}:{sums[0]:016x}{sums[1]:016x}"


def _mixed(words: Words) -> Words:
    """The finaliser of MurmurHash3: every bit of the input changes half of the output's."""
    words = words ^ (words >> _U64(33))
    words *= _U64(0xFF51AFD7ED558CCD)
    words ^= words >> _U64(33)
    words *= _U64(0xC4CEB9FE1A85EC53)
    words ^= words >> _U64(33)
    return words


def _name(name: str, seed: int) -> Any:
    digest = hashlib.blake2b(name.encode(), digest_size=8, key=seed.to_bytes(8, "little")).digest()
    return _U64(int.from_bytes(digest, "little"))


def _hashes(array: Any, seed: int) -> Words:
    """One hash for each value. What stands in a null slot is arbitrary, so it is replaced at the end."""
    if isinstance(array, pa.ExtensionArray):
        return _hashes(array.storage, seed)
    if pa.types.is_dictionary(array.type):
        return _hashes(array.dictionary_decode(), seed)
    if pa.types.is_null(array.type):
        return np.full(len(array), _NULL, _U64)
    hashes = _values(array, seed)
    if array.null_count:
        hashes[_nulls(array)] = _NULL
    return hashes


def _values(array: Any, seed: int) -> Words:
    types, type_ = pa.types, array.type
    if types.is_struct(type_):
        total = np.zeros(len(array), _U64)
        for number, field in enumerate(type_):
            total += _mixed(_hashes(array.field(number), seed) ^ _name(field.name, seed))
        return _mixed(total + _U64(seed))
    if types.is_map(type_):
        offsets = _offsets(array)
        keys, items = _lists(array.keys, offsets, seed), _lists(array.items, offsets, seed)
        return _mixed(keys ^ _mixed(items + _STEP))
    if types.is_list(type_) or types.is_large_list(type_):
        return _lists(array.values, _offsets(array), seed)
    if types.is_fixed_size_list(type_):
        size = type_.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
        return _lists(items, _even(len(array), size), seed)
    if types.is_string(type_) or types.is_binary(type_):
        return _bytes(_buffer(array, 2), _buffer_of(array, np.int32), seed)
    if types.is_large_string(type_) or types.is_large_binary(type_):
        return _bytes(_buffer(array, 2), _buffer_of(array, np.int64), seed)
    plain = _fixed(array)
    if plain is None:
        raise UnknownType(f"the type {type_} has no checksum")
    width = plain.itemsize
    if width > 8 or plain.dtype.kind == "V":
        return _bytes(plain.view(np.uint8), _even(len(array), width), seed)
    return _mixed(plain.astype(f"u{width}", copy=False).astype(_U64) * _STEP ^ _U64(seed))


def _lists(items: Any, offsets: Words, seed: int) -> Words:
    """Items by their position. Plain numbers go as bytes, and the places of their nulls beside them."""
    if isinstance(items, pa.ExtensionArray):
        items = items.storage
    plain = _fixed(items)
    if plain is None:
        hashes = _hashes(items, seed) ^ _U64(seed)
        return _mixed(_summed(_mixed(hashes + _places(offsets, len(hashes)) * _STEP), offsets) + _lengths(offsets))
    nulls = _nulls(items) if items.null_count else None
    if nulls is not None:
        plain = plain.copy()
        plain[nulls] = np.zeros((), plain.dtype)
    hashes = _bytes(plain.view(np.uint8), offsets * plain.itemsize, seed)
    if nulls is not None:
        marks = _mixed(_places(offsets, len(items)) * _STEP ^ _NULL)
        hashes += _summed(np.where(nulls, marks, _U64(0)), offsets)
    return _mixed(hashes)


def _bytes(data: Words, offsets: Words, seed: int) -> Words:
    """Byte strings, eight bytes at a time, each with its position. The last word is filled up with zeros, which the
    length tells from zeros that were there."""
    lengths = np.diff(offsets)
    if not len(lengths):
        return np.zeros(0, _U64)
    each = int(lengths[0])
    if each and each % 8 == 0 and offsets[-1] - offsets[0] == each * len(lengths) and (lengths == each).all():
        words = np.frombuffer(data[offsets[0] : offsets[-1]].tobytes(), "<u8").reshape(len(lengths), each // 8)
        places = np.arange(each // 8, dtype=_U64) * _STEP
        sums = _words(words, places, seed).sum(axis=1, dtype=_U64)
        return _mixed(sums + _lengths(offsets))
    counts = (lengths + 7) // 8
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    number = np.arange(ends[-1])
    place = number - np.repeat(ends[:-1], counts)
    padded = np.concatenate([data[offsets[0] : offsets[-1]], np.zeros(8, np.uint8)])
    windows: Words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    words = windows[np.repeat(offsets[:-1] - offsets[0], counts) + place * 8]
    rest = lengths % 8
    short = rest > 0
    words[(ends[1:] - 1)[short]] &= _ONES >> (_U64(64) - rest[short].astype(_U64) * _U64(8))
    sums = _summed(_words(words, place.astype(_U64) * _STEP, seed), ends)
    return _mixed(sums + _lengths(offsets))


def _words(words: Words, places: Words, seed: int) -> Words:
    """Less mixing than elsewhere, because this is most of the work and the sums are mixed again."""
    words = words ^ _U64(seed)
    words += places
    words *= _U64(0xFF51AFD7ED558CCD)
    words ^= words >> _U64(32)
    return words


def _summed(values: Words, offsets: Words) -> Words:
    """The sum of each segment."""
    running = np.concatenate([np.zeros(1, _U64), np.cumsum(values, dtype=_U64)])
    sums: Words = running[offsets[1:]] - running[offsets[:-1]]
    return sums


def _lengths(offsets: Words) -> Words:
    return np.diff(offsets).astype(_U64) * _STEP


def _places(offsets: Words, count: int) -> Words:
    """The position of each item in its own list; of items that no list holds, anything."""
    places = np.arange(count, dtype=np.int64)
    lengths = np.diff(offsets)
    places[offsets[0] : offsets[-1]] -= np.repeat(offsets[:-1], lengths)
    return places.astype(_U64)


def _even(count: int, size: int) -> Words:
    return np.arange(count + 1, dtype=np.int64) * size


def _offsets(array: Any) -> Words:
    return array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)


def _buffer(array: Any, number: int) -> Words:
    buffer = array.buffers()[number]
    return np.frombuffer(buffer, np.uint8) if buffer is not None else np.zeros(0, np.uint8)


def _buffer_of(array: Any, dtype: Any) -> Words:
    """The offsets of strings."""
    if not len(array):
        return np.zeros(1, np.int64)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array) + 1].astype(np.int64)


def _nulls(array: Any) -> Words:
    return array.is_null().to_numpy(zero_copy_only=False)


def _fixed(array: Any) -> Words | None:
    """The values in a width of their own, or None for a type that has none. NaNs are made equal."""
    types, type_ = pa.types, array.type
    if types.is_boolean(type_):
        return array.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False)
    if not (types.is_primitive(type_) or types.is_decimal(type_) or types.is_fixed_size_binary(type_)):
        return None
    width = type_.bit_width // 8
    kind = "f" if types.is_floating(type_) else "u"
    dtype = np.dtype(f"<{kind}{width}" if width <= 8 and types.is_primitive(type_) else f"V{width}")
    if not len(array):
        return np.zeros(0, dtype)
    values = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    values = values.view(dtype) if values.flags.aligned else values.copy().view(dtype)
    if kind == "f":
        odd = np.isnan(values)
        if odd.any():
            values = np.where(odd, np.array(np.nan, dtype), values)
        values = values.view(f"<u{width}")
    return values
