"""Text in columns of a terminal: how wide it is, what is aligned, where a long line breaks."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby

from reconciler.render.step_details import Line

WIDEST_LABEL = 40
"""One very long name must not push the values of all others out of sight."""
NARROWEST = 40
"""A terminal that is narrower than this is treated as if it were this wide."""
_WORTH = 10
"""Columns at the end of a line in which a word that has to be broken may begin."""


def width(text: str) -> int:
    """Columns of a terminal: wide characters take two, marks that sit on others none."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def aligned(lines: Sequence[str]) -> Iterator[str]:
    """The values of neighbouring lines about one kind of thing begin in one column: types in one, and what is said
    about them in another, for a column's comment stands beneath its type."""
    for kind, group in groupby(lines, _kind):
        these = list(group)
        if kind is None:
            yield from these
            continue
        pairs = [(line[: line.label], line) for line in these if isinstance(line, Line)]
        most = {between: _widest(pairs, between) for between in {line[len(label)] for label, line in pairs}}
        for label, line in pairs:
            between = line[len(label)]
            room = " " * (most[between] - width(label))
            if between == ":":
                yield f"{label}:{room}{line[len(label) + 1 :]}"
            else:
                yield f"{label}{room}{line[len(label) :]}"


def _widest(pairs: Sequence[tuple[str, str]], between: str) -> int:
    widths = (width(label) for label, line in pairs if line[len(label)] == between)
    return max((n for n in widths if n <= WIDEST_LABEL), default=0)


def _kind(line: str) -> str | None:
    """None of a line without a label."""
    return line.kind if isinstance(line, Line) else None


def fitted(text: str, columns: int | None) -> str:
    """Every line of a text, broken where it does not fit."""
    if columns is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in wrapped(line, columns))


def wrapped(line: str, columns: int | None) -> Iterator[str]:
    """Breaks at spaces, and indents what follows below the text of the line. A word is broken only when no line could
    hold it. None: no terminal, nothing is broken."""
    if columns is None or width(line) <= max(columns, NARROWEST):
        yield line
        return
    most = max(columns, NARROWEST)
    text = line.lstrip(" ")
    indent = " " * min(len(line) - len(text) + (4 if text[1:2] == " " else 2), most // 2)
    current, used = indent[: len(line) - len(text)], min(len(indent), len(line) - len(text))
    empty = True
    for word in text.split(" "):
        size, gap = width(word), 0 if empty else 1
        if size > most - len(indent) and used + gap + _WORTH <= most:
            *full, word = _pieces(word, most - used - gap, most - len(indent))
            for piece in full:
                yield f"{current}{' ' * gap}{piece}"
                current, used, gap = indent, len(indent), 0
            size = width(word)
        elif not empty and used + 1 + size > most:
            yield current
            *full, word = _pieces(word, most - len(indent), most - len(indent))
            yield from (f"{indent}{piece}" for piece in full)
            current, used, gap, size = indent, len(indent), 0, width(word)
        current, used, empty = f"{current}{' ' * gap}{word}", used + gap + size, False
    yield current


def _pieces(word: str, first: int, then: int) -> list[str]:
    """At most `first` columns, then at most `then`; never empty."""
    if width(word) <= first:
        return [word]
    pieces, used, most = [""], 0, first
    for char in word:
        size = _width(char)
        if used + size > most:
            pieces.append("")
            used, most = 0, then
        pieces[-1] += char
        used += size
    return pieces
