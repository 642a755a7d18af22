"""What is a difference between a declared and a live index, and what is only a note."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.diff_index import index_differences, index_notes
from reconciler.model.state import BuildRecord, Index

WANT = Index("x", "v", "ivf_sq", {"num_bits": 4, "num_partitions": 2})
LIVE = Index("x", "v", "ivf_sq", {"num_bits": 8, "num_partitions": 2}, rows=600, indexed_rows=600)


def test_what_lance_made_of_the_same_declaration_is_a_note() -> None:
    """Building it again would give the same, for ever."""
    ours = replace(LIVE, record=BuildRecord(WANT.params, 600, current=True))
    assert index_differences(WANT, ours) == {}
    (note,) = index_notes(WANT, ours)
    assert note.startswith("num_bits of index x is adjusted: declared 4, built 8")


def test_any_other_build_differs() -> None:
    records = [
        None,
        BuildRecord(WANT.params, 600, current=False),
        BuildRecord({**WANT.params, "num_bits": 8}, 600, current=True),
    ]
    for record in records:
        live = replace(LIVE, record=record)
        assert index_differences(WANT, live) == {"num_bits": (8, 4)}, record
        assert [*index_notes(WANT, live)] == []


PQ = Index("x", "v", "ivf_pq", {"num_partitions": 4})


def pq(built: int, rows: int, recorded: int | None) -> Index:
    """Live; `recorded`: the rows that our build of `PQ` had."""
    record = None if recorded is None else BuildRecord(PQ.params, recorded, current=True)
    return Index("x", "v", "ivf_pq", {"num_partitions": built}, rows=rows, indexed_rows=rows, record=record)


def test_rows_that_came_since_may_each_have_a_vector() -> None:
    """Of 1,300 rows a few hundred had one. What came later may be enough for the declared number, and is then."""
    assert index_differences(PQ, pq(1, 1300, 1300)) == {}
    assert index_differences(PQ, pq(1, 1812, 1300)) == {}  # At most 511 vectors then, and 512 more.
    assert index_differences(PQ, pq(1, 1813, 1300)) == {"num_partitions": (1, 4)}


def test_more_partitions_than_declared_are_no_adjustment() -> None:
    for recorded in (None, 600):
        assert index_differences(PQ, pq(6, 600, recorded)) == {"num_partitions": (6, 4)}
