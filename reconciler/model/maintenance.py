"""What a manifest says about the upkeep of a table, and what was measured on it. No part of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Compact:
    target_rows: int = 1_048_576
    min_small: int = 8
    max_deleted_percent: float = 10.0


@dataclass(frozen=True, slots=True)
class Indexes:
    max_unindexed: int = 100_000


@dataclass(frozen=True, slots=True)
class Cleanup:
    older_than: int = 14 * 86_400
    """Seconds since a version was the newest one."""
    keep_tagged: bool = True
    """False: tags that apply made do not hold a version that is due. All others always do."""
    retain: int = 1


@dataclass(frozen=True, slots=True)
class Maintenance:
    """None: not asked for."""

    compact: Compact | None = None
    indexes: Indexes | None = None
    cleanup: Cleanup | None = None


@dataclass(frozen=True, slots=True)
class Fragment:
    ident: int
    rows: int
    """In its files, deleted ones included."""
    deleted: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Facts:
    """One table at one version. What no part of its maintenance asks for was not measured, and is empty."""

    version: int
    fragments: tuple[Fragment, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    """The fragments that Lance would join or rewrite. It joins neighbours only, and only those that are in the same
    indexes."""
    unindexed: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Rows that an index lacks, by its name."""
    versions: tuple[tuple[int, float], ...] = ()
    """Number and time, in seconds since 1970; ascending."""
    tags: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    branches: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """By name: the version that it starts from."""
    claimed: bool = False
    """A data step has it in hand, or was cut off there."""

    @property
    def rows(self) -> int:
        return sum(f.rows - f.deleted for f in self.fragments)

    @property
    def bytes(self) -> int:
        return sum(f.bytes for f in self.fragments)
