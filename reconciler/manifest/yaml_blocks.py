"""A new value for a block scalar (`|` or `>`), written as the old one was."""

from __future__ import annotations

import re
import textwrap
from typing import Any

_HEADER = re.compile(r"([|>])[+-]?([ \t][^\n]*)?\n")
"""With digits it says how far its lines are indented; such a one is not written again."""


def as_block_scalar(old: str, value: Any) -> str | None:
    """`old`: the text of the scalar, from its sign to its last visible character. None where the value cannot be
    written so, or would not come back equal."""
    header = _HEADER.match(old)
    if header is None or not isinstance(value, str) or not _fits(value):
        return None
    lines = [line for line in old[header.end() :].split("\n") if line.strip()]
    if not lines:
        return None
    indent = " " * (len(lines[0]) - len(lines[0].lstrip(" ")))
    sign, comment = header.group(1), header.group(2) or ""
    core = value.removesuffix("\n")
    body = core.split("\n") if sign == "|" else _folded(core, max(map(len, lines)) - len(indent))
    head = f"{sign}{'' if value.endswith(chr(10)) else '-'}{comment}\n"
    made = head + "\n".join(indent + line if line else "" for line in body)
    return made if _read(made) == value else None


def _fits(value: str) -> bool:
    """Nothing that only an escape can show, and nothing at the ends that people would not see."""
    if not value.strip() or value[0].isspace() or value.endswith("\n\n"):
        return False
    return all(c.isprintable() or c in "\n\t" for c in value)


def _folded(core: str, width: int) -> list[str]:
    """One empty line more between two lines than there are in the value; each broken where the old ones were."""
    out: list[str] = []
    for number, line in enumerate(core.split("\n")):
        if number and line:
            out.append("")
        out += textwrap.wrap(line, max(width, 20), break_long_words=False, break_on_hyphens=False) or [""]
    return out


def _read(made: str) -> Any:
    import yaml

    try:
        return yaml.load(f"key: {made}\n", yaml.CSafeLoader)["key"]
    except yaml.YAMLError:
        return None
