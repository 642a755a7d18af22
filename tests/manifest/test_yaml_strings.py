# ruff: noqa: E501 - tables of cases read best one to a line
"""Norway and friends: where a string is wanted, YAML 1.1 values are refused with the quoted form; never converted."""

from __future__ import annotations

from pathlib import Path

import pytest

from .support import CATALOG, codes, load_text, table

SURPRISES = ["no", "Yes", "on", "1.0", "0123", "2024-01-01", "~", "null", "0x1F", "1_000", "12:30:45", ".inf", "1e+3",
             "-1", "0b11", "0o7x", "2024-01-01T00:00:00Z", "=", ".NaN", "9" * 40, "9" * 5000, "1.", "685_230.15"]  # fmt: skip
STRINGS = {"0o7x", "1e+3"}
PLACES = {
    "properties": "properties: {k: %s}",
    "config": "config: {k: %s}",
    "schemaMetadata": "schemaMetadata: {k: %s}",
    "description": "description: %s",
    "location": "location: %s",
    "renamedFrom": "renamedFrom: [%s]",
    "ignoreDifferences": "ignoreDifferences: [%s]",
    "column name": "schema: [{name: %s, type: int64}]",
    "column type": "schema: [{name: a, type: %s}]",
    "column comment": "schema: [{name: a, type: int64, comment: %s}]",
    "column metadata": "schema: [{name: a, type: int64, metadata: {k: %s}}]",
    "column renamedFrom": "schema: [{name: a, type: int64, renamedFrom: %s}]",
    "index column": "indexes: [{column: %s, type: btree}]",
    "index name": "indexes: [{column: a, type: btree, name: %s}]",
    "language": "indexes: [{column: a, type: inverted, params: {language: %s}}]",
}


@pytest.mark.parametrize("text", SURPRISES)
def test_every_surprise_as_a_property(tmp_path: Path, text: str) -> None:
    loaded = load_text(tmp_path, CATALOG, table("t", f"properties: {{k: {text}}}"))
    if text in STRINGS:
        assert codes(loaded) == []
        return
    (found,) = loaded.diagnostics
    assert found.code == "M206"
    assert f"{text} is read as" in found.message
    assert found.hint == f'write "{text}"'


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", ["no", "2024-01-01", "12"])
def test_every_string_place(tmp_path: Path, place: str, text: str) -> None:
    loaded = load_text(tmp_path, CATALOG, table("t", PLACES[place] % text))
    assert [(d.code, d.hint) for d in loaded.diagnostics] == [("M206", f'write "{text}"')]


@pytest.mark.parametrize("text", ["no", "0123", "1.5"])
def test_names_owner_and_ids(tmp_path: Path, text: str) -> None:
    wrong = [
        CATALOG.replace("name: lake", f"name: {text}"),
        CATALOG.replace("path: ./lake", f"path: ./lake, management: {{owner: {text}}}"),
        CATALOG.replace("path: ./lake", f"path: {text}"),
        table(text),
    ]
    for document in wrong:
        loaded = load_text(tmp_path, document)
        assert f'write "{text}"' in [d.hint for d in loaded.diagnostics if d.code == "M206"]


@pytest.mark.parametrize("text", [t for t in SURPRISES if t not in STRINGS])
def test_the_hint_works(tmp_path: Path, text: str) -> None:
    loaded = load_text(tmp_path, CATALOG, table("t", f'properties: {{k: "{text}"}}'))
    assert codes(loaded) == []
    assert loaded.desired.tables["lake"][("t",)].properties["k"] == text


def test_secret_values_are_never_shown(tmp_path: Path) -> None:
    text = CATALOG.replace("path: ./lake", "path: ./lake, storage.secret: 4815162342, storage.other: [s3cr3t]")
    loaded = load_text(tmp_path, text)
    assert sorted(codes(loaded)) == ["M205", "M206"]
    shown = "".join(d.message + d.hint for d in loaded.diagnostics)
    assert "4815162342" not in shown
    assert "s3cr3t" not in shown


@pytest.mark.parametrize("text", ["010", "0x10", "1:30", ".inf", "9007199254740993", '"5"'])
def test_numbers_are_decimal(tmp_path: Path, text: str) -> None:
    text = CATALOG.replace("path: ./lake", f"path: ./lake, management: {{thresholds: {{deletes: {text}}}}}")
    assert codes(load_text(tmp_path, text)) == ["M205"]
