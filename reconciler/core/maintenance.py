"""What `pipeline maintain` does to a table, and why: from what was measured before anything is changed, and never
revised. Nothing that an earlier part does changes what a later one would decide: a compaction joins only fragments that
are in the same indexes, so no index lacks more or fewer rows after it; and a version counts as old by when it ceased to
be the newest, so none that was current when the run began is removed by it.
"""

from __future__ import annotations

import re

from reconciler.core.text import listing, plural
from reconciler.core.verdicts import span
from reconciler.model.maintained import CLEANUP, COMPACT, INDEXES, PARTS, Decision
from reconciler.model.maintenance import Cleanup, Compact, Facts, Indexes, Maintenance

CLAIMED = "a data step holds it: apply first"
NOT_DECLARED = "not declared"
_OUR_TAG = re.compile(r"reconciler-[0-9a-f]{12}-s[0-9]+\Z")
"""As apply makes them before a rewriting step."""


def decide(want: Maintenance, facts: Facts, now: float) -> tuple[Decision, ...]:
    """One for each part, in the order in which they run. `now` in seconds since 1970."""
    if facts.claimed:
        return skipped(CLAIMED)
    return (
        _compact(want.compact, facts) if want.compact else Decision(COMPACT, False, NOT_DECLARED),
        _indexes(want.indexes, facts) if want.indexes else Decision(INDEXES, False, NOT_DECLARED),
        _cleanup(want.cleanup, facts, now) if want.cleanup else Decision(CLEANUP, False, NOT_DECLARED),
    )


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


def _indexes(want: Indexes, facts: Facts) -> Decision:
    before: dict[str, object] = {"unindexed_rows": dict(sorted(facts.unindexed.items()))}
    if not facts.unindexed:
        return Decision(INDEXES, False, "there is no index", before)
    limit = f"up to {want.max_unindexed} are left"
    over = due_indexes(want, facts)
    if over:
        told = listing([f"{name} lacks {plural(facts.unindexed[name], 'row')}" for name in over])
        return Decision(INDEXES, True, f"{told}, {limit}", before)
    most = max(facts.unindexed.values())
    lacks = f"more than {plural(most, 'row')}, {limit}" if most else "a row"
    return Decision(INDEXES, False, f"no index lacks {lacks}", before)


def due_indexes(want: Indexes, facts: Facts) -> list[str]:
    return sorted(name for name, rows in facts.unindexed.items() if rows > want.max_unindexed)


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
