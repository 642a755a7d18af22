"""`spec.migration`, and all ways in which tables get their rows from other tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.registry import capabilities_of
from reconciler.manifest.load import Loaded
from reconciler.model.data import Migration

from .support import CATALOG, codes, load_text, places, table

OLD = CATALOG.replace("{name: lake}", "{name: old}").replace("./lake", "./old")
SCHEMA = "schema: [{name: id, type: int64}, {name: s, type: string}]\n"


def moved(catalog: str, ident: str, more: str = "") -> str:
    return f"{more}migration: {{from: {{catalog: {catalog}, id: [{ident}]}}}}\n"


def loaded(tmp_path: Path, *documents: str) -> Loaded:
    return load_text(tmp_path, CATALOG, OLD, *documents, capabilities_of=capabilities_of)


def test_it_is_read(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        table("t", moved("old", "a")),
        table("u", "migration: {from: {catalog: old, id: [a]}, verify: none}\n"),
    )
    assert found.diagnostics == []
    tables = found.desired.tables["lake"]
    assert tables[("t",)].migration == Migration("old", ("a",))
    assert tables[("u",)].migration == Migration("old", ("a",), checksum=False)


def test_the_schema_may_be_left_out_or_be_the_same(tmp_path: Path) -> None:
    turned = "schema: [{name: s, type: string, comment: x}, {name: id, type: int64}]\n"
    old = table("a", SCHEMA, "old")
    assert loaded(tmp_path, old, table("t", moved("old", "a", turned))).diagnostics == []
    assert loaded(tmp_path, old, table("t", moved("old", "a"))).diagnostics == []
    assert (
        loaded(tmp_path, table("a", "description: x\n", "old"), table("t", moved("old", "a", SCHEMA))).diagnostics == []
    )


WRONG = {
    "unknown catalog": ("M480", "olt", [table("t", moved("olt", "a"))]),
    "impossible name": ("M481", "[a/b]", [table("t", moved("old", "a/b"))]),
    "itself": ("M482", "{catalog", [table("t", moved("lake", "t"))]),
    "another schema": (
        "M484",
        "{catalog",
        [table("a", SCHEMA, "old"), table("t", moved("old", "a", "schema: [{name: id, type: int32}]\n"))],
    ),
    "absent source": ("M485", "{catalog", [table("a", "state: absent\n", "old"), table("t", moved("old", "a"))]),
    "absent itself": ("M486", "migration", [table("t", moved("old", "a", "state: absent\n"))]),
    "unknown way to verify": ("M207", "twice", [table("t", moved("old", "a").replace("}}", "}, verify: twice}"))]),
    "no source": ("M204", "{verify", [table("t", "migration: {verify: none}\n")]),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, what: str) -> None:
    code, at, documents = WRONG[what]
    found = loaded(tmp_path, *documents)
    assert codes(found) == [code]
    ((line, column),) = places(found, code)
    assert (tmp_path / "m.yaml").read_text().splitlines()[line - 1][column - 1 :].startswith(at)


def test_a_circle_is_told_once(tmp_path: Path) -> None:
    """Over migrations and Lance sources alike."""
    source = "{source: {format: lance, table: {catalog: lake, id: [b]}}, mode: once}"
    found = loaded(
        tmp_path,
        table("z", moved("lake", "a")),
        table("a", moved("old", "a")),
        table("a", f"{SCHEMA}data: {source}\n", "old"),
        table("b", moved("lake", "a")),
        table("c", moved("lake", "b")),
    )
    assert codes(found) == ["M483"]
    assert "lake:a <- old:a <- lake:b <- lake:a" in found.diagnostics[0].message


def test_a_chain_and_a_fork_are_no_circle(tmp_path: Path) -> None:
    chain = [table(f"t{n}", moved("lake", f"t{n + 1}")) for n in range(2000)]
    assert loaded(tmp_path, *chain, table("x", moved("lake", "t5"))).diagnostics == []


def test_a_catalog_with_errors_is_known(tmp_path: Path) -> None:
    broken = OLD.replace("path:", "paht:")
    found = load_text(tmp_path, CATALOG, broken, table("t", moved("old", "a")), capabilities_of=capabilities_of)
    assert "M480" not in codes(found)
    assert codes(found)
