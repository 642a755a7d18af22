"""docs/reference/ is what the schemas and the code say. `UPDATE_DOCS=1` writes it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from reference_pages import PAGES, page, referred

from reconciler.manifest.schema_files import schema

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "reference"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(name: str) -> None:
    made = page(name)
    if os.environ.get("UPDATE_DOCS"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(made)
    assert (FOLDER / name).read_text() == made, "UPDATE_DOCS=1 pytest tests/docs brings it up to date"


def keys_without_a_word(name: str) -> Iterator[str]:
    root = schema(name)
    defs = root.get("$defs", {})

    def walk(rule: dict[str, object], path: str) -> Iterator[str]:
        for key, inner in rule.get("properties", {}).items():  # type: ignore[attr-defined]
            if inner is False:
                continue
            if "description" not in inner and "description" not in referred(inner, root):
                yield f"{path}.{key}"
            yield from walk(inner, f"{path}.{key}")
            if isinstance(inner.get("items"), dict):
                yield from walk(inner["items"], f"{path}.{key}[]")

    yield from walk(root, name)
    for key, rule in defs.items():
        yield from walk(rule, key)


@pytest.mark.parametrize("name", ["manifest", "plan", "report", "failure"])
def test_every_key_of_a_schema_says_what_it_is_for(name: str) -> None:
    """Editors show it, and the reference is made of it."""
    assert list(keys_without_a_word(name)) == []


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def headings(text: str) -> set[str]:
    """As GitHub names them."""
    lines = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", lines, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"`", "", title.lower())).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("file", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(file: Path) -> None:
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in LINK.findall(text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, part = target.partition("#")
        there = (file.parent / path).resolve() if path else file
        assert there.exists(), f"{file}: {target}"
        if part and there.suffix == ".md":
            assert part in headings(there.read_text()), f"{file}: {target}"
