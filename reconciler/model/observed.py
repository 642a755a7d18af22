"""What a read of a catalog found. Absence is a finding of its own, never the result of an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from reconciler.model.change import Change
from reconciler.model.data import SourceState
from reconciler.model.errors import Code, ReadError
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.state import DatasetState, NamespaceState, TableState
from reconciler.model.values import KeptColumn, ValueCheck, ValueFinding


@dataclass(frozen=True, slots=True)
class Former:
    """A table that is in the catalog no more, and whose data is gone too: only a record of ours still speaks of it.
    Somebody dropped it with another tool, or lost it; to make it again is to make it empty."""

    location: str
    record: str
    """Where the record is, for people."""
    owner: str | None = None
    """None: whoever owned it deregistered it before its data went."""


@dataclass(frozen=True, slots=True)
class LocationCheck:
    """Where a table that is not in the catalog, or that has no data yet, would be, as storage shows it."""

    canonical: str
    """For comparing (`core.uris`), links resolved; empty where only the catalog knows the location."""
    conflict: str | None = None
    """Why no table may be made or attached there: it is inside somebody's dataset, or holds somebody's files."""
    former: Former | None = None
    """The table of this name that a record of ours speaks of, where neither it nor its data is found."""


@dataclass(frozen=True, slots=True)
class Present:
    state: NamespaceState | TableState
    checked: LocationCheck | None = field(default=None, compare=False)
    """Of a table that was declared and has no data yet: others may have pointed its entry elsewhere. Never part of a
    fingerprint."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The catalog was asked, answered, and does not have it."""

    checked: LocationCheck | None = field(default=None, compare=False)
    """Of a declared table: where it would be made. Never part of a fingerprint."""


@dataclass(frozen=True, slots=True)
class Detached:
    """Not in the catalog, but its data is: a table that was deregistered, or a dataset at a declared location."""

    location: str
    dataset: DatasetState
    cut: TableState | None = field(default=None, compare=False)
    """What it was in the catalog when a replacement of its entry was cut in the middle: the plan that replaces it can
    go on. Never part of a fingerprint."""
    checked: LocationCheck | None = field(default=None, compare=False)
    """As of `Absent`."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """It exists and could not be read. Blocks every step on it, counts as a child, is never taken for absent."""

    code: Code
    message: str
    foreign: bool = False
    """It was read, and it is none of our kind: a view, a table of another format, a link to another catalog. Anything
    else may be a Lance table, ours even, at any place."""
    owner: str | None = field(default=None, compare=False)
    """Of a table whose data cannot be read: the owner that its entry or its record names."""
    gone: TableState | None = field(default=None, compare=False)
    """What is left of the table, where the read proves that its data is gone: its entry, by its mark somebody's. Only a
    plan that makes the data again, empty, goes by it."""


Finding = Present | Absent | Detached | Unreadable


def what_is_left(finding: Finding) -> Finding:
    """Of a table whose data is gone: its entry. Anything else as it is."""
    return Present(finding.gone) if isinstance(finding, Unreadable) and finding.gone is not None else finding


@dataclass(frozen=True, slots=True)
class Observation:
    kind: Kind
    ident: Ident
    finding: Finding


@dataclass(frozen=True, slots=True)
class Gap:
    """The listing below `ident` is incomplete: nothing below it may be called absent or deleted."""

    ident: Ident
    code: Code
    message: str
    root: bool = field(default=False, compare=False)
    """It is the listing of a root (the catalog, a warehouse): a plan that needs it fails, whichever page was the last.
    A gap below a root blocks only what it touches."""

    @property
    def error(self) -> ReadError:
        return ReadError(self.code, f"the listing of {dotted(self.ident) or 'the catalog'} failed: {self.message}")


@dataclass(frozen=True, slots=True)
class Occupied:
    """Something that is neither a namespace nor a table is there (a volume, a function): never touched, never shown,
    but what holds it is not empty."""

    ident: Ident


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The service itself says that it cannot do this below `ident`: such a step is `unsupported`, never tried."""

    ident: Ident
    change: str
    """The name of the change's type."""
    reason: str


class Elsewhere(NamedTuple):
    """A declared table that is in another place than the one that the manifests say."""

    ident: Ident
    place: str
    owner: str
    """By its mark."""


@dataclass(frozen=True, slots=True)
class RootSeen:
    """What a scan says of the place of the whole catalog."""

    new: str | None = None
    """Where nothing exists yet: the first write makes the catalog there."""
    skipped: int = 0
    """So many folders in it are no table's: of other tools, or not named as tables are."""
    elsewhere: tuple[Elsewhere, ...] = ()
    """Where nothing exists yet: declared tables that were found in folders beside it."""


Seen = Observation | Gap | Occupied | Unsupported | RootSeen
"""What a scan yields."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a scan has to cover.

    `detail`: tables whose dataset is to be opened (the declared ones); all others are listed with their catalog
    properties only. `locations`: datasets to look for when the table is not in the catalog. `ignore`: dotted globs.
    `namespaces`: the declared ones and the parents of declared tables: a catalog of many parts reads only those parts.
    """

    detail: frozenset[Ident] = frozenset()
    locations: Mapping[Ident, str] = field(default_factory=lambda: MappingProxyType({}))
    ignore: tuple[str, ...] = ()
    namespaces: frozenset[Ident] = frozenset()
    storage: Mapping[Ident, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    """The `storage.*` properties that declared tables are to have: how to reach the data of one without an entry."""
    catalogs: frozenset[Ident] = frozenset()
    """Namespaces that are of the upper level of a catalog with two (`Capabilities.levels`), as far as that is said."""
    pruned_by: str | None = None
    """With --prune: tables of this owner may be removed because nobody declares them, and none is whose data cannot be
    read, so theirs is opened too."""
    absent: frozenset[Ident] = frozenset()
    """Tables that a manifest asks to remove, each by its name: they go whether their data can be read or not."""

    def opens(self, ident: Ident, owner: str | None) -> bool:
        """Whether the dataset of a table with this owner has to be opened."""
        pruned = owner is not None and owner == self.pruned_by and ident not in self.absent
        return pruned or ident in self.detail


@dataclass(frozen=True, slots=True)
class Origin:
    """The table that another one's rows are to be moved from, as it was looked at for a plan."""

    dataset: DatasetState | None = None
    problem: str | None = None
    """Why nothing can be moved from there; one of the two is given, unless it is `copied`."""
    copied: bool = False
    """Its copy is where the rows go to, complete, and only lacks our marks: a run was cut right before."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Tables that are live and in no snapshot, because no plan changes them and none depends on which they are: they
    are as declared, or nobody declares them and they are not ours."""

    tables: int = 0
    owned: int = 0
    """So many of them are ours."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One catalog as observed."""

    namespaces: Mapping[Ident, Present | Unreadable]
    tables: Mapping[Ident, Present | Detached | Unreadable]
    gaps: tuple[Gap, ...] = ()
    hidden: frozenset[Ident] = frozenset()
    """Ignored objects: never reported, never touched, but what holds one of them is not empty."""
    hidden_places: Mapping[Ident, str] = field(default_factory=lambda: MappingProxyType({}))
    """Where the ignored tables are: their data is not to be given to another table."""
    hidden_unread: frozenset[Ident] = frozenset()
    """Ignored objects that may be, or hold, tables whose place nobody asked for."""
    chosen_places: Mapping[Ident, str] = field(default_factory=lambda: MappingProxyType({}))
    """Of the tables read in detail: the locations that a manifest has to give, because no rule leads to them."""
    checked: Mapping[Ident, LocationCheck] = field(default_factory=lambda: MappingProxyType({}))
    """Of declared tables that are not in the catalog, or have no data yet: where they would be."""
    unsupported: tuple[Unsupported, ...] = ()
    """What this service cannot do, beyond what is known of its type."""
    sources: Mapping[Ident, SourceState] = field(default_factory=lambda: MappingProxyType({}))
    """Where the rows of declared tables come from, as it was looked at for this plan."""
    origins: Mapping[Ident, Origin] = field(default_factory=lambda: MappingProxyType({}))
    """The same for declared tables whose rows are moved from another table."""
    values: Mapping[tuple[Ident, ValueCheck], ValueFinding] = field(default_factory=lambda: MappingProxyType({}))
    """Whether values fit, for the steps that depend on it. What is not in here was not asked, or could not be read."""
    kept: Mapping[tuple[Ident, str], KeptColumn] = field(default_factory=lambda: MappingProxyType({}))
    """Columns that steps create, by table and path, of which a tag of ours still has the earlier values."""
    left_out: LeftOut = LeftOut()
    data_left: Mapping[Ident, str] = field(default_factory=lambda: MappingProxyType({}))
    """In a simulation: where the data of deregistered tables stays that nobody opened. A real catalog is looked at
    again (`checked`)."""
    root: RootSeen = RootSeen()

    def refuses(self, change: Change) -> str | None:
        """As `Capabilities.refuses`, by the service's own word."""
        name, ident = type(change).__name__, change.ident
        fits = (u.reason for u in self.unsupported if u.change == name and ident[: len(u.ident)] == u.ident)
        return next(fits, None)

    def complete_below(self, ident: Ident) -> bool:
        return self.gap_at(ident) is None

    def gap_at(self, ident: Ident) -> Gap | None:
        """A gap that this identifier lies in or that lies below it."""
        inside = (g for g in self.gaps if g.ident[: len(ident)] == ident or ident[: len(g.ident)] == g.ident)
        return next(inside, None)
