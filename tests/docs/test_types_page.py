"""The page of types: every example in it is what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reference_pages import page
from types_page import NOT_STORED, PYARROW, WRITTEN_OUT

from reconciler.catalog.lance_types import type_problem
from reconciler.manifest.load import load
from reconciler.manifest.type_hints import hint_for
from reconciler.model.arrow import TypeSyntaxError, parse_type
from reconciler.model.arrow_grammar import KNOWN_NAMES

CODE = re.compile(r"`([^`]+)`")


def rows(after: str) -> list[list[str]]:
    part = page("types.md").split(after, 1)[1].split("\n\n", 1)[0]
    return [line.strip("| ").split(" | ") for line in part.splitlines()]


def test_every_type_is_in_the_table_and_its_examples_are_read() -> None:
    found = rows("| type | written | holds |\n|---|---|---|\n")
    assert sorted(row[0] for row in found) == sorted(KNOWN_NAMES)
    for name, examples, _ in found:
        spellings = [s for s in CODE.findall(examples) if not s.endswith(":") and not s.startswith("type:")]
        assert spellings
        assert all(str(parse_type(s)).startswith(name) for s in spellings)


def test_words_of_other_systems_are_answered_as_the_page_says() -> None:
    found = rows("| there | here | |\n|---|---|---|\n")
    assert len(found) > 20
    for theirs, ours, *_ in found:
        for word in CODE.findall(theirs):
            with pytest.raises(TypeSyntaxError) as caught:
                parse_type(word)
            assert hint_for(word, caught.value).startswith(f"write {CODE.findall(ours)[0]}"), word


def test_what_lance_cannot_store_is_read_and_refused() -> None:
    assert all(type_problem(parse_type(text)) for text in NOT_STORED)
    assert all(type_problem(parse_type(text)) is None for text in PYARROW)


def test_the_manifest_of_the_page_is_valid(tmp_path: Path) -> None:
    head = "apiVersion: reconciler.lance/v1\nkind: "
    beside = f"{head}Catalog\nmetadata: {{name: lake}}\nspec: {{type: dir, path: ./lake}}\n---\n"
    beside += f"{head}Namespace\nmetadata: {{catalog: lake, id: [shop]}}\n---\n"
    (tmp_path / "m.yaml").write_text(beside + WRITTEN_OUT)
    assert load([str(tmp_path / "m.yaml")]).diagnostics == []
