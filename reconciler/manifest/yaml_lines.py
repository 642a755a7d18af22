"""A document whose every line stands for itself, read line by line: many times faster than by events, because manifests
repeat their lines and a line that was read once is known.

Only the block structure is decided here: which line belongs to which mapping or list. What a line says is read by the
usual reader. Whatever could mean something else in its place than alone (block scalars, values on several lines,
anchors, tags, tabs, other line ends) raises `NotByLines`, and the usual reader has the document. A property test holds
the two equal.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, NamedTuple

from reconciler.manifest.yaml_fast import MAX_DEPTH, MAX_NODES
from reconciler.manifest.yaml_reader import Document, documents
from reconciler.manifest.yaml_scalars import Value, resolve

_FIRST = re.compile(r"""[A-Za-z0-9_"'\[{]""")
"""How the content of a line may begin. Not with what has a meaning in column 1 only, or with a block scalar."""
_OPENS = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*): *")
_WORDS = re.compile(r"( *)(- +)?([A-Za-z_][A-Za-z0-9_.-]*): +([A-Za-z0-9_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*) *")
"""A key and a value without anything that YAML gives a meaning: the most frequent line, read without its parser."""
_FLOW = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*): +([\[{][A-Za-z0-9_./,:{}\[\] -]*) *")
_WORD = re.compile(r"[A-Za-z0-9_./-]+(?: [A-Za-z0-9_./-]+)*")
"""The same inside of brackets: with its words in quotes it is JSON, or something that is left to YAML's parser."""
_BLOCK_SCALAR = re.compile(r": +[|>]")
_DEPTH = MAX_DEPTH // 2 - 2
"""Of the lines, and again inside a line: together within the limit of the usual reader."""
_REMEMBERED = 50_000
_LONG = 400
"""Longer lines are not remembered, and YAML's parser reads them: it takes no key of more than 1,024 characters."""


class Line(NamedTuple):
    indent: int
    is_item: bool
    """It begins with the dash of a list."""
    column: int
    """Of its content."""
    key: str | None
    """None for an item that has none."""
    value: Value
    """What is said on the line."""
    opens: bool
    """Lines below may say it instead."""


class NotByLines(Exception):
    """The document has something that the lines alone do not tell."""


class LineReader:
    """Remembers the lines of all documents that it reads. Values are shared between documents: never change them."""

    def __init__(self) -> None:
        self._known: dict[str, Line | None] = {}

    def read(self, text: str) -> dict[str, Value] | None:
        """The mapping that one document is, without its marker line; None when there is nothing. The text has no
        tabs and no line ends but `\\n`. Raises NotByLines."""
        if len(text) > MAX_NODES:  # A value takes a character at least: so the limit of values is kept.
            raise NotByLines
        known = self._known
        root: dict[str, Value] = {}
        at = 0
        inner: Any = root
        stack: list[tuple[int, Any]] = [(at, inner)]
        waiting: str | None = None
        for line in text.split("\n"):
            said = known[line] if line in known else self._line(line)
            if said is None:
                continue
            indent, is_item, column, key, value, opens = said
            if waiting is not None and (indent > at or (is_item and indent == at)):
                below: Any = [] if is_item else {}
                inner[waiting] = below
                at, inner = indent, below
                stack.append((at, inner))
                if len(stack) > _DEPTH:
                    raise NotByLines
            else:
                while indent < at or (indent == at and not is_item and inner.__class__ is list):
                    stack.pop()
                    at, inner = stack[-1]
                if indent != at or (inner.__class__ is list) is not is_item:
                    raise NotByLines
            waiting = None
            if is_item:
                if key is None:
                    inner.append(value)
                    continue
                entries: dict[str, Value] = {}
                inner.append(entries)
                at, inner = column, entries
                stack.append((at, inner))
            if key is None or key in inner:
                raise NotByLines
            inner[key] = value
            if opens:
                waiting = key
        return root or None

    def _line(self, text: str) -> Line | None:
        line = _read_line(text)
        if len(text) < _LONG:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[text] = line
        return line


def _read_line(text: str) -> Line | None:
    """None for an empty one, and for a comment."""
    simple = _WORDS.fullmatch(text) if len(text) < _LONG else None
    if simple is not None and isinstance(resolve(simple[3]), str):
        dash, key, value = simple.group(2, 3, 4)
        return Line(simple.end(1), dash is not None, simple.start(3), key, resolve(value), False)
    content = text.lstrip(" ")
    if not content or content[0] == "#":
        return None
    indent = len(text) - len(content)
    is_item = content.startswith("- ")
    if is_item:
        content = content[2:].lstrip(" ")
    return Line(indent, is_item, len(text) - len(content), *_read_content(content))


def _read_content(content: str) -> tuple[str | None, Value, bool]:
    """Key, value, and whether it opens."""
    if not _FIRST.match(content) or _BLOCK_SCALAR.search(content):
        raise NotByLines
    if content.count("[") + content.count("{") > _DEPTH:
        raise NotByLines
    if len(content) < _LONG:
        opening = _OPENS.fullmatch(content)
        if opening is not None and isinstance(resolve(opening[1]), str):
            return opening[1], None, True
        flow = _FLOW.fullmatch(content)
        if flow is not None and isinstance(resolve(flow[1]), str):
            with suppress(ValueError):
                return flow[1], _flow(flow[2]), False
    found = list(documents(content))
    if len(found) != 1 or not isinstance(found[0], Document) or found[0].was_careful:
        raise NotByLines
    value = found[0].value
    if isinstance(value, dict) and content[0] != "{":
        for key, said in value.items():  # One line has one entry.
            return key, said, False
    return None, value, False


def _flow(text: str) -> Value:
    """Raises ValueError for what is not JSON with words."""
    if ":" in text and text.count(":") != text.count(": "):
        raise ValueError
    value: Value = _DECODER.decode(_WORD.sub(_quoted, text))
    return value


def _quoted(word: re.Match[str]) -> str:
    text = word[0]
    value = resolve(text)
    if text[0] == "-":  # It may be the dash of a list, which has no place there.
        raise ValueError
    return f'"{text}"' if isinstance(value, str) else json.dumps(value)


def _once(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError
    return out


_DECODER = json.JSONDecoder(object_pairs_hook=_once)
