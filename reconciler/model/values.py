"""What a plan asks of the values in a table before it promises a step that depends on them, and what was found."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.arrow import ArrowType


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """Do all values of a column fit?"""

    path: str
    """The column as the steps name it: after the renames of the plan."""
    type: ArrowType | None = None
    """Into this type; None: is every value there, so that nulls can be forbidden?"""


@dataclass(frozen=True, slots=True)
class ValueFinding:
    rows: int
    """So many were read."""
    complete: bool
    """These were all rows of the table."""
    misfits: int = 0
    examples: tuple[str, ...] = ()
    """A few of them, ready to be shown."""
