from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.catalog.marks import join, split
from reconciler.model.state import Marks

KEYS = st.text(min_size=1, max_size=20).filter(lambda k: not k.startswith("reconciler."))


@given(
    st.dictionaries(KEYS, st.text(max_size=20), max_size=4),
    st.one_of(st.none(), st.text(min_size=1)),
    st.booleans(),
    st.sets(KEYS, max_size=30),
    st.one_of(st.none(), st.integers(5, 255)),
    st.one_of(st.none(), st.text(min_size=1, max_size=5)),
)
def test_split_undoes_join(
    properties: dict[str, str],
    owner: str | None,
    protect: bool,
    applied: set[str],
    limit: int | None,
    run: str | None,
) -> None:
    marks = Marks(owner, protect, tuple(sorted(applied)), run)
    joined = join(properties, marks, limit)
    assert split(joined) == (properties, marks)
    assert split(joined)[1].applied_by == run
    if limit:
        assert all(len(v) <= limit for k, v in joined.items() if k.startswith("reconciler.applied-keys"))


def test_a_shorter_list_leaves_no_parts_of_a_longer_one() -> None:
    long = join({}, Marks("me", False, tuple(f"key-{n:03}" for n in range(100))), 255)
    assert len(long) > 3
    assert split(join(long, Marks("me", False, ("one",)), 255)) == ({}, Marks("me", False, ("one",)))


def test_nothing_of_the_marks_before_is_left() -> None:
    """Also who applied it: that would be said of a change that somebody else made."""
    before = join({"k": "v"}, Marks("me", True, ("k",), "run 1"))
    assert join(before, Marks()) == {"k": "v"}


def test_no_part_is_longer_than_the_limit_in_utf_16_units() -> None:
    """That is how Unity's database counts; and no character is cut in two."""
    keys = tuple(sorted(f"{n}\N{GRINNING FACE}" * 20 for n in range(40)))
    joined = join({}, Marks("us", False, keys), 255)
    assert max(len(v.encode("utf-16-le")) // 2 for v in joined.values()) in (254, 255)
    assert split(joined)[1].applied == keys
