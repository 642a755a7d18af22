"""The pages that tell a reader what to type are followed to the letter. `UPDATE_DOCS=1` writes down what is printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from walkthrough import agrees, commands_of, run_page

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tutorial.md"])
def test_the_page_leads_where_it_says(name: str, tmp_path: Path) -> None:
    page = DOCS / name
    folder = tmp_path / "lakehouse"
    folder.mkdir()
    written = page.read_text()
    wanted = run_page(written, folder)
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(wanted)
    assert page.read_text() == wanted, "UPDATE_DOCS=1 pytest tests/docs brings it up to date; read what it changed"
    assert len(commands_of(written)) >= 10


def test_what_is_left_out_of_an_output_is_still_compared_around_it() -> None:
    assert agrees("a\n...\nz\n", "a\nb\nc\nz\n")
    assert agrees("a\n", "a\n")
    assert not agrees("a\n...\nz\n", "a\nb\n")
    assert not agrees("a.c\n", "abc\n")
