"""What a reviewer does not see changes nothing: hidden line ends, turned text, names that only look alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifest.yaml_write import as_scalar

from .support import CATALOG, codes, load_bytes, load_text, places, table

BREAKS = ["\x85", "\u2028", "\u2029"]
TURNS = ["\u202e", "\u2066", "\u200f", "\u061c"]
HIDDEN = [*BREAKS, *TURNS, "\u200b", "\u200d", "\u00ad", "\u2060", "\ufeff", "\u3164", "\u00a0", "\U000e0041"]
SCHEMA = "schema: [{name: a, type: int8}]\n"


@pytest.mark.parametrize("hidden", BREAKS)
@pytest.mark.parametrize(
    "line",
    [
        "description: x  # what it is for@  allow: [drop_column]",
        "description: x@  allow: [drop_column]",
        "description: |\n    x@  allow: [drop_column]",
        "description: 'x'@  allow: [drop_column]",
        "properties: {a: b,@ c: d}",
    ],
)
def test_a_line_has_no_second_line_in_it(tmp_path: Path, hidden: str, line: str) -> None:
    text = table("t", SCHEMA + line).replace("@", hidden)
    loaded = load_text(tmp_path, text)
    before = text.partition(hidden)[0]
    assert places(loaded, "M118") == [(before.count("\n") + 1, len(before) - before.rfind("\n"))]


@pytest.mark.parametrize("hidden", BREAKS + TURNS)
@pytest.mark.parametrize("quote", ["'", '"'])
def test_in_quotes_a_text_may_have_them(tmp_path: Path, hidden: str, quote: str) -> None:
    text = table("t", f"properties: {{k: {quote}a {hidden} b{quote}}}\ndescription: {quote}{hidden}b{quote}\n")
    assert codes(load_text(tmp_path, CATALOG, text)) == []


def test_a_carriage_return_alone_hides_nothing(tmp_path: Path) -> None:
    text = table("t", SCHEMA + "description: x # note@  allow: [drop_column]\n").replace("@", "\r")
    loaded = load_bytes(tmp_path, f"{CATALOG}---\n{text}".encode())
    assert (codes(loaded), places(loaded, "M118")) == (["M118"], [(11, 24)])
    assert codes(load_bytes(tmp_path, CATALOG.replace("\n", "\r\n").encode())) == []


@pytest.mark.parametrize("turn", TURNS)
def test_no_comment_is_turned_around(tmp_path: Path, turn: str) -> None:
    assert codes(load_text(tmp_path, CATALOG, table("t", f"description: x # {turn} note\n"))) == ["M118"]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize(
    "spec",
    [
        'properties: {"te@am": x}',
        "'descrip@tion': x",
        'schema: [{name: "a@b", type: int8}]',
        'schema: [{name: a, type: "struct<x@: int8>"}]',
        'renamedFrom: ["o@ld"]',
        'allow: ["drop_@column"]',
        'indexes: [{column: "a@", type: btree}]',
    ],
)
def test_names_keys_and_words_have_none_even_in_quotes(tmp_path: Path, hidden: str, spec: str) -> None:
    found = codes(load_text(tmp_path, CATALOG, table("t", spec).replace("@", hidden)))
    assert "M118" in found or (found == ["M105"] and "descrip" in spec), "a key on two lines is no YAML"


@pytest.mark.parametrize("hidden", HIDDEN)
def test_an_identifier_may_have_one_as_an_escape(tmp_path: Path, hidden: str) -> None:
    """It is what a live table may be called: `import` writes it so that everybody sees it."""
    name = f"a{hidden}b"
    assert "M118" in codes(load_text(tmp_path, CATALOG, table('"@"').replace("@", name)))
    written = as_scalar(name)
    assert written.isascii()
    assert "M118" not in codes(load_text(tmp_path, CATALOG, table(written)))


def test_texts_of_many_scripts_are_no_reason(tmp_path: Path) -> None:
    """Joiners and variation selectors belong to words and emoji; what a property holds is a text whatever its key."""
    spec = "description: می\u200cخواهم 👨\u200d👩\u200d👧 ❤\ufe0f  # می\u200cخواهم\n"
    spec += "properties: {name: a\u200db, نام: x}\n"
    assert codes(load_text(tmp_path, CATALOG, table("t", spec))) == []
