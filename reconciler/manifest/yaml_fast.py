"""The usual case, fast: events of one document to plain data, without positions.

Anything out of the ordinary (anchors, tags, merge keys, duplicate or non-string keys) raises `NeedsCare`; then
`yaml_careful` reads the same document again and has the last word. A property test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yaml._yaml import CParser
from yaml.events import MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

from reconciler.manifest.yaml_scalars import Value, _cache, resolve

MAX_DEPTH = 100
MAX_NODES = 100_000
"""Per document. A hostile megabyte of `{a,a,a}` is stopped here; a table of 10,000 columns is not."""


def events(text: str) -> Callable[[], Any]:
    """Each call gives the next event; None after the last. libyaml's parser alone: no composer, no constructor."""
    return CParser(text).get_event


class NeedsCare(Exception):
    """The document uses something that the fast builder does not do."""


class TooMuch(Exception):
    """The document is past a limit: it is not read again, and not to its end."""

    def __init__(self, code: str, event: Any) -> None:
        super().__init__(code)
        self.code = code
        self.line: int = event.start_mark.line
        self.column: int = event.start_mark.column


LIMITS = {
    "M108": (f"nested more than {MAX_DEPTH} levels deep", "flatten the document"),
    "M109": (f"the document has more than {MAX_NODES:,} values", "split it into several documents, use fewer aliases"),
}


def builder(next_event: Callable[[], Any]) -> Callable[[Any], Value]:
    """A function from the event that opens a root node to that node's data; it consumes the events up to its end.

    One builder serves a whole stream: its inner functions refer to each other, and one set per document would be
    garbage that only the cycle collector finds.
    """
    budget = MAX_NODES
    cached = _cache
    keys: set[str] = set()

    def scalar(event: Any) -> Value:
        if event.anchor is not None or event.tag is not None:
            raise NeedsCare
        text: str = event.value
        if event.implicit[0]:
            return cached[text] if text in cached else resolve(text)
        return text

    def key_of(event: Any) -> str:
        """A key that is not known yet to be a string."""
        if event.__class__ is not ScalarEvent:
            raise NeedsCare
        key = scalar(event)
        if not isinstance(key, str):
            raise NeedsCare
        if event.implicit[0] and len(keys) < MAX_NODES:
            keys.add(key)
        return key

    def mapping(event: Any, depth: int) -> Value:
        nonlocal budget
        if event.anchor is not None or event.tag is not None:
            raise NeedsCare
        if depth > MAX_DEPTH:
            raise TooMuch("M108", event)
        result: dict[str, Value] = {}
        while True:
            event = next_event()
            if event.__class__ is MappingEndEvent:
                return result
            if event.__class__ is ScalarEvent and event.implicit[0] and event.anchor is None and event.value in keys:
                key = event.value
            else:
                key = key_of(event)
            if key in result:
                raise NeedsCare
            budget -= 2
            if budget < 0:
                raise TooMuch("M109", event)
            event = next_event()
            if event.__class__ is ScalarEvent:
                if event.anchor is not None or event.tag is not None:
                    raise NeedsCare
                text = event.value
                if event.implicit[0]:
                    result[key] = cached[text] if text in cached else resolve(text)
                else:
                    result[key] = text
            else:
                result[key] = node(event, depth + 1)

    def sequence(event: Any, depth: int) -> Value:
        nonlocal budget
        if event.anchor is not None or event.tag is not None:
            raise NeedsCare
        if depth > MAX_DEPTH:
            raise TooMuch("M108", event)
        result: list[Value] = []
        while True:
            event = next_event()
            kind = event.__class__
            if kind is SequenceEndEvent:
                return result
            budget -= 1
            if budget < 0:
                raise TooMuch("M109", event)
            if kind is MappingStartEvent:
                result.append(mapping(event, depth + 1))
            else:
                result.append(scalar(event) if kind is ScalarEvent else node(event, depth + 1))

    def node(event: Any, depth: int) -> Value:
        kind = event.__class__
        if kind is MappingStartEvent:
            return mapping(event, depth)
        if kind is SequenceStartEvent:
            return sequence(event, depth)
        if kind is ScalarEvent:
            return scalar(event)
        raise NeedsCare

    def build(first: Any) -> Value:
        nonlocal budget
        budget = MAX_NODES
        return node(first, 1)

    return build
