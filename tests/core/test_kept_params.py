"""What a build in place of a live index keeps of what nobody declares, and what the plan says where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.diff_index import differences_text
from reconciler.core.kept_params import keeping
from reconciler.model.state import BuildRecord, Index, Param

LIVE = Index("x", "v", "ivf_flat", {"metric": "cosine", "num_partitions": 2}, rows=600, indexed_rows=600)


def want(**params: Param) -> Index:
    return Index("x", "v", "ivf_flat", params)


def test_what_is_not_declared_is_kept_unless_lance_would_build_it_so() -> None:
    assert keeping(want(num_partitions=4), LIVE).kept == {"metric": "cosine"}
    assert keeping(want(metric="dot"), LIVE).kept == {"num_partitions": 2}
    assert keeping(want(num_partitions=4), replace(LIVE, params={"metric": "l2"})).kept == {}


@pytest.mark.parametrize(("params", "kept"), [({}, {}), ({}, {"num_partitions": 2}), ({"num_partitions": 2}, {})])
def test_partitions_that_lance_made_of_the_rows_are_made_of_them_again(
    params: dict[str, Param], kept: dict[str, Param]
) -> None:
    """A table that grows needs more of them. Those that somebody chose stay, also after a build of ours."""
    ours = BuildRecord(params, 600, current=True, kept=kept)
    left = "num_partitions" not in {**params, **kept}
    assert ("num_partitions" not in keeping(want(), replace(LIVE, record=ours)).kept) is left
    others = replace(ours, current=False)
    assert keeping(want(), replace(LIVE, record=others)).kept["num_partitions"] == 2


def test_what_another_type_or_column_does_not_keep_is_a_difference() -> None:
    other = Index("x", "v", "ivf_pq", {"num_sub_vectors": 2})
    assert keeping(other, LIVE) == other
    assert differences_text(other, LIVE) == (
        "type ivf_flat -> ivf_pq, metric cosine -> l2 (not declared), num_partitions 2 -> left to Lance (not declared)"
    )
    moved = replace(want(metric="cosine", num_partitions=2), column="w")
    assert differences_text(moved, LIVE) == "column v -> w"
    assert differences_text(Index("x", "v", "btree"), LIVE) == "type ivf_flat -> btree"


def test_what_cannot_be_read_is_a_difference_of_a_build() -> None:
    live = replace(LIVE, params={"metric": "cosine"}, unread=frozenset({"num_partitions"}))
    text = differences_text(want(metric="l2"), live)
    assert text == "metric cosine -> l2, num_partitions unknown -> left to Lance (not declared)"
    assert differences_text(want(metric="cosine"), live) == ""


def test_what_goes_with_no_declared_value_is_not_kept() -> None:
    """Lance refuses an `m` above `ef_construction`."""
    live = Index("x", "v", "ivf_hnsw_flat", {"metric": "dot", "m": 40, "ef_construction": 200})
    declared = Index("x", "v", "ivf_hnsw_flat", {"ef_construction": 30})
    assert keeping(declared, live).kept == {"metric": "dot"}
    assert differences_text(declared, live) == "ef_construction 200 -> 30, m 40 -> 20 (not declared)"


def test_another_tokenizer_does_not_change_the_rest() -> None:
    """Lance has other values of its own for it."""
    live = Index("x", "s", "inverted", {"base_tokenizer": "simple", "stem": True, "lower_case": True})
    assert keeping(Index("x", "s", "inverted", {"base_tokenizer": "ngram"}), live).kept == {"stem": True}
