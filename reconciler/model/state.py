"""What a namespace or a table is, desired or live: the values that the planner compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

from reconciler.model.arrow import Field
from reconciler.model.data import DataRecord

EMPTY: Mapping[str, str] = MappingProxyType({})

OWNER_KEY = "reconciler.owner"
PROTECT_KEY = "reconciler.protect"
APPLIED_KEY = "reconciler.applied-keys"
APPLIED_BY_KEY = "reconciler.applied-by"
RESERVED_PREFIX = "reconciler."
DESCRIPTION_KEY = "description"
"""`spec.description` is this property; a backend with a native comment maps it there."""


class Unknown(Enum):
    """A value the backend cannot show (or that does not exist yet). It never produces a change."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN

Param = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Marks:
    """Our own notes on a live object. The backend decides where they are stored."""

    owner: str | None = None
    protect: bool = False
    applied: tuple[str, ...] = ()
    """Sorted property keys that we set last: a key in here that the manifest lost is removed, others' keys stay."""
    applied_by: str | None = field(default=None, compare=False)
    """Which run wrote the object last (`model.run`). Never compared, never part of a fingerprint or a plan."""


@dataclass(frozen=True, slots=True)
class NamespaceState:
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    marks: Marks = field(default_factory=Marks)
    container: bool = field(default=False, compare=False)
    """A level that holds namespaces only and is the service's own (a warehouse, a federated catalog of Glue): never
    made, changed, dropped or imported. Never part of a fingerprint, as is `lasting`."""
    lasting: str | None = field(default=None, compare=False)
    """Why the catalog cannot drop it, whoever owns it."""
    level: str | None = field(default=None, compare=False)
    """Which of `Capabilities.levels` it is; None where they do not say what it holds. Never part of a fingerprint."""


VECTOR_INDEXES = frozenset({"ivf_flat", "ivf_sq", "ivf_pq", "ivf_rq", "ivf_hnsw_flat", "ivf_hnsw_sq", "ivf_hnsw_pq"})


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """What our record in the dataset says about an index that we built. It never stands for a live value."""

    params: Mapping[str, Param]
    """As declared when the index was built."""
    rows: int | None = None
    """How many rows the table had then: why Lance may have built something else than was declared."""
    current: bool = False
    """The live index is the one that was built. False once somebody built it again."""
    again: int = 0
    """How many times we built the same definition in place of itself: what a step that does so can be known by."""
    kept: Mapping[str, Param] = field(default_factory=lambda: MappingProxyType({}))
    """What was not declared and was taken over from the index before it."""


@dataclass(frozen=True, slots=True)
class Index:
    """Desired: `params` holds what the manifest says. Live: `params` holds what was read from the live index, and
    nothing else: what cannot be read is unknown."""

    name: str
    column: str
    """Dotted path for a nested column."""
    type: str
    params: Mapping[str, Param] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    unread: frozenset[str] = field(default=frozenset(), compare=False)
    """Live only: the parameters of this type that cannot be read from the live index. Never part of a fingerprint."""
    record: BuildRecord | None = field(default=None, compare=False)
    """Live only: our record of building it; None when we did not."""
    rows: int | None = field(default=None, compare=False)
    """Live only: the rows of the table. None: not read. Never part of a fingerprint, as is `indexed_rows`."""
    indexed_rows: int | None = field(default=None, compare=False)
    """Live only: the rows that the index covers; None in a simulation too, where nobody knows yet."""
    untrained: str | None = field(default=None, compare=False)
    """Live only: why Lance cannot train it on the rows that are there, so that it covers none of them."""
    kept: Mapping[str, Param] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Of an index that a step builds in place of a live one, or after it: live values of parameters that are not
    declared (`core.kept_params`)."""
    external: bool = field(default=False, compare=False)
    """Live only: we built none of its segments, and what we last built under this name had another column or type, or
    there is no such build. Segments alone prove nothing: Lance gives an index others when it takes in rows."""

    @property
    def built_with(self) -> dict[str, Param]:
        return {**self.kept, **self.params}


def default_index_name(column: str) -> str:
    """What an index is called when the manifest gives no name."""
    return column.replace(".", "_") + "_idx"


@dataclass(frozen=True, slots=True)
class DatasetState:
    """The Lance dataset at a table's location: the schema of record."""

    fields: tuple[Field, ...]
    schema_metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    config: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    indexes: tuple[Index, ...] = ()
    owner: str | None = None
    """Repeats the owner mark, so that a dataset that lost its catalog entry is still known as ours."""
    applied: tuple[str, ...] = ()
    """Sorted `config:KEY`, `schema:KEY`, `field:PATH:KEY`, `index:NAME` that we set last."""
    version: int | None = None
    """For reports only: never compared, never part of a fingerprint."""
    data: DataRecord | None = None
    """What we noted when we filled it; None when we never did."""
    empty: bool = field(default=True, compare=False)
    """Without any row. Never part of a fingerprint, as rows are not."""
    rows: int | None = field(default=None, compare=False)
    """How many rows it has; None: not read."""
    bytes: int | None = field(default=None, compare=False)
    """Of its data files; None: not read."""
    applied_by: str | None = field(default=None, compare=False)
    """As in `Marks`, of the dataset's own commits."""
    begun_by: str | None = field(default=None, compare=False)
    """The owner that made it, when that run was cut before it wrote the mark: version 1, empty, by a transaction of
    ours. Empty when the transaction does not name the owner. Never part of a fingerprint."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as a catalog service shows it: a projection of the dataset's schema, never the schema of record.
    `type` is in the words of that service."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class TableState:
    location: str | Unknown = UNKNOWN
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    marks: Marks = field(default_factory=Marks)
    dataset: DatasetState | Unknown | None = UNKNOWN
    """None: declared only, no data yet. UNKNOWN: not read."""
    columns: tuple[Column, ...] | None = None
    """What the catalog shows as the columns, empty where it could show some and does not; None where it never shows
    any, and then they are never compared. Their order is not compared, as that of a schema is not."""
    place: str | None = field(default=None, compare=False, repr=False)
    """Which dataset it is, whatever the spelling of `location`: its canonical form (`core.uris`), links resolved where
    storage has them. Never compared as part of the state, never part of a fingerprint."""
    marked_by: str | None = field(default=None, compare=False, repr=False)
    """Whose mark is in a dataset that is left to another catalog. Never compared, never part of a fingerprint."""
    gone: bool = False
    """The entry is somebody's, by its mark, and nothing is left of its data at its location: it is not declared only,
    there was something to lose."""
