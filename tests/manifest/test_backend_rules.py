"""What a backend's capabilities say about declared objects, at file:line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.catalog.registry import capabilities_of
from reconciler.model.arrow import ArrowType, Field, ListOf, Struct
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import Change, DeclareTable
from reconciler.model.desired import CatalogSpec
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind

from .support import CATALOG, codes, load_text, namespace, places, table


class Rules(Capabilities):
    type = "strict"

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        return "two levels at most" if len(ident) > 2 else None

    def type_problem(self, type_: ArrowType) -> str | None:
        wrong = isinstance(type_, ListOf) and type_.size is not None and isinstance(type_.item, Struct)
        return "cannot be stored" if wrong else None

    def location_problem(self, ident: Ident, location: str) -> str | None:
        return "must be below the root" if location.startswith("/") else None

    def schema_problem(self, fields: Sequence[Field]) -> str | None:
        names = [f.name.lower() for f in fields]
        return "two columns differ only in case" if len(set(names)) < len(names) else None

    def property_problem(self, kind: Kind, key: str, value: str) -> str | None:
        return f"the value of {key} is too long for a {kind}" if len(value) > 3 else None


def test_identifiers_locations_and_types(tmp_path: Path) -> None:
    asked: list[str] = []

    def capabilities_of(spec: CatalogSpec) -> Capabilities:
        asked.append(spec.name)
        return Rules()

    documents = [
        CATALOG,
        namespace("n"),
        namespace("n, o"),
        table("n, o, t"),
        table("n, u", "location: /x"),
        table("n, w", "schema:\n- {name: ok, type: int8}\n- {name: a, type: 'fixed_size_list<struct<a: int8>>[2]'}\n"),
    ]
    loaded = load_text(tmp_path, *documents, capabilities_of=capabilities_of)
    assert codes(loaded) == ["M408", "M414", "M423"]
    assert asked == ["lake"]
    assert load_text(tmp_path, *documents, capabilities_of=lambda _: None).diagnostics == []


def test_properties_and_descriptions(tmp_path: Path) -> None:
    loaded = load_text(
        tmp_path,
        CATALOG,
        namespace("n", "properties: {a: abc, b: abcd}"),
        table("n, t", "description: a long one\nproperties: {c: abcd}"),
        capabilities_of=lambda _: Rules(),
    )
    assert codes(loaded) == ["M418"] * 3
    assert places(loaded, "M418") == [(10, 27), (16, 16), (17, 19)]
    assert loaded.diagnostics[0].message == "the value of b is too long for a Namespace"


def test_columns_that_do_not_go_together(tmp_path: Path) -> None:
    text = table("t", "schema: [{name: Id, type: int8}, {name: ID, type: int8}]")
    loaded = load_text(tmp_path, CATALOG, text, capabilities_of=lambda _: Rules())
    assert codes(loaded) == ["M428"]
    assert places(loaded, "M428") == [(10, 11)]


class Containers(Capabilities):
    """As a warehouse is: always there, never declared."""

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        return "it is a warehouse" if kind == "Namespace" and len(ident) == 1 else None


def test_nobody_is_asked_to_declare_a_container(tmp_path: Path) -> None:
    documents = (CATALOG, namespace("w, n"), table("w, m, t"))
    found = load_text(tmp_path, *documents, capabilities_of=lambda _: Containers()).diagnostics
    assert [d.message for d in found] == ["the namespace w.m is not declared"]
    assert codes(load_text(tmp_path, CATALOG, namespace("w"), capabilities_of=lambda _: Containers())) == ["M408"]


ALWAYS = {"purge_data", "skip_files", "add_files"}


class Cascading(Capabilities):
    type = "cascading"
    drop_needs_allow = True
    replaces_tables = True


@pytest.mark.parametrize(
    ("capabilities", "on_namespace", "on_table"),
    [
        (Capabilities(), {"replace_table", "drop_namespace", *ALWAYS}, {"replace_table", "drop_namespace", *ALWAYS}),
        (Cascading(), {"replace_table", *ALWAYS}, {"drop_namespace", *ALWAYS}),
    ],
)
def test_allow_words_without_effect(
    tmp_path: Path, capabilities: Capabilities, on_namespace: set[str], on_table: set[str]
) -> None:
    words = "allow: [replace_table, drop_namespace, purge_data, skip_files, add_files, drop_column]"
    loaded = load_text(
        tmp_path, CATALOG, namespace("n", words), table("n, t", words), capabilities_of=lambda _: capabilities
    )
    found = {(d.source.line, d.message.split("`")[1]) for d in loaded.diagnostics}
    assert found == {(10, w) for w in on_namespace} | {(16, w) for w in on_table}
    assert set(codes(loaded)) == {"M436"}
    assert {d.severity for d in loaded.diagnostics} == {"warning"}


class Placed(Capabilities):
    chooses_location = True
    root: str | None = None

    def location_of(self, ident: Ident) -> str | None:
        return f"{self.root}/{ident[-1]}" if self.root else None

    def refuses(self, change: Change) -> str | None:
        placeless = isinstance(change, DeclareTable) and change.location is None and self.root is None
        return "neither `root` nor `location` says where it goes" if placeless else None


def test_a_new_table_needs_a_place(tmp_path: Path) -> None:
    documents = (CATALOG, table("t"), table("u", "location: s3://b/u"), table("v", "state: absent"))
    (found,) = load_text(tmp_path, *documents, capabilities_of=lambda _: Placed()).diagnostics
    assert (found.code, found.severity) == ("M419", "warning")
    assert found.message == "t has no location: neither `root` nor `location` says where it goes"
    rooted = Placed()
    rooted.root = "s3://b"
    assert codes(load_text(tmp_path, *documents, capabilities_of=lambda _: rooted)) == []


def test_a_failing_backend_is_a_diagnostic(tmp_path: Path) -> None:
    def capabilities_of(spec: CatalogSpec) -> Capabilities:
        raise CatalogError(Code.INTERNAL, "the plug-in failed: KeyError: 'x'")

    loaded = load_text(tmp_path, CATALOG, table("t"), capabilities_of=capabilities_of)
    assert codes(loaded) == ["M440"]
    assert places(loaded, "M440") == [(4, 14)]


@pytest.mark.parametrize("other", ["./lake/n/t", "{here}/lake/n/t", "file://{here}/lake/./n/t", "n/x/../t", "n//t/"])
def test_a_location_below_the_root_is_one_however_it_is_written(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lake = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec: {type: dir, path: ./lake}\n"
    tables = [table("n, a", "location: n/t"), table("n, b", f"location: {other.format(here=tmp_path)}")]
    loaded = load_text(tmp_path, lake, namespace("n"), *tables, capabilities_of=capabilities_of)
    assert codes(loaded) == ["M406"]


EMOJI = "\N{GRINNING FACE}"
UNITY_OWNED = "---\napiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec:\n  type: unity\n" \
    "  endpoint: http://127.0.0.1:1\n  catalog: lake\n  root: s3://b/l\n  management: {owner: %s}\n"  # fmt: skip


@pytest.mark.parametrize(("count", "expected"), [(127, []), (255, ["M414", "M418", "M418", "M418", "M418", "M428"])])
def test_unity_counts_lengths_as_its_database_does(tmp_path: Path, count: int, expected: list[str]) -> None:
    """In UTF-16 units: what is too long there is found here, and not when the old entry is removed already."""
    long = EMOJI * count
    place = "s3://b/" + "/".join([long] * (1 if count < 255 else 5))
    columns = f"schema: [{{name: {long}, type: int8, nullable: true}}]"
    loaded = load_text(
        tmp_path,
        UNITY_OWNED % long,
        namespace("lake, n", f"description: {long}\nproperties: {{a: {long}}}"),
        table("lake, n, t", f"properties: {{{long}: a}}\nlocation: {place}\n{columns}"),
        capabilities_of=capabilities_of,
    )
    assert sorted(codes(loaded)) == expected
