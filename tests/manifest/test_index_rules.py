"""Our rules on which index fits which column are those of the pylance that is installed, in both directions."""

from __future__ import annotations

import decimal
import itertools
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.arrow_convert import to_arrow_type
from reconciler.catalog.base import WriteContext
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_write import put_index
from reconciler.core.index_fit import not_taken, unsuitable
from reconciler.manifest.index_rules import warn_of_nested
from reconciler.manifest.problem import Problem
from reconciler.model.arrow import SCALARS, parse_type
from reconciler.model.state import VECTOR_INDEXES, Index

from .support import CATALOG, load_text, table

SCALAR_INDEXES = ["btree", "bitmap", "zonemap", "bloomfilter", "ngram", "label_list", "inverted"]
TYPES = [
    *sorted(SCALARS),
    *("timestamp[s]", "timestamp[us, tz=UTC]", "time32[s]", "time64[ns]", "duration[ms]"),
    *("decimal128(10, 2)", "decimal256(50, 2)", "fixed_size_binary[4]"),
    *("list<string>", "large_list<large_string>", "list<int32>", "list<bool>", "list<decimal128(10, 2)>"),
    *("list<list<string>>", "list<struct<a: int32>>", "list<map<string, int8>>", "list<dictionary<int32, string>>"),
    *("fixed_size_list<float32>[4]", "struct<a: int32>", "map<string, int32>"),
    *("dictionary<int32, string>", "dictionary<int8, int64>"),
]


REFUSED = (ValueError, TypeError, OSError, RuntimeError, NotImplementedError)
"""What pylance raises for an index that does not fit."""
MANY = 100
"""Different numbers: as many as the smallest type has."""


def values(type_: Any, count: int) -> Any:
    """An array of that many different values, or of the first hundred again and again."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(type_):
        numbers = pa.array([n % MANY for n in range(count)], type_.index_type)
        return pa.DictionaryArray.from_arrays(numbers, values(type_.value_type, min(count, MANY)))
    if types.is_struct(type_):
        return pa.StructArray.from_arrays([values(f.type, count) for f in type_], fields=list(type_))
    if types.is_map(type_):
        inner = values(type_.key_type, count), values(type_.item_type, count)
        return pa.MapArray.from_arrays(list(range(count + 1)), *inner, type=type_)
    if types.is_fixed_size_list(type_):
        return pa.FixedSizeListArray.from_arrays(values(type_.value_type, count * type_.list_size), type=type_)
    if types.is_list(type_) or types.is_large_list(type_):
        make = pa.ListArray if types.is_list(type_) else pa.LargeListArray
        return make.from_arrays(list(range(count + 1)), values(type_.value_type, count), type=type_)
    if types.is_null(type_):
        return pa.nulls(count)
    if types.is_fixed_size_binary(type_):
        return pa.array([n.to_bytes(type_.byte_width, "big") for n in range(count)], type_)
    if types.is_decimal(type_):
        return pa.array([decimal.Decimal(n) for n in range(count)], type_)
    if types.is_temporal(type_):
        return pa.array(range(count), pa.int64() if type_.bit_width == 64 else pa.int32()).cast(type_)
    plain = [f"word {n}" if _is_text(type_) else n % MANY for n in range(count)]
    return pa.array(plain).cast(type_) if plain else pa.array([], type_)


def _is_text(type_: Any) -> bool:
    return any(word in str(type_) for word in ("string", "binary"))


def refused(dataset: Any, kind: str) -> bool:
    try:
        dataset.create_scalar_index("c", kind.upper(), name=kind, replace=False)
    except REFUSED:
        return True
    dataset.describe_indices()
    dataset.drop_index(kind)
    return False


def compare(folder: Path, text: str, rows: int) -> None:
    import lance
    import pyarrow as pa

    type_ = parse_type(text)
    field = pa.field("c", to_arrow_type(type_))
    array = values(field.type, rows) if text != "blob" else lance.blob_array([b"x"] * rows)
    uri = str(folder / "t.lance")
    lance.write_dataset(pa.table([array], schema=pa.schema([field])), uri, data_storage_version="2.2")
    found = {kind: refused(lance.dataset(uri), kind) for kind in SCALAR_INDEXES}
    ours = {kind: unsuitable(Index(kind, "c", kind), type_) is not None for kind in SCALAR_INDEXES}
    assert ours == found


@pytest.mark.parametrize("text", TYPES)
def test_empty_table(tmp_path: Path, text: str) -> None:
    compare(tmp_path, text, 0)


@pytest.mark.slow
@pytest.mark.parametrize("text", TYPES)
def test_filled_table(tmp_path: Path, text: str) -> None:
    compare(tmp_path, text, 300)


@pytest.mark.slow
@pytest.mark.parametrize("item", ["float16", "float32", "float64", "int8", "int32", "uint8"])
def test_filled_vectors(tmp_path: Path, item: str) -> None:
    """Real vectors: an index over no rows or nulls alone is not trained, and takes any type with any metric."""
    import lance
    import pyarrow as pa

    type_ = parse_type(f"fixed_size_list<{item}>[8]")
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"c": values(to_arrow_type(type_), 300)}), uri)
    ours, theirs = {}, {}
    for case in itertools.product(sorted(VECTOR_INDEXES), ["l2", "cosine", "dot", "hamming"]):
        kind, metric = case
        params: dict[str, Any] = {"num_partitions": 2, "metric": metric}
        params |= {"num_sub_vectors": 2} if "pq" in kind else {}
        ours[case] = unsuitable(Index("i", "c", kind, params), type_) is not None
        try:
            lance.dataset(uri).create_index("c", kind.upper(), name="i", replace=True, **params)
            theirs[case] = False
        except REFUSED:
            theirs[case] = True
    assert ours == theirs


@pytest.mark.parametrize("kind", [*SCALAR_INDEXES, "ivf_flat"])
def test_which_nested_indexes_of_an_empty_table_are_maintained(tmp_path: Path, kind: str) -> None:
    """Fails when pylance has mended it: then `warn_of_nested` can go."""
    import lance
    import pyarrow as pa

    types = {"ngram": pa.string(), "inverted": pa.string(), "label_list": pa.list_(pa.string())}
    inner = pa.list_(pa.float32(), 4) if kind == "ivf_flat" else types.get(kind, pa.int64())
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("s", pa.struct([pa.field("a", inner)]))])
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset([], uri, schema=schema, data_storage_version="2.2")
    dataset.create_scalar_index("id", "BTREE", name="top")
    index = Index("x", "s.a", kind)
    put_index(lance.dataset(uri), Datasets(), uri, index, WriteContext())
    value = {"ngram": "text", "inverted": "text", "label_list": ["a"], "ivf_flat": [1.0, 2.0, 3.0, 4.0]}.get(kind, 7)
    rows = pa.Table.from_pylist([{"id": i, "s": {"a": value}} for i in range(5)], schema)
    dataset = lance.write_dataset(rows, uri, mode="append")

    problems: list[Problem] = []
    warn_of_nested([index], problems)
    if not problems:
        dataset.optimize.optimize_indices()
        return
    with pytest.raises(Exception, match="No column with name a"):
        dataset.optimize.optimize_indices()
    dataset.optimize.optimize_indices(index_names=["top"])  # what the hint says
    dataset = lance.dataset(uri)
    dataset.drop_index("x")
    put_index(lance.dataset(uri), Datasets(), uri, index, WriteContext())
    dataset = lance.write_dataset(rows, uri, mode="append")
    dataset.optimize.optimize_indices()
    assert lance.dataset(uri).stats.index_stats("x")["num_indexed_rows"] == 10


def test_the_warning(tmp_path: Path) -> None:
    """One per table, beside no error, and not of what pylance maintains."""
    schema = "schema: [{name: s, fields: [{name: a, type: int8}, {name: t, type: string}]}, {name: id, type: int8}]\n"

    def found(*indexes: str) -> list[tuple[str, str]]:
        loaded = load_text(tmp_path, CATALOG, table("t", f"{schema}indexes: [{', '.join(indexes)}]"))
        return [(d.code, d.severity) for d in loaded.diagnostics]

    nested = "{column: s.a, type: btree}"
    assert found(nested, "{column: s.a, type: bitmap, name: second}") == [("M427", "warning")]
    assert found(nested, "{column: gone, type: btree}") == [("M425", "error")]
    assert found("{column: s.t, type: inverted}", "{column: id, type: btree}") == []


PARAMS: list[tuple[str, str, dict[str, Any]]] = [
    *(("v", t, {"num_sub_vectors": 2, "num_bits": n}) for t in ("ivf_pq", "ivf_hnsw_pq") for n in range(1, 10)),
    *(("v", t, {"num_sub_vectors": n, "num_bits": 4}) for t in ("ivf_pq", "ivf_hnsw_pq") for n in (1, 2)),
    *(("v", t, {"num_bits": n}) for t in ("ivf_sq", "ivf_hnsw_sq") for n in (1, 4, 7, 8, 9, 16)),
    *(("v", "ivf_rq", {"num_bits": n}) for n in (1, 5, 8, 9, 10, 16)),
    *(("v", t, {"m": n}) for t in ("ivf_hnsw_flat", "ivf_hnsw_sq") for n in (1, 3, 4, 20, 150, 151)),
    *(("v", "ivf_hnsw_sq", {"ef_construction": n}) for n in (1, 19, 20, 150)),
    *(("v", "ivf_hnsw_sq", {"m": m, "ef_construction": ef}) for m, ef in ((4, 4), (5, 4), (160, 160), (161, 160))),
    *(("v", "ivf_hnsw_sq", {"max_level": n}) for n in (1, 64)),
    *(("s", "inverted", {"language": name}) for name in ("English", "english", "Tamil", "Turkish", "Thai", "Klingon")),
    *(
        ("s", "inverted", {"base_tokenizer": name})
        for name in (
            "simple",
            "Simple",
            "whitespace",
            "raw",
            "ngram",
            "icu",
            "icu/split",
            "icu/x",
            "code",
            "x",
            "lindera",
        )
    ),
    *(
        ("s", "inverted", {"base_tokenizer": "ngram", **lengths})
        for lengths in (
            {"min_ngram_length": 3},
            {"min_ngram_length": 4},
            {"max_ngram_length": 2},
            {"min_ngram_length": 2, "max_ngram_length": 2},
            {"min_ngram_length": 5, "max_ngram_length": 4},
        )
    ),
    ("s", "inverted", {"min_ngram_length": 5, "max_ngram_length": 4}),
    ("s", "inverted", {"max_token_length": 1}),
]


@pytest.fixture(scope="module")
def with_rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Enough rows for product quantization with nine bits."""
    import lance
    import numpy as np
    import pyarrow as pa

    uri = str(tmp_path_factory.mktemp("params") / "t.lance")
    numbers = np.random.default_rng(0).standard_normal(600 * 8).astype("float32")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), 8)
    lance.write_dataset(pa.table({"v": vectors, "s": ["some text"] * 600}), uri, data_storage_version="2.2")
    return uri


@pytest.mark.parametrize(("column", "kind", "params"), PARAMS, ids=str)
def test_a_parameter_is_refused_when_lance_refuses_it_or_does_without(
    with_rows: str, column: str, kind: str, params: dict[str, Any]
) -> None:
    """What passes is in the live index afterwards."""
    import lance

    index = Index("x", column, kind, params)
    wrong = [*not_taken(params, kind)]
    try:
        put_index(lance.dataset(with_rows), Datasets(), with_rows, index, WriteContext())
    except REFUSED:
        assert wrong
        return
    (live,) = Datasets().state(with_rows).indexes
    kept = {key: live.params.get(key) for key in params}
    assert bool(wrong) is (kept != params), (wrong, kept)


def test_a_parameter_that_lance_does_not_take_is_an_error_at_its_line(tmp_path: Path) -> None:
    schema = "schema: [{name: v, type: 'fixed_size_list<float32>[8]'}]\n"
    index = "indexes:\n  - column: v\n    type: ivf_hnsw_sq\n    params:\n      m: 3\n      num_bits: 4\n"
    found = load_text(tmp_path, CATALOG, table("t", schema + index)).diagnostics
    assert [d.code for d in found] == ["M429", "M429"]
    assert {d.message for d in found} == {
        "m of index 'v_idx' (ivf_hnsw_sq): Lance takes 4 or more",
        "num_bits of index 'v_idx' (ivf_hnsw_sq): Lance quantizes scalars with 8 bits, whatever is asked for",
    }
    assert len({d.source.line for d in found}) == 2
