"""Globs over identifiers, and that none of them can take long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.globs import Finder, matcher, matches, parse_dotted
from reconciler.model.ident import dotted


@pytest.mark.parametrize(
    ("glob", "ident", "expected"),
    [
        ("scratch.**", ("scratch",), True),
        ("scratch.**", ("scratch", "a", "b"), True),
        ("scratch.**", ("scratchy",), False),
        ("scratch.*", ("scratch", "a"), True),
        ("scratch.*", ("scratch", "a", "b"), False),
        ("**", ("a", "b"), True),
        ("**.tmp_*", ("a", "b", "tmp_1"), True),
        ("**.x.**.y", ("q", "x", "z", "y"), True),
        ('raw."2024.01".*', ("raw", "2024.01", "t"), True),
        ("a?c", ("abc",), True),
        ("a?c", ("ac",), False),
        ("[ab]", ("[ab]",), True),
        ("A", ("a",), False),
    ],
)
def test_matches(glob: str, ident: tuple[str, ...], expected: bool) -> None:
    assert matches(glob, ident) is expected
    assert matcher([glob, "never"])(ident) is expected


def test_no_globs_match_nothing() -> None:
    assert not matcher([])(("a",))


def test_hostile_globs_do_not_backtrack() -> None:
    """Each of these took longer than anyone would wait when globs were regular expressions."""
    assert not matches(".".join(["**"] * 30) + ".z", tuple("a" * 60))
    assert not matches("*a" * 60 + "b", ("a" * 255,))


NAMES = st.sampled_from(["a", "b", "ab"])
GLOBS = st.lists(st.sampled_from(["a", "b", "ab", "*", "**", "a*", "?"]), min_size=1, max_size=4).map(".".join)


@given(st.lists(GLOBS, max_size=6), st.lists(NAMES, min_size=1, max_size=4).map(tuple))
def test_many_globs_find_what_each_of_them_matches(globs: list[str], ident: tuple[str, ...]) -> None:
    expected = {glob for glob in globs if matches(glob, ident)}
    assert set(Finder(globs).find(ident)) == expected
    assert matcher(globs)(ident) is bool(expected)


def test_a_quote_in_a_name_is_doubled() -> None:
    assert dotted(("ns", "t\"q'")) == 'ns."t""q\'"'
    assert matches('ns."t""q\'"', ("ns", "t\"q'"))
    assert matches('ns."a"".b*"', ("ns", 'a".bc'))


@given(st.lists(st.text(st.sampled_from('a."*')), min_size=1, max_size=4).map(tuple))
def test_what_is_printed_is_that_name_and_no_other(ident: tuple[str, ...]) -> None:
    assert parse_dotted(dotted(ident)) == ident
