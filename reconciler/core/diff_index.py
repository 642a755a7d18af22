"""Where live indexes differ from the declared ones.

A difference is something that building the index again would change. Lance builds fewer partitions than declared where
a table has too few rows for them: building again gives the same, so that is an adjustment, with a reason, and no
difference until the table has grown enough. A parameter that cannot be read is unknown and no difference, unless the
live index is the one that we built and the declaration has changed since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.core.kept_params import PARTITIONS, alike, not_kept
from reconciler.core.text import plural
from reconciler.model.state import UNKNOWN, Index, Param, Unknown

ROWS_PER_PQ_PARTITION = 256
"""Lance trains no more partitions of a product-quantized index than it has this many vectors for. Measured."""

Differences = dict[str, tuple[Param | Unknown, Param]]


def index_differences(want: Index, live: Index) -> Differences:
    """What differs, as name -> (live, declared)."""
    out: Differences = {}
    if want.column != live.column:
        out["column"] = (live.column, want.column)
    if want.type != live.type:
        out["type"] = (live.type, want.type)
    for key, value in want.params.items():
        if key in live.params:
            found = live.params[key]
            if not alike(found, value) and not _adjusted(key, want, live):
                out[key] = (found, value)
        elif _declared_anew(key, value, live):
            out[key] = (UNKNOWN, value)
    return out


def _declared_anew(key: str, value: Param, live: Index) -> bool:
    record = live.record
    return record is not None and record.current and key in record.params and not alike(record.params[key], value)


def differences_text(want: Index, live: Index) -> str:
    """What a build of the declared index in place of the live one changes. Empty where nothing differs."""
    found = index_differences(want, live)
    told = [_difference(key, old, new, want, live) for key, (old, new) in found.items()]
    return ", ".join([*told, *not_kept(want, live)] if told else [])


def _difference(key: str, old: Param | Unknown, new: Param, want: Index, live: Index) -> str:
    if isinstance(old, Unknown):
        declared = live.record.params[key] if live.record is not None else None
        return f"{key} unknown -> {new!s} (declared {declared!s} before; the live value cannot be read)"
    most = _most_partitions(want, live.rows)
    if key == PARTITIONS and most is not None and isinstance(new, int) and most < new:
        return f"{key} {old!s} -> {most} (declared {new}; {_why(want, live)})"
    return f"{key} {old!s} -> {new!s}"


def index_notes(want: Index, live: Index) -> Iterator[str]:
    """What is not as declared, or not known, and that no step changes."""
    if (want.column, want.type) != (live.column, live.type):
        return
    differ = index_differences(want, live)
    for key, value in want.params.items():
        if key in differ:
            continue
        if key in live.params and not alike(live.params[key], value):
            built = f"declared {value!s}, built {live.params[key]!s}"
            why = _why(want, live) if key == PARTITIONS else "Lance has built it so from this declaration"
            yield f"{key} of index {want.name} is adjusted: {built}: {why}"
        elif key not in live.params and live.rows:
            yield f"{key} of index {want.name} is unknown: declared {value!s}; the live index does not show it"


def _why(want: Index, live: Index) -> str:
    rule = "no more partitions than there are vectors"
    if _per_partition(want) > 1:
        rule = f"one partition for each {ROWS_PER_PQ_PARTITION} vectors"
    most, declared = _most_partitions(want, live.rows) or 0, want.params[PARTITIONS]
    fewer = ", not all of them with a vector" if isinstance(declared, int) and most >= declared else ""
    return f"Lance builds {rule}, and the table has {plural(live.rows or 0, 'row')}{fewer}"


def _adjusted(key: str, want: Index, live: Index) -> bool:
    """Would building it again give the same? It would where the live index is the one that we built from the same
    declaration. The number of partitions also depends on the rows."""
    if key == PARTITIONS:
        return _fewer_partitions(want, live)
    record = live.record
    return record is not None and record.current and record.params == want.params


def _fewer_partitions(want: Index, live: Index) -> bool:
    """Lance counts vectors, of which there may be fewer than rows: a build that we recorded shows how many there were,
    and later rows may each have one."""
    declared, built = want.params[PARTITIONS], live.params[PARTITIONS]
    most = _most_partitions(want, live.rows)
    if not isinstance(declared, int) or not isinstance(built, int) or live.rows is None or most is None:
        return False
    if built > declared:
        return False
    record, per = live.record, _per_partition(want)
    if record is not None and record.current and record.rows is not None and record.params.get(PARTITIONS) == declared:
        vectors = (built + 1) * per - 1 + max(0, live.rows - record.rows)
        return most < declared or vectors < declared * per
    return built >= min(declared, most)


def _most_partitions(want: Index, rows: int | None) -> int | None:
    return None if rows is None else max(1, rows // _per_partition(want))


def _per_partition(want: Index) -> int:
    return ROWS_PER_PQ_PARTITION if want.type.endswith("pq") else 1


def by_name(indexes: tuple[Index, ...]) -> Mapping[str, Index]:
    return {i.name: i for i in indexes}
