"""Changes of the tables of a directory catalog. Every condition that `__manifest` can decide is checked inside its
commit; what lives in folders is claimed by creating a file that must not exist."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.catalog.base import WriteContext, Written
from reconciler.catalog.directory_inventory import DetachedRecord, TableRecord
from reconciler.catalog.directory_places import DEREGISTERED, Place
from reconciler.catalog.directory_read import DirectoryReader
from reconciler.catalog.directory_rows import NAMESPACE, TABLE, Row, dump_properties, object_id
from reconciler.catalog.directory_rules import (
    changed,
    data_left,
    need_free,
    need_parent,
    need_table,
    properties,
    table_exists,
)
from reconciler.catalog.directory_strays import folder_name
from reconciler.catalog.directory_unfinished import PAUSES
from reconciler.catalog.lance_remains import DataGone, has_versions
from reconciler.catalog.marks import join, split, updated
from reconciler.catalog.storage import RESERVED, marker
from reconciler.core.uris import contains
from reconciler.model.change import (
    AdoptTable,
    CreateDataset,
    DeclareTable,
    DeregisterTable,
    RenameTable,
    UpdateTable,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, dotted
from reconciler.model.state import Marks

if TYPE_CHECKING:
    from reconciler.catalog.lance_write import DatasetChange


class DirectoryWriter:
    def __init__(self, reader: DirectoryReader) -> None:
        self.reader = reader
        self.storage = reader.storage
        self.manifest = reader.manifest
        self.inventory = reader.inventory
        self.datasets = reader.datasets
        self.capabilities = reader.capabilities

    def declare(self, change: DeclareTable) -> None:
        problem = self.capabilities.ident_problem("Table", change.ident) or self.capabilities.refuses(change)
        if problem:
            raise CatalogError(Code.INVALID_INPUT, problem)
        folder = self._existing_data(change) if change.location is not None else None
        if self.capabilities.listed(change.ident):
            self._declare_root(change, folder)
        elif folder is None:
            self._declare_new(change)
        else:
            self._attach(change, folder)

    def _existing_data(self, change: DeclareTable) -> str:
        location = change.location or ""
        problem = self.capabilities.location_problem(change.ident, location)
        folder = self.storage.relative(location)
        if problem or folder is None:
            raise CatalogError(Code.INVALID_INPUT, problem or f"{location!r} is not below {self.storage.root}")
        self.reader.need_inside(folder)
        if (link := self.reader.link_problem(change.ident, folder, location)) is not None:
            raise CatalogError(Code.INVALID_INPUT, link)
        if not self.has_versions(folder):
            raise CatalogError(Code.INVALID_INPUT, f"there is no Lance dataset at {self.storage.uri(folder)}")
        return folder

    def _declare_new(self, change: DeclareTable) -> None:
        """The marker first, in a folder with a random name; it is taken away again when the row is refused. Data that
        a table of this name left behind is reattached, never shadowed by an empty table."""
        left = self.inventory.detached(object_id(change.ident))
        if left is not None and self.has_versions(left.location):
            raise data_left(change.ident, self.storage.uri(left.location))
        while True:
            folder = folder_name(uuid.uuid4().hex, object_id(change.ident))
            if self.storage.create(f"{folder}/{RESERVED}", marker(change.marks.owner)):
                break
        try:
            self._insert(change, folder)
        except CatalogError as error:
            if not error.unknown_outcome:
                self.storage.delete(f"{folder}/{RESERVED}")
                self.storage.prune(folder)
            raise

    def _attach(self, change: DeclareTable, folder: str) -> None:
        """The marker first, as in a folder of its own: a row of ours beside data without our mark says nothing."""
        file = f"{folder}/{RESERVED}"
        before = self.storage.read(file)
        self.storage.replace(file, marker(change.marks.owner))
        try:
            self._insert(change, folder)
        except CatalogError as error:
            if not error.unknown_outcome:
                if before is None:
                    self.storage.delete(file)
                else:
                    self.storage.replace(file, before)
            raise
        self.inventory.reattached(object_id(change.ident), folder)

    def _insert(self, change: DeclareTable, folder: str) -> None:
        key = object_id(change.ident)
        row = Row(key, TABLE, folder, dump_properties(join(change.properties, change.marks)))

        def edit(rows: dict[str, Row]) -> None:
            need_parent(rows, change.ident)
            need_free(rows, change.ident)
            for other in rows.values() if change.location else ():
                if other.location == folder:
                    raise CatalogError(
                        Code.INVALID_INPUT, f"the data at {folder!r} belongs to table {dotted(other.ident)} already"
                    )
                if other.location and (contains(other.location, folder) or contains(folder, other.location)):
                    raise CatalogError(
                        Code.INVALID_INPUT,
                        f"the folders {folder!r} and {other.location!r} of table {dotted(other.ident)} are inside one "
                        "another: choose another `location`",
                    )
            rows[key] = row

        self.manifest.edit(edit)

    def _declare_root(self, change: DeclareTable, folder: str | None) -> None:
        """Claim in the inventory, row, marker with the claim's token, confirmation: in this order, so that a table
        appears with its properties and its owner, and a run that dies before leaves nothing that counts as a table."""
        name = change.ident[0]
        home = self.capabilities.root_folders(name)[0]
        row = self.reader.rows().get(name)
        if row is not None and row.object_type == NAMESPACE:
            raise CatalogError(Code.INVALID_TABLE_STATE, f"there is a namespace named {dotted(change.ident)}")
        place, left = self.reader.locate(change.ident)
        if place is not None and self.reader.only_claimed(place):
            place = None
        if place is not None or (left is not None and folder is not None and left != folder):
            raise table_exists(change.ident)
        if left is not None and folder is None:
            self._need_declared_only(change.ident, left)
        claim = self.inventory.claim(name, change.marks)
        if left is not None:  # its row would end the deregistration: the marker goes first
            self.storage.replace(f"{left}/{RESERVED}", claim.claim.encode())
            self.storage.delete(f"{left}/{DEREGISTERED}")
        if self.capabilities.manifest:
            self._save_root_row(change.ident, left or home, change.properties, ())
        if left is None:
            self._reserve(change.ident, home, claim, row)
        self.inventory.confirm(claim)

    def _need_declared_only(self, ident: Ident, folder: str) -> None:
        listing = self.storage.list(folder)
        if any(not n.startswith(".") for n in (*listing.folders, *listing.files)):
            raise data_left(ident, self.storage.uri(folder))

    def _reserve(self, ident: Ident, folder: str, claim: TableRecord, before: Row | None) -> None:
        """`before`: the row as it was, which somebody else's table gets back."""
        marker = f"{folder}/{RESERVED}"
        if not self.storage.create(marker, claim.claim.encode()):
            if self.storage.read(marker) != claim.claim.encode():
                self._put_back(ident, before)
            raise table_exists(ident)
        listing = self.storage.list(folder)
        if any(not n.startswith(".") for n in (*listing.folders, *listing.files)) and not self._ours(folder, claim):
            # somebody wrote a dataset there in the same moment: it is theirs
            self.storage.delete(marker)
            self._put_back(ident, before)
            self.inventory.forget(ident[0])
            raise table_exists(ident)

    def _put_back(self, ident: Ident, before: Row | None) -> None:
        def edit(rows: dict[str, Row]) -> None:
            rows.pop(ident[0], None)
            if before is not None:
                rows[ident[0]] = before

        if self.capabilities.manifest:
            self.manifest.edit(edit)

    def _ours(self, folder: str, claim: TableRecord) -> bool:
        """Another run of this owner may have found our marker and gone on from there before we looked."""
        for pause in (*PAUSES, None):
            with contextlib.suppress(CatalogError):
                if self.datasets.state(self.storage.uri(folder)).owner == claim.marks.owner:
                    return True
            if pause is not None:
                time.sleep(pause)
        return False

    def _save_root_row(self, ident: Ident, folder: str, set_: Mapping[str, str], unset: tuple[str, ...]) -> None:
        """The user's properties of a root table; the marks are in the inventory."""

        def edit(rows: dict[str, Row]) -> None:
            row = rows.get(ident[0])
            if row is not None and row.object_type != TABLE:
                raise CatalogError(Code.INVALID_TABLE_STATE, f"there is a namespace named {dotted(ident)}")
            row = row or Row(ident[0], TABLE, folder)
            rows[ident[0]] = row.with_properties(updated(properties(row), set_, unset))

        self.manifest.edit(edit)

    def update_table(self, change: UpdateTable) -> None:
        place = self.place(change.ident)
        if not place.listed:
            self._edit_row(change.ident, change.set, change.unset, change.marks)
            return
        if change.set or change.unset:
            if not self.capabilities.manifest:
                raise CatalogError(Code.UNSUPPORTED, self.capabilities.refuses(change) or "no properties in V1")
            self._save_root_row(change.ident, place.location, change.set, change.unset)
        self.inventory.save(change.ident[0], change.marks)

    def adopt_table(self, change: AdoptTable, context: WriteContext) -> Written:
        """The catalog first: a dataset mark alone would make the table look detached from us."""
        from reconciler.catalog.lance_write import adopt_dataset

        place = self._unmoved(change.ident, context)
        dataset = self.reader.dataset(place)
        if place.listed:
            self.inventory.save(change.ident[0], change.marks, self._new_token(place) if dataset is None else "")
        else:
            if dataset is None:
                self.storage.replace(f"{place.location}/{RESERVED}", marker(change.marks.owner))
            self._edit_row(change.ident, {}, (), change.marks)
        if dataset is None:
            return Written()
        return adopt_dataset(self.datasets, self.reader.uri(place.location), change, context)

    def _new_token(self, place: Place) -> str:
        """Of a table without data that is taken over: its marker says whose it is from here on."""
        token = uuid.uuid4().hex
        self.storage.replace(f"{place.location}/{RESERVED}", token.encode())
        return token

    def _edit_row(self, ident: Ident, set_: Mapping[str, str], unset: tuple[str, ...], marks: Marks) -> None:
        def edit(rows: dict[str, Row]) -> None:
            row = need_table(rows, ident)
            rows[row.object_id] = changed(row, set_, unset, marks)

        self.manifest.edit(edit)

    def rename(self, change: RenameTable) -> None:
        """One commit; the data stays where it is."""
        problem = self.capabilities.refuses(change) or self.capabilities.ident_problem("Table", change.ident)
        if problem:
            raise CatalogError(Code.UNSUPPORTED, problem)

        def edit(rows: dict[str, Row]) -> None:
            row = need_table(rows, change.source)
            need_parent(rows, change.ident)
            need_free(rows, change.ident)
            del rows[row.object_id]
            key = object_id(change.ident)
            rows[key] = replace(row, object_id=key)

        self.manifest.edit(edit)

    def deregister(self, change: DeregisterTable) -> None:
        """Never touches data: a record or a marker first, then the row."""
        place = self.place(change.ident)
        if place.listed:
            self._deregister_root(place)
            return
        row = place.row
        owner = split(properties(row))[1].owner if row else None
        self._need_our_data(place, owner)
        self.inventory.detach(DetachedRecord(object_id(change.ident), place.location, owner))

        def edit(rows: dict[str, Row]) -> None:
            row = need_table(rows, change.ident)
            if row.location != place.location:
                raise CatalogError(
                    Code.CONCURRENT_MODIFICATION,
                    f"table {dotted(change.ident)} was replaced in the meantime: read again",
                )
            del rows[row.object_id]

        self.manifest.edit(edit)

    def _deregister_root(self, place: Place) -> None:
        """The marker is a file in the folder, so the folder must be the one that our record speaks of."""
        name = place.ident[0]
        self._need_our_data(place, self.reader.record_marks(place, None)[0].owner)
        if self.storage.is_folder(place.location):
            self.datasets.stats.count("writes")
            self.storage.create(f"{place.location}/{DEREGISTERED}", b"")

        def edit(rows: dict[str, Row]) -> None:
            row = rows.get(name)
            if row is not None and row.object_type == TABLE:
                del rows[name]

        if self.capabilities.manifest:
            self.manifest.edit(edit)
        self.inventory.forget(name)

    def _need_our_data(self, place: Place, owner: str | None) -> None:
        if owner is not None and not self.reader.is_made_by(owner, place):
            raise CatalogError(
                Code.CONCURRENT_MODIFICATION,
                f"{self.storage.uri(place.location)} holds other data than the table {dotted(place.ident)} of {owner}: "
                "move it away, or adopt it first",
            )

    def create_dataset(self, change: CreateDataset, context: WriteContext) -> Written:
        from reconciler.catalog.lance_write import create_dataset

        place = self._unmoved(change.ident, context)
        if not self.has_versions(place.location):
            self._check_declared_only(place, context)
        if place.listed:
            self._confirm(place)
        return create_dataset(self.datasets, self.reader.uri(place.location), change, context)

    def _confirm(self, place: Place) -> None:
        """A declare that was cut short after the marker is complete: from here on there is data to lose."""
        marks, confirmed = self.reader.record_marks(place, None)
        record = None if confirmed else self.inventory.table(place.ident[0])
        if record is not None:
            self.inventory.confirm(replace(record, marks=marks))

    def _check_declared_only(self, place: Place, context: WriteContext) -> None:
        """Data that is gone is made again only where the plan said that it is gone."""
        try:
            self.reader.check_declared_only(place)
        except CatalogError as error:
            if isinstance(error, DataGone) and context.table is not None and context.table.gone:
                return
            if not self.has_versions(place.location):  # else another run was faster
                raise

    def change_dataset(self, change: DatasetChange, context: WriteContext) -> Written:
        from reconciler.catalog.lance_write import apply_to_dataset

        place = self._unmoved(change.ident, context)
        if not self.has_versions(place.location):
            raise CatalogError(
                Code.INVALID_TABLE_STATE, f"table {dotted(change.ident)} is declared but has no dataset yet"
            )
        return apply_to_dataset(self.datasets, self.reader.uri(place.location), change, context)

    def has_versions(self, folder: str) -> bool:
        return has_versions(self.storage, folder)

    def _unmoved(self, ident: Ident, context: WriteContext) -> Place:
        """Where the table is, if that is where its data was read."""
        place = self.place(ident)
        context.need_unmoved(ident, self.reader.canonical(place.location))
        return place

    def place(self, ident: Ident) -> Place:
        """Raises TABLE_NOT_FOUND, or why the table cannot be told from another."""
        place, _ = self.reader.locate(ident)
        if place is None:
            raise CatalogError(Code.TABLE_NOT_FOUND, f"table {dotted(ident)} is not in the catalog")
        if place.problem:
            raise CatalogError(Code.INVALID_TABLE_STATE, place.problem)
        self.reader.need_inside(place.location)
        return place
