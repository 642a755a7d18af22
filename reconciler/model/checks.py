"""What a manifest says about the rows of a table. `pipeline verify` looks at it; a plan never does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Expression:
    """Holds for a row unless it is false there: a null passes, as in a CHECK of SQL."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Freshness:
    """The newest value of the column is at most so old."""

    column: str
    max_age: int
    """Seconds."""


@dataclass(frozen=True, slots=True)
class Checks:
    """Columns are dotted paths through structs."""

    min_rows: int | None = None
    max_rows: int | None = None
    not_null: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    """Each a key; rows with a null in it do not count, as in SQL."""
    accepted: Mapping[str, tuple[Value, ...]] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """By column; a null is accepted."""
    expressions: tuple[Expression, ...] = ()
    freshness: Freshness | None = None


NO_CHECKS = Checks()
