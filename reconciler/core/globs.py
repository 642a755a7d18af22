"""Globs over dotted identifiers: `*` stays inside one name, `?` is one character, `**` stands for any number of names,
none included.

A name that contains a dot is written in quotes: `raw."2024.01".*`. Matching is linear in glob times identifier,
whatever the glob: globs come from manifests, and a manifest must not be able to hang a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from reconciler.model.ident import Ident

_SEGMENT = re.compile(r'"([^"]*)"|([^."]+)')
A = TypeVar("A")
B = TypeVar("B")


def matches(glob: str, ident: Ident) -> bool:
    return _wild(_segments(glob), ident, "**", _name)


def matcher(globs: Iterable[str]) -> Callable[[Ident], bool]:
    """True for an identifier that any of the globs matches."""
    compiled = [_segments(g) for g in globs]
    if not compiled:
        return lambda _: False
    return lambda ident: any(_wild(c, ident, "**", _name) for c in compiled)


@lru_cache(maxsize=1024)
def _segments(glob: str) -> tuple[str, ...]:
    return tuple(m.group(1) if m.group(1) is not None else m.group(2) for m in _SEGMENT.finditer(glob))


def _name(pattern: str, name: str) -> bool:
    return pattern == name or _wild(pattern, name, "*", lambda p, c: p in ("?", c))


def _wild(pattern: Sequence[A], items: Sequence[B], star: A, equal: Callable[[A, B], bool]) -> bool:
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
