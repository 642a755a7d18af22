"""What a catalog service keeps: named entries with a map of strings and, for a table, a location.

A backend for such a service is an `EntryStore`: the calls of its API, nothing else. `entry_catalog` builds the whole
Catalog on it: our marks, the datasets at the locations, what is declared only, what is detached.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.model.capabilities import Capabilities
from reconciler.model.errors import Code
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Gap, Scope, Unsupported
from reconciler.model.state import EMPTY, Column, Marks


@dataclass(frozen=True, slots=True)
class NamespaceEntry:
    """`properties` as stored, our marks among them. `raw`: what the backend needs to write it back."""

    ident: Ident
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    raw: Any = field(default=None, compare=False, repr=False)
    container: bool = False
    """It can hold, it cannot be changed: see `NamespaceState`, also for `lasting`."""
    lasting: str | None = None
    level: str | None = None


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A Lance table. `marks`: given when they are kept elsewhere than in `properties` (an inventory)."""

    ident: Ident
    location: str
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    columns: tuple[Column, ...] | None = None
    """What the catalog itself shows as the columns, in the form of `Capabilities.columns_of`."""
    marks: Marks | None = None
    raw: Any = field(default=None, compare=False, repr=False)
    storage: Mapping[str, str] | None = field(default=None, compare=False, repr=False)
    """Storage options that the service handed out for this table. Secret: never shown, never kept."""
    unrecorded: Mapping[str, str] | None = field(default=None, compare=False)
    """Given when the service itself does not show whose it is, and only a record of ours does: the `properties` without
    that record. It counts where the marker or the data at the location carries the owner's mark."""


@dataclass(frozen=True, slots=True)
class LastLocation:
    """Where the data of a table that is not in the catalog would be. `record`: of ours, for people, which says that it
    was there; None where only the rule for new tables leads to it. `owner`: as in `Former`."""

    location: str
    record: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class BrokenEntry:
    """It exists and is not to be used: not a Lance table, a view, or its own answer could not be read."""

    kind: Kind
    ident: Ident
    code: Code
    message: str
    foreign: bool = False
    """As in `Unreadable`: said only of what was read, never concluded from an error."""


@dataclass(frozen=True, slots=True)
class OtherEntry:
    """Neither a namespace nor a table (a volume, a function, a model): what holds it is not empty."""

    ident: Ident


Listed = NamespaceEntry | TableEntry | BrokenEntry | OtherEntry | Gap | Unsupported


class Levelled(ABC):
    """A store whose namespaces are of two kinds (`Capabilities.levels`)."""

    @abstractmethod
    def create_upper(self, ident: Ident, properties: Mapping[str, str]) -> None:
        """As `create_namespace`, one that holds namespaces."""

    @abstractmethod
    def look_for(self, upper: Collection[Ident]) -> None:
        """These are to be of the upper level: from now on they are looked for there too."""


class EntryStore(Protocol):
    """Every method raises CatalogError only. A write says `unknown_outcome` whenever it may have landed.

    Nothing is answered from a cache that predates the call, except what cannot change (the server's configuration).
    """

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def where(self) -> str:
        """For messages: the service and its address, without any secret."""

    @property
    def property_limit(self) -> int | None:
        """The longest property value, in UTF-16 units."""

    def walk(self, scope: Scope) -> Iterator[Listed]:
        """Everything in scope, every page, every level; a page that fails is a Gap, an object that fails is Broken.
        Raises only when nothing at all can be said."""

    def namespace(self, ident: Ident) -> NamespaceEntry | BrokenEntry | None:
        """None: the service answered, and does not have it."""

    def table(self, ident: Ident) -> TableEntry | BrokenEntry | None: ...

    def inside(self, ident: Ident) -> Sequence[str]:
        """Names of everything directly inside, of whatever kind, now."""

    def create_namespace(self, ident: Ident, properties: Mapping[str, str]) -> None: ...

    def update_namespace(self, entry: NamespaceEntry, properties: Mapping[str, str]) -> None:
        """`properties` is the whole new map. Fails with CONCURRENT_MODIFICATION when the service can tell that the
        entry is not what was read."""

    def rename_namespace(self, entry: NamespaceEntry, ident: Ident) -> None: ...

    def drop_namespace(self, entry: NamespaceEntry) -> None:
        """RESTRICT. Where the service would cascade, the store checks `inside` itself, right before."""

    def create_table(
        self, ident: Ident, location: str | None, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> str | None:
        """Never replaces anything: TABLE_ALREADY_EXISTS when the name is taken. Returns where the service put it, if
        it was not told and says so."""

    def update_table(
        self, entry: TableEntry, properties: Mapping[str, str] | None, columns: tuple[Column, ...] | None
    ) -> None:
        """The whole new map, or None to leave the properties alone; the same for the columns. What we do not manage
        (other tools' fields) stays."""

    def replace_table(
        self, entry: TableEntry, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        """Only where `capabilities.replaces_tables`: remove and create again, resumable when it is cut in between."""

    def save_marks(self, entry: TableEntry, marks: Marks) -> bool:
        """Marks of a table whose properties cannot be changed go to an inventory: True. False where `update_table`
        does it."""

    def rename_table(self, entry: TableEntry, ident: Ident) -> None: ...

    def drop_table(self, entry: TableEntry) -> None:
        """The entry only, never the data. The store remembers the location if it cannot be worked out again."""

    def last_location(self, ident: Ident) -> LastLocation | None:
        """Where the data of a table that is not in the catalog would be: its place by rule, or the recorded one."""

    def interrupted(self, ident: Ident) -> TableEntry | None:
        """The entry that a replacement has removed and not made again, from the record of it: `create_table` ends that
        replacement. None where entries are not replaced."""

    def close(self) -> None: ...
