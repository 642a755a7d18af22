"""Which characters nobody sees: two names that differ in one of them look equal."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CATEGORIES = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
"""Controls, formats, and spaces that are not the space."""
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U00013430-\U0001343f\U00016fe4\U0001d159\U000e0000-\U000e0fff]"
)
"""Letters, marks and symbols that show nothing by themselves: fillers, variation selectors, blanks. Among them is all
that Unicode calls `Default_Ignorable_Code_Point` and that is in none of the categories."""


@lru_cache(maxsize=4096)
def is_invisible(char: str) -> bool:
    return char != " " and (unicodedata.category(char) in _CATEGORIES or _BLANK.match(char) is not None)


def invisible_in(text: str) -> list[str]:
    """Those that are in it, in their order. The line ends, the tab and the other controls of ASCII count."""
    if text.isascii() and text.isprintable():
        return []
    found = {char for char in set(text) if is_invisible(char)}
    return [char for char in text if char in found] if found else []


def invisible_pattern(text: str) -> re.Pattern[str] | None:
    """What finds those beyond ASCII in a part of this text; None when there are none."""
    found = "" if text.isascii() else "".join(sorted(c for c in set(text) if c > "\x7f" and is_invisible(c)))
    return re.compile(f"[{found}]") if found else None
