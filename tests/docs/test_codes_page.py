"""The page of codes: every code is there, and what its reader sees is what `reconciler explain` says."""

from __future__ import annotations

import re
from pathlib import Path

from codes_page import NO_CODES, SHORT

from reconciler.explain.catalogue import explanations
from reconciler.manifest.codes import CODES
from reconciler.model.errors import Code
from reconciler.model.policy import TITLES
from reconciler.model.report import EXIT_CODES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "codes.md"


def sections() -> dict[str, str]:
    """By code."""
    parts = re.split(r"^##+ ", PAGE.read_text(), flags=re.MULTILINE)
    return {e.code: part for e in explanations() for part in parts if part.startswith(f"{e.code}: {e.title}\n")}


def test_every_code_is_on_the_page_with_its_fix() -> None:
    found = sections()
    exits = {f"exit {n}" for n in (*EXIT_CODES.values(), 2, 6)}
    assert {*CODES, *TITLES, *(c.title for c in Code), *exits} <= found.keys()
    wanted = [e for e in explanations() if e.kind not in NO_CODES]
    assert [e.code for e in wanted] == [*found]
    assert all(e.means in found[e.code] and f"**Fix:** {e.fix}" in found[e.code] for e in wanted)


def test_most_codes_are_shown_with_an_example() -> None:
    with_one = [code for code, text in sections().items() if "\nExample" in text]
    assert len(with_one) > len(sections()) * 3 / 4
    blocks = re.findall(r"^```(?:yaml|text)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert max(len(block.splitlines()) for block in blocks) <= SHORT


def test_no_text_on_the_page_is_taken_for_markup() -> None:
    """Angle brackets outside of code."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`|^<!--.*-->$", "", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert [line for line in prose.splitlines() if "<" in line] == []


def test_the_pages_that_promise_codes_lead_there() -> None:
    docs = PAGE.parents[1]
    assert "(codes.md)" in (PAGE.parent / "README.md").read_text()
    for name in ("README.md", "tutorial.md"):
        (promise,) = [line for line in (docs / name).read_text().splitlines() if "[Reference](" in line]
        assert "code" in promise
