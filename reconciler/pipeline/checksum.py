"""The content checksum of a table: the same for the same rows, whatever their order, fragments, files or compaction.

Every word of 64 bits is mixed fully before anything is summed, by the finaliser of SplitMix64 (Stafford's variant 13:
every bit of the input changes half of the output's). Before that it is joined with keys of its column, its type, its
position in the value and the length of the value. The words of a cell add up and are mixed again, so are the cells of a
row; the table is the sum of its rows modulo 2**64. All of that happens twice with keys that have nothing to do with
each other: 128 bits. Sums do not care about order and add up over fragments. It finds accidents (a lost row, a changed
cell, a doubled file), not forgery.

Why numpy: of the libraries that executors have (pylance brings numpy and pyarrow), none hashes Arrow columns by value;
xxhash and the like are called once for each value. The mixer is eight vectorised operations on blocks that stay in the
cache of a core.

What is one value: every NaN of a type is the same, -0.0 is not 0.0, a null is no value and differs from empty, zero and
NaN; a map counts entry by entry as stored. The type counts as `spelled` says: dictionaries and extensions by their
values, and without the width of offsets. A row's hash never depends on other rows.

The module stands alone and imports nothing of ours: Spark carries it to executors that do not have this program.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

VERSION = "v2"
"""Of the encoding: sums of two versions cannot be compared."""
_U64 = np.uint64
_STEP = _U64(0x9E3779B97F4A7C15)
_ONES = _U64(0xFFFF_FFFF_FFFF_FFFF)
_ROWS = 16_384
"""At a time."""
_WORDS = 32_768
"""At a time: what the mixer works on stays in the cache of a core."""
_FEW = 8
"""Words of a value that are added column by column, which is faster than a sum of short rows."""
Words = Any
"""A numpy array of uint64; where there are two rows, one for each half of the 128 bits."""
Path = tuple[Any, ...]
"""Where values stand: the name of a column, and the way to what is inside of it."""


class UnknownType(ValueError):
    """A column whose type has no encoding."""


def row_hashes(batch: Any) -> Words:
    """Two for each row of a RecordBatch: an array of shape (2, rows). The order of the columns does not count."""
    cells = [_cells(path, type_) for path, type_ in _children((), batch.schema)]
    last = _key("row")
    hashes = np.empty((2, batch.num_rows), _U64)
    for start in range(0, batch.num_rows, _ROWS):
        part = batch.slice(start, _ROWS)
        total = hashes[:, start : start + _ROWS]
        total[:] = last
        for cell, column in zip(cells, part.columns, strict=True):
            total += cell.hashes(column)
        _mixed(total)
    return hashes


def add_rows(sums: tuple[int, int], batch: Any) -> tuple[int, int]:
    first, second = (int(lane.sum(dtype=_U64)) for lane in row_hashes(batch))
    return added(sums, (first, second))


def added(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return (one[0] + other[0]) % 2**64, (one[1] + other[1]) % 2**64


def shown(sums: tuple[int, int]) -> str:
    return f"{VERSION}:{sums[0]:016x}{sums[1]:016x}"


def spelled(type_: Any) -> str:
    """A type as it counts, in words of our own: those of pyarrow change. A dictionary is the type of its values, an
    extension its storage; `large_` types are those without it. Names of fields count, their order, their nullability
    and the names that lists and maps give to what is inside of them do not."""
    types, type_ = pa.types, _bare(type_)
    if types.is_struct(type_):
        return f"struct<{', '.join(sorted(f'{path[1:]!r}: {spelled(t)}' for path, t in _children((), type_)))}>"
    if types.is_map(type_):
        return f"map<{spelled(type_.key_type)}, {spelled(type_.item_type)}>"
    if types.is_fixed_size_list(type_):
        return f"fixed_size_list<{spelled(type_.value_type)}>[{type_.list_size}]"
    if types.is_list(type_) or types.is_large_list(type_):
        return f"list<{spelled(type_.value_type)}>"
    return _spelled_plain(type_)


def _spelled_plain(type_: Any) -> str:
    types = pa.types
    if types.is_string(type_) or types.is_large_string(type_):
        return "string"
    if types.is_binary(type_) or types.is_large_binary(type_):
        return "binary"
    if types.is_fixed_size_binary(type_):
        return f"fixed_size_binary[{type_.byte_width}]"
    if types.is_decimal(type_):
        return f"decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if types.is_timestamp(type_):
        return f"timestamp[{type_.unit}, tz={type_.tz!r}]"
    if types.is_time(type_) or types.is_duration(type_):
        return f"{'duration' if types.is_duration(type_) else f'time{type_.bit_width}'}[{type_.unit}]"
    if types.is_date(type_):
        return f"date{type_.bit_width}"
    if types.is_floating(type_):
        return f"float{type_.bit_width}"
    return str(type_)


def _bare(type_: Any) -> Any:
    while isinstance(type_, pa.BaseExtensionType) or pa.types.is_dictionary(type_):
        type_ = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_.value_type
    return type_


def _children(path: Path, fields: Any) -> list[tuple[Path, Any]]:
    """Fields of a schema or a struct by their names; of those with one name, by their order too."""
    names: list[str] = [f.name for f in fields]
    return [((*path, "field", f.name, names[:number].count(f.name)), f.type) for number, f in enumerate(fields)]


def _key(*parts: Any) -> Words:
    """One for each half, of shape (2, 1)."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=16, person=b"table checksum").digest()
    return np.frombuffer(digest, "<u8").astype(_U64).reshape(2, 1)


def _mixed(words: Words) -> Words:
    """The finaliser of SplitMix64, in place."""
    other = words >> _U64(30)
    words ^= other
    words *= _U64(0xBF58476D1CE4E5B9)
    np.right_shift(words, _U64(27), out=other)
    words ^= other
    words *= _U64(0x94D049BB133111EB)
    np.right_shift(words, _U64(31), out=other)
    words ^= other
    return words


def _cells(path: Path, type_: Any) -> _Cells:
    """What hashes the values of a column, or of a part of one."""
    types, type_ = pa.types, _bare(type_)
    if types.is_null(type_):
        return _Nulls(path, type_)
    if types.is_struct(type_):
        return _Structs(path, type_)
    if types.is_map(type_):
        return _Maps(path, type_)
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return _Lists(path, type_)
    if _spelled_plain(type_) in ("string", "binary"):
        return _Bytes(path, type_)
    if _width(type_) is None:
        raise UnknownType(f"the type {type_} has no checksum")
    return _Fixed(path, type_)


class _Cells:
    """The hashes of values, two for each. The keys are those of the place and the type."""

    def __init__(self, path: Path, type_: Any) -> None:
        self.path = path
        self._is = (path, spelled(type_))
        self._null = _key("null", *self._is)
        self._last = _key("value", *self._is)
        self._places: dict[str, Words] = {}

    def hashes(self, array: Any) -> Words:
        """What stands in a null slot is arbitrary, so it is replaced at the end."""
        if isinstance(array, pa.ExtensionArray):
            return self.hashes(array.storage)
        if pa.types.is_dictionary(array.type):
            return self._of_dictionary(array)
        found = self.values(array)
        if array.null_count:
            found[:, _nulls(array)] = self._null
        return found

    def values(self, array: Any) -> Words:
        raise NotImplementedError

    def _of_dictionary(self, array: Any) -> Words:
        if len(array.dictionary) > len(array):
            return self.hashes(array.dictionary_decode())
        if not len(array.dictionary):
            return np.repeat(self._null, len(array), axis=1)
        each = self.hashes(array.dictionary)
        found = each[:, array.indices.fill_null(0).to_numpy(zero_copy_only=False)]
        if array.indices.null_count:
            found[:, _nulls(array.indices)] = self._null
        return found

    # what has more than one word

    def _lengths(self, lengths: Words) -> Words:
        """A key for each length, of shape (2, values). It joins every word of the value, and their sum."""
        return _mixed(lengths.astype(_U64) * _STEP + self._last)

    def _at(self, stop: int, start: int = 0, what: str = "place") -> Words:
        """A key for each position, of shape (2, stop - start). Those of long values are not kept."""
        if start or stop > _WORDS:
            return self._keys_of(what, start, stop)
        known = self._places.get(what)
        if known is None or known.shape[1] < stop:
            known = self._places[what] = self._keys_of(what, 0, stop)
        return known[:, :stop]

    def _keys_of(self, what: str, start: int, stop: int) -> Words:
        made = np.arange(start + 1, stop + 1, dtype=_U64) * _STEP + _key(what, *self._is)
        for lane in made:
            for first in range(0, len(lane), _WORDS):
                _mixed(lane[first : first + _WORDS])
        return made

    def _rows_of(self, words: Words, length: int) -> Words:
        """The sum of the words of values that have the same length. `words`: one row for each value."""
        rows, count = words.shape
        sums = np.zeros((2, rows), _U64)
        each = self._lengths(np.array([length]))
        for left in range(0, count, _WORDS):
            right = min(count, left + _WORDS)
            high = _WORDS // (right - left)
            for lane, key in enumerate(self._at(right, left) ^ each):
                for top in range(0, rows, high):
                    mixed = _mixed(words[top : top + high, left:right] ^ key)
                    sums[lane, top : top + high] += _across(mixed)
        return sums

    def _segments(self, words: Words, counts: Words, lengths: Words) -> Words:
        """The same for values that have `counts` words each, which stand one after the other. `words` has one row, or
        one for each half."""
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        place = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
        places = self._at(int(counts.max(initial=0)))
        each = self._lengths(lengths)
        sums = np.empty((2, len(counts)), _U64)
        for lane in range(2):
            keys = places[lane][place]
            keys ^= np.repeat(each[lane], counts)
            keys ^= words[lane % len(words)]
            sums[lane] = _summed(_mixed(keys), ends)
        return sums

    def _bytes(self, data: Words, offsets: Words) -> Words:
        """The sum for byte strings, eight bytes at a time. The last word is filled up with zeros, which the length
        tells from zeros that were there."""
        lengths = np.diff(offsets)
        if not len(lengths):
            return np.zeros((2, 0), _U64)
        each = int(lengths[0])
        if (lengths == each).all():
            rows = data[offsets[0] : offsets[-1]].reshape(len(lengths), each)
            return self._rows_of(_as_words(rows), each)
        counts = (lengths + 7) // 8
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        sums = np.empty((2, len(lengths)), _U64)
        start = 0
        while start < len(lengths):
            stop = max(start + 1, int(np.searchsorted(ends, ends[start] + _WORDS, "right")) - 1)
            if stop == start + 1:
                row = data[offsets[start] : offsets[stop]].reshape(1, -1)
                sums[:, start:stop] = self._rows_of(_as_words(row), int(lengths[start]))
            else:
                words = _gathered(data, offsets[start : stop + 1], counts[start:stop], ends[start : stop + 1])
                sums[:, start:stop] = self._segments(words, counts[start:stop], lengths[start:stop])
            start = stop
        return sums

    def _done(self, sums: Words, lengths: Words) -> Words:
        sums ^= self._lengths(lengths)
        return _mixed(sums)


class _Nulls(_Cells):
    def values(self, array: Any) -> Words:
        return np.repeat(self._null, len(array), axis=1)


class _Fixed(_Cells):
    """Values of one width: a word each, or several."""

    def values(self, array: Any) -> Words:
        plain = _fixed(array)
        if plain.dtype.kind == "u":
            return _mixed(plain.astype(_U64) ^ self._last)
        rows = plain.view(np.uint8).reshape(len(array), plain.itemsize)
        return self._done(self._rows_of(_as_words(rows), plain.itemsize), np.array([plain.itemsize]))


class _Bytes(_Cells):
    """Strings and binary of any length."""

    def values(self, array: Any) -> Words:
        offsets = _byte_offsets(array)
        return self._done(self._bytes(_buffer(array, 2), offsets), np.diff(offsets))


class _Structs(_Cells):
    def __init__(self, path: Path, type_: Any) -> None:
        super().__init__(path, type_)
        self._fields = [_cells(inner, t) for inner, t in _children(path, type_)]

    def values(self, array: Any) -> Words:
        total = np.repeat(self._last, len(array), axis=1)
        for number, field in enumerate(self._fields):
            total += field.hashes(array.field(number))
        return _mixed(total)


class _Lists(_Cells):
    """Items by their position. Plain numbers go as bytes, and the places of their nulls beside them."""

    def __init__(self, path: Path, type_: Any) -> None:
        super().__init__(path, type_)
        inner = _bare(type_.value_type)
        self._items = _cells((*path, "item"), inner) if _width(inner) is None else None

    def values(self, array: Any) -> Words:
        size = array.type.list_size if pa.types.is_fixed_size_list(array.type) else None
        offsets = _even(len(array), size, array.offset) if size is not None else _offsets(array)
        lengths = np.diff(offsets)
        items = array.values.slice(offsets[0], offsets[-1] - offsets[0])
        offsets = offsets - offsets[0]
        if self._items is not None:
            return self._done(self._segments(self._items.hashes(items), lengths, lengths), lengths)
        return self._done(self._packed(_decoded(items), offsets, lengths), lengths)

    def _packed(self, items: Any, offsets: Words, lengths: Words) -> Words:
        plain = _fixed(items)
        if not items.null_count:
            return self._bytes(plain.view(np.uint8), offsets * plain.itemsize)
        nulls = _nulls(items)
        plain = plain.copy()
        plain[nulls] = np.zeros((), plain.dtype)
        sums = self._bytes(plain.view(np.uint8), offsets * plain.itemsize)
        place = (np.arange(len(items)) - np.repeat(offsets[:-1], lengths))[nulls]
        marks = self._at(int(lengths.max(initial=0)), what="null")[:, place]
        marks ^= np.repeat(self._lengths(lengths), lengths, axis=1)[:, nulls]
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(nulls)])[offsets]
        for lane, marked in enumerate(_mixed(marks)):
            sums[lane] += _summed(marked, before)
        return sums


class _Maps(_Cells):
    """A list of entries: a key and what belongs to it make one word."""

    def __init__(self, path: Path, type_: Any) -> None:
        super().__init__(path, type_)
        self._keys, self._items = _cells((*path, "key"), type_.key_type), _cells((*path, "value"), type_.item_type)

    def values(self, array: Any) -> Words:
        offsets = _offsets(array)
        lengths = np.diff(offsets)
        start, count = offsets[0], offsets[-1] - offsets[0]
        entries = self._keys.hashes(array.keys.slice(start, count))
        entries += self._items.hashes(array.items.slice(start, count))
        return self._done(self._segments(_mixed(entries), lengths, lengths), lengths)


def coded(array: Any) -> tuple[Words, list[Any]]:
    """A number for each value, and what the numbers stand for: values of Python that are equal where the values are one
    value of one type. For counting by value; no value may be null, what is inside of it may."""
    array = _decoded(array)
    if _spelled_plain(array.type) in ("string", "binary"):
        plain = array.cast(pa.large_binary())
    elif _width(array.type) is None:
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(v, len(numbers)) for v in _exact(array)], np.int64), list(numbers)
    else:
        plain = _as_arrow(_fixed(array))
    found = plain.dictionary_encode()
    return found.indices.to_numpy(zero_copy_only=False).astype(np.int64), found.dictionary.to_pylist()


def _exact(array: Any) -> list[Any]:
    """Values of any type as values of Python. Types are not told apart, nulls are."""
    types, array = pa.types, _decoded(array)
    if types.is_null(array.type):
        return [None] * len(array)
    if types.is_struct(array.type):
        values: list[Any] = list(zip(*(_exact(array.field(n)) for n in range(array.type.num_fields)), strict=True))
        values = values or [()] * len(array)
    elif types.is_map(array.type):
        entries = list(zip(_exact(array.keys), _exact(array.items), strict=True))
        values = _cut(entries, _offsets(array))
    elif types.is_fixed_size_list(array.type):
        values = _cut(_exact(array.values), _even(len(array), array.type.list_size, array.offset))
    elif types.is_list(array.type) or types.is_large_list(array.type):
        values = _cut(_exact(array.values), _offsets(array))
    elif _width(array.type) is None:
        values = array.cast(pa.large_binary()).to_pylist()
    else:
        values = _fixed(array).tolist()
    return [None if null else v for v, null in zip(values, _nulls(array), strict=True)] if array.null_count else values


def _cut(items: list[Any], offsets: Words) -> list[Any]:
    return [tuple(items[start:end]) for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def _as_arrow(plain: Words) -> Any:
    if plain.dtype.kind == "u":
        return pa.array(plain)
    return pa.Array.from_buffers(pa.binary(plain.itemsize), len(plain), [None, pa.py_buffer(plain)])


# words


def _across(words: Words) -> Words:
    """The sum of each row."""
    if words.shape[1] > _FEW:
        return words.sum(axis=1, dtype=_U64)
    total = words[:, 0].copy() if words.shape[1] else np.zeros(len(words), _U64)
    for number in range(1, words.shape[1]):
        total += words[:, number]
    return total


def _summed(values: Words, offsets: Words) -> Words:
    """The sum of each segment."""
    running = np.zeros(len(values) + 1, _U64)
    np.cumsum(values, dtype=_U64, out=running[1:])
    sums: Words = running[offsets[1:]] - running[offsets[:-1]]
    return sums


def _as_words(rows: Words) -> Words:
    """Rows of bytes as rows of words, filled up with zeros."""
    count, width = rows.shape
    if width % 8:
        filled = np.zeros((count, -(-width // 8) * 8), np.uint8)
        filled[:, :width] = rows
        rows = filled
    elif not rows.flags.aligned or not rows.flags.c_contiguous or rows.ctypes.data % 8:
        rows = rows.copy()
    return rows.view("<u8") if width else np.zeros((count, 0), _U64)


def _gathered(data: Words, offsets: Words, counts: Words, ends: Words) -> Words:
    """The words of byte strings of any length, one after the other, as one row."""
    ends = ends - ends[0]
    padded = np.zeros(offsets[-1] - offsets[0] + 8, np.uint8)
    padded[:-8] = data[offsets[0] : offsets[-1]]
    windows: Words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    starts = offsets[:-1] - offsets[0] - ends[:-1] * 8
    words = windows[np.repeat(starts, counts) + np.arange(ends[-1]) * 8]
    rest = np.diff(offsets) % 8
    short = rest > 0
    words[(ends[1:] - 1)[short]] &= _ONES >> (_U64(64) - rest[short].astype(_U64) * _U64(8))
    return words.reshape(1, -1)


# what Arrow holds


def _even(count: int, size: int, start: int) -> Words:
    return np.arange(start, start + count + 1, dtype=np.int64) * size


def _offsets(array: Any) -> Words:
    """Of the items of lists and maps."""
    return array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)


def _byte_offsets(array: Any) -> Words:
    """Of the bytes of strings."""
    if not len(array):
        return np.zeros(1, np.int64)
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    found = np.frombuffer(array.buffers()[1], np.int64 if large else np.int32)
    return found[array.offset : array.offset + len(array) + 1].astype(np.int64)


def _buffer(array: Any, number: int) -> Words:
    buffer = array.buffers()[number]
    return np.frombuffer(buffer, np.uint8) if buffer is not None else np.zeros(0, np.uint8)


def _nulls(array: Any) -> Words:
    return array.is_null().to_numpy(zero_copy_only=False)


def _decoded(array: Any) -> Any:
    """Plain values: no extension, no dictionary."""
    while isinstance(array, pa.ExtensionArray) or pa.types.is_dictionary(array.type):
        array = array.storage if isinstance(array, pa.ExtensionArray) else array.dictionary_decode()
    return array


def _width(type_: Any) -> int | None:
    """In bytes, of a type whose values all have the same."""
    types = pa.types
    if types.is_boolean(type_):
        return 1
    if types.is_primitive(type_) or types.is_decimal(type_) or types.is_fixed_size_binary(type_):
        return type_.bit_width // 8 or None
    return None


def _fixed(array: Any) -> Words:
    """The values in their width: whole numbers up to a word, otherwise bytes. NaNs are made equal."""
    type_ = array.type
    if pa.types.is_boolean(type_):
        return array.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False)
    width = _width(type_) or 1
    floating = pa.types.is_floating(type_)
    word = width <= 8 and not pa.types.is_fixed_size_binary(type_)
    dtype = np.dtype(f"<f{width}" if floating else f"<u{width}" if word else f"V{width}")
    if not len(array):
        return np.zeros(0, f"<u{width}" if word else dtype)
    values = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    values = values.view(dtype) if values.ctypes.data % dtype.alignment == 0 else values.copy().view(dtype)
    if floating:
        odd = np.isnan(values)
        if odd.any():
            values = np.where(odd, np.array(np.nan, dtype), values)
        values = values.view(f"<u{width}")
    return values
