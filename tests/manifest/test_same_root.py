"""Two catalogs at one root: what both declare is declared alike, or told at validation."""

from __future__ import annotations

from pathlib import Path

import pytest

from .support import codes, load_text, namespace, table

INT = "schema: [{name: a, type: int64}, {name: b, type: string}]\n"
TURNED = "schema: [{name: b, type: string}, {name: a, type: int64, renamedFrom: c}]\n"


def catalogs(one: str, other: str) -> list[str]:
    """Two catalogs with these specs."""
    head = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: "
    return [f"{head}lake}}\nspec: {{type: dir, {one}}}\n", f"{head}pond}}\nspec: {{type: dir, {other}}}\n"]


ONE_PLACE = {
    "the same text": ("path: ./lake", "path: ./lake"),
    "another spelling": ("path: ./lake", "path: lake/x/../"),
    "a bucket": ("path: s3://b/lake", "path: S3://b/lake/"),
    "the same endpoint": ("path: s3://b, storage.endpoint: http://h", "path: s3://b, storage.endpoint: http://h"),
    "one reference": ("path: '${env:LAKE}'", "path: '${env:LAKE}'"),
    "another owner": ("path: ./lake", "path: ./lake, management: {owner: them}"),
}
TWO_PLACES = {
    "another folder": ("path: ./lake", "path: ./pond"),
    "one inside the other": ("path: ./lake", "path: ./lake/pond"),
    "another endpoint": ("path: s3://b, storage.endpoint: http://h", "path: s3://b, storage.endpoint: http://i"),
    "another reference": ("path: '${env:LAKE}'", "path: '${env:POND}'"),
    "another scheme": ("path: s3://b/lake", "path: gs://b/lake"),
}


@pytest.mark.parametrize("name", [*ONE_PLACE, *TWO_PLACES])
def test_which_catalogs_are_one(tmp_path: Path, name: str) -> None:
    two = catalogs(*(ONE_PLACE.get(name) or TWO_PLACES[name]))
    documents = [namespace("n", "properties: {team: a}"), namespace("n", "properties: {team: b}", "pond")]
    assert codes(load_text(tmp_path, *two, *documents)) == (["M416"] if name in ONE_PLACE else [])


def test_links_and_absolute_paths_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to("lake")
    for other in (str(tmp_path / "lake"), "link", f"file://{tmp_path}/lake"):
        two = catalogs("path: ./lake", f"path: '{other}'")
        documents = [namespace("n"), namespace("n", "properties: {team: b}", "pond")]
        assert codes(load_text(tmp_path, *two, *documents)) == ["M416"], other


DIFFERENT = {
    "properties": ("properties: {x: '1'}", "properties: {x: '2'}"),
    "a description": ("description: x", "{}"),
    "absent": ("state: absent", "{}"),
    "protect": ("protect: true", "protect: false"),
    "ignored differences": ("ignoreDifferences: [properties]", "{}"),
    "a column": (INT, "schema: [{name: a, type: int64}]"),
    "a type": (INT, INT.replace("int64", "int32")),
    "no schema": (INT, "{}"),
    "the mode": (INT, INT + "schemaMode: at_least"),
    "a comment": (INT, INT.replace("string", "string, comment: x")),
    "an index": (INT + "indexes: [{column: a, type: btree}]", INT),
    "config": (INT + "config: {x: y}", INT),
    "schema metadata": (INT + "schemaMetadata: {x: y}", INT),
}
ALIKE = {
    "equal": (INT + "indexes: [{column: a, type: btree}]", INT + "indexes: [{column: a, type: btree}]"),
    "another order, another past": (INT, TURNED),
    "protect that is not written": ("protect: true", "{}"),
    "both absent": ("state: absent\nproperties: {x: y}", "state: absent"),
    "allow words": (INT + "allow: [drop_column]", INT),
}


@pytest.mark.parametrize("name", [*DIFFERENT, *ALIKE])
def test_what_is_different(tmp_path: Path, name: str) -> None:
    one, other = DIFFERENT.get(name) or ALIKE[name]
    two = catalogs("path: ./lake", "path: ./lake")
    loaded = load_text(tmp_path, *two, table("t", one), table("t", other, "pond"), table("u", catalog="pond"))
    assert codes(loaded) == (["M416"] if name in DIFFERENT else [])
    for found in loaded.diagnostics:
        assert "m.yaml" in found.message
        assert "'lake' and 'pond' are one place" in found.message
