# ruff: noqa: E501 - tables of cases read best one to a line
"""Each rule, once broken and once kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifest.codes import CODES
from reconciler.manifest.load import load

from .support import CATALOG, codes, load_text, namespace, places, table

POND = CATALOG.replace("lake", "pond")
INT = "schema: [{name: a, type: int64}]"
SCHEMA = """\
schema:
- {name: id, type: int64}
- {name: text, type: string}
- {name: tags, type: list<string>}
- {name: v, type: "fixed_size_list<float32>[16]"}
- {name: u, type: "fixed_size_list<uint8>[16]"}
- {name: i, type: "fixed_size_list<int32>[16]"}
- {name: st, type: "struct<a: int32, b: string>"}
"""


def index(text: str) -> str:
    return table("t", SCHEMA + f"indexes: [{text}]")


BROKEN: dict[str, tuple[str, list[str]]] = {
    "duplicate namespace": ("M400", [namespace("n"), namespace("n")]),
    "duplicate table": ("M400", [table("n"), table("n")]),
    "duplicate catalog": ("M401", [CATALOG]),
    "unknown catalog": ("M402", [namespace("n", catalog="lak")]),
    "undeclared parent": ("M403", [table("n, t")]),
    "table below a table": ("M404", [table("n"), table("n, t")]),
    "namespace below a table": ("M404", [table("n"), namespace("n, t")]),
    "deep below a table": ("M404", [table("n"), namespace("n, o"), table("n, o, t")]),
    "table and namespace": ("M405", [table("n"), namespace("n")]),
    "one location": ("M406", [table("a", "location: x/y"), table("b", "location: ./x//y/")]),
    "location inside": ("M406", [table("a", "location: s3://b/x"), table("b", "location: s3://b/x/y")]),
    "location far inside": ("M406", [table("a", "location: /r/x"), table("b", "location: /r/x-y"), table("c", "location: /r/x/z")]),
    "one location, dots": ("M406", [table("a", "location: s3://b/x/y"), table("b", "location: s3://b/./z/../x//y/")]),
    "one location, schemes": ("M406", [table("a", "location: S3A://B/x"), table("b", "location: s3://b/x")]),
    "one location, encoded": ("M406", [table("a", "location: s3://b/x%20y"), table("b", "location: s3://b/x y")]),
    "one location, dots encoded": ("M406", [table("a", "location: s3://b/x"), table("b", "location: s3://b/y/%2e%2e/x")]),
    "one location, file URIs": ("M406", [table("a", "location: FILE:///r/x"), table("b", "location: file:/r/x"),
                                         table("c", "location: /r//x/")]),
    "location inside, in another catalog": ("M406", [POND, table("a", "location: s3://b/x"),
                                                     table("b", "location: s3://b/x/y", "pond")]),
    "one location thrice": ("M406", [POND, table("a", "location: s3://b/x\n" + INT),
                                     table("a", "location: s3://b/x\n" + INT, "pond"),
                                     table("b", "location: s3a://b/x\n" + INT, "pond")]),
    "one dataset, two schemas": ("M407", [POND, table("a", "location: s3://b/x\n" + INT),
                                          table("a", "location: s3://b/x\n" + INT.replace("int64", "int32"), "pond")]),
    "absent parent": ("M409", [namespace("n", "state: absent"), table("n, t")]),
    "absent grandparent": ("M409", [namespace("n", "state: absent"), namespace("n, o", "state: absent"), table("n, o, t")]),
    "rename from itself": ("M410", [table("t", "renamedFrom: [t]")]),
    "rename circle": ("M411", [table("a", "renamedFrom: [b]"), table("b", "renamedFrom: [c]"), table("c", "renamedFrom: [a]")]),
    "rename from a declared one": ("M412", [table("a", "renamedFrom: [b]"), table("b")]),
    "two renames": ("M413", [table("a", "renamedFrom: [c]"), table("b", "renamedFrom: [c]")]),
    "two columns": ("M420", [table("t", "schema: [{name: a, type: int8}, {name: a, type: int8}]")]),
    "two nested columns": ("M420", [table("t", "schema: [{name: s, fields: [{name: a, type: int8}, {name: a, type: int8}]}]")]),
    "dotted column": ("M421", [table("t", "schema: [{name: a.b, type: int8}]")]),
    "dotted nested column": ("M421", [table("t", "schema: [{name: s, fields: [{name: a.b, type: int8}]}]")]),
    "column from itself": ("M422", [table("t", "schema: [{name: a, type: int8, renamedFrom: a}]")]),
    "column from a declared one": ("M422", [table("t", "schema: [{name: a, type: int8, renamedFrom: b}, {name: b, type: int8}]")]),
    "two columns from one": ("M422", [table("t", "schema: [{name: a, type: int8, renamedFrom: c}, {name: b, type: int8, renamedFrom: c}]")]),
    "index names": ("M424", [index("{column: id, type: btree}, {column: id, type: bitmap}")]),
    "index name by dots": ("M424", [index("{column: st.a, type: btree}, {column: id, type: bitmap, name: st_a_idx}")]),
    "index column": ("M425", [index("{column: idd, type: btree}")]),
    "nested index column": ("M425", [index("{column: st.c, type: btree}")]),
    "vector index on a number": ("M426", [index("{column: id, type: ivf_flat}")]),
    "vector index on integers": ("M426", [index("{column: i, type: ivf_flat}")]),
    "hamming on floats": ("M426", [index("{column: v, type: ivf_flat, params: {metric: hamming}}")]),
    "sub-vectors": ("M426", [index("{column: v, type: ivf_pq, params: {num_sub_vectors: 5}}")]),
    "label list": ("M426", [index("{column: text, type: label_list}")]),
    "inverted": ("M426", [index("{column: id, type: inverted}")]),
    "ngram": ("M426", [index("{column: tags, type: ngram}")]),
    "btree on a list": ("M426", [index("{column: tags, type: btree}")]),
    "bitmap on a dictionary": ("M426", [table("t", "schema: [{name: a, type: 'dictionary<int8, string>'}]\nindexes: [{column: a, type: bitmap}]")]),
    "bloomfilter on a bool": ("M426", [table("t", "schema: [{name: a, type: bool}]\nindexes: [{column: a, type: bloomfilter}]")]),
    "label list of lists": ("M426", [table("t", "schema: [{name: a, type: list<list<string>>}]\nindexes: [{column: a, type: label_list}]")]),
    "bitmap on a struct": ("M426", [index("{column: st, type: bitmap}")]),
    "reserved key": ("M430", [namespace("n", "properties: {reconciler.owner: me}")]),
    "two descriptions": ("M431", [namespace("n", "description: a\nproperties: {description: b}")]),
    "two comments": ("M434", [table("t", "schema: [{name: a, type: int8, comment: x, metadata: {comment: y}}]")]),
    "ignored object": ("M432", [POND.replace("path", "management: {ignore: ['scratch.**']}, path"),
                                namespace("scratch", catalog="pond"), table("scratch, t", catalog="pond")]),
    "loose patterns": ("M437", [POND.replace("path", f"management: {{ignore: {[f'**.{n}' for n in range(31)]}}}, path")]),
    "one lake, two ways": ("M416", [CATALOG.replace("name: lake", "name: pond"), namespace("n"), namespace("n", "properties: {a: b}", "pond")]),
    "password in the path": ("M417", [POND.replace("./pond", "'s3://user:pw@host/pond'"), namespace("n", catalog="pond")]),
    "password in a location": ("M417", [table("t", "location: s3://user:pw@host/t")]),
    "difference path": ("M433", [table("t", "ignoreDifferences: [propertys.x]")]),
    "difference of a namespace": ("M433", [namespace("n", "ignoreDifferences: [schema]")]),
    "unknown type": ("M211", [table("t", "schema: [{name: a, type: strng}]")]),
    "two structs": ("M211", [table("t", "schema: [{name: a, type: 'map<struct, struct>', fields: [{name: b, type: int8}]}]")]),
    "value not allowed": ("M207", [table("t", "schemaMode: strict")]),
    "word not allowed": ("M207", [table("t", "allow: [drop_everything]")]),
    "form not allowed": ("M207", [CATALOG.replace("lake}", "_pond}")]),
    "fields without a struct": ("M207", [table("t", "schema: [{name: a, type: int8, fields: [{name: b, type: int8}]}]")]),
    "number too small": ("M208", [POND.replace("path", "management: {thresholds: {deletes: -1}}, path")]),
    "number too large": ("M208", [POND.replace("path", "management: {thresholds: {deletePercent: 101}}, path")]),
    "name too long": ("M208", [table("t", "schema: [{name: " + "a" * 256 + ", type: int8}]")]),
    "identifier too long": ("M208", [namespace(", ".join("a" * 33))]),
    "default and backfill": ("M209", [table("t", "schema: [{name: a, type: int8, default: 1, backfill: {sql: '1'}}]")]),
    "no columns": ("M210", [table("t", "schema: []")]),
    "no name": ("M210", [table("t", "schema: [{name: '', type: int8}]")]),
    "no key": ("M210", [table("t", "properties: {'': x}")]),
    "no value": ("M210", [table("t", "description:")]),
    "apiVersion": ("M201", [CATALOG.replace("/v1", "/v2").replace("lake}", "pond}")]),
    "kind": ("M202", [CATALOG.replace("Catalog", "Catalogue").replace("lake}", "pond}")]),
    "not a mapping": ("M200", ["- a\n"]),
}  # fmt: skip

KEPT: dict[str, list[str]] = {
    "same name in two catalogs": [POND, namespace("n"), namespace("n", catalog="pond")],
    "declared parents": [namespace("n"), namespace("n, o"), table("n, o, t")],
    "table replaces an absent namespace": [namespace("n", "state: absent"), table("n")],
    "absent child of an absent parent": [namespace("n", "state: absent"), table("n, t", "state: absent")],
    "absent child without a parent": [table("n, t", "state: absent")],
    "neighbours": [table("a", "location: s3://b/x"), table("b", "location: s3://b/x-y"), table("c", "location: s3://b/xy")],
    "absent table's location": [table("a", "location: x"), table("b", "location: x\nstate: absent")],
    "one dataset, one schema": [POND, table("a", "location: s3://b/x\n" + INT), table("a", "location: s3://b/x\n" + INT, "pond")],
    "renames": [table("a", "renamedFrom: [b]"), table("c", "renamedFrom: [d]"), namespace("e", "renamedFrom: [b]")],
    "rename from an absent one": [table("a", "renamedFrom: [b]"), table("b", "state: absent")],
    "column renames": [table("t", "schema: [{name: a, type: int8, renamedFrom: b}, {name: s, fields: [{name: b, type: int8, renamedFrom: a}]}]")],
    "same column name on two levels": [table("t", "schema: [{name: a, type: int8}, {name: s, fields: [{name: a, type: int8}]}]")],
    "indexes": [index("{column: id, type: btree}, {column: tags, type: label_list}, {column: text, type: inverted}, "
                      "{column: tags, type: inverted, name: i2}, {column: v, type: ivf_pq, params: {num_sub_vectors: 4}}, "
                      "{column: u, type: ivf_flat, params: {metric: hamming}}, {column: text, type: ngram, name: i3}")],
    "index without a schema": [table("t", "indexes: [{column: a, type: btree}]")],
    "description property": [namespace("n", "properties: {description: b}")],
    "many names to ignore": [POND.replace("path", f"management: {{ignore: {[f'n{n}.**' for n in range(99)]}}}, path")],
    "one lake, one way": [CATALOG.replace("name: lake", "name: pond"), namespace("n", "properties: {a: b}"), namespace("n", "properties: {a: b}", "pond")],
    "not ignored": [POND.replace("path", "management: {ignore: ['scratch.*']}, path"), namespace("scratch", catalog="pond")],
    "difference paths": [table("t", "ignoreDifferences: [description, properties, properties.a.b, config.x, schemaMetadata, "
                               "schema, schema.a.type, indexes, indexes.i]")],
    "nested lists of structs": [table("t", "schema: [{name: a, type: list, fields: [{name: b, type: 'list<struct<c: int8>>'}]}]")],
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken(tmp_path: Path, name: str) -> None:
    code, documents = BROKEN[name]
    loaded = load_text(tmp_path, CATALOG, *documents)
    assert set(codes(loaded)) == {code}
    severity = "warning" if code == "M403" else "error"
    assert {d.severity for d in loaded.diagnostics} == {severity}


@pytest.mark.parametrize("name", KEPT)
def test_kept(tmp_path: Path, name: str) -> None:
    assert load_text(tmp_path, CATALOG, *KEPT[name]).diagnostics == []


def test_places_and_messages(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG, table("t"), table("t"))
    (found,) = loaded.diagnostics
    assert (found.source.line, found.source.column) == (13, 31)
    assert found.message.endswith("m.yaml:6:1")


def test_type_error_points_into_the_text(tmp_path: Path) -> None:
    for quote, shift in (("", 0), ('"', 1)):
        text = table("t", f"schema:\n- name: a\n  type: {quote}list<strng>{quote}\n")
        loaded = load_text(tmp_path, CATALOG, text)
        assert places(loaded, "M211") == [(12, 11 + 5 + shift)]
        assert loaded.diagnostics[0].hint == "did you mean string?"


def test_hints(tmp_path: Path) -> None:
    loaded = load_text(
        tmp_path,
        CATALOG.replace("path", "pth"),
        namespace("n", catalog="lakes"),
        table("t", "schema: [{name: a, type: int8, description: x}]\npropertis: {}"),
    )
    hints = {d.code + " " + d.hint for d in loaded.diagnostics}
    assert {"M203 did you mean path?", "M402 did you mean lake?", "M203 did you mean comment?"} <= hints
    assert "M203 did you mean properties?" in hints


def test_one_warning_per_missing_parent(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG, *[table(f"n, t{i}") for i in range(5)])
    assert places(loaded, "M403") == [(8, 31)]
    assert "4 more" in loaded.diagnostics[0].message


def test_broken_documents_cause_no_follow_ups(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, CATALOG.replace("path", "pth"), namespace("n", "nothing: 1"), table("n, t"))
    assert set(codes(loaded)) == {"M203", "M204"}


def test_order_does_not_matter(tmp_path: Path) -> None:
    documents = [CATALOG, namespace("n"), table("n, t", INT), table("n, u", "properties: {a: b}")]
    one = load_text(tmp_path, *documents)
    two = load_text(tmp_path, *reversed(documents))
    assert one.desired.digest == two.desired.digest
    assert list(one.desired.tables["lake"]) == list(two.desired.tables["lake"])
    changed = load_text(tmp_path, *documents[:-1], table("n, u", "properties: {a: c}"))
    assert changed.desired.digest != one.desired.digest


def test_every_code_is_listed_once() -> None:
    import re

    source = "".join(
        p.read_text("utf-8")
        for p in (Path(__file__).parents[2] / "reconciler" / "manifest").glob("*.py")
        if p.name != "codes.py"
    )
    used = set(re.findall(r'"(M\d{3})"', source))
    assert used == set(CODES)


@pytest.mark.parametrize("name", ["_rowid", "_rowaddr", "_rowoffset", "a`b", "a.b"])
def test_column_names_that_lance_cannot_have(tmp_path: Path, name: str) -> None:
    found = load([written(tmp_path, f"spec: {{schema: [{{name: '{name}', type: int64}}]}}")]).diagnostics
    assert [d.code for d in found if d.severity == "error"] == ["M421"]


@pytest.mark.parametrize(
    "type_", ["struct<a.b: int8>", "list<struct<c: struct<a.b: int8>>>", "map<string, struct<a.b: int8>>"]
)
def test_the_same_inside_a_type(tmp_path: Path, type_: str) -> None:
    found = load([written(tmp_path, f"spec: {{schema: [{{name: x, type: '{type_}'}}]}}")]).diagnostics
    assert [(d.code, "'a.b'" in d.message) for d in found if d.severity == "error"] == [("M421", True)]


def test_one_mistake_does_not_hide_the_others(tmp_path: Path) -> None:
    """An unknown key and an unquoted value stand alone: the rest of the document is checked all the same."""
    spec = """spec:
  descripton: x
  properties: {a: no}
  schema:
    - {name: id, type: int64}
  indexes: [{column: gone, type: btree}]
"""
    found = load([written(tmp_path, spec)]).diagnostics
    assert {d.code for d in found if d.severity == "error"} == {"M203", "M206", "M425"}


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("{name: bad, type: int46}", "M211"),
        ("{name: bad, type: 5}", "M206"),
        ("{name: bad}", "M204"),
        ("{name: bad, type: int64, nullable: maybe}", "M205"),
        ("{name: bad, type: int64, comment: 5}", "M206"),
        ("{name: bad, fields: [{name: x, type: int46}]}", "M211"),
        ("{name: bad, fields: [{name: x}]}", "M204"),
        ("{name: a.b, type: int64}", "M421"),
        ("{name: id, type: int64}", "M420"),
    ],
)
def test_a_bad_column_does_not_hide_an_index_on_a_missing_one(tmp_path: Path, column: str, code: str) -> None:
    """The list of columns is known all the same. Of the bad one itself nothing more is said."""
    spec = f"""spec:
  schema:
    - {{name: id, type: int64}}
    - {column}
  indexes:
    - {{column: gone, type: btree}}
    - {{column: id, type: inverted}}
    - {{column: bad, type: zonemap}}
    - {{column: a.b, type: zonemap}}
"""
    if "name: bad" not in column:
        spec = spec.replace("    - {column: bad, type: zonemap}\n", "")
    if "a.b" not in column:
        spec = spec.replace("    - {column: a.b, type: zonemap}\n", "")
    found = [d for d in load([written(tmp_path, spec)]).diagnostics if d.severity == "error"]
    assert [d.code for d in found] == [code, "M425", "M426"]
    assert "no column 'gone'" in found[1].message


def test_nothing_is_said_about_the_index_of_a_broken_column(tmp_path: Path) -> None:
    for index, column in [
        ("{column: bad, type: inverted}", "{name: bad, type: int46}"),
        ("{column: bad.x.y, type: btree}", "{name: bad, type: int46}"),
        ("{column: bad.x, type: inverted}", "{name: bad, fields: [{name: x, type: int46}]}"),
    ]:
        found = load([written(tmp_path, f"spec:\n  schema: [{column}]\n  indexes: [{index}]\n")]).diagnostics
        assert [d.code for d in found if d.severity == "error"] == ["M211"], index


def written(folder: Path, spec: str) -> str:
    head = "apiVersion: reconciler.lance/v1\nkind: {}\nmetadata: {}\n"
    catalog = head.format("Catalog", "{name: lake}") + "spec: {type: dir, path: ./lake}\n---\n"
    file = folder / "m.yaml"
    file.write_text(catalog + head.format("Table", "{catalog: lake, id: [t]}") + spec)
    return str(file)


@pytest.mark.parametrize(
    "wrong",
    ["description: 3", "protect: 'yes'", "allow: [drop_colum]", "indexes: [{column: id, type: btre}]", "config: []",
     "checks: {rowCount: x}", "schemaMode: at_lest", "waivers: {}", "renamedFrom: 5", "maintenance: 1", "data: {}"],
)  # fmt: skip
def test_a_wrong_value_hides_nothing_else(tmp_path: Path, wrong: str) -> None:
    spec = f"schema: [{{name: id, type: in64}}]\n{wrong}"
    loaded = load_text(tmp_path, CATALOG, table("t", spec).replace("catalog: lake", "catalog: lak"))
    assert {"M402", "M211"} < {d.code for d in loaded.diagnostics}
