"""Names and values come from catalogs and files that others write: nothing of them may steer a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from reconciler.core.invisible import is_invisible
from reconciler.core.text import plural
from reconciler.model.log_commands import in_text

if TYPE_CHECKING:
    from traceback import TracebackException

_UNSAFE = re.compile(r"[^\x20-\x7e]")
_ASCII_STEERS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_STEERS = re.compile(
    r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\x1b(?!\[[0-9;]*m)"
)
"""All but the line end, the tab, and the sequence of a colour."""
LONGEST = 200
_LIKE_A_VALUE = re.compile(r'["=]|->|^\s|\s$|\s\s')
_AROUND = 20
"""Characters beside the part in which two long values differ."""
LONGEST_MESSAGE = 1000
LONGEST_TYPE = 10_000
"""A type is what a reviewer wants to see whole; no table that people work with has a longer one."""


def printable(text: str) -> str:
    """One line of text that is seen: controls, escape sequences, direction marks and what shows nothing are shown
    escaped. For what no log shows: pages, and JSON, which has an escape of its own for commands."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_escaped, text)


def safe(text: str) -> str:
    """The same for what may come out in a log: no `##[command]` of a runner either."""
    return in_text(printable(text))


def safe_line(text: str) -> str:
    """The same for what a line begins with: a runner of GitHub takes one that starts with `::` for a command."""
    shown = safe(text)
    return shown.replace(":", "\\x3a", 1) if shown.lstrip().startswith("::") else shown


def safe_output(text: str) -> str:
    """The last check of a rendered text: its line ends and colours are those of the renderer, and nothing else in it
    moves a cursor, ends a line or turns the direction of the text."""
    return _STEERS.sub(_escaped, text) if not text.isascii() or _ASCII_STEERS.search(text) else text


def traceback_lines(error: BaseException) -> Iterator[str]:
    """A traceback in which the message of an exception is one line, however many it has. Each line is to be made safe
    where it is written."""
    import traceback

    yield from _traceback(traceback.TracebackException.from_exception(error))


def _traceback(found: TracebackException) -> Iterator[str]:
    if found.__cause__ is not None:
        yield from _traceback(found.__cause__)
        yield "The above exception was the direct cause of the following exception:"
    elif found.__context__ is not None and not found.__suppress_context__:
        yield from _traceback(found.__context__)
        yield "During handling of the above exception, another exception occurred:"
    if found.stack:
        yield "Traceback (most recent call last):"
        for frame in found.stack.format():
            yield from frame.rstrip("\n").split("\n")
    yield "".join(found.format_exception_only()).rstrip("\n")
    for inner in found.exceptions or ():
        yield from (f"  | {line}" for line in _traceback(inner))


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    if char.isprintable() and not is_invisible(char):
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def key_name(key: str) -> str:
    """As it is, or in quotes where it could be taken for more than a key."""
    return _json(key) if _LIKE_A_VALUE.search(key) or not key else safe(key)


def quoted(value: object) -> str:
    """A value as JSON. Of a long one both ends, and how much is between them."""
    return _shortened(_json(value))


def quoted_change(old: object, new: object) -> str:
    """`old -> new`, as JSON. Of long values the part in which they differ: nobody sees a change behind what is cut off.
    Where that part is long too, it says how much of it is not shown."""
    texts = (_json(old), _json(new))
    if max(map(len, texts)) <= LONGEST:
        return " -> ".join(texts)
    alike = _alike(*texts)
    start = max(alike - _AROUND, 0)
    end = max(_alike(texts[0][alike:][::-1], texts[1][alike:][::-1]) - _AROUND, 0)
    lead, tail = _as_before(start), _as_before(end)
    return " -> ".join(f"{lead}{_shortened(text[start : len(text) - end])}{tail}" for text in texts)


def _alike(one: str, other: str) -> int:
    """How many characters they begin with in common."""
    both = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(both) if a != b), min(len(one), len(other)))


def _json(value: object) -> str:
    return safe(json.dumps(value, ensure_ascii=False, default=str))


def _as_before(count: int) -> str:
    return f"…({plural(count, 'character')} alike)…" if count else ""


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    head, tail = LONGEST * 3 // 4, LONGEST // 4
    return f"{text[:head]}…({plural(len(text) - head - tail, 'character')} not shown)…{text[-tail:]}"


def bounded(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """A message may repeat a value, and a value may be of any length: the beginning and the end are enough."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 3 // 4]} … ({len(text)} characters) … {text[-longest // 4 :]}"
