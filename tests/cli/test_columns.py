"""How wide a text is, what is aligned, where a line breaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.change import CreateNamespace
from reconciler.model.plan import Expect, Step
from reconciler.model.state import Marks
from reconciler.render.columns import NARROWEST, aligned, fitted, width, wrapped
from reconciler.render.step_details import Line, details


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("表", 2), ("e\u0301", 1), ("ü", 1), ("a\u200bb", 2)])
def test_width_is_what_a_terminal_shows(text: str, columns: int) -> None:
    assert width(text) == columns


def test_values_of_one_kind_begin_in_one_column() -> None:
    lines = [
        Line("+ a", " = ", "1"), Line("+ 表表", " = ", "2"), Line("~ abc", " = ", "3 -> 4"), "+ protected",
        Line("+ column n", ": ", "int64"), Line("+ column name", ": ", "string"), Line("+ index i", ": ", "btree"),
    ]  # fmt: skip
    assert list(aligned(lines)) == [
        "+ a    = 1", "+ 表表 = 2", "~ abc  = 3 -> 4", "+ protected",
        "+ column n:    int64", "+ column name: string", "+ index i: btree",
    ]  # fmt: skip


def test_what_is_said_about_a_column_does_not_part_the_types() -> None:
    lines = [
        Line("+ column n", ": ", "int64"), Line("+ column n comment", " = ", "1"), Line("+ column n pii", " = ", "2"),
        Line("+ column name", ": ", "string"),
    ]  # fmt: skip
    assert list(aligned(lines)) == [
        "+ column n:    int64", "+ column n comment = 1", "+ column n pii     = 2", "+ column name: string",
    ]  # fmt: skip


def test_one_long_name_does_not_push_the_others_away() -> None:
    long = "+ " + "x" * 100
    assert list(aligned([Line("+ a", " = ", "1"), Line(long, " = ", "2")])) == ["+ a = 1", f"{long} = 2"]


WORDS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=60), min_size=1
)


@pytest.mark.slow
@given(WORDS, st.integers(0, 8), st.integers(1, 120))
def test_breaking_loses_nothing_and_fits(words: list[str], indent: int, columns: int) -> None:
    line = " " * indent + " ".join(words)
    parts = list(wrapped(line, columns))
    assert "".join("".join(parts).split()) == "".join(words)
    for part in parts:
        assert width(part) <= max(columns, NARROWEST)


def test_only_a_word_that_fits_nowhere_is_broken() -> None:
    parts = list(wrapped(f"  + location = {'x' * 200}", 60))
    assert parts[0].startswith("  + location = xxx")
    assert {len(part) for part in parts[:-1]} == {60}
    assert parts[1].startswith("      x")
    assert list(wrapped(f"  {'a' * 30} {'b' * 30}", 40)) == [f"  {'a' * 30}", f"    {'b' * 30}"]


def test_a_text_of_several_lines_is_broken_line_by_line() -> None:
    text = f"{' '.join(['word'] * 10)}\n\nb\n"
    assert fitted(text, None) == text
    assert fitted(text, 40) == f"{' '.join(['word'] * 8)}\n  word word\n\nb\n"


@given(WORDS)
def test_without_a_terminal_nothing_is_broken(words: list[str]) -> None:
    assert list(wrapped(" ".join(words), None)) == [" ".join(words)]


def test_a_key_with_a_space_is_aligned_with_the_others() -> None:
    change = CreateNamespace(("a",), {"<b>": "x", "a b c": "y", "column d": "z"}, Marks("us"))
    absent = Expect("absent")
    step = Step("s1", "lake", change, "safe", "why", "allowed", None, (), absent, absent, (), None, None, None)
    assert list(aligned(list(details(step)))) == [
        '+ <b>      = "x"', '+ a b c    = "y"', '+ column d = "z"',
    ]  # fmt: skip
