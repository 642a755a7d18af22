"""Characters that a reviewer does not see, where they change what a manifest says.

The YAML reader ends a line at U+0085, U+2028 and U+2029, as YAML 1.1 has it; git, editors and YAML 1.2 do not.
Characters that turn the direction of text show a line in another order. Names and keys may look equal and differ.
Whoever means such a character writes it as an escape in double quotes, which everybody sees.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator

import yaml
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from reconciler.core.invisible import invisible_in, invisible_pattern
from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.yaml_careful import Careful, Flaw
from reconciler.manifest.yaml_fast import events
from reconciler.manifest.yaml_scalars import Value

_MOVES = "\x85\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ANYWHERE = re.compile(f"[{_MOVES}]")
"""Line breaks and changes of direction: outside of quotes nowhere."""
_NAMES = frozenset(
    {"name", "catalog", "id", "allow", "renamedFrom", "column", "columns", "apiVersion", "kind", "state", "type"}
    | {"owner", "ignore", "match", "except", "ignoreDifferences", "catalogs", "environments", "prefixes", "location"}
    | {"from", "key", "notNull", "orderBy", "table", "unique"}
    | {"path", "root", "uri", "endpoint", "api_path", "oauth2_server_uri", "warehouse", "catalog_id", "region"}
)
"""Keys whose values are names, words and addresses."""
_TEXTS = frozenset({"properties", "config", "schemaMetadata", "values", "description", "comment"})
"""Keys below which values are texts, whatever their own keys are called."""
_FEW = 20


def hidden_characters(text: str) -> list[Flaw]:
    hidden = invisible_pattern(text)
    if hidden is None:
        return []
    names, quoted = _spans(text)
    starts = [start for start, _ in quoted]
    found = []
    for match in _ANYWHERE.finditer(text):
        before = bisect_right(starts, match.start()) - 1
        if before < 0 or quoted[before][1] <= match.start():
            found.append((match.start(), "outside of quotes"))
    for start, end in names:
        found += [(match.start(), "in a key or a name") for match in hidden.finditer(text, start, end)]
    return [_flaw(text, at, where) for at, where in sorted(dict(reversed(found)).items())[:_FEW]]


def hidden_names(value: Value, careful: Callable[[], Careful]) -> Iterator[Problem]:
    """The same for a document as it is used: a name may come from an alias, a variable or another document, where what
    is invisible was in a text. It counts as seen only if it stands at the place of the name itself, as an escape."""
    for path, name, is_key in _names(value, (), False):
        if hidden := invisible_in(name):
            key, node = careful().locate(path)
            target = key if is_key else node
            if target is None or target.hidden or invisible_in(target.text) != hidden:
                message = f"{_invisible(hidden[0])} in a key or a name, from an alias, a reference or another document"
                yield Problem("M118", path, message, _hint(hidden[0]), at_key=is_key)


def _names(value: Value, path: Path, here: bool | None) -> Iterator[tuple[Path, str, bool]]:
    """Keys, and values that are names by the keys that they stand below."""
    if isinstance(value, str):
        if here:
            yield path, value, False
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key), key, True
            yield from _names(inner, (*path, key), _are_names(here, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _names(inner, (*path, index), here)


def _flaw(text: str, at: int, where: str) -> Flaw:
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return Flaw("M118", text.count("\n", 0, at) + 1, column, f"{_invisible(text[at])} {where}", _hint(text[at]))


def _invisible(char: str) -> str:
    name = unicodedata.name(char, "NEXT LINE" if char == "\x85" else "no name").lower()
    return f"the invisible character U+{ord(char):04X} ({name})"


def _hint(char: str) -> str:
    escape = f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
    return f'remove it; if it is meant, write "{escape}" in double quotes, where everybody sees it'


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
