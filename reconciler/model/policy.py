"""Policies as values: rules with stable codes, what they apply to, and the waivers that manifests hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from reconciler.model.diagnostic import Severity, Source
from reconciler.model.ident import Kind

RULES: dict[str, str] = {
    "naming": "P001",
    "required-properties": "P002",
    "required-owner": "P003",
    "location-prefix": "P004",
    "column-limits": "P005",
    "no-destructive-change": "P006",
    "tagged-columns": "P007",
}
"""Rule -> its code. A code never changes its meaning and is never reused."""
TITLES: dict[str, str] = {
    "P001": "name that does not fit the naming pattern",
    "P002": "required property missing or with another value",
    "P003": "no owner",
    "P004": "table outside the allowed locations",
    "P005": "more columns, deeper nesting or other column names than allowed",
    "P006": "destructive or rewriting change",
    "P007": "column that is not tagged as it has to be",
}
NEEDS_PLAN = frozenset({"P006"})
"""Codes that only a plan can tell, because they are about its steps."""

Patterns = Mapping[str, str]
_NONE: Patterns = MappingProxyType({})
Risky = Literal["destructive", "rewrite"]


@dataclass(frozen=True, slots=True)
class Reach:
    """What a rule applies to. Empty: no limit of that sort."""

    match: tuple[str, ...] = ()
    """Globs over dotted identifiers."""
    catalogs: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Naming:
    namespace: str | None = None
    table: str | None = None


@dataclass(frozen=True, slots=True)
class RequiredProperties:
    properties: Patterns
    kinds: tuple[Kind, ...] = ("Namespace", "Table")


@dataclass(frozen=True, slots=True)
class RequiredOwner:
    property: str | None = None
    """None: the catalog has to set `management.owner`. Otherwise each object needs this property."""
    pattern: str = ".+"
    kinds: tuple[Kind, ...] = ("Namespace", "Table")


@dataclass(frozen=True, slots=True)
class LocationPrefix:
    prefixes: tuple[str, ...]
    led_to: tuple[str, ...] = field(default=(), compare=False)
    """The folders that they are on this machine, where links lead elsewhere: not told, they differ by machine."""


@dataclass(frozen=True, slots=True)
class ColumnLimits:
    max_columns: int | None = None
    max_depth: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class NoDestructiveChange:
    risks: tuple[Risky, ...] = ("destructive", "rewrite")


@dataclass(frozen=True, slots=True)
class TaggedColumns:
    """Columns whose name matches `columns`, or that carry all of the metadata in `tagged`."""

    columns: str | None = None
    tagged: Patterns = field(default_factory=lambda: _NONE)
    metadata: Patterns = field(default_factory=lambda: _NONE)
    """What such a column needs; and `comment`; and `properties` of its table."""
    comment: str | None = None
    properties: Patterns = field(default_factory=lambda: _NONE)


Check = (
    Naming | RequiredProperties | RequiredOwner | LocationPrefix | ColumnLimits | NoDestructiveChange | TaggedColumns
)


@dataclass(frozen=True, slots=True)
class Rule:
    code: str
    severity: Severity
    check: Check
    reach: Reach


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    rules: tuple[Rule, ...]
    """Those that are switched on."""
    source: Source
    max_waiver_days: int | None = None


@dataclass(frozen=True, slots=True)
class DeclaredWaiver:
    """`spec.waivers` of an object: this code does not refuse it up to and with the day `until` (an ISO date)."""

    code: str
    reason: str
    until: str
