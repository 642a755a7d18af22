"""Patterns of a policy: Python's meaning where both take them, and nothing that could hang."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.core.patterns import MAX_TEXT, matches, problem_with

_ATOM = st.sampled_from(
    ["a", "b", "_", ".", "[ab]", "[^a]", "[a-c_]", r"\d", r"\w", r"\.", "[-a]", r"[\d_]", "[]a]", "(?:ab)", "(a|b)", ""]
)
_TAIL = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,3}", "{0,}", "{0}"])


def _build(parts: list[tuple[str, str]], group: bool) -> str:
    text = "".join(atom + tail for atom, tail in parts if atom)
    return f"({text})*" if group else text


_SIMPLE = st.builds(_build, st.lists(st.tuples(_ATOM, _TAIL), min_size=1, max_size=4), st.booleans())
_PATTERN = st.lists(_SIMPLE, min_size=1, max_size=3).map("|".join)


@pytest.mark.slow
@settings(max_examples=300)
@given(_PATTERN, st.text("ab_c1.-\n", max_size=8))
def test_it_means_what_python_means(pattern: str, text: str) -> None:
    assert problem_with(pattern) is None
    assert matches(pattern, text) is (re.fullmatch(pattern, text, re.DOTALL) is not None)
    assert matches(pattern, text, one_line=True) is (re.fullmatch(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^[a-z][a-z0-9_]{0,62}$", "images_2", True),
        ("^[a-z][a-z0-9_]{0,62}$", "Images", False),
        ("email|ssn", "email", True),
        ("email|ssn", "emails", False),
        (".*(email|ssn).*", "work_email_1", True),
        ("s3://acme/.+", "s3://acme/x", True),
        (r"\$\{x\}", "${x}", True),
        ("", "", True),
        (".+", "", False),
        ("ä+", "ää", True),
    ],
)
def test_whole_text(pattern: str, text: str, fits: bool) -> None:
    assert matches(pattern, text) is fits


@pytest.mark.parametrize(
    ("pattern", "position", "word"),
    [
        ("a(b", 1, "not closed"),
        ("a)b", 1, "without its ("),
        ("a[bc", 1, "not closed"),
        ("*a", 0, "nothing before it"),
        ("a**", 2, "two repetitions"),
        ("a{3,1}", 1, "ends before it begins"),
        ("a{,3}", 1, "no repetition"),
        ("(?=a)", 0, "look-around"),
        ("(?i)a", 0, "flags"),
        (r"(a)\1", 3, "no meaning"),
        ("a$b", 1, "whole text"),
        ("[z-a]", 4, "backwards"),
        ("a" * 300, 0, "longer than"),
        ("(" * 60 + ")" * 60, 20, "inside each other"),
        ("(((a{99}){99}){99})", 0, "too large"),
        ("((((){9999}){9999}){9999})", 0, "too large"),
    ],
)
def test_what_is_no_pattern(pattern: str, position: int, word: str) -> None:
    found = problem_with(pattern)
    assert found is not None
    assert word in found.message
    assert found.position == position


@pytest.mark.parametrize("pattern", [".+", ".{3}", "a.b"])
def test_a_dot_is_a_line_end_but_not_in_a_name(pattern: str) -> None:
    assert matches(pattern, "a\nb")
    assert not matches(pattern, "a\nb", one_line=True)
    assert not matches("[a-z.]+", "a\nb")


HOSTILE = ["(a+)+", "(a|a)*", "(a|aa)+", "(a*)*b", "a*a*a*a*a*a*a*a*b", "(.*a){30}", "((a?){30}a{30})*", "(x*)*(y*)*z"]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_ends(pattern: str) -> None:
    """`re` would not come back from most of these within a lifetime."""
    assert not matches(pattern, "a" * (MAX_TEXT - 1) + "!")


def test_a_text_beyond_all_bounds_matches_nothing() -> None:
    assert matches(".*", "a" * MAX_TEXT)
    assert not matches(".*", "a" * (MAX_TEXT + 1))
