"""`did you mean`: the word that someone may have meant. Bounded, because comparing words is slow and manifests may hold
very many of them."""

from __future__ import annotations

import difflib
from collections.abc import Collection

MOST = 1_000
"""Words to choose from; beyond that a guess costs more than it helps."""


def nearest(word: str, known: Collection[str], least: float = 0.5) -> str | None:
    """`least`: how alike they have to be, 1 for the same but for upper and lower case."""
    if len(known) > MOST:
        return None
    spelt = {name.lower(): name for name in known}
    return next((spelt[found] for found in difflib.get_close_matches(word.lower(), spelt, 1, least)), None)
