"""A directed graph as plain data, whatever draws it: boxes with a few lines of text, and arrows between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Style = Literal[
    "create", "update", "delete", "blocked", "unsupported", "catalog", "namespace", "table", "outside", "more"
]  # fmt: skip
MOST_NODES = 500
"""More of them is no picture any more."""
SERIOUS = 1
"""Nodes of this rank or a lower one are destructive, deleting, blocked or unsupported steps."""


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    lines: tuple[str, ...]
    """The name first. As it is: whoever draws it escapes it."""
    style: Style
    rank: int = SERIOUS + 1
    """Where there is no room for all, low ones stay."""


@dataclass(frozen=True, slots=True)
class Edge:
    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def with_what_it_needs(graph: Graph, wanted: Collection[str]) -> Graph:
    """The wanted nodes and everything that arrows lead from to them."""
    before: dict[str, list[str]] = {}
    for edge in graph.edges:
        before.setdefault(edge.target, []).append(edge.source)
    kept, todo = set(wanted), list(wanted)
    while todo:
        for source in before.get(todo.pop(), ()):
            if source not in kept:
                kept.add(source)
                todo.append(source)
    return _only(graph, lambda node: node.id in kept)


def first(graph: Graph, most: int = MOST_NODES) -> Graph:
    """At most so many nodes, by rank and then by their order; one more says how many are not there. Nothing at all is
    said too."""
    if not graph.nodes:
        return replace(graph, nodes=(Node("", (graph.title, "none"), "more"),))
    missing = len(graph.nodes) - most
    if missing <= 0:
        return graph
    ranked = sorted(graph.nodes, key=lambda node: node.rank)
    kept = {node.id for node in ranked[:most]}
    cut = _only(graph, lambda node: node.id in kept)
    serious = sum(node.rank <= SERIOUS for node in ranked[most:])
    held = (f"{serious} of them destructive, deleting, blocked or unsupported",) if serious else ()
    told = Node("", (f"{missing} more", *held, "not shown; --target narrows"), "more")
    return replace(cut, nodes=(*cut.nodes, told))


def numbered(nodes: Sequence[Node]) -> dict[str, str]:
    """Names for the nodes that every format can take: identifiers are other people's text."""
    return {node.id: f"n{i}" for i, node in enumerate(nodes, 1)}


def _only(graph: Graph, keep: Callable[[Node], bool]) -> Graph:
    nodes = tuple(node for node in graph.nodes if keep(node))
    ids = {node.id for node in nodes}
    return replace(graph, nodes=nodes, edges=tuple(e for e in graph.edges if e.source in ids and e.target in ids))
