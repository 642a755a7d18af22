"""What a reviewer does not see changes nothing: hidden line ends, turned text, names that only look alike."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from reconciler.core.invisible import is_invisible
from reconciler.manifest.yaml_write import as_scalar

from .support import CATALOG, codes, load_bytes, load_text, places, table

BREAKS = ["\x85", "\u2028", "\u2029"]
TURNS = ["\u202e", "\u2066", "\u200f", "\u061c"]
FORMATS = ["\u200b", "\u200d", "\u00ad", "\u2060", "\ufeff", "\u00a0", "\u3000", "\U00013430"]
BLANK = ["\u034f", "\u17b4", "\u180b", "\u2800", "\u3164", "\ufe00", "\ufe0f", "\U00016fe4", "\U0001d159", "\U000e0041"]
HIDDEN = [*BREAKS, *TURNS, *FORMATS, *BLANK]
NAMES = {"metadata.id": "id: [{}]", "a key": "properties: {{{} : v}}", "a column": "schema: [{{name: {}, type: int8}}]",
         "a key column": "checks: {{unique: [{}]}}", "a former name": "renamedFrom: [{}]"}  # fmt: skip
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


def test_a_file_without_a_line_feed_hides_nothing(tmp_path: Path) -> None:
    """For git all of it is one line, a comment."""
    text = f"# note\n{CATALOG}".replace("\n", "\r")
    assert places(load_bytes(tmp_path, text.encode()), "M118") == [(1, 7)]


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
        'checks: {notNull: ["a@"]}',
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


def test_all_that_unicode_has_no_sign_for_is_invisible() -> None:
    every = [chr(code) for code in range(0x110000)]
    found = {c for c in every if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Zs")} - {" "}
    ignorable = "034f 115f-1160 17b4-17b5 180b-180f 2060-206f 3164 fe00-fe0f feff ffa0 fff0-fff8 e0000-e0fff"
    for first, _, last in (part.partition("-") for part in ignorable.split()):
        found |= set(every[int(first, 16) : int(last or first, 16) + 1])
    assert found - set(filter(is_invisible, every)) == set()
    assert [c for c in "a b-é漢ي́❤👩" if is_invisible(c)] == []


def place(text: str, of: str) -> tuple[int, int]:
    before = text.partition(of)[0]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.mark.parametrize("hidden", [*TURNS, *FORMATS, *BLANK])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_no_alias_brings_one_into_a_name(tmp_path: Path, hidden: str, name: str) -> None:
    """In a text it is allowed; what the alias stands for is a name."""
    spec = f'description: &x "b{hidden}c"\n' + (SCHEMA if "schema" not in name else "")
    text = (
        f"{CATALOG}---\napiVersion: reconciler.lance/v1\nkind: Table\nspec:\n  "
        + (spec + ("" if name.startswith("id") else name.format("*x") + "\n")).replace("\n", "\n  ").rstrip(" ")
        + f"metadata: {{catalog: lake, {name.format('*x') if name.startswith('id') else 'id: [t]'}}}\n"
    )
    assert "M118" not in codes(load_text(tmp_path, text.replace("*x", "b")))
    assert places(load_text(tmp_path, text), "M118") == [place(text, '&x "')]


@pytest.mark.parametrize("hidden", [*TURNS, *FORMATS, *BLANK])
def test_no_variable_brings_one_into_a_name(tmp_path: Path, hidden: str) -> None:
    """Not even one that is written as an escape: it is not seen where the name stands."""
    for text in (f"b{hidden}c", as_scalar(f"b{hidden}c").strip('"')):
        values = f'apiVersion: reconciler.lance/v1\nkind: Variables\nspec: {{values: {{n: "{text}"}}}}\n'
        whole = "---\n".join([CATALOG, values, table('"x${var:n}"', SCHEMA)])
        assert places(load_text(tmp_path, whole), "M118") == [place(whole, '"x${')]
        whole = "---\n".join([CATALOG, values, table("t", SCHEMA + 'description: "${var:n}"\n')])
        assert codes(load_text(tmp_path, whole)) == []


def test_an_alias_of_a_name_that_shows_it_is_seen(tmp_path: Path) -> None:
    text = table("t", 'schema: [{name: &x "a\\u200bb", type: int8}]\nchecks: {notNull: [*x]}\n')
    assert codes(load_text(tmp_path, CATALOG, text)) == []


def test_each_place_is_told_once(tmp_path: Path) -> None:
    text = table("t", 'schema: [{name: &x "a\u200bb", type: int8}]\nchecks: {notNull: [*x]}\n')
    assert codes(load_text(tmp_path, CATALOG, text)) == ["M118"]


def test_texts_of_many_scripts_are_no_reason(tmp_path: Path) -> None:
    """Joiners and variation selectors belong to words and emoji; what a property holds is a text whatever its key."""
    spec = "description: می\u200cخواهم 👨\u200d👩\u200d👧 ❤\ufe0f  # می\u200cخواهم\n"
    spec += "properties: {name: a\u200db, نام: x}\n"
    assert codes(load_text(tmp_path, CATALOG, table("t", spec))) == []


@pytest.mark.parametrize("spec", ["type: dir, path: {0}", "type: iceberg, endpoint: 'http://h', warehouse: {0}"])
@pytest.mark.parametrize("given", ['"./la\u200bke"', '"${var:at}"'])
def test_no_address_has_one(tmp_path: Path, spec: str, given: str) -> None:
    """It decides where data and credentials go."""
    variables = 'apiVersion: reconciler.lance/v1\nkind: Variables\nspec: {values: {at: "la\\u200bke"}}\n---\n'
    lake = f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {{{spec.format(given)}}}\n"
    assert "M118" in codes(load_text(tmp_path, variables + lake))
