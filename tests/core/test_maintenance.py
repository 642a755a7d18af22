"""What is decided about a table, from figures alone."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.maintenance import CLAIMED, NOT_DECLARED, decide, due_indexes, due_tags, due_versions
from reconciler.model.coverage import Limit
from reconciler.model.maintenance import Cleanup, Compact, Facts, Fragment, Indexes, Maintenance

NOW, DAY = 1_800_000_000.0, 86_400
ALL = Maintenance(Compact(100, 3, 10.0), Indexes(Limit(50)), Cleanup(14 * DAY))
OURS = "reconciler-0123456789ab-s1"


def fragments(*rows: tuple[int, int]) -> tuple[Fragment, ...]:
    return tuple(Fragment(n, count, deleted, count * 8) for n, (count, deleted) in enumerate(rows))


def versions(*days: float) -> tuple[tuple[int, float], ...]:
    """The age of each in days, oldest first."""
    return tuple((n, NOW - age * DAY) for n, age in enumerate(days, 1))


def told(facts: Facts, want: Maintenance = ALL) -> list[tuple[bool, str]]:
    return [(d.run, d.reason) for d in decide(want, facts, NOW)]


def test_nothing_to_do_is_explained() -> None:
    facts = Facts(4, fragments((10, 0), (10, 1), (200, 0)), ((0, 1),), {"a": 50, "b": 7}, versions(90, 13, 0))
    assert told(facts) == [
        (False, "2 of 3 fragments can be joined, 3 are enough; none has over 10 % of the rows deleted"),
        (False, "no index lacks more than 50 rows, up to 50 are left"),
        (False, "none of 3 versions has been replaced for over 14d"),
    ]
    assert told(Facts(1))[1] == (False, "there is no index")
    assert told(Facts(1, unindexed={"a": 0}))[1] == (False, "no index lacks a row")


def test_what_is_past_its_threshold_is_explained() -> None:
    small = fragments((10, 0), (10, 0), (10, 0), (99, 10), (200, 21), (200, 20))
    facts = Facts(
        9, small, ((0, 1, 2, 3), (4,)), {"a": 51, "b": 50}, versions(90, 60, 30, 20, 1, 0), {OURS: 2, "prod": 3}
    )
    assert told(facts) == [
        (True, "4 of 6 fragments can be joined, 3 are enough; 2 have over 10 % of the rows deleted"),
        (True, "a lacks 51 rows, up to 50 are left"),
        (True, "1 of 6 versions has been replaced for over 14d; 2 more are kept by a tag or a branch"),
    ]
    assert decide(ALL, facts, NOW)[0].before == {"fragments": 6, "small": 4, "deleted_rows": 51, "rewritten": 5}


def test_deleted_rows_are_reason_enough() -> None:
    facts = Facts(2, fragments((200, 21), (10, 0)), ((0,),))
    assert told(facts)[0] == (True, "1 has over 10 % of the rows deleted")


def test_small_fragments_that_lance_would_not_join_do_not_count() -> None:
    facts = Facts(2, fragments((10, 0), (200, 0), (10, 0), (200, 0), (10, 5)))
    assert told(facts)[0][0] is False


def test_a_data_step_holds_the_whole_table() -> None:
    facts = Facts(9, fragments((1, 1)), ((0,),), {"a": 10**6}, versions(90, 80, 70), claimed=True)
    assert told(facts) == [(False, CLAIMED)] * 3


def test_what_is_not_declared_is_not_done() -> None:
    facts = Facts(9, fragments((1, 1)), ((0,),), {"a": 10**6}, versions(90, 80, 70))
    assert told(facts, Maintenance()) == [(False, NOT_DECLARED)] * 3


def test_an_index_that_covers_nothing_is_always_due() -> None:
    facts = Facts(1, fragments((40, 0)), unindexed={"a": 40, "b": 39, "c": 0})
    assert told(facts)[1] == (True, "a covers none of 40 rows")
    assert due_indexes(ALL, replace(facts, untrained=frozenset({"a"})), False) == []
    why = "no index lacks more than 40 rows, up to 50 are left; there are too few vectors to train a"
    assert told(replace(facts, untrained=frozenset({"a"})))[1] == (False, why)


def test_what_the_plan_leaves_to_maintain_needs_no_word_in_the_table() -> None:
    unasked = Maintenance(uncovered=Indexes(Limit(20, percent=True), frozenset({"a", "b"})))
    facts = Facts(1, fragments((100, 0)), unindexed={"a": 21, "b": 20, "theirs": 100})
    assert told(facts, unasked)[1] == (True, "a lacks 21 rows, up to 20% are left")
    assert told(replace(facts, unindexed={"a": 20}), unasked)[1] == (False, NOT_DECLARED)
    assert told(replace(facts, unindexed={"b": 100}), unasked)[1] == (True, "b lacks 100 rows, up to 20% are left")


def test_an_index_that_loses_rows_by_a_compaction_is_refreshed_with_it() -> None:
    zones = frozenset({"zones"})
    joined = Facts(
        1, fragments((10, 0), (10, 0), (10, 0)), ((0, 1, 2),), unindexed={"zones": 0, "id": 0}, forgetful=zones
    )
    assert told(joined)[1] == (True, "zones loses rows by the compaction")
    assert told(replace(joined, groups=()))[1] == (False, "no index lacks a row")


def test_a_version_is_as_old_as_what_replaced_it() -> None:
    """Written long ago and replaced a moment ago, by a compaction say: somebody reads it."""
    want = Cleanup(14 * DAY)
    assert due_versions(want, Facts(2, versions=versions(90, 0)), NOW) == []
    assert due_versions(want, Facts(3, versions=versions(90, 15, 0)), NOW) == [1]
    assert due_versions(want, Facts(3, versions=((1, NOW), (2, NOW - 90 * DAY), (3, NOW - 80 * DAY))), NOW) == [2], (
        "a clock that was wrong makes a version younger, not older"
    )


def test_which_tags_hold_a_version() -> None:
    tags = {OURS: 1, "prod": 2, "reconciler-0123456789ab-s2": 2, "reconciler-demo": 3, "reconciler-ABCDEF012345-s1": 4}
    facts = Facts(7, versions=versions(*[90] * 6, 0), tags=tags, branches={"dev": 5})
    assert due_versions(Cleanup(), facts, NOW) == []
    assert due_versions(Cleanup(keep_tagged=False), facts, NOW) == [1]
    assert due_tags(Cleanup(keep_tagged=False), facts, NOW) == [OURS]
    assert due_tags(Cleanup(), facts, NOW) == []
    facts = replace(facts, tags={OURS: 1}, branches={})
    assert due_versions(Cleanup(), facts, NOW) == [2, 3, 4, 5]
    (_, _, cleanup) = decide(Maintenance(cleanup=Cleanup(keep_tagged=False)), facts, NOW)
    assert cleanup.reason == "5 of 7 versions have been replaced for over 14d; 1 tag of apply given up"


TAGS = st.dictionaries(st.sampled_from([OURS, "prod", "reconciler-x", "a"]), st.integers(1, 9), max_size=3)


@given(
    st.lists(st.floats(0, 60), min_size=1, max_size=9),
    TAGS,
    st.dictionaries(st.just("dev"), st.integers(1, 9)),
    st.builds(Cleanup, st.integers(3600, 40 * DAY), st.booleans(), st.integers(1, 9)),
)
def test_cleanup_removes_only_what_nobody_needs(
    ages: list[float], tags: dict[str, int], branches: dict[str, int], want: Cleanup
) -> None:
    facts = Facts(len(ages), versions=versions(*ages), tags=tags, branches=branches)
    due = due_versions(want, facts, NOW)
    newest = {number for number, _ in facts.versions[-want.retain :]}
    assert not newest & set(due)
    assert not set(branches.values()) & set(due)
    for name, version in tags.items():
        assert version not in due or (name == OURS and not want.keep_tagged)
    assert all(name == OURS for name in due_tags(want, facts, NOW))
    since = dict(zip(range(1, 10), [time for _, time in facts.versions[1:]], strict=False))
    assert all(NOW - since[version] > want.older_than for version in due)
    free = set(since) - newest - set(tags.values()) - set(branches.values())
    own = dict(facts.versions)
    assert {v for v in free if NOW - max(since[v], own[v]) > want.older_than} <= set(due), "and all of that"
    assert decide(Maintenance(cleanup=want), facts, NOW)[2].run is bool(due)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 100)), max_size=9),
    st.data(),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 200)),
)
def test_decisions_follow_the_thresholds(
    rows: list[tuple[int, int]], data: st.DataObject, unindexed: dict[str, int]
) -> None:
    made = fragments(*[(count, min(count, deleted)) for count, deleted in rows])
    group = tuple(f.ident for f in made if data.draw(st.booleans()))
    facts = Facts(1, made, (group,) if group else (), unindexed)
    want = Maintenance(
        Compact(data.draw(st.integers(1, 300)), 2, 100.0), Indexes(Limit(data.draw(st.integers(0, 200))))
    )
    compact, indexes, _ = decide(want, facts, NOW)
    assert want.compact
    assert want.indexes
    small = sum(f.rows < want.compact.target_rows for f in made if f.ident in group)
    assert compact.run is (small >= 2)
    assert decide(replace(want, compact=replace(want.compact, min_small=small + 1)), facts, NOW)[0].run is False
    assert (
        indexes.run
        is bool(due_indexes(want, facts, compact.run))
        is any(n > want.indexes.max_unindexed.amount or 0 < n == facts.rows for n in unindexed.values())
    )
    assert decide(want, facts, NOW) == decide(want, facts, NOW), "nothing but the figures counts"
