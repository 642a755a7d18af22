"""How many rows of a table an index covers, how many it may leave out, and when it is built again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from reconciler.model.ident import Ident

_LIMIT = re.compile(r"(?P<number>[0-9]{1,15}(\.[0-9]{1,6})?) ?(?P<percent>%)?\Z")


@dataclass(frozen=True, slots=True)
class Limit:
    """Rows that an index may leave unindexed: a number of rows, or a share of the table's rows."""

    amount: float
    percent: bool = False

    def exceeded(self, rows: int, indexed: int) -> bool:
        left = max(0, rows - indexed)
        return left * 100 > self.amount * rows if self.percent else left > self.amount

    def __str__(self) -> str:
        return f"{self.amount:.15g}%" if self.percent else f"{self.amount:.15g}"


def parse_limit(text: str | int | float) -> Limit:
    """`1000` or `5%`. Raises ValueError."""
    found = None if isinstance(text, bool) else _LIMIT.match(str(text).strip())
    if found is None:
        raise ValueError(f"{text!r} is neither a number of rows nor a percentage such as 5%")
    percent, number = found["percent"] is not None, float(found["number"])
    if percent and number > 100:
        raise ValueError(f"{text!r} is more than 100%")
    if not percent and not number.is_integer():
        raise ValueError(f"{text!r} is not a whole number of rows")
    return Limit(number, percent)


DEFAULT_MAX_ROWS: Final = 100_000
DEFAULT_MAX_UNINDEXED: Final = "20%"
"""An external writer that appends a few rows all day must not make every plan non-empty: with a share, the number of
refreshes grows with the logarithm of the table."""


@dataclass(frozen=True, slots=True)
class IndexRefresh:
    """`management.indexRefresh`: when `apply` builds a declared index again because it lacks rows."""

    max_rows: int = DEFAULT_MAX_ROWS
    """Tables with more rows are left to `pipeline maintain`; 0 leaves all of them."""
    max_unindexed: Limit = field(default_factory=lambda: parse_limit(DEFAULT_MAX_UNINDEXED))
    """What an index may leave unindexed. One that covers no row of a table that has some is always past it."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """A declared index that does not cover all rows of its table, as a plan reports it. No change: only `over` counts
    for an exit code, and only that of `drift --max-unindexed`."""

    ident: Ident
    index: str
    rows: int
    indexed_rows: int
    advice: str = ""
    """What to do when no step of the plan refreshes it; empty when there is nothing to do."""
    over: str = ""
    """The limit of `--max-unindexed` that it exceeds; empty without one."""

    @property
    def text(self) -> str:
        return covers(self.index, self.indexed_rows, self.rows)


def covers(name: str, indexed: int, rows: int) -> str:
    return f"index {name} covers {indexed:,} of {rows:,} row{'' if rows == 1 else 's'}"
