"""`did you mean`: the word that someone may have meant. Bounded, because comparing words is slow and manifests may hold
very many of them."""

from __future__ import annotations

import difflib
from collections.abc import Collection

MOST = 1_000
"""Words to choose from; beyond that a guess costs more than it helps."""


def nearest(word: str, known: Collection[str]) -> str | None:
    if len(known) > MOST:
        return None
    return next(iter(difflib.get_close_matches(word, known, 1, 0.5)), None)
