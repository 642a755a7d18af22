"""Graphs for other people's programs: Graphviz and Mermaid."""

from __future__ import annotations

import re

from reconciler.render.graph import MOST_NODES, Graph, Node, Style, first, numbered
from reconciler.render.safe_text import bounded, safe

_LONGEST = 80
_DOT: dict[Style, str] = {
    "create": 'fillcolor="#dafbe1"',
    "update": 'fillcolor="#fff8c5"',
    "delete": 'fillcolor="#ffebe9"',
    "blocked": 'fillcolor="#fbefff", penwidth=2',
    "unsupported": 'fillcolor="#eaeef2", style="filled,rounded,dashed"',
    "catalog": 'fillcolor="#ddf4ff"',
    "namespace": 'fillcolor="#f6f8fa"',
    "table": 'fillcolor="#ffffff"',
    "outside": 'fillcolor="#ffffff", style="filled,rounded,dashed"',
    "more": 'fillcolor="#ffffff", style="filled,rounded,dotted"',
}
_MERMAID: dict[Style, str] = {
    "create": "fill:#dafbe1,stroke:#1a7f37,color:#1f2328",
    "update": "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
    "delete": "fill:#ffebe9,stroke:#cf222e,color:#1f2328",
    "blocked": "fill:#fbefff,stroke:#8250df,stroke-width:3px,color:#1f2328",
    "unsupported": "fill:#eaeef2,stroke:#59636e,stroke-dasharray:5 3,color:#1f2328",
    "catalog": "fill:#ddf4ff,stroke:#0969da,color:#1f2328",
    "namespace": "fill:#f6f8fa,stroke:#59636e,color:#1f2328",
    "table": "fill:#ffffff,stroke:#59636e,color:#1f2328",
    "outside": "fill:#ffffff,stroke:#8c959f,stroke-dasharray:5 3,color:#1f2328",
    "more": "fill:#ffffff,stroke:#8c959f,stroke-dasharray:2 3,color:#1f2328",
}
MERMAID_TEXT, MERMAID_EDGES = 50_000, 500
"""What Mermaid draws unless it is told otherwise, and on a code host nobody can tell it."""


def dot(graph: Graph) -> str:
    graph = first(graph)
    names = numbered(graph.nodes)
    nodes = (f"  {names[n.id]} [label={_dot_text(*_shown(n))}, {_DOT[n.style]}];" for n in graph.nodes)
    edges = (
        f"  {names[e.source]} -> {names[e.target]}{f' [label={_dot_text(e.label)}]' if e.label else ''};"
        for e in graph.edges
    )
    head = (
        f"digraph reconciler {{\n  label={_dot_text(graph.title)};\n  rankdir=LR;\n"
        '  node [shape=box, style="filled,rounded", fontname="monospace", fontsize=11];\n'
        '  edge [fontname="monospace", fontsize=9];\n'
    )
    return head + "".join(f"{line}\n" for line in (*nodes, *edges)) + "}\n"


def mermaid(graph: Graph) -> str:
    """As much of it as Mermaid draws."""
    for most in (MOST_NODES, 400, 300, 200, 150, 100, 70, 50, 30, 20, 10):
        cut = first(graph, most)
        text = _mermaid(cut)
        if len(text) <= MERMAID_TEXT and len(cut.edges) <= MERMAID_EDGES:
            break
    return text


def _mermaid(graph: Graph) -> str:
    names = numbered(graph.nodes)
    nodes = (f"  {names[n.id]}[{_mermaid_text(*_shown(n))}]:::{n.style}" for n in graph.nodes)
    edges = (
        f"  {names[e.source]} -->{f'|{_mermaid_text(e.label)}|' if e.label else ''} {names[e.target]}"
        for e in graph.edges
    )
    styles = (f"  classDef {style} {_MERMAID[style]}" for style in sorted({n.style for n in graph.nodes}))
    return "flowchart LR\n" + "".join(f"{line}\n" for line in (*nodes, *edges, *styles))


def _shown(node: Node) -> tuple[str, ...]:
    return tuple(bounded(safe(line), _LONGEST) for line in node.lines)


def _dot_text(*lines: str) -> str:
    r"""A label of Graphviz reads `\N` as the node's name, and `&lt;` as `<`."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


_MERMAID_PLAIN = re.compile(r"[^A-Za-z0-9 ._:/-]")


def _mermaid_text(*lines: str) -> str:
    """Whatever is not plainly text is written as its number: quotes end a label, and others are markup."""
    return '"' + "<br/>".join(_MERMAID_PLAIN.sub(lambda m: f"#{ord(m.group())};", line) for line in lines) + '"'
