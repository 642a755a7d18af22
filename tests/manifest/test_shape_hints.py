"""A list, a mapping or a text that is something else is answered with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from .support import CATALOG, load_text, table

HEAD = "apiVersion: reconciler.lance/v1\nkind: Table\nmetadata: {catalog: lake, id: %s}\nspec: {}\n"


def hints(folder: Path, *documents: str) -> dict[str, str]:
    found = load_text(folder, CATALOG, *documents).diagnostics
    return {d.message.split("`")[1]: d.hint for d in found if d.code == "M205"}


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("a.b", "write [a, b]"),
        ("t", "write [t]"),
        ("true.5", 'write ["true", "5"]'),
        ("a..b", ""),
        ("{x: y}", "write the names in order: [a, b]"),
    ],
)
def test_an_identifier(tmp_path: Path, written: str, hint: str) -> None:
    assert hints(tmp_path, HEAD % written) == {"metadata.id": hint}


@pytest.mark.parametrize(
    ("spec", "place", "hint"),
    [
        ("schema: {id: int64, v: string}", "schema", "write each column as an entry: `- {name: id, type: int64}`"),
        (
            "schema: {at: 'timestamp[us]'}",
            "schema",
            'write each column as an entry: `- {name: at, type: "timestamp[us]"}`',
        ),
        ("schema: {a: {type: int64}}", "schema", "write each as an entry: `- {name: id, type: int64}`"),
        ("schema: [{name: a, type: [int8]}]", "schema[0].type", "write int8"),
        ("indexes: {column: a, type: btree}", "indexes", "write each as an entry: `- {column: id, type: btree}`"),
        ("allow: drop_column", "allow", "write [drop_column]"),
        ("renamedFrom: a.c", "renamedFrom", "write [a, c]"),
        (
            "properties: [a]",
            "properties",
            "write properties: {key: value}, or each `key: value` on a line of its own below it",
        ),
    ],
)
def test_a_key_of_a_table(tmp_path: Path, spec: str, place: str, hint: str) -> None:
    assert hints(tmp_path, table("t", spec)) == {f"spec.{place}": hint}


def test_a_secret_is_not_repeated(tmp_path: Path) -> None:
    rest = CATALOG.replace("name: lake", "name: far").replace(
        "type: dir, path: ./lake", "type: rest, uri: http://x, {}"
    )
    for given in ("api_key: [hunter2]", "api_key: {hunter2: x}", "storage.key: [hunter2]"):
        found = load_text(tmp_path, rest.replace("{}", given)).diagnostics
        assert [d.code for d in found] == ["M205"]
        assert "hunter2" not in found[0].message + found[0].hint


def test_a_column_of_one_key(tmp_path: Path) -> None:
    found = load_text(tmp_path, CATALOG, table("t", "schema: [id: int64]")).diagnostics
    assert ("M203", "write `- {name: id, type: int64}`") in [(d.code, d.hint) for d in found]


def test_a_type_that_yaml_cuts_off_belongs_in_quotes(tmp_path: Path) -> None:
    found = load_text(tmp_path, CATALOG, table("t", "schema: [{name: d, type: decimal128(10, 2)}]")).diagnostics
    (told,) = [d for d in found if d.code == "M211"]
    assert (
        told.hint == "decimal128 is written decimal128(38, 10); inside of { } put it in quotes: YAML ends it at a comma"
    )
    found = load_text(tmp_path, CATALOG, table("t", "schema: [{name: d, type: timestamp[us]}]")).diagnostics
    (told,) = [d for d in found if d.code == "M105"]
    assert '{name: at, type: "timestamp[us, tz=UTC]"}' in told.hint
