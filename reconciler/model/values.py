"""What a plan asks of the values in a table before it promises a step that depends on them or creates their column, and
what was found."""

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
    unread: str | None = None
    """Why the values cannot be read at all: then no step that reads them can."""


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column that a step creates, and that an earlier apply dropped: the tag from before that drop has its values."""

    column: str
    tag: str
    version: int
    location: str

    def __str__(self) -> str:
        return (
            f"column {self.column} existed before, and tag {self.tag} (version {self.version}) still has its values: "
            f"lance.dataset({self.location!r}, version={self.tag!r}); `reconciler explain kept_columns` says how "
            "to restore them"
        )
