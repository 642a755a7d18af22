"""What is too long for a comment or a summary: cut between lines, counted, nothing left open, with its footer."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cmarkgfm
import pytest
from action_runs import ACTION
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(ACTION))

import comment
import workflow

LINES = st.lists(
    st.sampled_from(
        [
            "### title", "| a | b |", "", "```text", "```", "````", "`````text", "`````", "words 𝔸é", "<details open>",
            "</details>", "`code` in words", "x" * 90,
        ]
    ),
    max_size=80,
)  # fmt: skip


def well_made(lines: list[str]) -> str:
    """As ours is: what was opened is closed, and only that."""
    out: list[str] = []
    fence, folds = "", 0
    for line in lines:
        if fence:
            fence = "" if set(line) == {"`"} and len(line) >= len(fence) else fence
        elif line.startswith("```"):
            fence = line.rstrip("tex")
        elif line == "</details>":
            if not folds:
                continue
            folds -= 1
            line = "\n</details>\n"
        elif line == "<details open>":
            folds += 1
            line = "\n<details open><summary>More</summary>\n"
        out.append(line)
    return "\n".join([*out, *([fence] if fence else []), *["", "</details>"] * folds]) + "\n"


def closed(markdown: str) -> bool:
    """What comes after it is neither code nor in a fold."""
    html = cmarkgfm.github_flavored_markdown_to_html(f"{markdown}\n<sub>after</sub>\n", 1 << 17)
    before, _, _ = html.partition("<sub>after</sub>")
    return "<sub>after</sub>" in html and before.count("<details") == before.count("</details>")


@given(LINES, st.integers(80, 3000))
def test_any_text_at_any_limit(lines: list[str], room: int) -> None:
    text = well_made(lines)
    assert closed(text)
    shown = workflow.fitted(text, room, comment.length, "see elsewhere")
    assert comment.length(shown) <= room
    assert closed(shown)
    if shown == text:
        return
    found = re.search(r"\n\*\*(\d+) of (\d+) lines not shown\*\*: see elsewhere\.\n\Z", shown)
    assert found is not None
    total = text.count("\n")
    hidden = int(found[1])
    assert int(found[2]) == total
    kept = text.split("\n")[: total - hidden]
    assert shown.split("\n")[: len(kept)] == kept


def test_a_comment_always_has_its_mark_and_its_footer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R_COMMIT", "5f0c6a2d9b1e4c7f8a3b5d6e7f8091a2b3c4d5e6")
    rows = "".join(f"| 𝔸 `{i}` |\n" for i in range(20_000))
    for text in (rows, f"<details>\n\n````text\n```\n{rows}````\n\n</details>\n", "x" * 100_000):
        body = comment.body("plan", text)
        assert len(body.encode("utf-16-le")) // 2 <= comment.MAX_CHARACTERS
        assert body.startswith("<!-- reconciler:plan -->\n")
        assert "For commit 5f0c6a2d9b1e, by [this run](" in body.splitlines()[-1]
        assert closed(body)
        assert re.search(r"\*\*\d+ of \d+ lines not shown\*\*: see the summary of the job\.", body)
    assert comment.body("plan", "short\n") == f"<!-- reconciler:plan -->\nshort\n{comment.footer()}"


@pytest.mark.parametrize("character", ["x", "é", "𝔸"])
def test_a_summary_is_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, character: str) -> None:
    file = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    rows = f"{character * 99}\n" * 30_000
    workflow.summary(f"```text\n{rows}```\n")
    size = file.stat().st_size
    assert (1 << 20) - 2000 < size <= 1 << 20
    assert "lines not shown**: see the log of the job." in file.read_text()
    assert closed(file.read_text())
    workflow.summary("more\n" * 1000)
    workflow.summary("more\n" * 1000)
    assert file.stat().st_size <= 1 << 20


def test_a_block_keeps_its_beginning_and_its_end() -> None:
    text = "".join(f"line {i}\n" for i in range(100_000)) + "error: the worst\n"
    shown = workflow.fenced(text, 1000)
    found = re.search(r"\n… (\d+) characters left out …\n", shown)
    assert found is not None
    assert shown.startswith("```text\nline 0\n")
    assert shown.endswith("\nerror: the worst\n```\n")
    kept = len(shown) - len("```text\n\n```\n") - len(found[0])
    assert kept + int(found[1]) == len(text.rstrip())
    assert workflow.fenced("a ```` b") == "`````text\na ```` b\n`````\n"
