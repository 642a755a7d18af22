"""Globs over dotted identifiers: `*` stays inside one name, `**` crosses dots, `?` is one character.

A name that holds a dot is quoted in the dotted form and counts as one name for `*`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from reconciler.model.ident import Ident, dotted

_TOKEN = re.compile(r"\*\*|\*|\?|[^*?]+")
_MEANING = {"**": ".*", "*": r'(?:"[^"]*"|[^."])*', "?": r"[^.]"}


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    text = "".join(_MEANING.get(token, re.escape(token)) for token in _TOKEN.findall(pattern))
    return re.compile(text, re.DOTALL)


def matches(pattern: str, ident: Ident) -> bool:
    """The whole identifier, not a part of it: `scratch.**` is everything below scratch, not scratch itself."""
    return _compiled(pattern).fullmatch(dotted(ident)) is not None


def matcher(patterns: Sequence[str]) -> Callable[[Ident], bool]:
    """True when any of the patterns matches; no pattern matches nothing."""
    compiled = [_compiled(p) for p in patterns]
    if not compiled:
        return lambda ident: False
    return lambda ident: any(c.fullmatch(dotted(ident)) for c in compiled)
