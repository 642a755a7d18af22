# ruff: noqa: E501 - tables of cases read best one to a line
"""Keys that a manifest cannot set, paths that name nothing, words that do nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.registry import capabilities_of

from .support import CATALOG, codes, load_text, namespace, places, table

INTERPRETED = [
    "ARROW:extension:name",
    "ARROW:extension:metadata",
    "lance-encoding:blob",
    "lance-schema:unenforced-primary-key",
    "lance-schema:unenforced-primary-key:position",
    "lance-schema:storage-class",
]
PLACES = {
    "column": "schema: [{name: a, type: int8, metadata: {KEY: x}}]",
    "field": "schema: [{name: s, fields: [{name: a, type: int8, metadata: {KEY: x}}]}]",
    "deep field": "schema: [{name: s, type: list<struct>, fields: [{name: t, fields: [{name: a, type: int8, metadata: {KEY: x}}]}]}]",
    "field of a map": "schema: [{name: m, type: 'map<string, struct>', fields: [{name: a, type: int8, metadata: {KEY: x}}]}]",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("key", INTERPRETED)
def test_interpreted_keys(tmp_path: Path, place: str, key: str) -> None:
    text = table("t", PLACES[place].replace("KEY", f'"{key}"'))
    loaded = load_text(tmp_path, CATALOG, text)
    assert codes(loaded) == ["M435"]
    (found,) = loaded.diagnostics
    assert found.severity == "error"
    assert key in found.message
    assert text.splitlines()[4][found.source.column - 1 :].startswith(f'"{key}"')
    assert ("type: blob" in found.hint) is (key == "lance-encoding:blob")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "key", ["lance-encoding:compression", "lance-encoding:blobs", "ARROW", "lance", "x.reconciler.y"]
)
def test_other_keys_are_free(tmp_path: Path, place: str, key: str) -> None:
    assert codes(load_text(tmp_path, CATALOG, table("t", PLACES[place].replace("KEY", f'"{key}"')))) == []


@pytest.mark.parametrize(
    "spec", ["properties: {KEY: x}", "config: {KEY: x}", "schemaMetadata: {KEY: x}", *PLACES.values()]
)
def test_our_keys_are_reserved_everywhere(tmp_path: Path, spec: str) -> None:
    assert codes(load_text(tmp_path, CATALOG, table("t", spec.replace("KEY", "reconciler.owner")))) == ["M430"]


SCHEMA = """\
schema:
- {name: x, type: int64}
- {name: tags, type: list<string>}
- {name: m, type: "map<string, int8>"}
- {name: s, type: "struct<metadata: struct<m: int8>, l: list<struct<a: int8>>>"}
"""


@pytest.mark.parametrize(
    "path",
    ["schema.x.y", "schema.tags.a", "schema.tags.item.a", "schema.m.value", "schema.s.comment.m",
     "schema.live.type.y.z", "schema.live.comment.y", "schema.", "schema.x.", "schema..x", "schema.x..type",
     "schema.s.metadata.m.k", "schema.s.l.a", "description.x", "properties."],
)  # fmt: skip
def test_paths_that_name_nothing(tmp_path: Path, path: str) -> None:
    text = table("t", SCHEMA + f"ignoreDifferences: [description, {path}]\n")
    loaded = load_text(tmp_path, CATALOG, text)
    assert codes(loaded) == ["M433"]
    assert places(loaded, "M433") == [(15, 36)]
    assert path in loaded.diagnostics[0].message
    assert loaded.diagnostics[0].hint


@pytest.mark.parametrize(
    "path",
    ["schema.x", "schema.x.metadata", "schema.x.metadata.m", "schema.live.metadata.m.n", "schema.live", "schema.live.type", "schema.live.inner.comment", "schema.type",
     "schema.type.inner.x", "schema.s.metadata", "schema.s.metadata.m", "schema.s.metadata.m.type", "schema.s.live",
     "schema.s.l.item.a.nullable", "schema.tags.item", "schema.tags.type", "config.a.", "properties.a.b", "indexes.live"],
)  # fmt: skip
def test_paths_that_may_name_something(tmp_path: Path, path: str) -> None:
    assert codes(load_text(tmp_path, CATALOG, table("t", SCHEMA + f"ignoreDifferences: [{path}]\n"))) == []


def test_an_index_is_ignored_as_a_whole(tmp_path: Path) -> None:
    """A path to one of its parameters would ignore nothing: the index would be built anew."""
    declared = SCHEMA + "indexes: [{column: x, type: btree}, {column: x, type: bitmap, name: a.b}]\n"
    for path in ("indexes.x_idx.params", "indexes.x_idx.params.num_partitions", "indexes.x_idx.type", "indexes.a.b.c"):
        loaded = load_text(tmp_path, CATALOG, table("t", declared + f"ignoreDifferences: [{path}]\n"))
        assert codes(loaded) == ["M433"], path
        assert "as a whole" in loaded.diagnostics[0].hint
    for path in ("indexes", "indexes.x_idx", "indexes.a.b", "indexes.live.x", "indexes.x_idx2"):
        assert codes(load_text(tmp_path, CATALOG, table("t", declared + f"ignoreDifferences: [{path}]\n"))) == [], path


def test_paths_without_a_schema(tmp_path: Path) -> None:
    assert codes(load_text(tmp_path, CATALOG, table("t", "ignoreDifferences: [schema.a.b.type]"))) == []
    assert codes(load_text(tmp_path, CATALOG, table("t", "ignoreDifferences: [schema.a.type.b]"))) == ["M433"]


def test_words_without_effect_are_warnings(tmp_path: Path) -> None:
    words = "allow: [drop_column, replace_table, drop_namespace, purge_data]"
    rules = {"capabilities_of": capabilities_of}
    loaded = load_text(tmp_path, CATALOG, namespace("n", "allow: [purge_data]"), table("n, t", words), **rules)
    assert codes(loaded) == ["M436"] * 4
    assert {d.severity for d in loaded.diagnostics} == {"warning"}
    assert places(loaded, "M436")[1:] == [(16, 24), (16, 39), (16, 55)]
    assert "replace rows that did not come from there" in loaded.diagnostics[0].message
    fine = "allow: [drop_column, narrow_type, set_not_null, drop_index]"
    assert codes(load_text(tmp_path, CATALOG, table("t", fine), **rules)) == []


def test_an_absent_object_is_not_renamed(tmp_path: Path) -> None:
    for document in (
        table("t", "state: absent\nrenamedFrom: [old]"),
        namespace("t", "state: absent\nrenamedFrom: [old]"),
    ):
        loaded = load_text(tmp_path, CATALOG, document)
        assert codes(loaded) == ["M415"]
        assert places(loaded, "M415") == [(11, 16)]
    assert codes(load_text(tmp_path, CATALOG, table("t", "state: present\nrenamedFrom: [old]"))) == []
