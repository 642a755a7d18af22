"""The whole plug-in surface of a backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from reconciler.model.capabilities import Capabilities
from reconciler.model.change import Change, DataChange
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Gap, Observation, Occupied, Scope, Unsupported
from reconciler.model.state import TableState


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Who writes: recorded in dataset commits and in the tag set before a destructive or rewriting change."""

    plan_id: str = ""
    step_id: str = ""
    tag: str | None = None
    """When given, the dataset's version is tagged with this name before the change (kept if it exists)."""
    applied_by: str = ""
    """The run, for `reconciler.applied-by`: written with the change itself, and not at all when it is empty."""


@dataclass(frozen=True, slots=True)
class Written:
    """Dataset versions around the write, where there is a dataset."""

    version_before: int | None = None
    version_after: int | None = None
    tagged: bool | None = None
    """Whether the version before has its tag; None: it has, if there is a change to come back from."""


@dataclass(frozen=True, slots=True)
class DataPlace:
    """A dataset as lance opens it, for work that is done in another process."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


class Catalog(Protocol):
    @property
    def capabilities(self) -> Capabilities: ...

    def scan(self, scope: Scope) -> Iterator[Observation | Gap | Occupied | Unsupported]:
        """Everything in the catalog, in bulk. An object that cannot be read is Unreadable, a listing that cannot be
        finished is a Gap; neither raises. Raises CatalogError only when nothing at all can be said.
        Yields Present and Unreadable, and Detached for tables of `scope.detail`; never Absent.
        Unsupported where this service says that it lacks what others of its type can do."""

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        """These objects now, one observation each, Absent included. Never answers from a cache that predates the call.
        A namespace's children for a RESTRICT check come from `children`."""

    def children(self, ident: Ident) -> Sequence[str]:
        """Names of everything directly inside, from the raw listing: foreign and unreadable objects too."""

    def data_place(self, ident: Ident, state: TableState) -> DataPlace:
        """Where the dataset of a table is that was just read as `state`, with what it takes to open it, also what the
        service hands out for this table alone. Raises CatalogError, also when the table has moved meanwhile."""

    def apply(self, change: Change, context: WriteContext) -> Written:
        """One mutation. Raises CatalogError only. Safe to send again after an unknown outcome."""

    def close(self) -> None: ...


class LeaseRecords(Protocol):
    """Numbered records in one place of a catalog, hidden from its listings. A record is never changed: the one with the
    highest number counts. Methods raise CatalogError only."""

    @property
    def place(self) -> str:
        """For messages, and to know that two catalogs are one place."""

    def numbers(self) -> Sequence[int]:
        """Of the records there are now."""

    def read(self, number: int) -> str | None: ...

    def create(self, number: int, text: str) -> bool:
        """Atomic for all processes: of several, one. False when it is there already."""

    def drop(self, number: int) -> None:
        """Fine when it is not there."""


@runtime_checkable
class Leased(Protocol):
    """What a catalog, or the store of one, offers besides when two runs can be kept apart on it. Ours derive from it,
    so that their method is checked against this one; for others it is enough to have it."""

    def lease_records(self, idents: Sequence[Ident]) -> Sequence[LeaseRecords] | None:
        """The places that guard these objects; None where nothing does. Sends nothing yet."""


class DataPlane(Protocol):
    """What moves the rows of tables, whichever catalog they are in."""

    def moved(self, catalog: str, change: DataChange) -> str | None:
        """Why what the step would read is not what the plan was made on, or None. Reads only."""

    def apply(self, catalog: Catalog, change: DataChange, state: TableState, context: WriteContext) -> Written:
        """`state`: the table as just read. Exactly one commit of rows, or none. Raises CatalogError only; safe to send
        again after an unknown outcome."""

    def close(self) -> None: ...
