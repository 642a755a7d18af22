"""Bytes of a manifest to text: encoding, characters and directives, with a defined result for each oddity."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reconciler.manifest.hidden_characters import hidden_characters
from reconciler.manifest.yaml_careful import Flaw

MAX_DIRECTIVES = 100
"""libyaml compares every %TAG with all before it: a file full of them would take minutes."""
_FORBIDDEN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_ALONE = re.compile("\r(?!\n)")


@dataclass(slots=True)
class Text:
    text: str = ""
    flaws: list[Flaw] = field(default_factory=list)


def decode(data: bytes) -> Text:
    """UTF-8 with or without a byte order mark; line ends become `\\n`. A bad byte or character is reported
    and replaced, so that the rest of the file is still checked."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or data[:4] in (b"\0\0\xfe\xff", b"\xff\xfe\0\0"):
        return Text("", [Flaw("M103", 1, 1, "the file is UTF-16 or UTF-32", "save it as UTF-8")])
    result = Text()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8", "replace")  # the object has no byte order mark any more
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        message = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        result.flaws.append(Flaw("M103", line, column, message, "save the file as UTF-8"))
        text = data.decode("utf-8-sig", "replace")
    if "\r" in text:
        result.flaws += _hidden_ends(text)
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    bad = _FORBIDDEN.search(text)
    if bad:
        start = bad.start()
        line = text.count("\n", 0, start) + 1
        message = f"the character U+{ord(bad.group()):04X} is not allowed in YAML"
        hint = f'remove it, or write it as an escape in double quotes ("\\u{ord(bad.group()):04x}")'
        result.flaws.append(Flaw("M104", line, start - (text.rfind("\n", 0, start) + 1) + 1, message, hint))
        text = _FORBIDDEN.sub("\ufffd", text)
    if text.count("\n%") > MAX_DIRECTIVES:
        result.flaws.append(
            Flaw(
                "M115",
                1,
                1,
                f"the file has more than {MAX_DIRECTIVES} lines that begin with %",
                "manifests need no YAML directives",
            )
        )
        return Text("", result.flaws)
    result.flaws += hidden_characters(text)
    result.text = text
    return result


def _hidden_ends(text: str) -> list[Flaw]:
    """A carriage return alone ends a line for YAML and not for git: what stands behind it is hidden."""
    alone = _ALONE.search(text)
    if alone is None:
        return []
    line, before = text.count("\n", 0, alone.start()) + 1, text.rfind("\n", 0, alone.start()) + 1
    hint = 'end every line with a line feed; if it is meant, write "\\r" in double quotes'
    message = "a carriage return alone (U+000D) ends a line here, and is not shown as a line end"
    return [Flaw("M118", line, alone.start() - before + 1, message, hint)]
