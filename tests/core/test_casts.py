"""What a type change is called, and whether pylance agrees."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.arrow_convert import to_arrow_type
from reconciler.core.casts import Cast, classify
from reconciler.model.arrow import parse_type
from reconciler.model.change import AlterColumns, ColumnAlteration
from reconciler.model.errors import CatalogError, Code

TABLE: list[tuple[str, str, Cast]] = [
    ("int32", "int64", "widen"),
    ("int64", "int32", "narrow"),
    ("uint8", "int16", "widen"),
    ("int16", "uint32", "narrow"),
    ("uint32", "int32", "narrow"),
    ("float32", "float64", "widen"),
    ("float64", "float16", "narrow"),
    ("int32", "float64", "rewrite"),
    ("string", "int64", "rewrite"),
    ("string", "large_string", "widen"),
    ("large_string", "string", "widen"),
    ("string", "binary", "rewrite"),
    ("date32", "timestamp[us]", "widen"),
    ("timestamp[us]", "date32", "narrow"),
    ("timestamp[us]", "timestamp[ns]", "narrow"),
    ("timestamp[s]", "timestamp[us]", "widen"),
    ("timestamp[us, tz=UTC]", "timestamp[us]", "narrow"),
    ("timestamp[us]", "timestamp[us, tz=UTC]", "widen"),
    ("timestamp[us]", "timestamp[us, tz=+02:00]", "widen"),
    ("timestamp[us]", "timestamp[us, tz=Europe/Berlin]", "narrow"),
    ("timestamp[us, tz=UTC]", "timestamp[us, tz=Europe/Berlin]", "widen"),
    ("date32", "timestamp[us, tz=America/Havana]", "narrow"),
    ("date64", "timestamp[us, tz=America/Havana]", "narrow"),
    ("duration[s]", "duration[ms]", "narrow"),
    ("duration[ms]", "duration[s]", "narrow"),
    ("date32", "timestamp[ns]", "narrow"),
    ("date64", "date32", "narrow"),
    ("date32", "date64", "widen"),
    ("date64", "timestamp[s]", "narrow"),
    ("timestamp[ns]", "timestamp[s]", "narrow"),
    ("time32[ms]", "time64[us]", "widen"),
    ("time64[us]", "time32[s]", "narrow"),
    ("decimal128(10, 2)", "decimal128(12, 2)", "widen"),
    ("decimal128(10, 2)", "decimal128(12, 4)", "widen"),
    ("decimal128(10, 2)", "decimal128(10, 4)", "narrow"),
    ("list<int32>", "list<int64>", "widen"),
    ("list<int64>", "list<int32>", "narrow"),
    ("list<int32>", "large_list<int32>", "widen"),
    ("list<float32>", "fixed_size_list<float32>[8]", "rewrite"),
    ("fixed_size_list<float32>[8]", "fixed_size_list<float32>[16]", "never"),
    ("fixed_size_list<float32>[8]", "list<float32>", "widen"),
    ("list<fixed_size_list<float32>[8]>", "list<fixed_size_list<float32>[16]>", "never"),
    ("fixed_size_binary[4]", "fixed_size_binary[8]", "never"),
    ("fixed_size_binary[4]", "binary", "rewrite"),
    ("list<string>", "string", "never"),
    ("string", "list<string>", "never"),
    ("bool", "date32", "never"),
    ("int64", "binary", "never"),
    ("null", "list<string>", "rewrite"),
    ("string", "null", "never"),
    ("blob", "large_binary", "rewrite"),
    ("map<string, int32>", "map<string, list<int32>>", "never"),
    ("struct<a: int32>", "list<int32>", "never"),
    ("dictionary<int32, string>", "string", "widen"),
    ("string", "dictionary<int32, string>", "widen"),
    ("large_string", "dictionary<int8, string>", "narrow"),
    ("dictionary<int8, string>", "dictionary<int32, large_string>", "widen"),
    ("dictionary<int32, string>", "dictionary<uint16, string>", "narrow"),
    ("dictionary<int32, int64>", "int32", "narrow"),
    ("dictionary<int32, string>", "int64", "rewrite"),
    ("bool", "int8", "rewrite"),
    ("struct<a: int32>", "int32", "never"),
    ("map<string, int32>", "map<string, int64>", "rewrite"),
]


@pytest.mark.parametrize(("old", "new", "cast"), TABLE, ids=lambda v: str(v))
def test_casts(old: str, new: str, cast: Cast) -> None:
    assert classify(parse_type(old), parse_type(new)) == cast


MEASURED = (
    "int8", "int32", "int64", "uint8", "uint32", "float16", "float32", "float64", "bool", "string", "large_string",
    "binary", "large_binary", "date32", "date64", "timestamp[s]", "timestamp[us]", "timestamp[us, tz=UTC]",
    "time32[ms]", "time64[us]", "duration[ms]", "decimal128(10, 2)", "decimal128(12, 4)", "list<int32>", "list<int64>",
    "large_list<int64>", "fixed_size_list<float32>[4]", "fixed_size_list<float64>[4]", "dictionary<int32, string>",
    "dictionary<int8, string>", "dictionary<int32, large_string>", "dictionary<int32, int64>",
    "dictionary<int32, float32>", "dictionary<int32, binary>", "dictionary<int32, bool>", "fixed_size_binary[4]",
)  # fmt: skip


@pytest.mark.slow
def test_every_pair_on_real_pylance(tmp_path: Path) -> None:
    """Called in place: pylance does it, on a table with a row. Called a rewrite: pylance refuses, or does not end with
    the declared type. Nothing else would be honest."""
    import lance
    import pyarrow as pa

    wrong: list[str] = []
    for number, (old, new) in enumerate(permutations(MEASURED, 2)):
        cast = classify(parse_type(old), parse_type(new))
        source, target = to_arrow_type(parse_type(old)), to_arrow_type(parse_type(new))
        schema = pa.schema([pa.field("c", source)])
        rows = pa.table({"c": pa.array([sample(old)], source)}, schema)
        dataset = lance.write_dataset(rows, str(tmp_path / f"{number}.lance"), data_storage_version="2.2")
        try:
            dataset.alter_columns({"path": "c", "data_type": target})
            done = dataset.schema.field("c").type == target
        except (OSError, ValueError, RuntimeError):
            done = False
        if done != (cast not in ("rewrite", "never")):
            wrong.append(f"{old} -> {new}: called {cast}, pylance {'does' if done else 'refuses'} it")
    assert not wrong, "\n".join(wrong)


GRAMMAR = (
    *MEASURED, "null", "uint16", "decimal256(40, 2)", "timestamp[ns, tz=Europe/Berlin]", "fixed_size_binary[8]",
    "list<string>", "fixed_size_list<float32>[8]", "fixed_size_list<int32>[4]", "struct<a: int32>", "struct<a: string>",
    "struct<b: int32>", "struct<a: int32, b: int32>", "struct<a: list<int32>>", "list<struct<a: int32>>",
    "list<struct<a: string>>", "list<list<int32>>", "list<list<string>>", "list<fixed_size_list<float32>[4]>",
    "map<string, int32>", "map<string, string>", "map<int32, int32>", "map<string, list<int32>>", "blob",
)  # fmt: skip


def test_what_no_value_can_become() -> None:
    """`never` is what the data plane has no cast for, over the whole grammar: a plan that says so is right, and a plan
    that says otherwise is not refused for the types alone."""
    from reconciler.pipeline.column_casts import Misfit, need_cast

    wrong = []
    for old, new in permutations(GRAMMAR, 2):
        cast = classify(parse_type(old), parse_type(new))
        if cast not in ("rewrite", "never"):
            continue
        found = to_arrow_type(parse_type("large_binary" if old == "blob" else old))  # A scan gives bytes.
        try:
            need_cast("c", found, to_arrow_type(parse_type(new)))
            possible = True
        except Misfit:
            possible = False
        if possible != (cast == "rewrite"):
            wrong.append(f"{old} -> {new}: called {cast}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_a_column_that_is_written_anew_has_the_values_that_pylance_gives(tmp_path: Path) -> None:
    """Under an index a cast in place is our own commit: the same values, or the same refusal."""
    import lance
    import pyarrow as pa

    from reconciler.catalog.base import WriteContext
    from reconciler.catalog.lance_dataset import Datasets
    from reconciler.catalog.lance_write import apply_to_dataset

    def outcome(uri: str, old: str, new: str, lost: tuple[str, ...]) -> Any:
        source = to_arrow_type(parse_type(old))
        schema = pa.schema([pa.field("id", pa.int64()), pa.field("c", source)])
        values = pa.array([sample(old), None, larger(old)], source)
        rows = pa.table({"id": [1, 2, 3], "c": values}, schema)
        lance.write_dataset(rows, uri, max_rows_per_file=2, data_storage_version="2.2").delete("id = 2")
        change = AlterColumns(("t",), (ColumnAlteration("c", type=parse_type(new)),), lost)
        try:
            apply_to_dataset(Datasets(), uri, change, WriteContext("sha256:p", "s1"))
        except CatalogError as error:
            return error.code
        found = lance.dataset(uri).to_table()
        return found.schema.field("c").type, found["c"].to_pylist()

    wrong = []
    for number, (old, new) in enumerate(permutations(MEASURED, 2)):
        if classify(parse_type(old), parse_type(new)) in ("widen", "narrow"):
            theirs = outcome(str(tmp_path / f"{number}a.lance"), old, new, ())
            ours = outcome(str(tmp_path / f"{number}b.lance"), old, new, ("c_idx",))
            if ours != theirs:
                wrong.append(f"{old} -> {new}: {ours} instead of {theirs}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_without_rows_every_type_becomes_every_other(tmp_path: Path) -> None:
    """And the columns keep their order, the others their indexes."""
    import lance
    import pyarrow as pa

    from reconciler.catalog.base import WriteContext
    from reconciler.catalog.lance_dataset import Datasets
    from reconciler.catalog.lance_write import apply_to_dataset

    wrong = []
    for number, (old, new) in enumerate(permutations(GRAMMAR, 2)):
        source, target = to_arrow_type(parse_type(old)), to_arrow_type(parse_type(new))
        schema = pa.schema([pa.field("id", pa.int64()), pa.field("c", source, metadata={"k": "v"}), ("z", pa.int8())])
        uri = str(tmp_path / f"{number}.lance")
        lance.write_dataset([], uri, schema=schema, data_storage_version="2.2")
        lance.dataset(uri).create_scalar_index("id", "BTREE", name="id_idx")
        change = AlterColumns(("t",), (ColumnAlteration("c", type=parse_type(new)),), empty=True)
        apply_to_dataset(Datasets(), uri, change, WriteContext("sha256:p", "s1"))
        done = lance.dataset(uri)
        kept = [i.name for i in done.describe_indices()] == ["id_idx"] and done.schema.names == ["id", "c", "z"]
        if done.schema.field("c").type != target or not kept:
            wrong.append(f"{old} -> {new}: {done.schema.field('c')}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("timestamp[us]", "timestamp[us, tz=Europe/Berlin]", "2024-03-31T02:30"),
        ("timestamp[us]", "timestamp[us, tz=Europe/Berlin]", "2024-10-27T02:30"),
        ("date32", "timestamp[us, tz=America/Havana]", "2024-03-10"),
        ("duration[s]", "duration[ms]", 2**62),
        ("int64", "int8", 300),
        ("decimal128(10, 2)", "decimal128(4, 2)", "12345.11"),
        ("string", "dictionary<int8, string>", None),
    ],
)
def test_values_that_do_not_fit(old: str, new: str, value: Any, tmp_path: Path) -> None:
    """Ordinary values can make these casts fail, so none may be called safe; and the failure says what to do."""
    import lance
    import pyarrow as pa

    from reconciler.catalog.base import WriteContext
    from reconciler.catalog.lance_dataset import Datasets
    from reconciler.catalog.lance_write import apply_to_dataset

    assert classify(parse_type(old), parse_type(new)) == "narrow"
    texts = [str(n) for n in range(300)] if value is None else [value]
    rows = pa.array(texts).cast(to_arrow_type(parse_type(old)))
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"col": rows, "n": pa.nulls(len(rows), pa.int8())}), uri, data_storage_version="2.2")
    change = AlterColumns(("t",), (ColumnAlteration("col", type=parse_type(new)),))
    with pytest.raises(CatalogError) as refused:
        apply_to_dataset(Datasets(), uri, change, WriteContext("sha256:p", "s1"))
    assert refused.value.code is Code.TABLE_SCHEMA_VALIDATION_ERROR
    assert "alter columns col of" in refused.value.message
    assert "do not fit the new type" in refused.value.message


def larger(text: str) -> Any:
    """A value that some narrower types of its family cannot hold."""
    import datetime as dt
    from decimal import Decimal

    if text.startswith(("list", "large_list", "fixed_size_list")):
        return [100, 2, 3, 1000]
    if text.startswith("decimal"):
        return Decimal("99999.99")
    if text.startswith("timestamp"):
        return dt.datetime(2024, 5, 1, 1, 2, 3, 456789 if "us" in text else 0)
    if text.startswith("time"):
        return dt.time(1, 2, 3, 456000)
    if text in ("int32", "int64", "uint32", "float32", "float64"):
        return 70000
    return sample(text)


def sample(text: str) -> Any:
    """A value small enough for every narrower type of its family."""
    import datetime as dt
    from decimal import Decimal

    if text.startswith(("list", "large_list", "fixed_size_list")):
        return [1, 2, 3, 4]
    if text.startswith("decimal"):
        return Decimal("1.25")
    if text.startswith("dictionary"):
        return sample(text[text.index(", ") + 2 : -1])
    if text in ("binary", "large_binary") or text.startswith("fixed_size_binary"):
        return b"abcd"
    if text in ("string", "large_string"):
        return "abcd"
    if text.startswith("date"):
        return dt.date(2024, 5, 1)
    if text.startswith("timestamp"):
        return dt.datetime(2024, 5, 1)
    if text.startswith("time"):
        return dt.time(1, 2, 3)
    return dt.timedelta(1) if text.startswith("duration") else True if text == "bool" else 1
