"""What a manifest says about the upkeep of a table, and what was measured on it. No part of a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from reconciler.model.coverage import Limit

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
FOREVER = "forever"
TAG_RETENTION = 30 * 86_400
"""Seconds for which tags of apply are kept, when the manifest does not say."""


def seconds_of(age: str) -> int:
    """`14d` in seconds."""
    return int(age[:-1]) * _SECONDS[age[-1]]


def tag_retention(written: object) -> int | None:
    """Of `management.tagRetention` as written; None keeps tags for ever. What cannot be read keeps them too."""
    if written is None:
        return TAG_RETENTION
    readable = isinstance(written, str) and re.fullmatch("[0-9]{1,9}[smhdw]", written)
    return seconds_of(str(written)) if readable else None


@dataclass(frozen=True, slots=True)
class Compact:
    target_rows: int = 1_048_576
    min_small: int = 8
    max_deleted_percent: float = 10.0


@dataclass(frozen=True, slots=True)
class Indexes:
    """An index that covers no row at all is refreshed whatever the limit is."""

    max_unindexed: Limit = field(default_factory=lambda: Limit(100_000))
    only: frozenset[str] | None = None
    """The indexes that are refreshed; None: all of them."""


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
    uncovered: Indexes | None = None
    """What counts for the declared indexes where `indexes` is not asked for: `management.indexRefresh` of the catalog,
    so that the command that a plan names does what it says."""

    @property
    def refresh(self) -> Indexes | None:
        return self.indexes or self.uncovered


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
    """By name: the version that it holds; without those that are expired."""
    expired: tuple[str, ...] = ()
    """Tags of apply that are to be deleted because of their age."""
    branches: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """By name: the version that it starts from."""
    claimed: bool = False
    """A data step has it in hand, or was cut off there."""
    forgetful: frozenset[str] = frozenset()
    """Indexes that a compaction takes the joined rows from: Lance does not carry these types over."""
    untrained: frozenset[str] = frozenset()
    """Indexes that Lance cannot train on the rows that are there."""
    rebuild: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Declared vector indexes that do not just take in rows, by name: why they are built anew."""
    differing: frozenset[str] = frozenset()
    """Declared indexes that have other parameters than declared: built anew also when they lack no row."""

    @property
    def rows(self) -> int:
        return sum(f.rows - f.deleted for f in self.fragments)

    @property
    def bytes(self) -> int:
        return sum(f.bytes for f in self.fragments)
