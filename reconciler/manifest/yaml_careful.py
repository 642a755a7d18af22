"""The careful reader of one YAML document: every rule, every position, and diagnostics.

It builds a tree of located nodes from events, never through PyYAML's composer (whose C form overflows the stack on deep
input). Aliases share nodes; turning the tree into data counts every expanded node against the document's budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from reconciler.core.invisible import invisible_pattern
from reconciler.manifest.problem import Path
from reconciler.manifest.yaml_fast import LIMITS, MAX_DEPTH, MAX_NODES, events
from reconciler.manifest.yaml_scalars import MERGE_TAG, STR_TAG, ScalarValue, Value, describe, quoted, resolve, tag_of


@dataclass(slots=True)
class Node:
    kind: Literal["scalar", "mapping", "sequence"]
    line: int
    column: int
    text: str = ""
    plain: bool = False
    items: Sequence[Node] = ()
    pairs: Sequence[tuple[Node, Node]] = ()
    entries: dict[str, tuple[Node, Node]] | None = None
    """Keys after merging; set when the node is first turned into data, or first looked into."""
    open: bool = True
    width: int = 0
    """Of a scalar, as it is written; 0 when it is on several lines."""
    hidden: bool = False
    """It is written with a character that nobody sees; as an escape, it is seen."""

    def column_of(self, offset: int) -> int:
        """Of a character of a scalar. Where escapes, folds or a tag move the characters, that of the scalar."""
        quote = 0 if self.plain else 1
        as_written = self.width == len(self.text) + 2 * quote
        return self.column + quote + offset if as_written else self.column

    def scalar(self) -> ScalarValue:
        return resolve(self.text) if self.plain else self.text


@dataclass(frozen=True, slots=True)
class Flaw:
    """A diagnostic without its file."""

    code: str
    line: int
    column: int
    message: str
    hint: str = ""


@dataclass(slots=True)
class Careful:
    root: Node | None = None
    value: Value = None
    flaws: list[Flaw] = field(default_factory=list)
    stopped: bool = False
    """The document is too large or too deep: the rest of it was not read."""

    def locate(self, path: Path) -> tuple[Node | None, Node | None]:
        """Key node and value node at `path`; the nearest existing ancestor when it is not there."""
        key, node = None, self.root
        for part in path:
            if node is None:
                break
            if isinstance(part, int):
                if node.kind != "sequence" or part >= len(node.items):
                    break
                key, node = None, node.items[part]
            else:
                if node.entries is None:  # Only where there was nothing to merge and no key twice.
                    node.entries = {k.text: (k, v) for k, v in node.pairs if k.kind == "scalar"}
                found = node.entries.get(part)
                if found is None:
                    break
                key, node = found
        return key, node


class _Stop(Exception):
    pass


def read_careful(text: str, line: int, *, positions_only: bool = False) -> Careful:
    """The first document of `text`, whose first line is line `line` (from 0) of the file.

    `positions_only`: the fast builder has the document's data already, so it has nothing that needs care.
    """
    result = Careful()
    reader = _Reader(text, line, result)
    try:
        result.root = reader.document()
        if result.root is not None and not positions_only:
            result.value = _Expander(result).value(result.root, 1)
    except _Stop:
        result.stopped = True
    except yaml.YAMLError:
        result.value = None  # the stream reader reports syntax errors itself
    return result


class _Reader:
    def __init__(self, text: str, line: int, result: Careful) -> None:
        self.next = events(text)
        self.text = text
        self.invisible = invisible_pattern(text)
        self.line = line + 1
        self.result = result
        self.anchors: dict[str, Node] = {}
        self.nodes = 0

    def document(self) -> Node | None:
        while True:
            event = self.next()
            if event is None or event.__class__ is StreamEndEvent:
                return None
            if event.__class__ is DocumentStartEvent:
                return self.node(self.next(), 1)

    def flaw(self, code: str, event: Any, message: str, hint: str = "") -> None:
        mark = event.start_mark
        self.result.flaws.append(Flaw(code, mark.line + self.line, mark.column + 1, message, hint))

    def node(self, event: Any, depth: int) -> Node:
        kind = event.__class__
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.flaw(
                "M109", event, f"the document has more than {MAX_NODES:,} values", "split it into several documents"
            )
            raise _Stop
        if depth > MAX_DEPTH:
            self.flaw("M108", event, *LIMITS["M108"])
            raise _Stop
        if kind is AliasEvent:
            return self.alias(event)
        mark = event.start_mark
        node = Node("scalar", mark.line + self.line, mark.column + 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        if kind is ScalarEvent:
            node.text = event.value
            node.plain = self.is_plain(event)
            end = event.end_mark
            node.width = end.column - mark.column if end.line == mark.line else 0
            if self.invisible is not None:
                node.hidden = self.invisible.search(self.text, mark.index, end.index) is not None
        elif kind is MappingStartEvent:
            node.kind = "mapping"
            self.check_tag(event, "tag:yaml.org,2002:map")
            node.pairs = pairs = []
            while (child := self.next()).__class__ is not MappingEndEvent:
                key = self.node(child, depth + 1)
                pairs.append((key, self.node(self.next(), depth + 1)))
        else:
            node.kind = "sequence"
            self.check_tag(event, "tag:yaml.org,2002:seq")
            node.items = items = []
            while (child := self.next()).__class__ is not SequenceEndEvent:
                items.append(self.node(child, depth + 1))
        node.open = False
        return node

    def alias(self, event: Any) -> Node:
        target = self.anchors.get(event.anchor)
        if target is None:
            self.flaw(
                "M110", event, f"the alias *{event.anchor} has no anchor &{event.anchor} before it in this document"
            )
        elif target.open:
            self.flaw(
                "M111",
                event,
                f"the alias *{event.anchor} is inside the value that it names",
                "a manifest cannot contain itself",
            )
        else:
            return target
        mark = event.start_mark
        return Node("scalar", mark.line + self.line, mark.column + 1, plain=True, open=False)

    def is_plain(self, event: Any) -> bool:
        """True when YAML's implicit rules give the scalar its type. `!!str` (and `!`) make it a string."""
        if event.tag is None or event.tag == "!":
            return bool(event.implicit[0]) and event.tag is None
        self.check_tag(event, STR_TAG)
        return False

    def check_tag(self, event: Any, allowed: str) -> None:
        if event.tag is not None and event.tag not in (allowed, "!"):
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.flaw("M112", event, f"the tag {shown} is not allowed here", "only !!str is known; remove the tag")


class _Expander:
    """Located nodes to data: merges, duplicate keys, and a bound on what aliases multiply to."""

    def __init__(self, result: Careful) -> None:
        self.result = result
        self.budget = MAX_NODES

    def flaw(self, code: str, node: Node, message: str, hint: str = "") -> None:
        self.result.flaws.append(Flaw(code, node.line, node.column, message, hint))

    def value(self, node: Node, depth: int) -> Value:
        self.budget -= 1
        if self.budget < 0:
            self.flaw("M109", node, *LIMITS["M109"])
            raise _Stop
        if depth > MAX_DEPTH:
            self.flaw("M108", node, *LIMITS["M108"])
            raise _Stop
        if node.kind == "scalar":
            return node.scalar()
        if node.kind == "sequence":
            return [self.value(item, depth + 1) for item in node.items]
        if node.entries is None:
            node.entries = self.entries(node)
        self.budget -= len(node.entries)
        return {key: self.value(value, depth + 1) for key, (_, value) in node.entries.items()}

    def entries(self, node: Node) -> dict[str, tuple[Node, Node]]:
        own: dict[str, tuple[Node, Node]] = {}
        merged: dict[str, tuple[Node, Node]] = {}
        for key, value in node.pairs:
            if key.kind == "scalar" and key.plain and tag_of(key.text) == MERGE_TAG:
                self.merge(value, merged)
                continue
            name = key.scalar() if key.kind == "scalar" else None
            if not isinstance(name, str):
                self.bad_key(key)
            elif name in own:
                first = own[name][0]
                self.flaw(
                    "M106",
                    key,
                    f"the key {name!r} is given twice; first on line {first.line}, column {first.column}",
                    "remove one of them",
                )
            else:
                own[name] = (key, value)
        return {**merged, **own} if merged else own

    def bad_key(self, key: Node) -> None:
        if key.kind != "scalar":
            self.flaw("M107", key, f"a key must be a string, not a {key.kind}")
        elif not key.text:
            self.flaw("M107", key, "a key must not be empty")
        else:
            self.flaw("M107", key, f"the key {key.text} is read as {describe(key.text)}", f"write {quoted(key.text)}")

    def merge(self, value: Node, into: dict[str, tuple[Node, Node]]) -> None:
        """YAML 1.1: the mapping's own keys win, and an earlier mapping of a list wins over a later one."""
        sources = value.items if value.kind == "sequence" else [value]
        for source in sources:
            if source.kind != "mapping" or source.open:
                self.flaw("M113", source, "<< needs a mapping, or a list of mappings", 'write "<<" if a key is meant')
                continue
            if source.entries is None:
                source.entries = self.entries(source)
            self.budget -= len(source.entries)
            if self.budget < 0:
                self.flaw("M109", source, *LIMITS["M109"])
                raise _Stop
            for name, entry in source.entries.items():
                into.setdefault(name, entry)
