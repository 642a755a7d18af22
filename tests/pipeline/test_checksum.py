"""The content checksum: blind to order and layout, not to any cell."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lance import blob_array, blob_field
from pipeline.arrow_values import PLAIN, columns, tables

from reconciler.pipeline import checksum
from reconciler.pipeline.table_task import verify


def checksum_of(table: pa.Table, rows_at_a_time: int = 1000) -> str:
    sums = (0, 0)
    for batch in table.to_batches(max_chunksize=rows_at_a_time):
        sums = checksum.add_rows(sums, batch)
    return checksum.shown(sums)


def of_dataset(path: Path) -> str:
    """As a task reads it."""
    unit = {
        "key": 0, "uri": str(path), "options": {}, "version": None, "fragments": None, "split": 1 << 40, "checks": [],
    }  # fmt: skip
    (batch,) = verify(unit)
    answer = json.loads(batch.column(0)[0].as_py())
    assert "error" not in answer, answer
    return checksum.shown((int(answer["sums"][0], 16), int(answer["sums"][1], 16)))


@given(tables(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_order_and_layout_do_not_count(table: pa.Table, portion: int, dice: random.Random) -> None:
    expected = checksum_of(table)
    order = list(range(table.num_rows))
    dice.shuffle(order)
    names = list(table.column_names)
    dice.shuffle(names)
    assert checksum_of(table, portion) == expected
    assert checksum_of(pa.concat_tables(table.slice(n, 1) for n in order).select(names), portion) == expected
    longer = pa.concat_tables([table.slice(table.num_rows - 1), table]).combine_chunks()
    assert checksum_of(longer.slice(1)) == expected, "an array that starts in the middle of its buffers"


@given(tables(), st.data())
def test_any_changed_cell_counts(table: pa.Table, data: st.DataObject) -> None:
    column, row = data.draw(st.integers(0, table.num_columns - 1)), data.draw(st.integers(0, table.num_rows - 1))
    values = table.column(column).to_pylist()
    field = table.schema.field(column)
    other = data.draw(st.sampled_from(_others(values[row], field.type)))
    try:
        changed = pa.array([*values[:row], other, *values[row + 1 :]], field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        return  # No value of this type.
    assume(repr(changed[row].as_py()) != repr(values[row]))
    assert checksum_of(table.set_column(column, field, changed)) != checksum_of(table)


def _others(value: Any, type_: pa.DataType) -> list[Any]:
    """Values nearby: the last bit, the sign, one item more or less, another order, a null inside."""
    types = pa.types
    if types.is_map(type_):
        pairs = list(value or ())
        inner = [
            [*pairs[:n], (k, o), *pairs[n + 1 :]] for n, (k, v) in enumerate(pairs) for o in _others(v, type_.item_type)
        ]
        return [None, [], [*pairs, ("c", None)], pairs[:-1], pairs[::-1], *inner]
    if types.is_struct(type_):
        held = value or dict.fromkeys(f.name for f in type_)
        return [None, held, *({**held, f.name: o} for f in type_ for o in _others(held[f.name], f.type))]
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        items = list(value or ())
        inner = [[*items[:n], o, *items[n + 1 :]] for n, i in enumerate(items) for o in _others(i, type_.value_type)]
        if types.is_fixed_size_list(type_):
            return [None, [None] * type_.list_size, *([items[::-1]] if items else []), *inner]
        return [None, [], [*items, None], items[:-1], items[::-1], *inner]
    match value:
        case bool():
            return [None, not value]
        case int():
            return [None, value + 1, value ^ 1, -value]
        case float():
            return [None, -value, value + 1.0, 0.0, -0.0, float("nan")]
        case str():
            return [None, value + "\0", value + "x", value[:-1], value[::-1], ""]
        case bytes():
            return [None, value + b"\0", value[:-1], value[::-1], b"", bytes(len(value))]
        case None:
            return [0, "", b"", False]
        case _:
            return [None]


@given(columns(6))
def test_values_are_counted_as_they_are_hashed(column: pa.Array) -> None:
    """`unique` goes by both: by hashes, and by values where those meet."""
    some = column.drop_null()
    codes, values = checksum.coded(some)
    batch = pa.RecordBatch.from_arrays([some], ["c"])
    hashes = checksum.row_hashes(batch).T.tolist()
    assert len(codes) == len(some)
    for (a, one), (b, other) in itertools.combinations(zip(codes, hashes, strict=True), 2):
        assert (repr(values[a]) == repr(values[b])) is (one == other)


@given(tables(least=2))
def test_rows_hold_together(table: pa.Table) -> None:
    """Cells that change places between two rows, and rows that are there twice, are seen."""
    first, second = (table.slice(n, 1).combine_chunks() for n in (0, 1))
    a = pa.table({"l": first.column(0), "r": first.column(0)}), pa.table({"l": second.column(0), "r": second.column(0)})
    b = pa.table({"l": first.column(0), "r": second.column(0)}), pa.table({"l": second.column(0), "r": first.column(0)})
    if repr(first.column(0).to_pylist()) != repr(second.column(0).to_pylist()):
        assert checksum_of(pa.concat_tables(a)) != checksum_of(pa.concat_tables(b))
    assert checksum_of(pa.concat_tables([table, table])) != checksum_of(table)


def one(values: list[Any], type_: pa.DataType) -> str:
    return checksum_of(pa.table({"c": pa.array(values, type_)}))


def test_the_rules_of_values() -> None:
    assert one([0.0], pa.float64()) != one([-0.0], pa.float64())
    texts = pa.array(["a", "b", "a", None])
    assert checksum_of(pa.table({"c": texts.dictionary_encode()})) == checksum_of(pa.table({"c": texts}))
    assert one([[]], pa.list_(pa.int8())) != one([None], pa.list_(pa.int8())) != one([[None]], pa.list_(pa.int8()))
    assert one([[0]], pa.list_(pa.int8())) != one([[None]], pa.list_(pa.int8()))
    assert one([""], pa.string()) != one([None], pa.string())
    assert one([float("nan")], pa.float32()) != one([None], pa.float32())
    empty = pa.struct([("x", pa.int8())])
    assert one([None], empty) != one([{"x": None}], empty)
    assert one([[0, None]], pa.list_(pa.int8(), 2)) != one([[None, 0]], pa.list_(pa.int8(), 2))
    assert one([[("a", 1), ("b", 2)]], pa.map_(pa.string(), pa.int8())) != one(
        [[("a", 2), ("b", 1)]], pa.map_(pa.string(), pa.int8())
    )
    assert checksum_of(pa.table({"a": [1]})) != checksum_of(pa.table({"b": [1]})), "the name of a column counts"


@pytest.mark.parametrize("width", [16, 32, 64])
def test_every_nan_is_one_value(width: int) -> None:
    type_ = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[width]
    quiet = {16: 0x7E00, 32: 0x7FC00000, 64: 0x7FF8000000000000}[width]
    made = [
        pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(bits.to_bytes(width // 8, "little"))])
        for bits in (quiet, quiet | 1, quiet | 1 << (width - 1))
    ]
    assert len({checksum_of(pa.table({"c": array})) for array in made}) == 1
    lists = [pa.FixedSizeListArray.from_arrays(array, 1) for array in made]
    assert len({checksum_of(pa.table({"c": array})) for array in lists}) == 1


_TEXTS, _BYTES, _LISTS = ["a", None, "bcdefghij"], [b"a", None, b"bcdefghij"], [[1, 2], None, [], [None]]
_PAIRS = [("k", 1), ("l", None)]
LAYOUTS: dict[str, list[pa.Array]] = {
    "string": [pa.array(_TEXTS), pa.array(_TEXTS, pa.large_string()), pa.array(_TEXTS).dictionary_encode()],
    "binary": [pa.array(_BYTES), pa.array(_BYTES, pa.large_binary()), pa.array(_BYTES).dictionary_encode()],
    "dictionary": [
        pa.array([7, None, 7]),
        pa.array([7, None, 7]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([2, 0, 1], pa.uint8()), pa.array([None, 7, 7])),
    ],
    "list": [pa.array(_LISTS, pa.list_(pa.int64())), pa.array(_LISTS, pa.large_list(pa.int64()))],
    "items": [
        pa.array(_LISTS, pa.list_(pa.field("element", pa.int64(), nullable=True))),
        pa.ListArray.from_arrays([0, 2, None, 2, 3], pa.array([1, 2, None])).cast(pa.list_(pa.int64())),
        pa.ListArray.from_arrays(pa.array([0, 2, None, 2, 3], pa.int32()), pa.array([1, 2, None]).dictionary_encode()),
    ],
    "structs": [
        pa.array([{"x": 1, "y": "a"}, None]),
        pa.array([{"y": "a", "x": 1}, None], pa.struct([("y", pa.large_string()), ("x", pa.int64())])),
        pa.StructArray.from_arrays(
            [pa.array([1, 5]).dictionary_encode(), pa.array(["a", "b"])], ["x", "y"], mask=pa.array([False, True])
        ),
    ],
    "map": [
        pa.array([_PAIRS, None], pa.map_(pa.string(), pa.int64())),
        pa.array([_PAIRS, None], pa.map_(pa.large_string(), pa.int64(), keys_sorted=True)),
    ],
    "extension": [
        pa.array([b"0123456789abcdef", None], pa.binary(16)),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef", None], pa.binary(16))),
    ],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_of_a_type_does_not_count(name: str) -> None:
    assert len({checksum_of(pa.table({"c": array})) for array in LAYOUTS[name]}) == 1
    assert len({checksum.spelled(array.type) for array in LAYOUTS[name]}) == 1


def _bits(type_: pa.DataType, data: bytes) -> pa.Array:
    """One value of these bytes."""
    return pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(data)])


_EIGHT = (1000).to_bytes(8, "little")
TYPES = {
    "integers": [_bits(t, b"\xff" + bytes(7)) for t in (pa.uint8(), pa.int8())],
    "unsigned": [_bits(t, _EIGHT) for t in (pa.int16(), pa.int32(), pa.int64(), pa.uint16(), pa.uint32(), pa.uint64())],
    "times": [
        _bits(t, _EIGHT)
        for t in (
            *(pa.timestamp(u) for u in ("s", "ms", "us", "ns")),
            *(pa.timestamp("us", tz) for tz in ("UTC", "Europe/Berlin")),
            *(pa.duration(u) for u in ("s", "ms", "us", "ns")),
            *(pa.time64(u) for u in ("us", "ns")),
            *(pa.time32(u) for u in ("s", "ms")),
            *(pa.date32(), pa.date64(), pa.int64(), pa.float64()),
        )
    ],
    "decimals": [
        _bits(t, (100).to_bytes(32, "little"))
        for t in (pa.decimal128(10, 2), pa.decimal128(10, 4), pa.decimal128(12, 2), pa.decimal256(10, 2), pa.binary(16))
    ],
    "bytes": [pa.array([b"ab"], t) for t in (pa.binary(), pa.binary(2))] + [pa.array(["ab"])],
    "lists": [
        pa.array([[1, 2]], t)
        for t in (pa.list_(pa.int8()), pa.list_(pa.int8(), 2), pa.list_(pa.uint8()), pa.list_(pa.int16()))
    ],
    "nested": [
        pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", t)]))) for t in (pa.int8(), pa.uint8(), pa.timestamp("s"))
    ],
    "fields": [pa.array([{name: 1}]) for name in ("x", "y")] + [pa.array([{"x": 1, "y": None}])],
    "maps": [
        pa.array([[(1, 2)]], pa.map_(k, v))
        for k, v in ((pa.int8(), pa.int8()), (pa.int8(), pa.uint8()), (pa.uint8(), pa.int8()))
    ],
    "nulls": [pa.nulls(1, t) for t in (pa.null(), pa.int8(), pa.string(), pa.list_(pa.int8()), pa.list_(pa.int16()))],
}


@pytest.mark.parametrize("name", TYPES)
def test_types_are_part_of_the_content(name: str) -> None:
    assert len({checksum_of(pa.table({"c": array})) for array in TYPES[name]}) == len(TYPES[name])
    assert len({checksum.spelled(array.type) for array in TYPES[name]}) == len(TYPES[name])


def test_a_type_without_a_checksum_is_said() -> None:
    with pytest.raises(checksum.UnknownType, match="string_view"):
        checksum_of(pa.table({"c": pa.array(["a"], pa.string_view())}))


def test_the_encoding_stays() -> None:
    """Checksums are kept and compared later: another encoding needs another VERSION."""
    rows = {"i": [1, None], "f": [0.5, -1.0], "s": ["a", "häß"], "l": [[1, None], []], "b": [True, None]}
    table = pa.table({**rows, "t": pa.array([1, 2], pa.timestamp("us")), "st": [{"x": 1}, None]})
    assert checksum_of(table) == "v2:c9b669dc4dee311c4509f6e45e54a864"


def _everything() -> pa.Table:
    """Every plain type, and a few nested ones, with nulls."""
    made: dict[str, Any] = {"id": pa.array(range(20), pa.int64())}
    for number, (type_, _) in enumerate(PLAIN):
        made[f"p{number}"] = pa.array(_examples(type_), type_)
    made["vector"] = pa.array([[float(n)] * 4 for n in range(20)], pa.list_(pa.float16(), 4))
    made["nested"] = pa.array([[{"x": n, "y": ["a"] * (n % 3)}] if n % 4 else None for n in range(20)])
    made["map"] = pa.array([[("k", n)] * (n % 3) for n in range(20)], pa.map_(pa.string(), pa.int64()))
    made["word"] = pa.array(["a", "b", None, "c"] * 5).dictionary_encode()
    return pa.table(made)


def _examples(type_: pa.DataType) -> list[Any]:
    types = pa.types
    if types.is_boolean(type_):
        values: list[Any] = [n % 2 == 0 for n in range(20)]
    elif types.is_string(type_) or types.is_large_string(type_):
        values = [str(n % 7) * (n % 5) for n in range(20)]
    elif types.is_binary(type_) or types.is_large_binary(type_):
        values = [bytes([n]) * (n % 5) for n in range(20)]
    elif types.is_fixed_size_binary(type_) and not types.is_decimal(type_):
        values = [bytes([n]) * 5 for n in range(20)]
    else:
        values = [n / 2 if types.is_floating(type_) else n for n in range(20)]
    return [None if n % 6 == 5 else v for n, v in enumerate(values)]


def test_on_disk_it_is_blind_to_fragments_deletes_compaction_and_copies(tmp_path: Path) -> None:
    rows = _everything()
    expected = checksum_of(rows.slice(3))
    lance.write_dataset(rows.slice(3), str(tmp_path / "one"), data_storage_version="2.2")
    many = lance.write_dataset(rows, str(tmp_path / "many"), data_storage_version="2.2", max_rows_per_file=4)
    many.delete("id < 3")
    assert of_dataset(tmp_path / "one") == expected
    assert of_dataset(tmp_path / "many") == expected
    lance.dataset(str(tmp_path / "many")).optimize.compact_files()
    assert len(lance.dataset(str(tmp_path / "many")).get_fragments()) == 1
    assert of_dataset(tmp_path / "many") == expected
    shutil.copytree(tmp_path / "many", tmp_path / "copy")
    assert of_dataset(tmp_path / "copy") == expected
    lance.dataset(str(tmp_path / "copy")).update({"id": "id + 1"}, where="id = 19")
    assert of_dataset(tmp_path / "copy") != expected


def test_on_disk_it_is_blind_to_encodings(tmp_path: Path) -> None:
    rows = pa.table({"id": range(60), "word": [f"word {n % 7}" if n % 5 else None for n in range(60)]})
    expected = checksum_of(rows)
    encoded = rows.set_column(1, "word", rows["word"].combine_chunks().dictionary_encode())
    large = rows.cast(pa.schema([("id", pa.int64()), ("word", pa.large_string())]))
    backwards = encoded.take(list(reversed(range(60))))
    for number, (table, version) in enumerate(((encoded, "2.2"), (large, "2.1"), (backwards, "2.0"))):
        path = tmp_path / str(number)
        lance.write_dataset(table, str(path), data_storage_version=version, max_rows_per_file=13)
        assert of_dataset(path) == expected
        lance.dataset(str(path)).optimize.compact_files()
        assert of_dataset(path) == expected


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_blobs_count_by_content(tmp_path: Path, version: str) -> None:
    content: list[bytes | None] = [b"abc", None, b"x" * 100_000, b""]

    def write(name: str, values: list[bytes | None], rows_per_file: int) -> str:
        if version == "2.2":
            schema = pa.schema([pa.field("id", pa.int64()), blob_field("b")])
            table = pa.table({"id": [1, 2, 3, 4], "b": blob_array(values)}, schema=schema)
        else:
            mark = {"lance-encoding:blob": "true"}
            schema = pa.schema([pa.field("id", pa.int64()), pa.field("b", pa.large_binary(), metadata=mark)])
            table = pa.table({"id": [1, 2, 3, 4], "b": values}, schema=schema)
        lance.write_dataset(table, str(tmp_path / name), data_storage_version=version, max_rows_per_file=rows_per_file)
        return of_dataset(tmp_path / name)

    assert write("a", content, 100) == write("b", content, 1)
    assert write("c", [*content[:2], b"x" * 99_999 + b"y", b""], 100) != of_dataset(tmp_path / "a")
