"""The parameters of a live index that its declaration does not name: what a build in its place keeps of them.

Whoever made the index may have chosen them, and queries depend on them (a metric, a language). So the index that takes
its place, or is built again after its column was written anew, has them too. A value that is what Lance gives an index
by itself needs no keeping.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reconciler.core.index_fit import defaults, not_taken
from reconciler.model.state import VECTOR_INDEXES, Index, Param

PARTITIONS = "num_partitions"


def alike(a: Param | None, b: Param | None) -> bool:
    """Lance spells some words in its own case."""
    if isinstance(a, str) and isinstance(b, str):
        return a.lower() == b.lower()
    return a == b


def chosen(index: Index, declared: Mapping[str, Param]) -> dict[str, Param]:
    """The parameters of a live index that are neither declared nor Lance's own. Not the number of partitions: nothing
    tells a choice from what Lance has made of the rows."""
    own = defaults(index.type, index.params)
    return {
        key: value
        for key, value in sorted(index.params.items())
        if key in own and key not in declared and not alike(value, own[key])
    }


def keeping(want: Index, live: Index) -> Index:
    """The declared index with what a build in place of `live` keeps: of the same column and type everything that was
    read, that is not declared and that Lance takes together with what is declared."""
    if (want.column, want.type) != (live.column, live.type):
        return want
    return replace(want, kept=_taken(want, {key: live.params[key] for key in _changed(want, live)}))


def not_kept(want: Index, live: Index) -> Iterator[str]:
    """What a build in place of `live` changes although nobody declares it: of another column or type, or not taken with
    what is declared now, or not to be read."""
    kept = keeping(want, live).kept
    for key, own in _changed(want, live).items():
        if key not in kept:
            yield f"{key} {live.params[key]!s} -> {'left to Lance' if own is None else str(own)} (not declared)"
    if live.indexed_rows:
        for key in sorted(live.unread - want.params.keys()):
            yield f"{key} unknown -> left to Lance (not declared)"


def _changed(want: Index, live: Index) -> dict[str, Param | None]:
    """The parameters that are not declared, and that Lance by itself would make others than they are: with its own
    value, None where it has none."""
    same = want.type == live.type
    own: dict[str, Param | None] = {**defaults(want.type, {**(live.params if same else {}), **want.params})}
    if want.type in VECTOR_INDEXES and not _left_to_lance(live):
        own[PARTITIONS] = None
    if want.type.endswith("pq"):
        own["num_sub_vectors"] = None
    return {
        key: own[key]
        for key, value in sorted(live.params.items())
        if key in own and key not in want.params and not alike(value, own[key])
    }


def _left_to_lance(live: Index) -> bool:
    """Is the number of partitions what Lance made of the rows in a build of ours? There are other rows now."""
    record = live.record
    if record is None or not record.current:
        return False
    return PARTITIONS not in record.params and PARTITIONS not in record.kept


def _taken(want: Index, kept: dict[str, Param]) -> dict[str, Param]:
    """Without the one that goes with no declared value (an `m` above the declared `ef_construction`)."""
    fewer = ({k: v for k, v in kept.items() if k != out} for out in kept)
    return next((some for some in (kept, *fewer) if not [*not_taken({**some, **want.params}, want.type)]), {})
