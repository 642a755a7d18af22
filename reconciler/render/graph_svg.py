"""A graph as SVG, laid out by us. Text is text and never markup; there is no script and nothing from the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

from reconciler.render.assets import asset
from reconciler.render.graph import Graph, Node, first
from reconciler.render.graph_layout import places
from reconciler.render.safe_text import bounded, safe

_WIDEST = 40
_CHARACTER, _LINE, _PAD, _GAP_X, _GAP_Y, _EDGE = 7.3, 16, 10, 70, 16, 10
Link = Callable[[Node], str | None]


def svg(graph: Graph) -> str:
    """A file of its own, light or dark as its reader is."""
    graph = first(graph)
    style = f"<style>{asset('colours.css')}{asset('graph.css')}</style>"
    text = drawing(graph, style=style)
    return text.encode("ascii", "xmlcharrefreplace").decode() + "\n"


def drawing(graph: Graph, link: Link = lambda node: None, style: str = "") -> str:
    """The element. In a page the styles are those of the page."""
    spots = _Spots.of(graph)
    edges = "".join(_edge(spots, e.source, e.target, e.label) for e in graph.edges)
    nodes = "".join(_node(spots, node, link(node)) for node in graph.nodes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" aria-label="{_text(graph.title)}" '
        f'width="{spots.wide:.0f}" height="{spots.high:.0f}" viewBox="0 0 {spots.wide:.0f} {spots.high:.0f}">'
        f"{style}<title>{_text(graph.title)}</title>{_ARROW}{edges}{nodes}</svg>"
    )


_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z" class="arrow"/></marker></defs>'
)


@dataclass(frozen=True)
class _Spots:
    """The box of every node: x, y, width, height."""

    boxes: dict[str, tuple[float, float, float, float]]
    wide: float
    high: float

    @staticmethod
    def of(graph: Graph) -> _Spots:
        """A column is as wide as its widest text, a row as high as the node with the most lines."""
        at = places([n.id for n in graph.nodes], [(e.source, e.target) for e in graph.edges])
        high = max((len(n.lines) for n in graph.nodes), default=1) * _LINE + 2 * _PAD
        widths: dict[int, float] = {}
        for node in graph.nodes:
            column = at[node.id][0]
            widths[column] = max(widths.get(column, 0.0), max(_width(_cut(x)) for x in node.lines) + 2 * _PAD)
        lefts, left = {}, float(_EDGE)
        for column, width in sorted(widths.items()):
            lefts[column] = left
            left += width + _GAP_X
        boxes = {
            name: (lefts[column], _EDGE + row * (high + _GAP_Y), widths[column], float(high))
            for name, (column, row) in at.items()
        }
        bottom = max((y + h for _, y, _, h in boxes.values()), default=0.0)
        return _Spots(boxes, max(left - _GAP_X, 0.0) + _EDGE, bottom + _EDGE)


def _node(spots: _Spots, node: Node, link: str | None) -> str:
    x, y, w, h = spots.boxes[node.id]
    lines = "".join(
        f'<text x="{x + _PAD:.1f}" y="{y + _PAD + 12 + i * _LINE:.1f}"{_WEIGHT if i == 0 else ""}>'
        f"{_text(_cut(line))}</text>"
        for i, line in enumerate(node.lines)
    )
    whole = " ".join(bounded(line) for line in node.lines)
    box = (
        f'<g class="node {node.style}"><title>{_text(whole)}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="6"/>{lines}</g>'
    )
    return box if link is None else f'<a href="{escape(link)}">{box}</a>'


_WEIGHT = ' class="name"'


def _edge(spots: _Spots, source: str, target: str, label: str) -> str:
    """From the right side of one to the left side of the other; backwards only where a file has a circle."""
    x, y, w, h = spots.boxes[source]
    tx, ty, _, th = spots.boxes[target]
    x, y, ty = x + w, y + h / 2, ty + th / 2
    bend = max(30.0, (tx - x) / 2)
    line = f"M{x:.1f} {y:.1f}C{x + bend:.1f} {y:.1f} {tx - bend:.1f} {ty:.1f} {tx:.1f} {ty:.1f}"
    told = f'<text x="{tx - 8:.1f}" y="{ty - 4:.1f}" text-anchor="end" class="label">{_text(label)}</text>'
    return f'<path d="{line}" class="edge" marker-end="url(#arrow)"/>{told if label else ""}'


def _cut(line: str) -> str:
    """The end of a name says more than its middle."""
    line = safe(line)
    if _cells(line) <= _WIDEST:
        return line
    return f"{''.join(_fitting(line, _WIDEST * 3 // 5))}…{''.join(_fitting(line[::-1], _WIDEST * 2 // 5 - 1))[::-1]}"


def _fitting(line: str, cells: int) -> Iterator[str]:
    for char in line:
        cells -= _cells(char)
        if cells < 0:
            return
        yield char


def _cells(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def _width(text: str) -> float:
    return _cells(text) * _CHARACTER


def _text(value: str) -> str:
    return escape(safe(value))
