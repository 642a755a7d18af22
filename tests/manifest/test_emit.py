# ruff: noqa: E501 - tables of cases read best one to a line
"""Invariant 9: load(emit(state)) == state."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.catalog.lance_types import type_problem
from reconciler.manifest.emit import emit, export
from reconciler.manifest.load import Loaded, load
from reconciler.manifest.table_rules import _LANCE_COLUMNS
from reconciler.model.arrow import ArrowType, Field, ListOf, MapOf, Struct, parse_type
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import Code
from reconciler.model.observed import Detached, Present, Snapshot, Unreadable
from reconciler.model.state import UNKNOWN, DatasetState, Index, Marks, NamespaceState, TableState

CATALOG = CatalogSpec(
    "lake",
    "dir",
    {"path": "./lake", "storage.account_key": "${env:KEY}"},
    Management(owner="me"),
    Source("x"),
    {"owner": "me"},
)

AWKWARD = st.sampled_from(
    ["no", "1.0", "0123", "2024-01-01", "~", "", "=", "<<", "${x}", "$${", "$", "a: b", "# c", "- d", "'", '"', "\n", " x ",
     "\t", "a\nb", "\x85", "\u2028", "\ufeff", "😀", "!t", "&a", "*a", "%", "@", "`", "null", "0x1F", "12:30", "---", "...", "\\"]
)  # fmt: skip
TEXT = AWKWARD | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
KEY = TEXT.filter(lambda t: t and "${" not in t and not t.startswith("reconciler."))
NAME = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
COLUMN = NAME.filter(lambda n: "." not in n and "`" not in n and n not in _LANCE_COLUMNS)
STRINGS = st.dictionaries(KEY, TEXT, max_size=3)
FLAT = st.sampled_from(["int64", "string", "bool", "timestamp[us, tz=UTC]", "decimal128(38, 10)", "blob"]).map(
    parse_type
)


def fields(inner: st.SearchStrategy[ArrowType]) -> st.SearchStrategy[tuple[Field, ...]]:
    comment = st.none() | TEXT
    metadata = st.dictionaries(KEY.filter(lambda k: k != "comment"), TEXT, max_size=2)
    one = st.builds(Field, COLUMN, inner, st.booleans(), comment, metadata)
    return st.lists(one, min_size=1, max_size=3, unique_by=lambda f: f.name).map(tuple)


TYPES: st.SearchStrategy[ArrowType] = st.recursive(
    FLAT,
    lambda inner: st.one_of(
        st.builds(ListOf, st.sampled_from(["list", "large_list"]), inner, st.booleans()),
        st.builds(lambda item, n: ListOf("fixed_size_list", item, True, n), FLAT, st.integers(1, 9)),
        st.builds(MapOf, FLAT, inner, st.booleans()),
        fields(inner).map(Struct),
    ),
    max_leaves=6,
)
DATASET = st.builds(DatasetState, fields(TYPES), STRINGS, STRINGS)
TABLE = st.builds(
    TableState,
    st.just("./x"),
    STRINGS,
    st.builds(Marks, st.just("me"), st.booleans()),
    st.none() | st.just(UNKNOWN) | DATASET,
)
NAMESPACE = st.builds(NamespaceState, STRINGS, st.builds(Marks, st.none(), st.booleans()))
SNAPSHOT = st.builds(
    lambda namespaces, tables: Snapshot(
        {(n,): Present(s) for n, s in namespaces.items()}, {(n, "t"): Present(s) for n, s in tables.items()}
    ),
    st.dictionaries(NAME, NAMESPACE, max_size=3),
    st.dictionaries(NAME, TABLE, max_size=3),
)


def reload(text: str) -> Loaded:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "m.yaml"
        file.write_text(text, "utf-8", newline="")
        return load([str(file)], environ={})


@pytest.mark.slow
@given(SNAPSHOT)
def test_emit_then_load_is_the_same(snapshot: Snapshot) -> None:
    loaded = reload(emit(CATALOG, snapshot))
    assert {d.code for d in loaded.diagnostics} <= {"M403"}
    desired = loaded.desired
    assert desired.catalogs["lake"].options == CATALOG.options
    assert desired.catalogs["lake"].management == CATALOG.management
    namespaces: Any = desired.namespaces.get("lake", {})
    tables: Any = desired.tables.get("lake", {})
    assert set(namespaces) == set(snapshot.namespaces)
    assert set(tables) == set(snapshot.tables)
    for ident, found in (*snapshot.namespaces.items(), *snapshot.tables.items()):
        assert isinstance(found, Present)
        state = found.state
        wanted = tables[ident] if isinstance(state, TableState) else namespaces[ident]
        assert dict(wanted.properties) == dict(state.properties)
        assert bool(wanted.protect) is state.marks.protect
        if isinstance(state, TableState):
            dataset = state.dataset if isinstance(state.dataset, DatasetState) else None
            assert wanted.fields == (dataset.fields if dataset else None)
            assert wanted.config == (dataset.config if dataset else {})
            assert wanted.schema_metadata == (dataset.schema_metadata if dataset else {})


def test_text_reads_well() -> None:
    columns = (
        Field("id", parse_type("int64"), False, "key"),
        Field("box", ListOf("list", Struct((Field("x", parse_type("float32"), True, "left"),)))),
        Field("v", parse_type("fixed_size_list<float32>[8]")),
    )
    indexes = (
        Index("id_idx", "id", "btree", {"unknown": 1}),
        Index("near", "v", "ivf_pq", {"num_sub_vectors": 4, "metric": "cosine", "version": 3}),
        Index("old", "v", "ivf_pq", {}),
    )
    dataset = DatasetState(columns, {"k": "1"}, {"reconciler.x": "y"}, indexes)
    state = TableState(
        "./x", {"description": "photos", "reconciler.owner": "me", "pii": "false"}, Marks("me", True), dataset
    )
    tables: dict[tuple[str, ...], Present | Detached | Unreadable] = {
        ("t",): Present(state),
        ("gone",): Detached("./gone", dataset),
        ("broken",): Unreadable(Code.INTERNAL, "line one\nline two"),
    }
    text = emit(CATALOG, Snapshot({}, tables))
    assert text == EXPECTED
    loaded = reload(text)
    assert loaded.diagnostics == []
    found = loaded.desired.tables["lake"][("t",)]
    assert found.fields == columns
    assert [(i.name, dict(i.params)) for i in found.indexes] == [
        ("id_idx", {}),
        ("near", {"metric": "cosine", "num_sub_vectors": 4}),
    ]


EXPECTED = """\
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec:
  type: dir
  path: ./lake
  storage.account_key: ${env:KEY}
  management: {owner: me}
---
# table broken could not be read: Internal: line one line two
# What it is like is not known here: all of it is left as it is. The next import that can read it fills this document
# in, if nothing was changed here. Otherwise delete the document, with this comment, and import again. Delete it too if
# the object has been removed since: a document that names it would make it again.
apiVersion: reconciler.lance/v1
kind: Table
metadata:
  catalog: lake
  id: [broken]
spec:
  ignoreDifferences: [description, properties, config, schemaMetadata, schema, indexes]
---
# table gone is not in the catalog; its data is at ./gone
---
# table t: the index old (ivf_pq on v) is left out, its parameters are not known
apiVersion: reconciler.lance/v1
kind: Table
metadata:
  catalog: lake
  id: [t]
spec:
  description: photos
  properties: {pii: 'false'}
  protect: true
  schema:
  - {name: id, type: int64, nullable: false, comment: key}
  - name: box
    type: list<struct>
    fields:
    - {name: x, type: float32, comment: left}
  - {name: v, type: 'fixed_size_list<float32>[8]'}
  schemaMetadata: {k: '1'}
  indexes:
  - {column: id, type: btree}
  - column: v
    type: ivf_pq
    name: near
    params: {metric: cosine, num_sub_vectors: 4}
"""


@pytest.mark.parametrize(
    ("ident", "state", "reason"),
    [
        (("t",), TableState(properties={"a${b": "x"}), "${"),
        (("a" * 300,), TableState(), "form"),
        (("t",), TableState(dataset=DatasetState((Field("a.b", parse_type("int8")),))), "dot"),
    ],
)
def test_what_cannot_be_written_is_a_comment(ident: tuple[str, ...], state: TableState, reason: str) -> None:
    text = emit(CATALOG, Snapshot({}, {ident: Present(state)}))
    comment = text.split("---\n")[1]
    assert comment.startswith("# table ")
    assert reason in comment
    assert reload(text).diagnostics == []


ODD_COLUMNS = (
    Field("id", parse_type("int64"), False, None, {"lance-schema:unenforced-primary-key": "true", "unit": "1"}),
    Field("words", ListOf("fixed_size_list", parse_type("string"), True, 2)),
    Field("nothing", Struct(())),
    Field("", parse_type("int8")),
    Field("a.b", parse_type("int8")),
    Field("x\ny", Struct((Field("", parse_type("int8")),))),
    Field("box", Struct((Field("u", parse_type("fixed_size_binary[16]"), True, None, {"ARROW:extension:name": "arrow.uuid"}),))),
)  # fmt: skip


def test_columns_that_validate_refuses_are_left_out_with_a_warning() -> None:
    indexes = (Index("id_idx", "id", "btree", {}), Index("words_idx", "words", "zonemap", {}))
    state = TableState(dataset=DatasetState(ODD_COLUMNS, indexes=indexes))
    tables: dict[tuple[str, ...], Present | Detached | Unreadable] = {
        ("t",): Present(state),
        ("broken",): Unreadable(Code.INTERNAL, "line one\nline two"),
        ("bad name",): Present(TableState()),
    }
    found = export(
        CATALOG, Snapshot({}, tables), type_problem, lambda _, ident: "no spaces" if " " in ident[0] else None
    )
    assert found.warnings == (
        "table bad name cannot be written as a manifest: no spaces",
        "table broken could not be read: Internal: line one line two",
        "table t: the column 'words' (fixed_size_list<string>[2]) is left out: fixed_size_list holds only fixed-width "
        "items, not string: use list<string>",
        "table t: the column 'nothing' (struct<>) is left out: a struct needs at least one field",
        "table t: the column '' (int8) is left out: it has no name",
        "table t: the column 'a.b' (int8) is left out: the column name 'a.b' contains a dot",
        "table t: the column 'x\\ny' (struct<\"\": int8>) is left out: type 'struct<\"\": int8>': "
        "a field name must not be empty",
        "table t: the index words_idx (zonemap on words) is left out, its column is not in the manifest",
    )
    for warning in found.warnings:
        assert "# " + warning.partition(" Internal")[0] in found.text
    loaded = reload(found.text)
    assert loaded.diagnostics == []
    wanted = loaded.desired.tables["lake"][("t",)]
    assert wanted.at_least
    assert wanted.fields == (
        Field("id", parse_type("int64"), False, None, {"unit": "1"}),
        Field("box", parse_type("struct<u: fixed_size_binary[16]>")),
    )
    assert [i.name for i in wanted.indexes] == ["id_idx"]
    assert "# table t: metadata of the column 'id' is not managed: lance-schema:unenforced-primary-key\n" in found.text


def test_a_table_of_such_columns_only_is_declared_without_a_schema() -> None:
    state = TableState(dataset=DatasetState((Field("", parse_type("int8")),)))
    found = export(CATALOG, Snapshot({}, {("t",): Present(state)}))
    assert len(found.warnings) == 1
    loaded = reload(found.text)
    assert loaded.diagnostics == []
    assert loaded.desired.tables["lake"][("t",)].fields is None


def test_an_index_that_validate_refuses_is_left_out() -> None:
    dataset = DatasetState((Field("flag", parse_type("bool")),), indexes=(Index("i", "flag", "bloomfilter", {}),))
    found = export(CATALOG, Snapshot({}, {("t",): Present(TableState(dataset=dataset))}))
    assert len(found.warnings) == 1
    assert "the index i (bloomfilter on flag) is left out" in found.warnings[0]
    assert reload(found.text).diagnostics == []


def test_nothing_left_out_is_no_warning() -> None:
    state = TableState(dataset=DatasetState((Field("a", parse_type("int8")),)))
    assert export(CATALOG, Snapshot({}, {("t",): Present(state)}), type_problem).warnings == ()


def test_what_validate_would_refuse_is_left_out() -> None:
    """A property or columns that the backend's own rules refuse: live all the same, made by somebody else."""
    fields = tuple(Field(name, parse_type("int64")) for name in ("id", "ID"))
    dataset = DatasetState(fields, indexes=(Index("i", "id", "btree"),))
    state = TableState("./x", {"long": "xxxx", "fine": "x", "description": "xxxxx"}, Marks(), dataset)
    found = export(
        CATALOG,
        Snapshot({}, {("t",): Present(state)}),
        property_problem=lambda kind, key, value: f"too long for a {kind}" if len(value) > 3 else None,
        schema_problem=lambda columns: "two differ only in case" if len(columns) == 2 else None,
    )
    assert [w.partition(": ")[2].partition(":")[0] for w in found.warnings] == [
        "the property 'description' is left out",
        "the property 'long' is left out",
        "the columns are left out",
        "the index i (btree on id) is left out, its column is not in the manifest",
    ]
    loaded = reload(found.text)
    assert loaded.diagnostics == []
    table = loaded.desired.tables["lake"]["t",]
    assert (dict(table.properties), table.fields, table.indexes) == ({"fine": "x"}, None, ())
