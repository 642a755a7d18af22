"""Unicode writes an accented letter in two ways: names that read alike and differ get a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from manifest.support import CATALOG, load_text, namespace, table

NFC, NFD = '"caf\\u00e9"', '"cafe\\u0301"'
A, B = f"{{name: {NFC}, type: int8}}", f"{{name: {NFD}, type: int8}}"
POND = CATALOG.replace("name: lake", "name: pond").replace("./lake", "./pond")

ALIKE = {
    "tables": [namespace("n"), table(f"n, {NFC}"), table(f"n, {NFD}")],
    "namespaces": [namespace(NFC), namespace(NFD)],
    "a table in the other namespace": [namespace(NFC), table(f"{NFD}, t")],
    "a table and a namespace": [namespace(NFC), table(NFD)],
    "a letter that NFC replaces": [namespace("K"), namespace('"\\u212a"')],
    "columns": [table("t", f"schema: [{A}, {B}]")],
    "nested columns": [table("t", f"schema: [{{name: s, type: struct, fields: [{A}, {B}]}}]")],
}  # fmt: skip

DIFFERENT = {
    "one spelling": [namespace(NFD), table(f"{NFD}, t"), table(f"{NFD}, u")],
    "other letters": [namespace(NFC), namespace("cafe")],
    "other places": [namespace("n"), namespace("m"), table(f"n, {NFC}"), table(f"m, {NFD}")],
    "other catalogs": [POND, namespace(NFC), namespace(NFD, catalog="pond")],
    "one that goes": [namespace(NFC), namespace(NFD, "state: absent")],
}


def codes(tmp_path: Path, documents: list[str]) -> list[tuple[str, str]]:
    found = load_text(tmp_path, CATALOG, *documents).diagnostics
    return [(d.code, d.severity) for d in found if d.code != "M403"]


@pytest.mark.parametrize("documents", ALIKE.values(), ids=ALIKE.keys())
def test_names_that_look_alike(tmp_path: Path, documents: list[str]) -> None:
    assert codes(tmp_path, documents) == [("M438", "warning")]


@pytest.mark.parametrize("documents", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_names_that_do_not(tmp_path: Path, documents: list[str]) -> None:
    assert codes(tmp_path, documents) == []


def test_both_are_told_apart_in_the_message(tmp_path: Path) -> None:
    (told,) = load_text(tmp_path, CATALOG, namespace(NFC), namespace(NFD)).diagnostics
    assert "'cafe\\u0301'" in told.message
    assert "'caf\\xe9'" in told.message
