"""The closed set of changes. A change is one mutation of one object; a catalog applies it, nothing else does.

Every change knows its plan `action`. `model.plan_json` turns it into the `after` of a step and back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from reconciler.model.arrow import ArrowType, Field
from reconciler.model.ident import Ident, Kind
from reconciler.model.state import Column, Index, Marks


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """`level`, of all changes of namespaces: "catalog" for one that holds namespaces, where the catalog has two kinds
    (`Capabilities.levels`); None for any other."""

    action: ClassVar[str] = "create_namespace"
    kind: ClassVar[Kind] = "Namespace"
    ident: Ident
    properties: Mapping[str, str]
    marks: Marks
    level: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateNamespace:
    """Sets and removes properties and replaces the marks, in one write."""

    action: ClassVar[str] = "update_namespace"
    kind: ClassVar[Kind] = "Namespace"
    ident: Ident
    set: Mapping[str, str]
    unset: tuple[str, ...]
    marks: Marks
    level: str | None = None


@dataclass(frozen=True, slots=True)
class AdoptNamespace:
    action: ClassVar[str] = "adopt"
    kind: ClassVar[Kind] = "Namespace"
    ident: Ident
    marks: Marks
    level: str | None = None


@dataclass(frozen=True, slots=True)
class RenameNamespace:
    """Moves the namespace and everything inside, atomically. `ident` is the new identifier."""

    action: ClassVar[str] = "rename_namespace"
    kind: ClassVar[Kind] = "Namespace"
    ident: Ident
    source: Ident


@dataclass(frozen=True, slots=True)
class DropNamespace:
    """RESTRICT: fails with NamespaceNotEmpty when anything at all is inside."""

    action: ClassVar[str] = "drop_namespace"
    kind: ClassVar[Kind] = "Namespace"
    ident: Ident
    level: str | None = None


@dataclass(frozen=True, slots=True)
class DeclareTable:
    """A new catalog entry. `location`: data that exists already (reattach, register), or, where the catalog lets one
    choose, the place for new data; None lets the catalog choose. `columns`: for a catalog that shows columns."""

    action: ClassVar[str] = "declare_table"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    properties: Mapping[str, str]
    marks: Marks
    location: str | None = None
    columns: tuple[Column, ...] | None = None


@dataclass(frozen=True, slots=True)
class SyncColumns:
    """Makes the columns that the catalog shows equal to the dataset's schema; nothing else of the entry changes."""

    action: ClassVar[str] = "update_table"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class ReplaceTable:
    """For a catalog that cannot update an entry: the entry is removed and created again at the same location, with
    these changes. What hangs on the entry's identity (grants) is lost, so it needs `allow: [replace_table]`.
    When it is cut in between, the data is there without an entry (Detached): declaring it again ends what was begun.
    `columns`: all of them; None for a catalog that shows none."""

    action: ClassVar[str] = "replace_table"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    set: Mapping[str, str]
    unset: tuple[str, ...]
    marks: Marks
    columns: tuple[Column, ...] | None = None


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """Catalog side: sets and removes properties and replaces the marks, in one write."""

    action: ClassVar[str] = "update_table"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    set: Mapping[str, str]
    unset: tuple[str, ...]
    marks: Marks


@dataclass(frozen=True, slots=True)
class UpdateDataset:
    """Dataset side: one commit. A value of None removes the key. `fields` maps a column path to its metadata;
    a column's comment is its metadata key `comment`."""

    action: ClassVar[str] = "update_table"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    config: Mapping[str, str | None]
    schema_metadata: Mapping[str, str | None]
    fields: Mapping[str, Mapping[str, str | None]]
    owner: str
    applied: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdoptTable:
    """Writes the marks on the catalog entry and, where there is one, on the dataset."""

    action: ClassVar[str] = "adopt"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    marks: Marks
    applied: tuple[str, ...] = ()
    """For the dataset's own record, as in UpdateDataset."""


@dataclass(frozen=True, slots=True)
class RenameTable:
    """`ident` is the new identifier."""

    action: ClassVar[str] = "rename_table"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    source: Ident


@dataclass(frozen=True, slots=True)
class DeregisterTable:
    """Removes the catalog entry and keeps the data, always; the catalog remembers where the data is."""

    action: ClassVar[str] = "deregister_table"
    kind: ClassVar[Kind] = "Table"
    ident: Ident


@dataclass(frozen=True, slots=True)
class CreateDataset:
    """Writes the empty dataset at the declared location. Never over an existing one."""

    action: ClassVar[str] = "create_dataset"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    fields: tuple[Field, ...]
    schema_metadata: Mapping[str, str]
    config: Mapping[str, str]
    owner: str
    applied: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddColumns:
    """Nullable columns, filled with nulls: metadata only."""

    action: ClassVar[str] = "add_columns"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ColumnAlteration:
    """None leaves that aspect alone. `path` is the name before the rename."""

    path: str
    rename: str | None = None
    type: ArrowType | None = None
    nullable: bool | None = None


@dataclass(frozen=True, slots=True)
class AlterColumns:
    """Renames, casts that pylance does in place, nullability."""

    action: ClassVar[str] = "alter_columns"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    columns: tuple[ColumnAlteration, ...]
    loses: tuple[str, ...] = ()
    """Names of indexes that go in the same commit, because Lance binds an index to the old column. A cast that meets
    any other index on its columns is refused."""
    empty: bool = False
    """Any type becomes any other, because the table has no rows. It is refused once there are some."""

    @property
    def writes_anew(self) -> bool:
        """The columns are written anew in process, in one commit: pylance refuses to cast them in place."""
        return self.empty or bool(self.loses)


@dataclass(frozen=True, slots=True)
class DropColumns:
    action: ClassVar[str] = "drop_columns"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreateIndex:
    action: ClassVar[str] = "create_index"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    index: Index


@dataclass(frozen=True, slots=True)
class ReplaceIndex:
    """Builds the index anew and swaps it in: one commit, so that no version of the dataset is without it."""

    action: ClassVar[str] = "replace_index"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    index: Index
    again: int = 0
    """See `BuildRecord`: tells the index that this step builds from the one of the same definition that it replaces."""


@dataclass(frozen=True, slots=True)
class DropIndex:
    action: ClassVar[str] = "drop_index"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    name: str


@dataclass(frozen=True, slots=True)
class RefreshIndex:
    """Builds a declared index again over all rows, in one commit, with the same parameters. Nothing that a plan
    compares changes by it, so the live coverage says whether it is still to be done (`core.coverage.refresh_due`)."""

    action: ClassVar[str] = "refresh_index"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    index: Index
    max_unindexed: str
    """As `model.coverage.Limit`: with no more unindexed than this there is nothing to do."""
    max_rows: int | None = None
    """A table that has more rows by then is left to `pipeline maintain`. None: of any size, because the rows come from
    this plan."""


@dataclass(frozen=True, slots=True)
class BackfillColumns:
    """Data plane: new columns whose values for existing rows come from SQL (`Field.default`)."""

    action: ClassVar[str] = "backfill_columns"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class RewriteColumns:
    """Data plane: type changes that pylance refuses to do in place, nested columns to be added."""

    action: ClassVar[str] = "rewrite_columns"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    fields: tuple[Field, ...]
    """The whole new top-level columns."""
    loses: tuple[str, ...] = ()
    """As in AlterColumns."""


@dataclass(frozen=True, slots=True)
class MaterializeTable:
    """Data plane: rows from a source, in one commit. `replace`: instead of those that are there, else beside them."""

    action: ClassVar[str] = "materialize_table"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    reads: Mapping[str, object]
    """The source as written: `${env:}` and `${file:}` unresolved."""
    replace: bool
    digest: str
    """Of the source, to be noted with the rows; the source must still be that one when it is read."""
    files: Mapping[str, str]
    """Hash of a path -> hash of what the file is: these files and no others. Empty for a source without files."""
    fields: tuple[Field, ...]
    """The columns to be written, in declared order; with the backfill of those that the source may lack."""
    mapping: Mapping[str, str]
    """Column of the table -> column of the source, where the names differ."""
    partitions: int | None = None
    order_by: tuple[str, ...] = ()
    base: str | None = None
    """The digest that was noted when the plan was made: with any other, other files may be in by now."""
    casts: tuple[str, ...] = ()
    """Sorted columns whose values may be cast to another family of types."""
    nulls: tuple[str, ...] = ()
    """Sorted columns that are null where the source lacks them."""
    unused: tuple[str, ...] = ()
    """Columns of the source that are not read, for people."""
    units: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Column of times -> what the numbers of the source count: s, ms, us or ns."""
    purges: int | None = None
    """The version whose rows may be removed although nobody knows where they came from; rows that others change after
    it are not among them. None: there are no such rows."""
    mixes: bool = False
    """New rows may stand beside rows of unknown origin, which stay as they are."""
    seen: int | None = None
    """The version whose rows the plan was made on, with `mixes`."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Noted with `files` and not read: further places of theirs, and files whose rows are in already."""

    @property
    def only_notes(self) -> bool:
        """No row changes: what is in is noted."""
        return not self.replace and (self.digest == self.base or bool(self.known and not self.files))

    @property
    def seen_rows(self) -> int | None:
        """The version of the plan, where the step may touch rows of unknown origin."""
        return self.purges if self.purges is not None else self.seen


@dataclass(frozen=True, slots=True)
class MigrateTable:
    """Data plane: the dataset of another table, copied to where this one is declared, then marked as ours. `fields` to
    `indexes` are what the source has; it must still have them when it is copied, and it stays as it is."""

    action: ClassVar[str] = "migrate_table"
    kind: ClassVar[Kind] = "Table"
    ident: Ident
    from_catalog: str
    from_ident: Ident
    checksum: bool
    """Every row of the copy is compared with the source before the table shows it."""
    fields: tuple[Field, ...]
    schema_metadata: Mapping[str, str]
    config: Mapping[str, str]
    indexes: tuple[Index, ...]
    owner: str
    applied: tuple[str, ...]
    """For the dataset's own record, as in UpdateDataset."""
    copied_owner: str | None = None
    copied_applied: tuple[str, ...] = ()
    copied_data: str | None = None
    """The source's own notes, which the copy has until it is marked."""


Change = (
    CreateNamespace | UpdateNamespace | AdoptNamespace | RenameNamespace | DropNamespace
    | DeclareTable | UpdateTable | SyncColumns | ReplaceTable | UpdateDataset | AdoptTable | RenameTable
    | DeregisterTable
    | CreateDataset | AddColumns | AlterColumns | DropColumns | CreateIndex | ReplaceIndex | RefreshIndex | DropIndex
    | BackfillColumns | RewriteColumns | MaterializeTable | MigrateTable
)  # fmt: skip

DataChange = BackfillColumns | RewriteColumns | MaterializeTable | MigrateTable
COLUMN_TASKS = (BackfillColumns, RewriteColumns)
"""Fragment by fragment, in tasks that any process can run."""
CREATES_COLUMNS = (AddColumns, BackfillColumns, RewriteColumns)
"""A rewrite creates columns inside of others."""
DATA_PLANE = (BackfillColumns, RewriteColumns, MaterializeTable, MigrateTable)
DELETES = (DropNamespace, DeregisterTable)


def catalogs_read(change: Change) -> frozenset[str]:
    """Catalogs whose tables a data step reads, besides its own."""
    if isinstance(change, MigrateTable):
        return frozenset({change.from_catalog})
    return (
        frozenset(name for name, _ in tables_read(change.reads))
        if isinstance(change, MaterializeTable)
        else frozenset()
    )


def tables_read(source: Mapping[str, object]) -> Iterator[tuple[str, Ident]]:
    """Tables of declared catalogs that a data source names, in its views too."""
    table, views = source.get("table"), source.get("views")
    if source["format"] == "lance" and isinstance(table, Mapping):
        yield table["catalog"], tuple(table["id"])
    for view in views.values() if isinstance(views, Mapping) else ():
        yield from tables_read(view)
