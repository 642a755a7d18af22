"""Names of live objects as names of files: every file system takes them, and the reader of manifests finds them."""

from __future__ import annotations

import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.manifest.files import find
from reconciler.manifest.import_layout import Layout, safe_name

ODD = st.sampled_from(
    ["..", ".", ".git", "a/b", "a\\b", "/etc", "C:", "con", "NUL", "com1.x", "a.yaml", "a.YML", "overlays", "Overlays",
     "-rf", "~", "%41", "a b", "a.", "a ", "é", "e\u0301", "ß", "SS", "ss", "K", "\u212a", "x" * 300, "é" * 300, "😀",
     "catalog", "root-tables", "\x00", "\n", "名前", "a:b", "a*", "\u202e"]
)  # fmt: skip
NAME = ODD | st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
IDENTS = st.lists(st.lists(NAME, min_size=1, max_size=3).map(tuple), max_size=8, unique=True)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("images", "images"),
        ("V2.images-raw_1", "V2.images-raw_1"),
        ("名前", "名前"),
        ("..", "%2E%2E"),
        (".git", "%2Egit"),
        ("a/b\\c", "a%2Fb%5Cc"),
        ("100%", "100%25"),
        ("Con.txt", "%43on.txt"),
        ("overlays", "%6Fverlays"),
        ("a.yaml", "a%2Eyaml"),
        ("-x", "%2Dx"),
        ("e\u0301", "e%CC%81"),
    ],
)
def test_names(name: str, file: str) -> None:
    assert safe_name(name) == file


def test_long_names_are_cut_and_stay_apart() -> None:
    one, other = safe_name("x" * 300), safe_name("x" * 299)
    assert one != other
    assert max(len(one), len(other)) <= 120


@given(IDENTS, IDENTS, st.booleans())
def test_every_object_has_a_file_that_is_found(
    namespaces: list[tuple[str, ...]], tables: list[tuple[str, ...]], split: bool
) -> None:
    layout = Layout("Lake", split, namespaces, tables)
    files = {("n", i): layout.namespace_file(i) for i in namespaces}
    files |= {("t", i): layout.table_file(i) for i in tables} if split else {}
    files["catalog", ()] = layout.catalog_file()
    assert len({unicodedata.normalize("NFC", f.casefold()) for f in files.values()}) == len(files)
    again = Layout("Lake", split, reversed(namespaces), reversed(tables))
    assert all(again.namespace_file(i) == files["n", i] for i in namespaces)
    with tempfile.TemporaryDirectory() as folder:
        for file in files.values():
            assert all(len(part.encode()) <= 255 for part in file.split("/"))
            path = Path(folder, file)
            assert path.resolve().is_relative_to(Path(folder).resolve())
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        assert {str(Path(f).relative_to(folder)) for f in find([folder], [])} == set(files.values())


@given(IDENTS, st.data())
def test_a_name_does_not_depend_on_which_tables_there_are(
    namespaces: list[tuple[str, ...]], data: st.DataObject
) -> None:
    tables = [(*n, "t") for n in namespaces if data.draw(st.booleans())]
    one, other = Layout("c", False, namespaces, tables), Layout("c", False, namespaces, [])
    assert all(one.namespace_file(i) == other.namespace_file(i) for i in namespaces)
    assert all(one.table_file(t) == one.namespace_file(t[:-1]) for t in tables)
