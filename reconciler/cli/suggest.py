"""`did you mean`, for a wrong command line. Loaded only then."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence to put behind the error, or nothing."""
    near = difflib.get_close_matches(word, sorted(known), 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""
