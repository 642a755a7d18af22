"""The whole plug-in surface of a backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from reconciler.model.capabilities import Capabilities
from reconciler.model.change import Change, DataChange, MaterializeTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.missed import Unlisted
from reconciler.model.observed import Observation, Scope, Seen
from reconciler.model.spark import Runner
from reconciler.model.state import DatasetState, TableState


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Who writes: recorded in dataset commits and in the tag set before a destructive or rewriting change."""

    plan_id: str = ""
    step_id: str = ""
    tag: str | None = None
    """When given, the dataset's version is tagged with this name before the change."""
    applied_by: str = ""
    """The run, for `reconciler.applied-by`: written with the change itself, and not at all when it is empty."""
    table: TableState | None = None
    """The table as it was read right before. Its data is changed at that location and with that mark only."""
    runner: Runner = "spark"
    """Of a data-plane step: what runs its tasks."""
    begun: bool = True
    """The step may have written something already, in this run or an earlier one: then a tag of that name is its own,
    and stays. Otherwise it is of an earlier time that the same plan was applied."""

    def need_unmoved(self, ident: Ident, place: str) -> None:
        """`place`: the canonical location of the entry now. Raises CatalogError."""
        if self.table is not None and self.table.place not in (None, place):
            raise CatalogError(
                Code.CONCURRENT_MODIFICATION,
                f"table {dotted(ident)} is at {place} now, and was at {self.table.place} when it was read: nothing was "
                "written",
            )

    def need_mark(self, owner: str | None, uri: str, *expected: str) -> None:
        """`owner`: the mark in the data now; `expected`: another one that is fine. Raises CatalogError."""
        read = self.table.dataset if self.table is not None else None
        if isinstance(read, DatasetState) and owner not in (read.owner, *expected):
            raise CatalogError(
                Code.CONCURRENT_MODIFICATION,
                f"the data at {uri} is marked by {owner or 'nobody'} now, and was by {read.owner or 'nobody'} when it "
                "was read: nothing was written",
            )


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


class NotRead(CatalogError):
    """Some of the objects that were asked for could not be read, and why. It speaks as the first of them."""

    def __init__(self, errors: Mapping[tuple[Kind, Ident], CatalogError]) -> None:
        first = next(iter(errors.values()))
        super().__init__(first.code, first.message, retry_after=first.retry_after)
        self.errors = errors
        self.spent = any(error.spent for error in errors.values())
        self.unreachable = any(error.unreachable for error in errors.values())


class Catalog(Protocol):
    @property
    def capabilities(self) -> Capabilities: ...

    def scan(self, scope: Scope) -> Iterator[Seen]:
        """Everything in the catalog, in bulk. An object that cannot be read is Unreadable, a listing that cannot be
        finished is a Gap; neither raises. Raises CatalogError only when nothing at all can be said.
        Yields Present and Unreadable, and for tables of `scope.detail` that are not there Detached, or Absent when
        their location was looked at.
        Unsupported where this service says that it lacks what others of its type can do."""

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        """These objects now, one observation each, Absent included. Never answers from a cache that predates the call.
        A namespace's children for a RESTRICT check come from `children`. Raises CatalogError; `NotRead` after the
        observations of the others, where each object is asked for by itself."""

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


@runtime_checkable
class Placed(Protocol):
    """What a catalog offers besides when it can say of itself where it is, without reading anything that is in it."""

    def told(self, what: str) -> str:
        """One of `Capabilities.told`. Raises CatalogError."""


@runtime_checkable
class Recorded(Protocol):
    """What a catalog, or the store of one, offers besides when it notes down a write before it begins."""

    def settle_records(self) -> None:
        """Removes the notes of writes that were done and whose run was cut right after. Asked for once by every run
        that applies, also when it has nothing to do: planning only reads. Raises CatalogError."""


@runtime_checkable
class Searched(Protocol):
    """What a catalog of files offers besides: datasets that it holds and does not list as tables."""

    def unlisted(self) -> Unlisted:
        """Bounded, reads only. Raises CatalogError when nothing at all can be said."""


class DataPlane(Protocol):
    """What moves the rows of tables, whichever catalog they are in."""

    def moved(self, catalog: str, change: DataChange) -> str | None:
        """Why what the step would read is not what the plan was made on, or None. Reads only."""

    def rows_changed(self, catalog: Catalog, change: MaterializeTable, state: TableState) -> str | None:
        """Why the rows of others that the step may touch are not those of the plan, or None. `state`: the table as just
        read. Reads only."""

    def apply(self, catalog: Catalog, change: DataChange, state: TableState, context: WriteContext) -> Written:
        """`state`: the table as just read. Exactly one commit of rows, or none. Raises CatalogError only; safe to send
        again after an unknown outcome."""

    def close(self) -> None: ...
