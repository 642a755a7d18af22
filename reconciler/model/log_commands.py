"""A runner of GitHub obeys `##[command]data` anywhere in a line of the log, whoever wrote it into a name or a value."""

from __future__ import annotations

COMMAND = "##["


def in_text(text: str) -> str:
    """Visibly another text: `#\\x23[`, as other characters that must not get through are shown."""
    return text.replace(COMMAND, "#\\x23[") if COMMAND in text else text


def in_markup(text: str) -> str:
    """The same HTML or XML: a character and its number are the same there too."""
    return text.replace(COMMAND, "#&#35;[") if COMMAND in text else text


def in_json(text: str) -> str:
    """The same JSON: it stands within a string, where a character and its number are the same."""
    return text.replace(COMMAND, "#\\u0023[") if COMMAND in text else text
