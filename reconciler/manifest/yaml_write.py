"""Data as YAML text: the one way in which manifests are written."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from reconciler.core.invisible import is_invisible

_ONE_LINE = 1_000_000
_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")


def _invisible(char: str) -> bool:
    """Of what is not ASCII: characters without width, marks of direction, odd spaces. A reader of the file is to see
    them, so they are written as escapes."""
    return not char.isprintable() or is_invisible(char)


def _escape(match: re.Match[str]) -> str:
    char, code = match.group(), ord(match.group())
    if not _invisible(char):
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _shown(text: str) -> str:
    """Texts with such characters are in double quotes by then, all of them."""
    return text if text.isascii() else _BEYOND_ASCII.sub(_escape, text)


@lru_cache(maxsize=1)
def _dumper() -> Any:
    import yaml

    class Dumper(yaml.CSafeDumper):
        hidden: list[Any]

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent(self, data: Any) -> None:
            self.hidden = []
            super().represent(data)

        def serialize(self, node: Any) -> None:
            """A text of several lines is written in one, with escapes: a live value must not begin a line."""
            for text in self.hidden:  # Not before: a mapping is in one line only while nothing in it has a style.
                text.style = '"'
            super().serialize(node)

    def represented(dumper: Dumper, data: str) -> Any:
        node = dumper.represent_scalar("tag:yaml.org,2002:str", data)
        if "\n" in data or (not data.isascii() and any(map(_invisible, _BEYOND_ASCII.findall(data)))):
            dumper.hidden.append(node)
        return node

    Dumper.add_representer(str, represented)
    return Dumper


def as_block(value: Any) -> str:
    """Lines, with mappings and lists of plain values in one line each."""
    import yaml

    text: str = yaml.dump(
        value, Dumper=_dumper(), sort_keys=False, default_flow_style=None, allow_unicode=True, width=_ONE_LINE
    )
    return _shown(text)


def as_lines(value: Any) -> str:
    """As `as_block`, and what stands on the outside has no brackets."""
    if isinstance(value, dict):
        return "".join(
            as_block({k: v}) if isinstance(v, dict | list) else f"{as_scalar(k)}: {as_scalar(v)}\n"
            for k, v in value.items()
        )
    return "".join(as_block([v]) if isinstance(v, dict | list) else f"- {as_scalar(v)}\n" for v in value)


def as_flow(value: Any) -> str:
    """One line with brackets, wherever it is put."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_scalar(k)}: {as_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_flow, value)) + "]"
    return as_scalar(value)


def as_scalar(value: Any, quote: str = "") -> str:
    """One line, good in every place. `quote`: `'` or `"` where that can hold it."""
    import yaml

    if not isinstance(value, str):
        quote = ""
    elif any(c in value for c in "\n\r\t\x85\u2028\u2029") or not value.isprintable():
        quote = '"'
    text: str = yaml.dump(
        [value],
        Dumper=_dumper(),
        default_style=quote or None,
        default_flow_style=True,
        allow_unicode=True,
        width=_ONE_LINE,
    )
    return _shown(text.strip()[1:-1])
