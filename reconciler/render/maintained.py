"""What was decided about tables and done, as text."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.ident import dotted
from reconciler.model.maintained import (
    CLEANUP,
    COMPACT,
    INDEXES,
    TAGS,
    Decision,
    Figures,
    Maintained,
    MaintainedTable,
    Result,
)
from reconciler.render.safe_text import bounded, safe

_SIGNS = {"done": "done", "failed": "FAILED", "unknown": "UNKNOWN", "not_run": "not run"}


def maintained_text(found: Maintained) -> str:
    lines = [line for table in found.tables for line in _table(table)]
    counts = found.summary()
    tables = f"{counts['tables']} table{'' if counts['tables'] == 1 else 's'}"
    ran = counts["done"] + counts["failed"] + counts["unknown"] + counts["not_run"]
    told = [f"{counts[n]} {n.replace('_', ' ')}" for n in ("done", "failed", "unknown", "not_run") if counts[n]]
    todo = ", ".join(told) if ran else f"{counts['to_run']} to do"
    unread = f", {counts['unreadable']} could not be read" if counts["unreadable"] else ""
    lines.append(f"{tables}: {todo}, {counts['skipped']} skipped{unread}")
    return "".join(f"{line}\n" for line in lines)


def _table(table: MaintainedTable) -> Iterator[str]:
    name = safe(f"{table.catalog}:{dotted(table.ident)}")
    if table.error is not None:
        yield f"{name}  FAILED"
        yield f"  cannot be read: {bounded(safe(table.error))}"
        return
    size = (
        "" if table.rows is None else f"  {table.rows} row{'' if table.rows == 1 else 's'}, {_bytes(table.bytes or 0)}"
    )
    yield f"{name}{size}"
    if len({d.reason for d in table.decisions}) == 1:  # It is about the table, not a part.
        yield f"  {'skip':<7}  {bounded(safe(table.decisions[0].reason))}"
        return
    for decision in table.decisions:
        yield from _part(decision, table.results.get(decision.part))


def _part(decision: Decision, result: Result | None) -> Iterator[str]:
    sign = _SIGNS[result.outcome] if result else "to do" if decision.run else "skip"
    yield f"  {decision.part}  {sign:<7}  {bounded(safe(decision.reason))}"
    if result is None:
        return
    told = _after(decision.part, result.after) if result.outcome == "done" else ""
    more = "; ".join(text for text in (told, bounded(safe(result.detail))) if text)
    if more:
        yield f"  {'':<7}  {'':<7}  {more}"


def _after(part: str, after: Figures) -> str:
    if part == COMPACT and "fragments" in after:
        return f"{after['fragments']} fragment{'' if after['fragments'] == 1 else 's'} now, version {after['version']}"
    rows = after.get("unindexed_rows")
    if part == INDEXES and isinstance(rows, dict):
        return f"rows that they lack now: {', '.join(f'{safe(name)} {count}' for name, count in sorted(rows.items()))}"
    if part == TAGS:
        return f"{after['removed']} removed"
    removed = after.get("bytes_removed")
    if part == CLEANUP and isinstance(removed, int):
        return f"{after['removed']} removed with {_bytes(removed)}, {after['versions']} now"
    return ""


def _bytes(size: int) -> str:
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if size >= 10**power:
            return f"{size / 10**power:.1f} {unit}"
    return f"{size} B"
