"""Where the boxes of a graph go: columns by the longest way to them, rows beside what leads there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf


def layers(nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """One more than the highest of those before it. A node that nothing leads to is right before what it leads to, so
    that its arrows are short. What is in a circle (no plan has one, a file may) or behind it is as far as it was seen
    without the circle."""
    after: dict[str, list[str]] = {node: [] for node in nodes}
    waiting = dict.fromkeys(nodes, 0)
    for source, target in edges:
        if source in after and target in after:
            after[source].append(target)
            waiting[target] += 1
    found = dict.fromkeys(nodes, 0)
    first = [node for node in nodes if not waiting[node]]
    ready = list(first)
    for node in ready:  # Grows while it is read.
        for target in after[node]:
            found[target] = max(found[target], found[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for node in first:
        found[node] = min((found[target] for target in after[node]), default=1) - 1
    return found


def places(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, tuple[int, float]]:
    """Column and row of every node. In a column the order is that of what leads there, so that few arrows cross, and
    a node is beside it where there is room, so that a chain is a straight line. No two nodes are in one place."""
    column = layers(nodes, edges)
    before: dict[str, list[str]] = {}
    for source, target in edges:
        if column.get(source, 0) < column.get(target, 0):
            before.setdefault(target, []).append(source)
    columns: dict[int, list[str]] = {}
    for node in nodes:
        columns.setdefault(column[node], []).append(node)
    rows: dict[str, float] = {}
    for number in sorted(columns):
        wished = {node: _mean(rows, before.get(node, ())) for node in columns[number]}
        free = 0.0
        for node in sorted(columns[number], key=lambda node: wished[node]):
            rows[node] = free if wished[node] == inf else max(free, wished[node])
            free = rows[node] + 1
    return {node: (column[node], rows[node]) for node in nodes}


def _mean(rows: Mapping[str, float], nodes: Sequence[str]) -> float:
    """What nothing leads to is below the rest."""
    return sum(rows[node] for node in nodes) / len(nodes) if nodes else inf
