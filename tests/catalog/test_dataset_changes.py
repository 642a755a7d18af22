"""The dataset side that all backends share."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from dir_support import CONTEXT, V2, create_namespace, data, dataset, declare, field, open_catalog, run

from reconciler.catalog.arrow_convert import to_arrow_schema
from reconciler.catalog.base import WriteContext
from reconciler.catalog.directory import DirectoryCatalog
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_errors import to_catalog_error
from reconciler.catalog.lance_write import _commit, create_dataset
from reconciler.model.arrow import parse_type
from reconciler.model.change import (
    AddColumns,
    AdoptTable,
    AlterColumns,
    BackfillColumns,
    Change,
    ColumnAlteration,
    CreateIndex,
    DropColumns,
    DropIndex,
    UpdateDataset,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import VECTOR_INDEXES, BuildRecord, Index, Marks

T = ("t",)
WIDE = (
    field("id", "int32", False),
    field("name", "string"),
    field("tags", "list<string>"),
    field("v", "fixed_size_list<float32>[16]"),
    field("s", "struct<x: int32, y: string>"),
    field("l", "list<struct<x: int32>>"),
)


@pytest.fixture
def wide(tmp_path: Path) -> DirectoryCatalog:
    made = open_catalog(tmp_path, **V2)
    run(made, declare(*T), dataset(*T, fields=WIDE))
    return made


def code_of(catalog: DirectoryCatalog, change: Change) -> Code:
    with pytest.raises(CatalogError) as refused:
        run(catalog, change)
    assert ".rs:" not in refused.value.message
    return refused.value.code


def test_metadata_config_and_comments_are_one_commit(wide: DirectoryCatalog) -> None:
    before = data(wide, *T)
    written = wide.apply(
        UpdateDataset(
            T,
            {"lance.a": "1", "b": "2"},
            {"origin": "x"},
            {"id": {"comment": "key"}, "s.x": {"unit": "m"}, "l.item.x": {"comment": "deep"}},
            "team-a",
            ("config:b", "config:lance.a"),
        ),
        CONTEXT,
    )
    assert (written.version_before, written.version_after) == (before.version, (before.version or 0) + 1)
    live = data(wide, *T)
    assert (live.config, live.schema_metadata) == ({"lance.a": "1", "b": "2"}, {"origin": "x"})
    assert live.applied == ("config:b", "config:lance.a")
    by_name = {f.name: f for f in live.fields}
    assert by_name["id"].comment == "key"
    assert by_name["s"].type.fields[0].metadata == {"unit": "m"}  # type: ignore[union-attr]
    assert by_name["l"].type.item.fields[0].comment == "deep"  # type: ignore[union-attr]
    opened = lance.dataset(str(wide.storage.uri(table_folder(wide))))
    properties = opened.get_transactions(1)[0].transaction_properties
    assert properties == {"reconciler.plan": "sha256:plan", "reconciler.step": "s1"}
    run(wide, UpdateDataset(T, {"b": None}, {"origin": None}, {"id": {"comment": None}}, "team-a", ()))
    live = data(wide, *T)
    assert (live.config, live.schema_metadata, live.applied) == ({"lance.a": "1"}, {}, ())
    assert live.fields[0].comment is None
    assert code_of(wide, UpdateDataset(T, {}, {}, {"nope": {"a": "b"}}, "team-a", ())) is Code.TABLE_COLUMN_NOT_FOUND


def test_a_path_that_means_two_fields_is_refused(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **V2)
    odd = field("x", "struct<a.b: int8, a: struct<b: int32, c: int8>>")
    run(catalog, declare(*T), dataset(*T, fields=(field("id", "int64"), odd)))
    before = data(catalog, *T)
    assert code_of(catalog, UpdateDataset(T, {}, {}, {"x.a.b": {"comment": "!"}}, "team-a", ())) is Code.UNSUPPORTED
    assert data(catalog, *T) == before
    run(catalog, UpdateDataset(T, {}, {}, {"x.a.c": {"comment": "!"}}, "team-a", ()))
    run(catalog, DropColumns(T, ("id",)))


def test_rows_keep_at_least_one_column_with_data(tmp_path: Path) -> None:
    """Lance drops it, and then cannot read the rows any more."""
    catalog = open_catalog(tmp_path, **V2)
    run(catalog, declare(*T), dataset(*T, fields=(field("id", "int32"), field("name", "string"))))
    uri = str(catalog.storage.uri(table_folder(catalog)))
    run(catalog, AddColumns(T, (field("early", "int8"),)))
    lance.write_dataset(pa.table({"id": pa.array([1], pa.int32()), "name": ["a"]}), uri, mode="append")
    run(catalog, AddColumns(T, (field("late", "int8"),)))
    assert code_of(catalog, DropColumns(T, ("id", "name", "early"))) is Code.UNSUPPORTED
    run(catalog, DropColumns(T, ("id",)))
    assert code_of(catalog, DropColumns(T, ("name",))) is Code.UNSUPPORTED
    assert lance.dataset(uri).to_table().num_rows == 1


def table_folder(catalog: DirectoryCatalog) -> str:
    return next(f for f in catalog.storage.list().folders if not f.startswith("__"))


def test_columns_are_added_altered_and_dropped(wide: DirectoryCatalog) -> None:
    new = (
        field("n", "int8", comment="new", metadata={"k": "v"}),
        field("deep", "struct<a: list<int32>, b: blob>"),
        field("photo", "blob"),
    )
    run(wide, AddColumns(T, new))
    assert data(wide, *T).fields[-3:] == new
    run(
        wide,
        AlterColumns(
            T, (ColumnAlteration("n", rename="m", type=parse_type("int64")), ColumnAlteration("id", nullable=True))
        ),
    )
    live = {f.name: f for f in data(wide, *T).fields}
    assert str(live["m"].type) == "int64"
    assert live["id"].nullable
    run(wide, AlterColumns(T, (ColumnAlteration("s.x", rename="xx"), ColumnAlteration("l.item.x", rename="z"))))
    assert str({f.name: f for f in data(wide, *T).fields}["s"].type) == "struct<xx: int32, y: string>"
    run(wide, DropColumns(T, ("m", "deep", "photo", "s.y")))
    assert [f.name for f in data(wide, *T).fields] == ["id", "name", "tags", "v", "s", "l"]
    assert code_of(wide, AddColumns(T, (field("q", "int8", False),))) is Code.TABLE_SCHEMA_VALIDATION_ERROR
    assert code_of(wide, AddColumns(T, (field("name", "string"),))) is Code.TABLE_SCHEMA_VALIDATION_ERROR
    assert code_of(wide, DropColumns(T, ("nope",))) is Code.TABLE_COLUMN_NOT_FOUND
    assert code_of(wide, AlterColumns(T, (ColumnAlteration("nope", rename="x"),))) is Code.TABLE_COLUMN_NOT_FOUND
    cast = AlterColumns(T, (ColumnAlteration("name", type=parse_type("int64")),))
    assert code_of(wide, cast) is Code.TABLE_SCHEMA_VALIDATION_ERROR


def test_narrowing_that_overflows_changes_nothing(wide: DirectoryCatalog) -> None:
    uri = wide.storage.uri(table_folder(wide))
    opened = lance.dataset(uri)
    lance.write_dataset(pa.Table.from_pylist([{"id": 70000}], opened.schema), uri, mode="append")
    version = data(wide, *T).version
    code_of(wide, AlterColumns(T, (ColumnAlteration("id", type=parse_type("int8")),)))
    assert data(wide, *T).version == version


SCALAR = [("id", "btree"), ("name", "bitmap"), ("tags", "label_list"), ("name", "inverted"), ("name", "ngram"),
          ("id", "zonemap"), ("id", "bloomfilter"), ("s.x", "btree")]  # fmt: skip


def test_every_index_type_is_created_and_read_back(wide: DirectoryCatalog) -> None:
    wanted = [Index(f"i{n}", column, kind) for n, (column, kind) in enumerate(SCALAR)]
    for number, kind in enumerate(sorted(VECTOR_INDEXES)):
        params = {"metric": "cosine", "num_partitions": 1, **({"num_sub_vectors": 4} if kind.endswith("pq") else {})}
        wanted.append(Index(f"v{number}", "v", kind, params))
    for index in wanted:
        run(wide, CreateIndex(T, index))
    live = {i.name: i for i in data(wide, *T).indexes}
    assert set(live) == {i.name for i in wanted}
    for index in wanted:
        found = live[index.name]
        assert (found.column, found.type) == (index.column, index.type)
        assert {**found.params, "num_partitions": 1}.items() >= index.params.items()
        assert found.unread == (frozenset({"num_partitions"}) if index.type in VECTOR_INDEXES else frozenset())
        if index.type != "bitmap":  # Lance has no build of it without rows to record.
            assert found.record == BuildRecord(index.params, 0, current=True)
    assert code_of(wide, CreateIndex(T, wanted[0])) is Code.TABLE_INDEX_ALREADY_EXISTS
    run(wide, DropIndex(T, "i0"))
    assert "i0" not in {i.name for i in data(wide, *T).indexes}
    assert code_of(wide, DropIndex(T, "i0")) is Code.TABLE_INDEX_NOT_FOUND
    assert code_of(wide, CreateIndex(T, Index("x", "nope", "btree"))) is Code.TABLE_COLUMN_NOT_FOUND
    assert code_of(wide, CreateIndex(T, Index("x", "id", "magic"))) is Code.INVALID_INPUT
    cast = AlterColumns(T, (ColumnAlteration("id", type=parse_type("int64")),))
    assert "index" in message_of(wide, cast)


def test_parameters_that_can_be_read_are_those_of_the_live_index(wide: DirectoryCatalog) -> None:
    """Not those of the one that we made, when others have made it anew; which cannot be read is known."""
    run(wide, CreateIndex(T, Index("s", "name", "inverted", {"base_tokenizer": "ngram", "min_ngram_length": 2})))
    run(wide, CreateIndex(T, Index("v", "v", "ivf_flat", {"metric": "cosine", "num_partitions": 1})))
    dataset = lance.dataset(wide.storage.uri(table_folder(wide)))
    dataset.create_scalar_index("name", "INVERTED", name="s", replace=True, base_tokenizer="ngram", min_ngram_length=1)
    live = {i.name: i for i in data(wide, *T).indexes}
    assert (live["s"].params["min_ngram_length"], live["s"].unread) == (1, frozenset())
    assert live["v"].unread == {"num_partitions"}


def message_of(catalog: DirectoryCatalog, change: Change) -> str:
    with pytest.raises(CatalogError) as refused:
        run(catalog, change)
    return refused.value.message


def test_what_lance_shows_of_an_index_made_by_others(wide: DirectoryCatalog) -> None:
    opened = lance.dataset(wide.storage.uri(table_folder(wide)))
    opened.create_scalar_index("name", "INVERTED", name="text", with_position=True, stem=False)
    (index,) = data(wide, *T).indexes
    assert index.record is None
    assert (index.params["with_position"], index.params["stem"]) == (True, False)
    run(wide, AdoptTable(T, Marks("team-a"), ("index:text",)))
    assert data(wide, *T).indexes[0].record is None


def test_a_tag_keeps_the_version_before_the_first_attempt(wide: DirectoryCatalog) -> None:
    before = data(wide, *T).version
    context = WriteContext("p", "s2", "reconciler-p-s2")
    wide.apply(DropColumns(T, ("name",)), context)
    wide.apply(DropColumns(T, ("tags",)), context)
    opened = lance.dataset(wide.storage.uri(table_folder(wide)))
    assert opened.tags.get_version("reconciler-p-s2") == before
    assert "name" in lance.dataset(opened.uri, version="reconciler-p-s2").schema.names


def test_a_stale_commit_is_a_conflict(wide: DirectoryCatalog) -> None:
    datasets = Datasets()
    uri = wide.storage.uri(table_folder(wide))
    stale = datasets.open(uri)
    run(wide, UpdateDataset(T, {"a": "1"}, {}, {}, "team-a", ()))
    with pytest.raises(Exception, match="Incompatible") as refused:
        _commit(stale, datasets, CONTEXT, config={"a": "2"})
    assert to_catalog_error(refused.value, "x", write=True).code is Code.CONCURRENT_MODIFICATION


def test_create_finishes_only_its_own_interrupted_attempt(tmp_path: Path) -> None:
    datasets = Datasets()
    change = dataset(*T, config={"a": "b"})
    uri = str(tmp_path / "d")
    begun = {"reconciler.plan": "sha256:other", "reconciler.owner": change.owner}
    lance.write_dataset(
        [], uri, schema=to_arrow_schema(change.fields), data_storage_version="2.2", transaction_properties=begun
    )
    assert create_dataset(datasets, uri, change, CONTEXT).version_after == 2
    for made in (dataset(*T), dataset(*T, fields=WIDE)):
        with pytest.raises(CatalogError) as refused:
            create_dataset(datasets, uri, made, CONTEXT)
        assert refused.value.code is Code.TABLE_ALREADY_EXISTS
    for name, written in {"outsider": {}, "team-b": {**begun, "reconciler.owner": "team-b"}}.items():
        empty = str(tmp_path / name)
        lance.write_dataset([], empty, schema=to_arrow_schema(change.fields), transaction_properties=written)
        with pytest.raises(CatalogError) as refused:
            create_dataset(datasets, empty, change, CONTEXT)
        assert refused.value.code is Code.TABLE_ALREADY_EXISTS
        assert lance.dataset(empty).version == 1
    other = str(tmp_path / "rows")
    lance.write_dataset(pa.table({"id": [1]}), other)
    with pytest.raises(CatalogError) as refused:
        create_dataset(datasets, other, dataset(*T, fields=(field("id", "int64"),)), CONTEXT)
    assert refused.value.code is Code.TABLE_ALREADY_EXISTS
    assert lance.dataset(other).count_rows() == 1


def test_the_data_plane_is_not_ours(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"))
    with pytest.raises(CatalogError) as refused:
        run(catalog, BackfillColumns(("n", "t"), ()))
    assert refused.value.code is Code.UNSUPPORTED
