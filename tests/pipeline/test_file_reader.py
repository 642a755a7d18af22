"""One file -> batches of the table's schema: every value as it is, or an error that says which one cannot be."""

from __future__ import annotations

import bz2
import datetime
import gzip
import json
import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_values import columns as any_column
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.pipeline import column_casts, conform, csv_text, file_reader
from reconciler.pipeline.conform import Rules, to_type
from reconciler.pipeline.file_reader import ANY_KEY, FileError, Listed, json_keys, read_batches, schema_of

VECTOR = pa.list_(pa.float32(), 2)


def write(folder: Path, name: str, content: Any) -> str:
    path = folder / name
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def read(
    uri: str,
    format_: str,
    target: pa.Schema,
    columns: dict[str, str] | None = None,
    rules: Rules | None = None,
    **options: Any,
) -> pa.Table:
    rules = rules or Rules(typed=format_ == "parquet")
    batches = read_batches(uri, format_, options, None, target, columns or {}, rules=rules)
    return pa.Table.from_batches(batches, target)


def schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


# parquet


def test_columns_are_renamed_cast_filled_and_left_out(tmp_path: Path) -> None:
    rows = pa.table({"ID": pa.array([1, 2], pa.int32()), "v": [[1.0, 2.0], None], "more": ["x", "y"]})
    target = pa.schema(
        [pa.field("id", pa.int64(), nullable=False, metadata={"a": "b"}), ("v", VECTOR), ("note", pa.string())]
    )
    uri = write(tmp_path, "a.parquet", rows)
    found = read(uri, "parquet", target, {"id": "ID"}, Rules(typed=True, nulls=frozenset({"note"})))
    assert found.schema.equals(target, check_metadata=True)
    assert found.to_pylist() == [{"id": 1, "v": [1.0, 2.0], "note": None}, {"id": 2, "v": None, "note": None}]


def test_equal_types_are_not_copied(tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(1000)), "s": ["x"] * 1000})
    batch = pa.RecordBatch.from_pydict(rows.to_pydict())
    same = conform.conform(batch, rows.schema, {"id": "id", "s": "s"})
    for before, after in zip(batch.columns, same.columns, strict=True):
        assert [b and b.address for b in before.buffers()] == [b and b.address for b in after.buffers()]


def test_batches_are_bounded_whatever_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "BATCH_BYTES", 10_000)
    big = pa.table({"id": list(range(100)), "data": [bytes([n % 7]) * 1000 + n.to_bytes(8, "big") for n in range(100)]})
    uri = write(tmp_path, "a.parquet", big)
    batches = list(read_batches(uri, "parquet", {}, None, big.schema, {}))
    assert pa.Table.from_batches(batches).equals(big)
    assert max(b.nbytes for b in batches) < 30_000
    (all_of_them,) = read_batches(uri, "parquet", {}, None, schema(id=pa.int64()), {})
    assert all_of_them.num_rows == 100, "columns that are left out do not count"


BAD: dict[str, tuple[pa.Array, pa.DataType, str]] = {
    "text": (pa.array(["1", "2"]), pa.int64(), "cast: true"),
    "too large": (pa.array([1, 300]), pa.int8(), "300"),
    "fraction": (pa.array([1.0, 1.5]), pa.int64(), "1.5"),
    "infinite": (pa.array([1.0, 1e300]), pa.float32(), r"1e\+300"),
    "length": (pa.array([[1.0, 2.0], [1.0]]), VECTOR, r"a list of 1 items, and the column has 2.*\[1.0\]"),
    "width": (pa.array([b"ab", b"a"]), pa.binary(2), "b'a'"),
    "finer time": (pa.array([0, 1], pa.timestamp("ns")), pa.timestamp("us"), "lose data"),
    "date of a time": (pa.array([0], pa.timestamp("us")), pa.date32(), "cast: true"),
    "number as bool": (pa.array([1]), pa.bool_(), "cast: true"),
    "other struct": (pa.array([{"x": 1}]), pa.struct([("y", pa.int64())]), "has no field 'y'"),
    "digits": (pa.array([123456]), pa.decimal128(5, 2), "123456"),
    "dictionary": (pa.array([str(n) for n in range(300)]), pa.dictionary(pa.int8(), pa.string()), "128"),
    "nested": (pa.array([[["1"], ["x"]]]), pa.list_(pa.list_(pa.int8())), "cast: true"),
    "nested value": (pa.array([[[1], [300]]]), pa.list_(pa.list_(pa.int8())), "300"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_value_that_would_change_is_an_error_that_shows_it(tmp_path: Path, what: str) -> None:
    array, type_, shown = BAD[what]
    uri = write(tmp_path, "bad.parquet", pa.table({"c": array}))
    with pytest.raises(FileError, match=rf"(?s)bad\.parquet: column 'c': .*{shown}"):
        read(uri, "parquet", schema(c=type_))


_INNER = pa.struct([pa.field("x", pa.int64(), nullable=False)])
_LOOSE = pa.struct([("x", pa.int64())])
NOT_NULL: dict[str, tuple[pa.Field, pa.DataType, Any, Any]] = {
    "column": (pa.field("c", pa.int64(), nullable=False), pa.int64(), None, 1),
    "field": (pa.field("c", _INNER), _LOOSE, {"x": None}, {"x": 1}),
    "item": (pa.field("c", pa.list_(pa.field("i", pa.int64(), nullable=False))), pa.list_(pa.int64()), [1, None], [1]),
    "value": (
        pa.field("c", pa.map_(pa.string(), pa.field("v", pa.int64(), nullable=False))),
        pa.map_(pa.string(), pa.int64()),
        [("a", None)],
        [("a", 1)],
    ),
    "deep": (pa.field("c", pa.list_(_INNER)), pa.list_(_LOOSE), [{"x": None}], [None, {"x": 1}]),
}


@pytest.mark.parametrize("what", NOT_NULL)
def test_nulls_do_not_get_where_none_may_be(tmp_path: Path, what: str) -> None:
    field, loose, bad, good = NOT_NULL[what]
    target = pa.schema([field])
    fine = write(tmp_path, "fine.parquet", pa.table({"c": pa.array([good], loose)}))
    assert read(fine, "parquet", target).to_pydict() == {"c": [good]}
    wrong = write(tmp_path, "wrong.parquet", pa.table({"c": pa.array([good, bad], loose)}))
    with pytest.raises(FileError, match=r"wrong\.parquet: column 'c': .*NOT NULL"):
        read(wrong, "parquet", target)


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_a_missing_column(tmp_path: Path, format_: str) -> None:
    strict = pa.schema([("a", pa.int64()), pa.field("c", pa.int64(), nullable=False)])
    uri = write(tmp_path, f"m.{format_}", pa.table({"a": [1]}) if format_ == "parquet" else "a\n1\n")
    with pytest.raises(FileError, match=r"m\.\w+: the source has no column 'c'; it has a: .*NOT NULL"):
        read(uri, format_, strict, rules=Rules(nulls=frozenset("c")))
    loose = schema(a=pa.int64(), c=pa.int64())
    with pytest.raises(FileError, match="map it with `columns`, or `missing: null`"):
        read(uri, format_, loose)
    assert read(uri, format_, loose, rules=Rules(nulls=frozenset("c"))).to_pydict() == {"a": [1], "c": [None]}


def test_a_cast_that_is_asked_for(tmp_path: Path) -> None:
    uri = write(tmp_path, "c.parquet", pa.table({"c": ["1", "red"], "day": [0, 1]}))
    rules = Rules(typed=True, casts=frozenset({"c", "day"}))
    assert read(uri, "parquet", schema(day=pa.date32()), rules=rules).column("day").to_pylist() == [
        datetime.date(1970, 1, 1),
        datetime.date(1970, 1, 2),
    ]
    with pytest.raises(FileError, match=r"column 'c': .*red"):
        read(uri, "parquet", schema(c=pa.int64()), rules=rules)


def test_keys_of_json(tmp_path: Path) -> None:
    rows = [{"id": n, "deep": {"inner": 1}, "text": '"product": 1'} for n in range(300)]
    text = "".join(json.dumps(row) + "\n" for row in [*rows, {"id": 1, "späte": None, "deep": [{"späte": 1}]}])
    first = {("id",), ("deep",), ("text",)}
    for name, content in (("a.json", text.encode()), ("a.json.gz", gzip.compress(text.encode()))):
        uri = write(tmp_path, name, content)
        size = len(content)
        assert json_keys(uri, None, Listed(size), {("id",)}) == (first, False)
        assert json_keys(uri, None, Listed(size), {("product",), ("inner",)}) == (first, True)
        assert json_keys(uri, None, Listed(size), {("späte",)})[0] == {*first, ("späte",)}
        assert json_keys(uri, None, Listed(size), {("späte",)}, limit=1000) == (first, False)
        deep, whole = json_keys(uri, None, Listed(size), {("deep", "späte"), ("deep", "none")})
        assert (deep, whole) == ({*first, ("deep", ANY_KEY), ("deep", "inner"), ("späte",), ("deep", "späte")}, True)
    assert json_keys(write(tmp_path, "no.json", "\n\n"), None, Listed(2), {("id",)}) == (set(), None)


def test_a_not_null_child_of_a_null_struct_is_no_null(tmp_path: Path) -> None:
    type_ = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    uri = write(tmp_path, "s.parquet", pa.table({"c": pa.array([None, {"x": 1}], pa.struct([("x", pa.int64())]))}))
    assert read(uri, "parquet", schema(c=type_)).to_pydict() == {"c": [None, {"x": 1}]}


def test_blobs(tmp_path: Path) -> None:
    target = pa.schema([lance.blob_field("b")])
    uri = write(tmp_path, "b.parquet", pa.table({"b": [b"one", None, b""]}))
    made = lance.write_dataset(read(uri, "parquet", target), tmp_path / "b.lance", data_storage_version="2.2")
    found = made.scanner(blob_handling="all_binary").to_table()
    assert found.to_pydict() == {"b": [b"one", None, b""]}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    target = schema(id=pa.int64())
    for content, shown in ((b"no parquet", "parquet"), (pa.table({"x": [1]}), "no column .id.; it has x")):
        with pytest.raises(FileError, match=rf"(?is)a\.parquet: .*{shown}"):
            read(write(tmp_path, "a.parquet", content), "parquet", target)
    with pytest.raises(FileError, match=r"gone\.parquet"):
        read(str(tmp_path / "gone.parquet"), "parquet", target)
    with pytest.raises(FileError, match=r"no-such|size"):
        read("s3://no-such/x.parquet", "parquet", target)


def test_a_file_that_changed_since_it_was_listed_is_not_read(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    path = Path(write(tmp_path, "a.parquet", rows))
    size, stamp = path.stat().st_size, file_reader.stamp_of(path.stat())

    def again(**listed: Any) -> int:
        return sum(b.num_rows for b in read_batches(str(path), "parquet", {}, None, rows.schema, {}, **listed))

    assert again(size=size, stamp=stamp) == 1
    for listed in ({"size": size + 1}, {"size": size, "stamp": stamp + "0"}):
        with pytest.raises(FileError, match="changed since"):
            again(**listed)


# csv and json


TEXTS = schema(
    id=pa.int64(), name=pa.string(), half=pa.float16(), ok=pa.bool_(), day=pa.date32(), at=pa.timestamp("us", "UTC"),
    noon=pa.time64("us"), price=pa.decimal128(9, 2), wide=pa.decimal256(50, 3),
    kind=pa.dictionary(pa.int8(), pa.string()),
)  # fmt: skip
ROW = {
    "id": 1,
    "name": "a, b",
    "half": 0.5,
    "ok": True,
    "day": datetime.date(2024, 12, 31),
    "at": datetime.datetime(2024, 12, 31, 1, 2, 3, tzinfo=datetime.UTC),
    "noon": datetime.time(12, 0, 1),
    "price": Decimal("1.25"),
    "wide": Decimal("1.250"),
    "kind": "x",
}
CSV = (
    "id,name,half,ok,day,at,noon,price,wide,kind,more\n"
    '1,"a, b",0.5,true,2024-12-31,2024-12-31T01:02:03Z,12:00:01,1.25,1.25,x,\n'
)
JSON = (
    '{"id": 1, "name": "a, b", "half": 0.5, "ok": true, "day": "2024-12-31", "at": "2024-12-31T01:02:03Z", "noon":'
    ' "12:00:01", "price": 1.25, "wide": "1.25", "kind": "x", "more": {"deep": []}}\n'
)


@pytest.mark.parametrize(("format_", "text"), [("csv", CSV), ("json", JSON)])
def test_texts_are_read_as_the_declared_types(tmp_path: Path, format_: str, text: str) -> None:
    assert read(write(tmp_path, "a", text), format_, TEXTS).to_pylist() == [ROW]


@pytest.mark.parametrize("ending", [".gz", ".bz2"])
def test_packed_texts(tmp_path: Path, ending: str) -> None:
    pack = gzip.compress if ending == ".gz" else bz2.compress
    for format_, text in (("csv", CSV), ("json", JSON)):
        uri = write(tmp_path, f"a.{format_}{ending}", pack(text.encode()))
        assert read(uri, format_, TEXTS).to_pylist() == [ROW]


def test_what_looks_like_another_type_stays_what_is_declared(tmp_path: Path) -> None:
    """Nothing is inferred: a zip code keeps its zeros."""
    uri = write(tmp_path, "a.csv", "zip,n\n01234,1\n99999,\n")
    found = read(uri, "csv", schema(zip=pa.string(), n=pa.float64()))
    assert found.to_pydict() == {"zip": ["01234", "99999"], "n": [1.0, None]}


def test_the_shape_of_csv(tmp_path: Path) -> None:
    target = schema(a=pa.int64(), b=pa.string())
    uri = write(tmp_path, "a.csv", "1;'x;y\n'\nNA;NA\n")
    found = read(uri, "csv", target, delimiter=";", quote="'", header=False, nullValues=["NA"])
    assert found.to_pydict() == {"a": [1, None], "b": ["x;y\n", None]}
    empty = write(tmp_path, "b.csv", "a,b\n,\n")
    assert read(empty, "csv", target).to_pydict() == {"a": [None], "b": [""]}
    renamed = read(write(tmp_path, "c.csv", "A,b\n1,x\n"), "csv", target, {"a": "A"})
    assert renamed.to_pydict() == {"a": [1], "b": ["x"]}


def test_json_of_nested_columns(tmp_path: Path) -> None:
    target = schema(v=VECTOR, l=pa.large_list(pa.int8()), s=pa.struct([("day", pa.date32()), ("n", pa.int8())]))
    uri = write(tmp_path, "a.json", '{"v": [1, 2], "l": [3], "s": {"day": "2024-12-31", "x": 1}}\n{}\n')
    day = {"day": datetime.date(2024, 12, 31), "n": None}
    assert read(uri, "json", target).to_pydict() == {"v": [[1.0, 2.0], None], "l": [[3], None], "s": [day, None]}


@pytest.mark.parametrize(
    ("format_", "text", "shown"),
    [
        ("csv", "id\n1\nx\n", "'x'"),
        ("csv", "id\n1\n300\n", "300"),
        ("csv", "id,b\n1\n", "columns"),
        ("csv", "other\n1\n", "no column 'id'; it has other"),
        ("csv", "", "empty"),
        ("json", '{"id": "x"}\n', "id"),
        ("json", '{"id": 1', "json"),
        ("json", '{"id": 300}\n', "300"),
        ("json", '{"id": 1, "id": 2}\n', r"/id\) was specified twice in row 0"),
    ],
)
def test_bad_texts(tmp_path: Path, format_: str, text: str, shown: str) -> None:
    with pytest.raises(FileError, match=rf"(?is)bad\.txt:(\d+:)? .*{shown}"):
        read(write(tmp_path, "bad.txt", text), format_, schema(id=pa.int8()))


def test_what_is_known_before_reading(tmp_path: Path) -> None:
    parquet = write(tmp_path, "a.parquet", pa.table({"id": [1]}))
    assert schema_of(parquet, "parquet", {}, None) == schema(id=pa.int64())
    csv = write(tmp_path, "a.csv", "a;b\n1;2\n")
    assert schema_of(csv, "csv", {"delimiter": ";"}, None) == schema(a=pa.null(), b=pa.null())
    assert schema_of(csv, "csv", {"header": False}, None) is None
    assert schema_of(csv, "json", {}, None) is None


# casts


WIDER = [
    (pa.int8(), pa.int64()), (pa.int32(), pa.decimal128(12, 2)), (pa.uint8(), pa.float64()), (pa.int16(), pa.float32()),
    (pa.float16(), pa.float32()), (pa.string(), pa.large_string()),
    (pa.string(), pa.dictionary(pa.int32(), pa.string())),
    (pa.string(), pa.binary()), (pa.int64(), pa.string()),
    (pa.timestamp("s"), pa.timestamp("us", "UTC")),
]  # fmt: skip
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-128, 127), "uint8": st.integers(0, 255), "int16": st.integers(-1000, 1000),
    "int32": st.integers(-(2**31), 2**31 - 1), "int64": st.integers(-(2**63), 2**63 - 1),
    "halffloat": st.floats(width=16, allow_nan=False), "string": st.text("aä€\U0001f600", max_size=5),
    "timestamp[s]": st.integers(0, 2**32).map(lambda n: datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=n)),
}  # fmt: skip


@settings(max_examples=50)
@given(st.data())
def test_a_wider_type_and_back_is_the_same(data: st.DataObject) -> None:
    """Also inside lists, vectors and structs, with nulls anywhere and in a slice of an array."""
    narrow, wide = data.draw(st.sampled_from(WIDER))
    values = st.none() | VALUES[str(narrow)]
    for kind in data.draw(st.lists(st.sampled_from(["list", "vector", "struct"]), max_size=2)):
        if kind == "list":
            narrow, wide = pa.list_(narrow), pa.large_list(wide)
            values = st.none() | st.lists(values, max_size=3)
        elif kind == "vector":
            narrow, wide = pa.list_(narrow), pa.list_(wide, 2)
            values = st.none() | st.lists(values, min_size=2, max_size=2)
        else:
            narrow, wide = pa.struct([("x", narrow)]), pa.struct([("more", pa.int8()), ("x", wide)])
            values = st.none() | st.fixed_dictionaries({"x": values})
    array = pa.array(data.draw(st.lists(values, max_size=6)), narrow)
    array = array.slice(data.draw(st.integers(0, len(array))))
    made = to_type(array, wide)
    assert made.type == wide
    made.validate(full=True)
    back = to_type(made, narrow)
    back.validate(full=True)
    assert back.to_pylist() == array.to_pylist()


@settings(max_examples=50)
@given(st.data(), st.integers(0, 4))
def test_any_column_that_lance_stores_comes_through(data: st.DataObject, rows: int) -> None:
    """As it is, and as nothing but nulls."""
    column = data.draw(any_column(rows))
    assert to_type(column, column.type) is column
    nulls = to_type(pa.nulls(rows), column.type)
    assert (nulls.type, nulls.null_count) == (column.type, rows)


@settings(max_examples=30)
@given(st.lists(st.none() | st.floats(), max_size=5))
def test_a_smaller_float_is_never_another_infinity(values: list[float | None]) -> None:
    array = pa.array(values, pa.float64())
    too_large = any(v is not None and math.isfinite(v) and abs(v) >= 3.4028235677973366e38 for v in values)
    try:
        made = to_type(array, pa.float32())
    except pa.ArrowInvalid:
        assert too_large
    else:
        assert not too_large
        assert made.null_count == array.null_count


def test_times_without_a_zone_are_utc() -> None:
    naive = pa.array([0], pa.timestamp("us"))
    assert to_type(naive, pa.timestamp("us", "UTC")).cast(pa.int64())[0].as_py() == 0
    berlin = pa.array([0], pa.timestamp("us", "Europe/Berlin"))
    assert to_type(berlin, pa.timestamp("us"))[0].as_py() == datetime.datetime(1970, 1, 1)


ELSEWHERE = """
import pickle, sys
sys.modules["reconciler"] = None    # an executor that does not have this program
run, *arguments = pickle.load(sys.stdin.buffer)
print(sum(batch.num_rows for batch in run(*arguments)))
"""


@pytest.mark.slow
def test_it_runs_where_this_program_is_not_installed(tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle", reason="pyspark is missing: it comes with `spark`")
    for module in (column_casts, conform, csv_text, file_reader):
        cloudpickle.register_pickle_by_value(module)
    uri = write(tmp_path, "a.parquet", pa.table({"id": [1, 2]}))
    carried = cloudpickle.dumps((read_batches, uri, "parquet", {}, None, schema(id=pa.int8()), {}))
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], input=carried, capture_output=True, check=False)
    assert done.stdout.strip() == b"2", done.stderr.decode()


def test_a_bad_text_of_csv_is_told_by_its_column(tmp_path: Path) -> None:
    uri = write(tmp_path, "a.csv", "id,price\n1,cheap\n")
    with pytest.raises(FileError, match=r"column 'price'.*cheap"):
        read(uri, "csv", schema(id=pa.int64(), price=pa.float64()))
