"""What is recorded about an index: whose build it is, at every point where a run can be cut, and beside another run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from reconciler.catalog import lance_write
from reconciler.catalog.base import WriteContext
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_index import INDEXES_KEY, Recorded, load_record
from reconciler.catalog.lance_write import DatasetChange, apply_to_dataset
from reconciler.core.diff_index import index_differences
from reconciler.core.index_fit import defaults
from reconciler.core.kept_params import chosen
from reconciler.model.change import CreateIndex, DropIndex, RefreshIndex, ReplaceIndex
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import Index

T = ("t",)
OLD, NEW = Index("id_idx", "id", "btree"), Index("id_idx", "id", "zonemap")
TWO, FOUR = (Index("v_idx", "v", "ivf_flat", {"num_partitions": n, "metric": "l2"}) for n in (2, 4))


def write(uri: str, change: DatasetChange) -> None:
    apply_to_dataset(Datasets(), uri, change, WriteContext("sha256:p", "s1"))


def record(uri: str) -> dict[str, Recorded]:
    return load_record(lance.dataset(uri).metadata.get(INDEXES_KEY))


def live(uri: str) -> dict[str, Index]:
    return {i.name: i for i in Datasets().state(uri).indexes}


def rows(count: int, dim: int = 8) -> pa.Table:
    values = np.random.default_rng(count).standard_normal(count * dim).astype("float32")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), dim)
    return pa.table({"id": pa.array(range(count), pa.int64()), "v": vectors, "w": vectors})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(300), uri)
    write(uri, CreateIndex(T, OLD))
    write(uri, CreateIndex(T, TWO))
    return uri


def test_a_dropped_index_is_forgotten(uri: str) -> None:
    write(uri, DropIndex(T, "id_idx"))
    assert [*record(uri)] == ["v_idx"]


def test_what_another_run_records_meanwhile_stays(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It found the index dropped, and makes it anew before this run has taken its own record back."""
    drop = lance.LanceDataset.drop_index

    def slow(self: lance.LanceDataset, name: str) -> None:
        drop(self, name)
        write(uri, CreateIndex(T, NEW))

    monkeypatch.setattr(lance.LanceDataset, "drop_index", slow)
    write(uri, DropIndex(T, "id_idx"))
    assert record(uri)["id_idx"].type == "zonemap"
    assert live(uri)["id_idx"].type == "zonemap"


def test_the_record_is_about_the_index_that_was_built(uri: str) -> None:
    found = live(uri)["v_idx"].record
    assert found is not None
    assert (found.params, found.rows, found.current) == (TWO.params, 300, True)
    lance.dataset(uri).create_index("v", "IVF_FLAT", name="v_idx", metric="l2", num_partitions=3, replace=True)
    again = live(uri)["v_idx"]
    assert again.params["num_partitions"] == 3
    assert again.record is not None
    assert not again.record.current


def test_a_cut_between_the_record_and_the_swap(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old index is live, with its own parameters, and the record says nothing about it. The next run ends it."""

    def cut(*_: Any, **__: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as m:
        m.setattr(lance_write, "swap", cut)
        with pytest.raises(SystemExit):
            write(uri, ReplaceIndex(T, FOUR))
    found = live(uri)["v_idx"]
    assert found.params["num_partitions"] == 2
    assert found.record is not None
    assert (found.record.params, found.record.current) == (FOUR.params, False)
    write(uri, ReplaceIndex(T, FOUR))
    found = live(uri)["v_idx"]
    assert (found.params["num_partitions"], found.record and found.record.current) == (4, True)


@pytest.mark.parametrize(
    "index",
    [FOUR, Index("v_idx", "w", "ivf_flat", {"num_partitions": 4}), Index("v_idx", "id", "bitmap")],
    ids=["parameter", "column", "type"],
)
def test_no_version_is_without_it(uri: str, index: Index) -> None:
    before = lance.dataset(uri).version
    write(uri, ReplaceIndex(T, index))
    after = lance.dataset(uri).version
    for version in range(before, after + 1):
        names = [d.name for d in lance.dataset(uri, version=version).describe_indices()]
        assert names.count("v_idx") == 1, version
    found = live(uri)["v_idx"]
    assert (found.column, found.type) == (index.column, index.type)
    assert found.indexed_rows == found.rows == 300
    carried = lance.dataset(uri).read_transaction(after).transaction_properties
    assert carried["reconciler.step"] == "s1"


def test_two_runs_of_one_replace(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one loses at its commit, and finds what it wanted."""
    swap = lance_write.swap

    def overtaken(*given: Any) -> Any:
        monkeypatch.setattr(lance_write, "swap", swap)
        write(uri, ReplaceIndex(T, FOUR))
        return swap(*given)

    monkeypatch.setattr(lance_write, "swap", overtaken)
    with pytest.raises(CatalogError) as lost:
        write(uri, ReplaceIndex(T, FOUR))
    assert lost.value.code is Code.CONCURRENT_MODIFICATION
    found = live(uri)["v_idx"]
    assert found.params["num_partitions"] == 4
    assert found.record is not None
    assert found.record.current  # Both builds are recorded, whichever was first.


def test_rows_that_come_meanwhile_are_not_covered(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = lance_write.swap

    def later(*given: Any) -> Any:
        lance.write_dataset(rows(50), uri, mode="append")
        return swap(*given)

    monkeypatch.setattr(lance_write, "swap", later)
    write(uri, ReplaceIndex(T, FOUR))
    found = live(uri)["v_idx"]
    assert (found.params["num_partitions"], found.indexed_rows, found.rows) == (4, 300, 350)


def test_an_index_on_an_empty_table_is_replaced(tmp_path: Path) -> None:
    """Of every type: Lance has no build of a bitmap without rows, and replaces one only on the same column."""
    uri = str(tmp_path / "e.lance")
    lance.write_dataset(rows(0), uri)
    write(uri, CreateIndex(T, OLD))
    for type_, column in (("bitmap", "id"), ("btree", "id"), ("ivf_flat", "v"), ("bitmap", "id"), ("zonemap", "id")):
        write(uri, ReplaceIndex(T, Index("id_idx", column, type_)))
        assert {n: (i.type, i.column) for n, i in live(uri).items()} == {"id_idx": (type_, column)}


def test_the_partitions_of_every_vector_are_read(tmp_path: Path) -> None:
    """Of every item type, also inside a struct."""
    uri, count = str(tmp_path / "e.lance"), 300
    numbers = np.random.default_rng(0).standard_normal(count * 8)
    bits = np.random.default_rng(0).integers(0, 255, count * 8).astype("uint8")
    items = {"f16": numbers.astype("float16"), "f32": numbers.astype("float32"), "f64": numbers, "u8": bits}
    columns = {name: pa.FixedSizeListArray.from_arrays(pa.array(values), 8) for name, values in items.items()}
    nested = pa.StructArray.from_arrays([columns["f32"]], ["v"])
    lance.write_dataset(pa.table({**columns, "s": nested}), uri)
    for column in (*columns, "s.v"):
        params = {"num_partitions": 3, "metric": "hamming" if column == "u8" else "l2"}
        write(uri, CreateIndex(T, Index(column, column, "ivf_flat", params)))
    assert {n: i.params["num_partitions"] for n, i in live(uri).items()} == dict.fromkeys((*columns, "s.v"), 3)


def test_an_index_whose_files_are_gone_or_broken(uri: str) -> None:
    """Gone: nothing is known of it, and it can be replaced. Broken: that is said, and nothing is concluded from it."""
    (folder,) = (Path(uri) / "_indices" / s.uuid for d in lance.dataset(uri).describe_indices() for s in d.segments
                 if d.name == "v_idx")  # fmt: skip
    for file in folder.iterdir():
        file.write_bytes(b"junk" * 10)
    with pytest.raises(CatalogError, match="index v_idx"):
        live(uri)
    for file in folder.iterdir():
        file.unlink()
    found = live(uri)["v_idx"]
    assert (found.unread, "num_partitions" in found.params) == (frozenset({"num_partitions"}), False)
    write(uri, ReplaceIndex(T, FOUR))
    assert live(uri)["v_idx"].params["num_partitions"] == 4


def test_an_index_that_is_gone_is_not_replaced(uri: str) -> None:
    lance.dataset(uri).drop_index("v_idx")
    with pytest.raises(CatalogError) as refused:
        write(uri, ReplaceIndex(T, FOUR))
    assert refused.value.code is Code.TABLE_INDEX_NOT_FOUND


NO_PAIRS = '{"v_idx":{"column":"v","type":"ivf_flat","params":{},"segments":[1]}}'


@pytest.mark.parametrize("text", ["[]", "{", '{"v_idx": 1}', '{"v_idx": {"column": "v"}}', "null", NO_PAIRS])
def test_a_record_that_cannot_be_read_counts_as_none(uri: str, text: str) -> None:
    lance.dataset(uri).update_metadata({INDEXES_KEY: text})
    found = live(uri)["v_idx"]
    assert (found.params["num_partitions"], found.record) == (2, None)


def test_a_record_of_an_earlier_version_is_of_no_build(uri: str) -> None:
    old = '{"v_idx":{"column":"v","type":"ivf_flat","params":{"num_partitions":8}}}'
    lance.dataset(uri).update_metadata({INDEXES_KEY: old})
    found = live(uri)["v_idx"]
    assert found.params["num_partitions"] == 2
    assert found.record is not None
    assert not found.record.current


NEEDS = "Lance needs a vector to train ivf_flat, and the table has none"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([[np.nan] * 4] * 5, f"{NEEDS} that has only numbers whose squares float32 can hold"),
        ([None] * 5, NEEDS),
        ([[1.0] * 4, *[None] * 4], None),
    ],
)
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_why_a_vector_index_covers_nothing(tmp_path: Path, values: Any, why: str | None, kind: Any) -> None:
    schema = pa.schema([("My vec", pa.list_(kind, 4))])
    place = str(tmp_path / "t.lance")
    lance.write_dataset(schema.empty_table(), place).create_index("My vec", "IVF_FLAT", name="i", num_partitions=1)
    lance.write_dataset(
        pa.table([pa.array(values, pa.list_(pa.float32(), 4)).cast(schema.types[0])], schema=schema),
        place,
        mode="append",
    )
    index = live(place)["i"]
    assert (index.rows, index.indexed_rows, index.untrained) == (5, 0, why)


def empty_index(folder: Path, values: Any, kind: Any, index: Index) -> str:
    """Of a table whose index was made before its rows."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.list_(kind, 4))])
    uri = str(folder / "t.lance")
    lance.write_dataset(schema.empty_table(), uri)
    write(uri, CreateIndex(T, index))
    add(uri, values)
    return uri


def add(uri: str, values: Any, mode: str = "append") -> None:
    schema = lance.dataset(uri).schema
    vectors = pa.array(values, pa.list_(pa.float64(), 4)).cast(schema.field("v").type, safe=False)
    lance.write_dataset(pa.table([pa.array(range(len(values)), pa.int64()), vectors], schema=schema), uri, mode=mode)


def vector_index(metric: str, type_: str = "ivf_flat", **params: Any) -> Index:
    return Index("i", "v", type_, {"num_partitions": 2, "metric": metric, **params})


ZERO, ONE, BIG = [0.0] * 4, [0.0, 1.0, 0.0, 2.0], [1e300] * 4
PQ = {"type_": "ivf_pq", "num_sub_vectors": 2}
F32, F64 = pa.float32(), pa.float64()


@pytest.mark.parametrize(
    ("values", "kind", "index", "why"),
    [
        ([ZERO] * 5, F32, vector_index("cosine"), "the table has none that has only numbers and is not zero"),
        ([ZERO] * 5, pa.float16(), vector_index("cosine"), "the table has none that has"),
        ([[1e-30] * 4] * 5, F32, vector_index("cosine"), "the table has none that has"),
        ([ZERO] * 5, F32, vector_index("cosine", "ivf_hnsw_sq"), "the table has none that has"),
        ([ONE] * 200 + [ZERO] * 100, F32, vector_index("cosine", **PQ), "Lance needs 256 .* only 200 that has"),
        ([BIG] * 5, F64, vector_index("l2"), "the table has none that has only numbers whose squares float32 can hold"),
        ([[1e30] * 4] * 5, F64, vector_index("l2"), "the table has none that has"),
        ([[1e20] * 4] * 5, F32, vector_index("l2"), "the table has none that has"),
        ([ONE, *[ZERO] * 4], F32, vector_index("cosine"), None),
        ([[1e-30] * 4] * 5, F64, vector_index("cosine"), None),
        ([ZERO] * 5, F32, vector_index("l2"), None),
        ([ZERO] * 5, F32, vector_index("dot"), None),
        ([BIG] * 5, F64, vector_index("cosine"), None),
        ([BIG] * 5, F64, vector_index("dot"), None),
    ],
)
def test_which_vectors_lance_trains_on(tmp_path: Path, values: Any, kind: Any, index: Index, why: str | None) -> None:
    """Whether the next plan has a step, and that a build of its own, in a table that has rows, does not fail."""
    uri = empty_index(tmp_path, values, kind, index)
    told = live(uri)["i"].untrained
    assert told is None if why is None else re.search(why, str(told))
    write(uri, RefreshIndex(T, index, "0", None))
    done = live(uri)["i"]
    assert done.indexed_rows == len(values) or done.untrained is not None, "the next plan would have the same step"
    write(uri, DropIndex(T, "i"))
    write(uri, CreateIndex(T, index))
    again = live(uri)["i"]
    assert (again.indexed_rows, again.untrained) == (done.indexed_rows, done.untrained)


def test_fewer_vectors_than_partitions_that_are_no_nulls(tmp_path: Path) -> None:
    """Lance itself builds fewer partitions only where the others are null."""
    for metric, other in (("cosine", ZERO), ("l2", [np.nan] * 4)):
        index = vector_index(metric)
        (folder := tmp_path / metric).mkdir()
        uri = empty_index(folder, [ONE, *[other] * 20], F32, index)
        write(uri, RefreshIndex(T, index, "0", None))
        found = live(uri)["i"]
        assert (found.indexed_rows, found.params["num_partitions"]) == (21, 1)
        assert not index_differences(index, found)


@pytest.fixture
def too_large(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lance fails on a vector that is too far from every partition. With a few rows, chance decides whether it is."""
    make = lance.LanceDataset.create_index_uncommitted

    def fail(self: Any, *where: Any, **how: Any) -> Any:
        if how.get("train", True) and self.count_rows("id < 0"):
            raise ValueError("Invalid user input: null partition ID at batch 0 row 7")
        return make(self, *where, **how)

    monkeypatch.setattr(lance.LanceDataset, "create_index_uncommitted", fail)


@pytest.mark.usefixtures("too_large")
def test_a_build_that_took_in_no_row_is_not_repeated_over_the_same_rows(tmp_path: Path) -> None:
    index = vector_index("l2")
    uri = empty_index(tmp_path, [ONE] * 3, F64, index)
    lance.dataset(uri).update({"id": "-1"}, where="id = 2")
    assert live(uri)["i"].untrained is None, "vectors that count are enough to try"
    write(uri, RefreshIndex(T, index, "0", None))
    assert "whose squares float32 does not hold" in str(live(uri)["i"].untrained)
    lance.dataset(uri).update_config({"a": "b"})
    assert live(uri)["i"].untrained is not None
    lance.dataset(uri).update({"id": "2"}, where="id = -1")
    assert live(uri)["i"].untrained is None, "as many rows, and others"
    write(uri, RefreshIndex(T, index, "0", None))
    assert live(uri)["i"].indexed_rows == 3


def test_a_cut_before_the_swap_is_no_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = vector_index("l2")
    uri = empty_index(tmp_path, [ONE, ONE], F64, index)
    with monkeypatch.context() as m:
        m.setattr(lance_write, "swap", lambda *_: sys.exit())
        with pytest.raises(SystemExit):
            write(uri, RefreshIndex(T, index, "0", None))
    assert live(uri)["i"].untrained is None


@pytest.mark.usefixtures("too_large")
def test_an_index_that_covers_rows_is_not_lost_to_a_build_that_covers_none(tmp_path: Path) -> None:
    index = vector_index("l2")
    uri = empty_index(tmp_path, [ONE] * 20, F64, index)
    write(uri, RefreshIndex(T, index, "0", None))
    add(uri, [ONE])
    lance.dataset(uri).update({"id": "-1"}, where="id = 2")
    for change in (RefreshIndex(T, index, "0", None), ReplaceIndex(T, vector_index("l2", num_partitions=1))):
        with pytest.raises(CatalogError, match="index i stays as it is: a vector has numbers whose squares float32"):
            write(uri, change)
    assert live(uri)["i"].indexed_rows == 19, "all that are left of those that it had"


_PQ = {"num_sub_vectors": 2}


@pytest.mark.parametrize(
    ("type_", "params"),
    [
        ("ivf_flat", {}), ("ivf_sq", {}), ("ivf_pq", _PQ), ("ivf_rq", {}), ("ivf_hnsw_flat", {}), ("ivf_hnsw_sq", {}),
        ("ivf_hnsw_pq", _PQ), ("inverted", {}), ("inverted", {"base_tokenizer": "ngram"}),
        ("inverted", {"base_tokenizer": "code"}), ("inverted", {"base_tokenizer": "whitespace", "language": "German"}),
    ],
)  # fmt: skip
def test_what_lance_gives_an_index_by_itself(tmp_path: Path, type_: str, params: dict[str, Any]) -> None:
    """A build keeps what differs from it, and a saved plan compares that."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(300).append_column("s", pa.array(["a text"] * 300)), uri)
    write(uri, CreateIndex(T, Index("x", "s" if type_ == "inverted" else "v", type_, params)))
    found = live(uri)["x"]
    own = {**defaults(type_, params), **params}
    assert {key: found.params[key] for key in own} == own
    assert chosen(found, params) == {}
