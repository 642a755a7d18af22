"""What `pipeline maintain` does to a table, and why: from what was measured before anything is changed, and never
revised. Nothing that an earlier part does changes what a later one would decide: a compaction joins only fragments that
are in the same indexes, so no index lacks more or fewer rows after it, except those of the few types that lose the
joined rows, which are refreshed with it; and a version counts as old by when it ceased to be the newest, so none that
was current when the run began is removed by it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from reconciler.core.diff_index import by_name, differences_text, index_differences
from reconciler.core.kept_params import keeping
from reconciler.core.plan_index import wanted_indexes, with_live_names
from reconciler.core.text import listing, plural
from reconciler.core.verdicts import span
from reconciler.model.desired import DesiredTable
from reconciler.model.maintained import CLEANUP, COMPACT, INDEXES, PARTS, TAGS, Decision
from reconciler.model.maintenance import Cleanup, Compact, Facts, Indexes, Maintenance
from reconciler.model.state import VECTOR_INDEXES, DatasetState, Index

CLAIMED = "a data step holds it: apply first"
NOT_DECLARED = "not declared"
MOST_SEGMENTS = 8
"""A query of a vector index looks into each of its segments."""
_OUR_TAG = re.compile(r"reconciler-[0-9a-f]{12}-s[0-9]+(?:-v[0-9]+)?\Z")
"""As apply makes them before a rewriting step; with the version when the same plan was applied again since."""


def is_our_tag(name: str) -> bool:
    return _OUR_TAG.match(name) is not None


def expired_tags(tags: Mapping[str, float], retention: int | None, now: float, plan: str = "") -> list[str]:
    """Tags of apply that were set more than `retention` seconds ago; None keeps them for ever. `plan`: the short id of
    a plan whose run is not over, and whose tags stay."""
    if retention is None:
        return []
    ours = ((name, at) for name, at in tags.items() if is_our_tag(name))
    return sorted(n for n, at in ours if now - at > retention and not (plan and n.startswith(f"reconciler-{plan}-")))


def decide(want: Maintenance, facts: Facts, now: float) -> tuple[Decision, ...]:
    """One for each part, in the order in which they run. `now` in seconds since 1970."""
    if facts.claimed:
        return skipped(CLAIMED)
    compact = _compact(want.compact, facts) if want.compact else Decision(COMPACT, False, NOT_DECLARED)
    return (
        *_tags(facts),
        compact,
        _indexes(want, facts, compact.run),
        _cleanup(want.cleanup, facts, now) if want.cleanup else Decision(CLEANUP, False, NOT_DECLARED),
    )


def _tags(facts: Facts) -> tuple[Decision, ...]:
    """First of all: a tag keeps its version from the cleanup."""
    if not facts.expired:
        return ()
    what = "tag of apply is" if len(facts.expired) == 1 else "tags of apply are"
    told = f"{len(facts.expired)} {what} older than management.tagRetention"
    return (Decision(TAGS, True, told, {"expired": len(facts.expired)}),)


def skipped(reason: str) -> tuple[Decision, ...]:
    """The whole table."""
    return tuple(Decision(part, False, reason) for part in PARTS)


def _compact(want: Compact, facts: Facts) -> Decision:
    """Only fragments that Lance would take count: what stands alone between large ones is never joined."""
    planned = {ident for group in facts.groups for ident in group}
    taken = [f for f in facts.fragments if f.ident in planned]
    small = sum(f.rows < want.target_rows for f in taken)
    worn = sum(f.deleted * 100 > want.max_deleted_percent * f.rows for f in taken)
    before = {
        "fragments": len(facts.fragments),
        "small": small,
        "deleted_rows": sum(f.deleted for f in facts.fragments),
        "rewritten": len(planned),
    }
    joined = f"{small} of {plural(len(facts.fragments), 'fragment')} can be joined, {want.min_small} are enough"
    share = f"over {want.max_deleted_percent:g} % of the rows deleted"
    if small >= want.min_small or worn:
        more = f"{worn} {'has' if worn == 1 else 'have'} {share}" if worn else ""
        reason = "; ".join([joined] * (small >= want.min_small) + [more] * bool(worn))
        return Decision(COMPACT, True, reason, before)
    return Decision(COMPACT, False, f"{joined}; none has {share}", before)


def _indexes(want: Maintenance, facts: Facts, compacts: bool) -> Decision:
    before: dict[str, object] = {"unindexed_rows": dict(sorted(facts.unindexed.items()))}
    over = due_indexes(want, facts, compacts)
    if want.refresh is None or (want.indexes is None and not over):
        return Decision(INDEXES, False, NOT_DECLARED)
    if not facts.unindexed:
        return Decision(INDEXES, False, "there is no index", before)
    limit = f"up to {want.refresh.max_unindexed} are left"
    if over:
        past = [name for name in over if _exceeds(want.refresh, facts, name)]
        told = listing([f"{name} lacks {plural(facts.unindexed[name], 'row')}" for name in past])
        parts = [f"{told}, {limit}"] if past else []
        parts += [reason for name in over if name not in past and (reason := _other_reason(name, facts))]
        parts += [f"{name} is built anew: {facts.rebuild[name]}" for name in over if name in facts.rebuild]
        return Decision(INDEXES, True, "; ".join(parts), before)
    most = max(facts.unindexed.values())
    lacks = f"more than {plural(most, 'row')}, {limit}" if most else "a row"
    why = f"; there are too few vectors to train {listing(sorted(facts.untrained))}" if facts.untrained else ""
    return Decision(INDEXES, False, f"no index lacks {lacks}{why}", before)


def _exceeds(want: Indexes, facts: Facts, name: str) -> bool:
    return want.max_unindexed.exceeded(facts.rows, facts.rows - facts.unindexed[name])


def _other_reason(name: str, facts: Facts) -> str:
    """Of one that is not past its limit; empty where the reason to build it anew says all."""
    lacks = facts.unindexed[name]
    if lacks == facts.rows:
        return f"{name} covers none of {plural(lacks, 'row')}"
    return "" if name in facts.differing else f"{name} loses rows by the compaction"


def due_indexes(want: Maintenance, facts: Facts, compacts: bool) -> list[str]:
    """Those that lack more than their limit, those that cover no row, those that are not as declared, and, with a
    compaction, those that lose rows by it. Not those that Lance cannot train."""
    refresh = want.refresh
    if refresh is None:
        return []
    return sorted(
        name
        for name, lacks in facts.unindexed.items()
        if (refresh.only is None or name in refresh.only)
        and name not in facts.untrained
        and (
            _exceeds(refresh, facts, name)
            or 0 < lacks == facts.rows
            or (name in facts.differing and facts.rows > 0)
            or (compacts and name in facts.forgetful)
        )
    )


def declared_builds(want: DesiredTable, live: DatasetState) -> dict[str, tuple[Index, Index]]:
    """The declared indexes that maintenance does not leave to Lance, by name: as declared, with what a
    build keeps, and live. Vector indexes,
    and others that have other parameters than declared, which Lance would keep. What is of another type or column is
    replaced by `apply`, or not at all."""
    there = by_name(live.indexes)
    declared = wanted_indexes(with_live_names(want, live))
    pairs = {i.name: (keeping(i, there[i.name]), there[i.name]) for i in declared if i.name in there}
    same = {n: (i, found) for n, (i, found) in pairs.items() if (i.type, i.column) == (found.type, found.column)}
    return {n: pair for n, pair in same.items() if pair[0].type in VECTOR_INDEXES or index_differences(*pair)}


def why_rebuild(declared: Index, live: Index, segments: Sequence[int]) -> str | None:
    """Why an index is built anew, with the declared parameters, instead of taking in the rows that it lacks.
    Rows that are taken in become a segment of their own, with the partitions of the index: that keeps its parameters,
    but the partitions were trained on other rows. `segments`: how many rows each has."""
    if differ := differences_text(declared, live):
        return differ
    if not live.indexed_rows or not segments:
        return "it covers no row"
    if len(segments) >= MOST_SEGMENTS:
        return f"it has {len(segments)} segments"
    trained, rows = max(segments), live.rows or 0
    return f"it was trained on {trained} of {plural(rows, 'row')}" if rows > 2 * trained else None


def _cleanup(want: Cleanup, facts: Facts, now: float) -> Decision:
    old, due = _old(want, facts, now), due_versions(want, facts, now)
    kept = len(old) - len(due)
    tags = due_tags(want, facts, now)
    before = {"versions": len(facts.versions), "removed": len(due), "kept_by_tags": kept, "tags_given_up": len(tags)}
    age = f"been replaced for over {span(want.older_than)}"
    more = f"; {kept} more {'is' if kept == 1 else 'are'} kept by a tag or a branch" if kept else ""
    more += f"; {plural(len(tags), 'tag')} of apply given up" if tags else ""
    if due:
        told = (
            f"{len(due)} of {plural(len(facts.versions), 'version')} {'has' if len(due) == 1 else 'have'} {age}{more}"
        )
        return Decision(CLEANUP, True, told, before)
    retained = f" and is not among the {want.retain} newest" if want.retain > 1 else ""
    told = f"none of {plural(len(facts.versions), 'version')} has {age}{retained}{more}"
    return Decision(CLEANUP, False, told, before)


def _old(want: Cleanup, facts: Facts, now: float) -> list[int]:
    """A version is as old as the one that came after it: until then it was what everybody read, and a tag of apply was
    made on it just before. By the later of the two times where clocks disagree."""
    following = zip(facts.versions, facts.versions[1:], strict=False)
    replaced = [(version, max(time, after)) for (version, time), (_, after) in following]
    among = replaced[: max(0, len(facts.versions) - want.retain)]
    return [version for version, time in among if now - time > want.older_than]


def due_versions(want: Cleanup, facts: Facts, now: float) -> list[int]:
    """What is removed. A version stays that a branch starts from, or that has a tag; unless all its tags are apply's
    and these are not to be kept."""
    held = {version for name, version in facts.tags.items() if want.keep_tagged or not _OUR_TAG.match(name)}
    held |= set(facts.branches.values())
    return [version for version in _old(want, facts, now) if version not in held]


def due_tags(want: Cleanup, facts: Facts, now: float) -> list[str]:
    """The tags of apply that hold a version that is due."""
    due = set(due_versions(want, facts, now))
    return sorted(name for name, version in facts.tags.items() if version in due)
