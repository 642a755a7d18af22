"""Changes of single values in the text of a YAML document. Every byte that a change does not need stays: comments,
order, quotes, indentation. A round trip through any YAML library, ruamel.yaml too, writes all of the document anew in
that library's own style, so the text is cut and pasted at the positions that the parser gives.

Some forms are not understood here (anchors, keys written with `?`): `CannotEdit` says so. What comes out is always read
again and compared with what was meant.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from yaml import YAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from reconciler.manifest.problem import Path
from reconciler.manifest.yaml_blocks import as_block_scalar
from reconciler.manifest.yaml_fast import events
from reconciler.manifest.yaml_reader import Document, documents
from reconciler.manifest.yaml_write import as_flow, as_lines, as_scalar

SPEC: Path = ("spec",)
"""Stays when it gets empty: a table must have it. Everything else that gets empty goes."""
_UNUSUAL = "it is written in a way that this program cannot change"


@dataclass(frozen=True, slots=True)
class Set:
    """The value at `path`, which may not be there yet."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Remove:
    path: Path


@dataclass(frozen=True, slots=True)
class Append:
    """At the end of the list at `path`, which may not be there yet."""

    path: Path
    values: tuple[Any, ...]


Edit = Set | Remove | Append


class CannotEdit(Exception):
    """Why the text is left as it is."""


def _elsewhere(path: Path) -> CannotEdit:
    return CannotEdit(f"{'.'.join(map(str, path))} is not where it was expected")


def edited_value(value: Any, edits: Sequence[Edit]) -> Any:
    """What a document is after the edits, as data. Raises CannotEdit."""
    value = copy.deepcopy(value)
    for edit in _ordered(edits):
        match edit:
            case Set():
                _parent(value, edit.path)[edit.path[-1]] = edit.value
            case Append():
                _parent(value, edit.path).setdefault(edit.path[-1], []).extend(edit.values)
            case Remove():
                _remove(value, edit.path)
    return value


def _parent(value: Any, path: Path) -> Any:
    for part in path[:-1]:
        if isinstance(value, dict):
            value = value.setdefault(part, {})
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            raise _elsewhere(path)
    if not isinstance(value, dict | list):
        raise _elsewhere(path)
    return value


def _remove(value: Any, path: Path) -> None:
    at = _parent(value, path)
    try:
        del at[path[-1]]
    except (LookupError, TypeError):
        raise _elsewhere(path) from None
    if not at and path[:-1] not in ((), SPEC):
        _remove(value, path[:-1])


def _ordered(edits: Sequence[Edit]) -> list[Edit]:
    """Lists grow before they shrink, and shrink from the end: then every index means what it did at the start."""
    removed = [e for e in edits if isinstance(e, Remove)]
    removed.sort(key=lambda e: [(isinstance(p, int), p if isinstance(p, int) else 0, str(p)) for p in e.path])
    grown = [e for e in edits if isinstance(e, Append)]
    return [*(e for e in edits if isinstance(e, Set)), *grown, *reversed(removed)]


def edited_text(text: str, edits: Sequence[Edit]) -> str:
    """The text of one document after the edits, read again and compared. Raises CannotEdit."""
    out = _edited(text, edits)
    meant = [edited_value(value, edits) for value in values_in(text)]
    if values_in(out) != meant:
        raise CannotEdit(_UNUSUAL)
    return out


def values_in(text: str) -> list[Any]:
    """The documents of a text, and what is wrong with it."""
    return [d.value if isinstance(d, Document) else d for d in documents(text)]


def _edited(text: str, edits: Sequence[Edit]) -> str:
    scalars: list[tuple[Node, Any]] = []
    rest: list[Edit] = []
    root = parse(text)
    for edit in _ordered(edits):
        node = root.at(edit.path) if isinstance(edit, Set) else None
        if isinstance(edit, Set) and node is not None and node.kind == "scalar" and _is_scalar(edit.value):
            scalars.append((node, edit.value))
        else:
            rest.append(edit)
    for node, value in sorted(scalars, key=lambda found: -found[0].start):
        text = _with_scalar(text, node, value)
    for edit in rest:
        text = _one(text, edit)
    return text


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | bool | int | float)


def _one(text: str, edit: Edit) -> str:
    root = parse(text)
    match edit:
        case Set():
            if root.at(edit.path) is not None:
                parent = root.need(edit.path[:-1])
                pair = next((k, v) for k, v in parent.pairs if k.text == edit.path[-1])
                return _with_value(text, *pair, edit.value, parent.flow)
            return _with_key(text, root, edit.path, edit.value)
        case Append():
            if root.at(edit.path) is None:
                return _with_key(text, root, edit.path, list(edit.values))
            return _with_items(text, root.need(edit.path), edit.values)
        case Remove():
            return _without(text, root, edit.path)


# positions


@dataclass(slots=True)
class Node:
    kind: Literal["scalar", "mapping", "sequence"]
    start: int
    end: int
    """Of the last character that belongs to it, plus one: comments that follow do not."""
    flow: bool = False
    text: str = ""
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)

    def at(self, path: Path) -> Node | None:
        node: Node | None = self
        for part in path:
            if node is None:
                return None
            if isinstance(part, int):
                node = node.items[part] if part < len(node.items) else None
            else:
                node = next((v for k, v in node.pairs if k.text == part and k.kind == "scalar"), None)
        return node

    def need(self, path: Path) -> Node:
        node = self.at(path)
        if node is None:
            raise _elsewhere(path)
        return node


def parse(text: str) -> Node:
    """The first document of a text. Raises CannotEdit for one with anchors: what is changed in one place would change
    in others too."""
    take = events(text)
    try:
        event = take()
        while event.__class__ is not DocumentStartEvent:
            event = take()
        return _node(text, take, take())
    except YAMLError as error:
        raise CannotEdit(_UNUSUAL) from error


def _node(text: str, take: Any, event: Any) -> Node:
    if event.__class__ is AliasEvent or event.anchor is not None:
        raise CannotEdit("it has anchors or aliases")
    start, end = event.start_mark.index, event.end_mark.index
    if event.__class__ is ScalarEvent:
        if event.style in ("|", ">"):
            end = start + len(text[start:end].rstrip())
        return Node("scalar", start, end, text=event.value)
    flow = bool(event.flow_style)
    node = Node("mapping" if event.__class__ is MappingStartEvent else "sequence", start, start, flow)
    last = start
    inner: Any = take()
    while inner.__class__ not in (MappingEndEvent, SequenceEndEvent):
        child = _node(text, take, inner)
        last = max(last, child.end)
        if event.__class__ is SequenceStartEvent:
            node.items.append(child)
        else:
            value = _node(text, take, take())
            last = max(last, value.end)
            node.pairs.append((child, value))
        inner = take()
    node.end = _end(inner) if flow else last
    return node


def _end(event: Any) -> int:
    return int(event.end_mark.index)


# cutting and pasting


def _with_scalar(text: str, node: Node, value: Any) -> str:
    old = text[node.start : node.end]
    block = as_block_scalar(old, value) if old[:1] in ("|", ">") else None
    if block is not None:
        return text[: node.start] + block + text[node.end :]
    new = as_scalar(value, old[:1] if old[:1] in ("'", '"') else "")
    before = " " if node.start == node.end and text[node.start - 1 : node.start] == ":" else ""
    return text[: node.start] + before + new + text[node.end :]


def _with_value(text: str, key: Node, old: Node, value: Any, flow: bool) -> str:
    """In the place of the old one; a list goes on lines of its own, where it can."""
    colon = text.index(":", key.end)
    rest = text[max(old.end, colon + 1) :]
    if flow or not isinstance(value, list) or not value:
        return text[: colon + 1] + " " + as_flow(value) + rest
    indent = "\n" + " " * _column(text, key.start)
    return text[: colon + 1] + "".join(indent + line for line in as_lines(value).rstrip("\n").split("\n")) + rest


def _with_key(text: str, root: Node, path: Path, value: Any) -> str:
    parent = root.at(path[:-1])
    if parent is None:
        return _with_key(text, root, path[:-1], {path[-1]: value})
    if parent.kind != "mapping":
        raise CannotEdit(f"{'.'.join(map(str, path[:-1]))} is not a mapping")
    new = {path[-1]: value}
    if parent.flow:
        at = max(parent.pairs[-1][0].end, parent.pairs[-1][1].end) if parent.pairs else parent.start + 1
        return _pasted(text, at, (", " if parent.pairs else "") + as_flow(new)[1:-1])
    key, last = parent.pairs[0][0], parent.pairs[-1]
    return _with_lines(text, max(last[0].end, last[1].end), as_lines(new), _column(text, key.start))


def _with_items(text: str, node: Node, values: Sequence[Any]) -> str:
    if node.kind != "sequence":
        raise CannotEdit("a list was expected")
    if node.flow:
        at = node.items[-1].end if node.items else node.start + 1
        return _pasted(text, at, (", " if node.items else "") + as_flow(list(values))[1:-1])
    return _with_lines(text, node.items[-1].end, as_lines(list(values)), _column(text, _dash(text, node.items[0])))


def _pasted(text: str, at: int, new: str) -> str:
    return text[:at] + new + text[at:]


def _with_lines(text: str, after: int, lines: str, column: int) -> str:
    """Below the line that ends what is there; a comment at the end of that line stays on it."""
    at = _line_end(text, after)
    new = "".join(f"\n{' ' * column}{line}" for line in lines.rstrip("\n").split("\n"))
    return _pasted(text, at, new)


def _without(text: str, root: Node, path: Path) -> str:
    root.need(path)
    parent = root.need(path[:-1])
    count = len(parent.pairs) if parent.kind == "mapping" else len(parent.items)
    if count == 1 and path[:-1] == SPEC:
        return _with_empty(text, root)
    if count == 1 and len(path) > 1:
        return _without(text, root, path[:-1])
    if parent.kind == "sequence":
        number = path[-1]
        assert isinstance(number, int)
        spans = [(i.start, i.end) for i in parent.items]
        return _without_span(text, parent, spans, number, None if parent.flow else _dash(text, parent.items[number]))
    number = next(n for n, (k, _) in enumerate(parent.pairs) if k.text == path[-1])
    spans = [(k.start, max(k.end, v.end)) for k, v in parent.pairs]
    return _without_span(text, parent, spans, number, None if parent.flow else spans[number][0])


def _without_span(text: str, parent: Node, spans: list[tuple[int, int]], number: int, block_start: int | None) -> str:
    start, end = spans[number]
    if block_start is None:
        if number > 0:
            return text[: spans[number - 1][1]] + text[end:]
        return text[:start] + text[spans[1][0] :]
    line = text.rfind("\n", 0, block_start) + 1
    if text[line:block_start].strip():  # The first key of a list's item: it shares its line with the dash.
        if parent.kind == "sequence" or number + 1 == len(spans) or text[line:block_start].strip(" -"):
            raise CannotEdit("it shares its line with something else")
        return text[:start] + text[spans[number + 1][0] :]
    return text[:line] + text[_line_end(text, end) + 1 :]


def _with_empty(text: str, root: Node) -> str:
    key, value = next((k, v) for k, v in root.pairs if k.text == SPEC[0])
    if value.flow:
        return text[: value.start] + "{}" + text[value.end :]
    colon = text.index(":", key.end)
    return text[: colon + 1] + " {}" + text[_line_end(text, value.end) :]


def _dash(text: str, item: Node) -> int:
    at = item.start - 1
    while at >= 0 and text[at] in " \n":
        at -= 1
    if at < 0 or text[at] != "-":
        raise CannotEdit("an item of a list is not beside its dash")
    return at


def _column(text: str, at: int) -> int:
    line = text.rfind("\n", 0, at) + 1
    if text[line:at].strip(" -"):
        raise CannotEdit(_UNUSUAL)
    return at - line


def _line_end(text: str, after: int) -> int:
    """Where the line ends. Nothing but a comment may be between."""
    end = text.find("\n", after)
    end = len(text) if end < 0 else end
    rest = text[after:end].strip()
    if rest and not rest.startswith("#"):
        raise CannotEdit("it shares its line with something else")
    return end
