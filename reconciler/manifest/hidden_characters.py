"""Characters that a reviewer does not see, where they change what a manifest says.

The YAML reader ends a line at U+0085, U+2028 and U+2029, as YAML 1.1 has it; git, editors and YAML 1.2 do not.
Characters that turn the direction of text show a line in another order. Names and keys may look equal and differ.
Whoever means such a character writes it as an escape in double quotes, which everybody sees.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator

import yaml
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from reconciler.manifest.yaml_careful import Flaw
from reconciler.manifest.yaml_fast import events

_MOVES = "\x85\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ANYWHERE = re.compile(f"[{_MOVES}]")
"""Line breaks and changes of direction: outside of quotes nowhere."""
_HIDDEN = re.compile(
    f"[{_MOVES}\xa0\xad\u034f\u0600-\u0605\u06dd\u070f\u08e2\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202f"
    "\u205f-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Formats, fillers, and spaces that are not the space."""
_NAMES = frozenset(
    {"name", "catalog", "id", "allow", "renamedFrom", "column", "columns", "apiVersion", "kind", "state", "type"}
    | {"owner", "ignore", "match", "except", "ignoreDifferences"}
)
"""Keys whose values are names and words."""
_TEXTS = frozenset({"properties", "config", "schemaMetadata", "values", "description", "comment"})
"""Keys below which values are texts, whatever their own keys are called."""
_FEW = 20


def hidden_characters(text: str) -> list[Flaw]:
    if text.isascii() or not _HIDDEN.search(text):
        return []
    names, quoted = _spans(text)
    starts = [start for start, _ in quoted]
    found = []
    for match in _ANYWHERE.finditer(text):
        before = bisect_right(starts, match.start()) - 1
        if before < 0 or quoted[before][1] <= match.start():
            found.append((match.start(), "outside of quotes"))
    for start, end in names:
        found += [(match.start(), "in a key or a name") for match in _HIDDEN.finditer(text, start, end)]
    return [_flaw(text, at, where) for at, where in sorted(dict(reversed(found)).items())[:_FEW]]


def _flaw(text: str, at: int, where: str) -> Flaw:
    name = unicodedata.name(text[at], "NEXT LINE" if text[at] == "\x85" else "no name").lower()
    escape = f"\\u{ord(text[at]):04x}" if ord(text[at]) < 0x10000 else f"\\U{ord(text[at]):08x}"
    hint = f'remove it; if it is meant, write "{escape}" in double quotes, where everybody sees it'
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    message = f"the invisible character U+{ord(text[at]):04X} ({name}) {where}"
    return Flaw("M118", text.count("\n", 0, at) + 1, column, message, hint)


def _spans(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Where keys and names stand, and what is in quotes. After a syntax error nothing is."""
    names: list[tuple[int, int]] = []
    quoted: list[tuple[int, int]] = []
    for event, is_name in _scalars(text):
        assert event.start_mark is not None
        assert event.end_mark is not None
        span = event.start_mark.index, event.end_mark.index
        if is_name:
            names.append(span)
        if event.style in ("'", '"'):
            quoted.append(span)
    return names, quoted


def _scalars(text: str) -> Iterator[tuple[ScalarEvent, bool]]:
    """Each scalar, and whether it is a key, or a name or word by the keys that it stands below."""
    next_event = events(text)
    kinds: list[bool] = []  # Of the collections that are open: is it a mapping,
    names: list[bool | None] = []  # and are values in it names? None: texts.
    key: list[str | None] = []  # The key that waits for its value.
    try:
        while (event := next_event()) is not None:
            in_mapping = bool(kinds) and kinds[-1]
            is_key = in_mapping and key[-1] is None
            here = _are_names(names[-1], key[-1]) if in_mapping else bool(names) and names[-1]
            if isinstance(event, ScalarEvent):
                yield event, is_key or bool(here)
            if isinstance(event, MappingStartEvent | SequenceStartEvent):
                kinds.append(isinstance(event, MappingStartEvent))
                names.append(here)
                key.append(None)
                continue
            if isinstance(event, MappingEndEvent | SequenceEndEvent):
                kinds.pop(), names.pop(), key.pop()
            elif not isinstance(event, ScalarEvent | AliasEvent):
                continue
            if kinds and kinds[-1]:
                waiting = key[-1] is None
                key[-1] = (event.value if isinstance(event, ScalarEvent) else "") if waiting else None
    except yaml.YAMLError:
        return


def _are_names(outside: bool | None, key: str | None) -> bool | None:
    if outside is None or key in _TEXTS:
        return None
    return key in _NAMES
