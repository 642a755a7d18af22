"""Globs over dotted identifiers: `*` stays inside one name, `?` is one character, `**` stands for any number of names,
none included.

A name that contains a dot is written in quotes: `raw."2024.01".*`; one with a quote too, and the quote is doubled.
Matching is linear in glob times identifier, whatever the glob: globs come from manifests, and a manifest must not be
able to hang a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from reconciler.model.ident import Ident, dotted

_SEGMENT = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')
ANY_DEPTH = "**"
A = TypeVar("A")
B = TypeVar("B")


def parse_dotted(text: str) -> Ident:
    """An identifier as it is printed; empty when the text is none."""
    segments = _segments(text)
    return segments if dotted(segments) == text else ()


def matches(glob: str, ident: Ident) -> bool:
    return matches_items(_segments(glob), ident, ANY_DEPTH, _name)


def matcher(globs: Iterable[str]) -> Callable[[Ident], bool]:
    """True for an identifier that any of the globs matches."""
    finder = Finder(globs)
    if finder.empty:
        return lambda _: False
    return lambda ident: next(finder.find(ident), None) is not None


def reaches(glob: str, ident: Ident) -> bool:
    """True when the glob may match something below the identifier."""
    for at, pattern in enumerate(_segments(glob)):
        if pattern == "**" or at == len(ident):
            return True
        if not _name(pattern, ident[at]):
            return False
    return False


class Finder:
    """Which of many globs match an identifier. Those that are names with at most a `*` or `**` after them are looked
    up, however many there are; only `loose` ones are tried one by one."""

    def __init__(self, globs: Iterable[str]) -> None:
        self._fixed: dict[Ident, list[tuple[str, str]]] = {}
        self.loose: list[str] = []
        for glob in dict.fromkeys(globs):
            segments = _segments(glob)
            head, tail = (segments[:-1], segments[-1]) if segments[-1:] in (("*",), ("**",)) else (segments, "")
            if any("*" in s or "?" in s for s in head):
                self.loose.append(glob)
            else:
                self._fixed.setdefault(head, []).append((tail, glob))

    @property
    def empty(self) -> bool:
        return not self._fixed and not self.loose

    def find(self, ident: Ident) -> Iterator[str]:
        for length in range(len(ident) + 1) if self._fixed else ():
            for tail, glob in self._fixed.get(ident[:length], ()):
                if tail == "**" or len(ident) - length == len(tail):
                    yield glob
        yield from (glob for glob in self.loose if matches(glob, ident))


@lru_cache(maxsize=1024)
def _segments(glob: str) -> tuple[str, ...]:
    found = _SEGMENT.finditer(glob)
    return tuple(m.group(2) if m.group(1) is None else m.group(1).replace('""', '"') for m in found)


def _name(pattern: str, name: str) -> bool:
    return pattern == name or matches_items(pattern, name, "*", lambda p, c: p in ("?", c))


def matches_items(pattern: Sequence[A], items: Sequence[B], star: A, equal: Callable[[A, B], bool]) -> bool:
    """The usual two-pointer match: on a mismatch only the last star takes one item more."""
    p = i = 0
    back: tuple[int, int] | None = None
    while i < len(items):
        if p < len(pattern) and pattern[p] == star:
            back = (p, i)
            p += 1
        elif p < len(pattern) and equal(pattern[p], items[i]):
            p, i = p + 1, i + 1
        elif back is not None:
            back = (back[0], back[1] + 1)
            p, i = back[0] + 1, back[1]
        else:
            return False
    return all(x == star for x in pattern[p:])
