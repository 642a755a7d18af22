"""Names and values come from catalogs and files that others write: nothing of them may steer a terminal."""

from __future__ import annotations

import json
import re

from reconciler.model.log_commands import in_text

_UNSAFE = re.compile(r"[^\x20-\x7e]")
LONGEST = 200
LONGEST_MESSAGE = 1000
LONGEST_TYPE = 10_000
"""A type is what a reviewer wants to see whole; no table that people work with has a longer one."""


def printable(text: str) -> str:
    """One line of printable text: control characters, escape sequences and direction marks are shown escaped. For what
    no log shows: pages, and JSON, which has an escape of its own for commands."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_escaped, text)


def safe(text: str) -> str:
    """The same for what may come out in a log: no `##[command]` of a runner either."""
    return in_text(printable(text))


def safe_line(text: str) -> str:
    """The same for what a line begins with: a runner of GitHub takes one that starts with `::` for a command."""
    shown = safe(text)
    return shown.replace(":", "\\x3a", 1) if shown.lstrip().startswith("::") else shown


def safe_lines(text: str) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(safe_line(line) for line in text.split("\n"))


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quoted(value: object) -> str:
    """A value as JSON, shortened."""
    text = safe(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def bounded(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """A message may repeat a value, and a value may be of any length: the beginning and the end are enough."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 3 // 4]} … ({len(text)} characters) … {text[-longest // 4 :]}"
