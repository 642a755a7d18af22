"""Two looks at one catalog: first everything by name, then what is wanted in full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reconciler.model.ident import Ident
from reconciler.model.observed import Detached, Present, Snapshot, Unreadable


def in_full(listed: Snapshot, detailed: Snapshot, kept: Callable[[Ident], bool]) -> Snapshot:
    """The second look, as far as it was asked for. What the first one saw and the second did not is gone; below a
    listing that failed it is only unread."""
    namespaces: dict[Ident, Present | Unreadable] = {i: f for i, f in detailed.namespaces.items() if kept(i)}
    tables: dict[Ident, Present | Detached | Unreadable] = {i: f for i, f in detailed.tables.items() if kept(i)}
    for ident, seen in listed.namespaces.items():
        if kept(ident) and ident not in namespaces and detailed.gap_at(ident[:-1]) is not None:
            namespaces[ident] = seen
    for ident in listed.tables:
        gap = detailed.gap_at(ident)
        if kept(ident) and ident not in tables and gap is not None:
            tables[ident] = Unreadable(gap.code, gap.message)
    return replace(detailed, namespaces=namespaces, tables=tables)
