"""The Lance REST namespace as an EntryStore."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.catalog.base import Leased, LeaseRecords
from reconciler.catalog.entries import BrokenEntry, LastLocation, Listed, NamespaceEntry, TableEntry
from reconciler.catalog.locations import lance_uri, same_location
from reconciler.catalog.marks import split
from reconciler.catalog.rest_api import RestApi, text_map
from reconciler.catalog.rest_capabilities import INVENTORY, RestCapabilities
from reconciler.catalog.rest_entries import namespace_entry, stays, table_entry
from reconciler.catalog.rest_inventory import Inventory, Record, digest
from reconciler.catalog.rest_lease import RestLease
from reconciler.catalog.rest_walk import Walk
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ROOT, Ident, dotted, parent
from reconciler.model.observed import Scope
from reconciler.model.state import Column, Marks


class RestStore(Leased):
    property_limit: int | None = None

    def __init__(self, api: RestApi, capabilities: RestCapabilities) -> None:
        self.capabilities = capabilities
        self._api = api
        self._inventory = Inventory(api, capabilities.max_parallelism)
        self._relative_only = False
        self._keeps: dict[bool, bool] = {}
        """Of root tables, and of others: whether the server was seen to keep the properties it declares them with."""

    @property
    def where(self) -> str:
        return f"the Lance REST namespace {self._api.http.base}"

    def lease_records(self, idents: Sequence[Ident]) -> Sequence[LeaseRecords]:
        return [RestLease(self._api)]

    def close(self) -> None:
        self._api.http.close()

    # reads

    def walk(self, scope: Scope) -> Iterator[Listed]:
        return Walk(self._api, self._inventory, self.capabilities, scope)()

    def namespace(self, ident: Ident) -> NamespaceEntry | BrokenEntry | None:
        properties = self._api.namespace(ident)
        if properties is None:
            return None
        return namespace_entry(ident, properties, self._inventory.find("Namespace", ident))

    def table(self, ident: Ident) -> TableEntry | BrokenEntry | None:
        answer = self._api.table(ident)
        return None if answer is None else table_entry(ident, answer, self._inventory.find("Table", ident))

    def inside(self, ident: Ident) -> Sequence[str]:
        names = {*self._api.names(ident, "table"), *self._api.names(ident, "namespace")}
        if ident == ROOT:
            names.discard(INVENTORY)
        return sorted(names)

    def interrupted(self, ident: Ident) -> TableEntry | None:
        return None

    def last_location(self, ident: Ident) -> LastLocation | None:
        """A record without a location is of a table that was about to be declared: nothing may have come of it."""
        record = self._inventory.find("Table", ident)
        if record is None or record.location is None:
            return None
        return LastLocation(record.location, f"the record of {dotted(ident)} in {INVENTORY}", record.marks.owner)

    # namespaces

    def create_namespace(self, ident: Ident, properties: Mapping[str, str]) -> None:
        self._api.create_namespace(ident, properties)

    def update_namespace(self, entry: NamespaceEntry, properties: Mapping[str, str]) -> None:
        marks = _marks_only(entry.ident, entry.properties, properties)
        self._inventory.save("Namespace", entry.ident, Record(marks, born_with=digest(entry.raw)))

    def drop_namespace(self, entry: NamespaceEntry) -> None:
        """The server restricts; what it would do by default is not left to it alone."""
        if entry.lasting:
            raise CatalogError(Code.UNSUPPORTED, f"namespace {dotted(entry.ident)} is left alone: {entry.lasting}")
        names = self.inside(entry.ident)
        if names:
            raise CatalogError(
                Code.NAMESPACE_NOT_EMPTY, f"namespace {dotted(entry.ident)} is not empty: {names[0]!r} is inside"
            )
        self._api.drop_namespace(entry.ident)
        self._inventory.forget("Namespace", entry.ident)

    def rename_namespace(self, entry: NamespaceEntry, ident: Ident) -> None:
        raise CatalogError(Code.UNSUPPORTED, "the Lance REST protocol has no rename of a namespace")

    # tables

    def create_table(
        self, ident: Ident, location: str | None, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> str | None:
        """Servers declare tables below a namespace that is not there (pylance's does), so that is asked first."""
        above = parent(ident)
        if above != ROOT and self._api.namespace(above) is None:
            raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"namespace {dotted(above)} does not exist: create it first")
        if location is None:
            return self._declare(ident, properties)
        users, marks = split(properties)
        noted = self._inventory.save("Table", ident, Record(marks, location, properties=users))
        try:
            self._register(ident, location, properties)
        except CatalogError as error:
            if noted and not error.unknown_outcome:  # Somebody else's table may be at that name and place.
                with contextlib.suppress(CatalogError):
                    self._disown(ident, location)
            raise
        return location

    def _declare(self, ident: Ident, properties: Mapping[str, str]) -> str | None:
        """Servers need not keep the properties of a table (pylance's keep none of a root table, on its defaults): our
        record has them then. Of a root table it is made before the table, unless this server was seen to keep them."""
        at_root = parent(ident) == ROOT
        keeps = self._keeps.get(at_root)
        users, marks = split(properties)
        noted = not keeps and (at_root or keeps is False)
        before = self._inventory.find("Table", ident) if noted else None
        if noted:
            self._inventory.save("Table", ident, Record(marks, properties=users))
        try:
            location = self._api.declare(ident, properties)
        except CatalogError as error:
            if noted and not error.unknown_outcome:
                with contextlib.suppress(CatalogError):
                    self._put_back(ident, before)
            raise
        if keeps:
            return location
        try:
            return self._noted(ident, Record(marks, location, properties=users), noted)
        except CatalogError as error:
            error.unknown_outcome = True  # The table is there.
            raise

    def _noted(self, ident: Ident, record: Record, noted: bool) -> str | None:
        """Looks whether the server shows whose the table is. Where it does, no record is needed."""
        answer = self._api.table(ident) or {}
        shown = text_map(answer.get("properties"), f"describe table {dotted(ident)}")
        keeps = self._keeps[parent(ident) == ROOT] = split(shown)[1].owner == record.marks.owner
        location = record.location or str(answer.get("location") or answer.get("table_uri") or "") or None
        if not keeps:
            self._inventory.save("Table", ident, replace(record, location=location))
        elif noted:
            self._inventory.forget("Table", ident)
        return location

    def _put_back(self, ident: Ident, before: Record | None) -> None:
        if before is not None:
            self._inventory.save("Table", ident, before)
        else:
            self._inventory.forget("Table", ident)

    def _register(self, ident: Ident, location: str, properties: Mapping[str, str]) -> None:
        """Some servers take the location as they show it, others (pylance's) only relative to a root that they do not
        show. Tables lie directly below that root; where the table ended up is looked at afterwards."""
        if not self._relative_only:
            try:
                self._api.register(ident, location, properties)
                return
            except CatalogError as error:
                if error.code is not Code.INVALID_INPUT:
                    raise
        self._api.register(ident, posixpath.basename(lance_uri(location)), properties)
        self._relative_only = True
        shown = self._shown_location(ident)
        if shown is not None and not same_location(shown, location):
            self._api.deregister(ident)
            raise CatalogError(
                Code.INVALID_INPUT,
                f"the server takes only locations below its root, and {location} is not there (it would be {shown}): "
                "move the data there, or leave spec.location out",
            )

    def _shown_location(self, ident: Ident) -> str | None:
        """Of a table that was just made: whoever cannot read it cannot know what became of it."""
        try:
            answer = self._api.table(ident)
        except CatalogError as error:
            error.unknown_outcome = True
            raise
        return str(answer.get("location")) if answer is not None else None

    def update_table(
        self, entry: TableEntry, properties: Mapping[str, str] | None, columns: tuple[Column, ...] | None
    ) -> None:
        if properties is not None:
            marks = _marks_only(entry.ident, entry.properties, properties)
            self._inventory.save("Table", entry.ident, Record(marks, entry.location, properties=entry.raw or {}))

    def replace_table(
        self, entry: TableEntry, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        raise CatalogError(Code.UNSUPPORTED, "tables of a Lance REST namespace are not replaced")

    def save_marks(self, entry: TableEntry, marks: Marks) -> bool:
        return False  # `update_table` does

    def rename_table(self, entry: TableEntry, ident: Ident) -> None:
        raise CatalogError(Code.UNSUPPORTED, "the Lance REST protocol has no rename of a table that servers implement")

    def drop_table(self, entry: TableEntry) -> None:
        """The note of where the data is stays: the server chose the place, and only it would know. It names no owner,
        because the next table at that name and place may be a stranger's. Where the server itself shows our marks the
        note is made first; where only our record holds them (it has the place too), it follows, so that a removal that
        was cut off can be ended."""
        record = self._inventory.find("Table", entry.ident)
        if record is None or not record.owns(entry.location):
            self._disown(entry.ident, entry.location)
            self._api.deregister(entry.ident)
            return
        self._deregister(entry.ident)
        if self._api.table(entry.ident) is not None:  # As pylance's server does, on its defaults, with root tables.
            with contextlib.suppress(CatalogError):  # So that no plan promises it again.
                self._inventory.save("Table", entry.ident, replace(record, stays=True))
            raise CatalogError(Code.UNSUPPORTED, stays(entry.ident))
        try:
            self._disown(entry.ident, entry.location)
        except CatalogError as error:
            error.unknown_outcome = True  # The entry has gone.
            raise

    def _deregister(self, ident: Ident) -> None:
        """A lost answer is re-read here: the step ends once the entry is gone, and what follows would be left out."""
        try:
            self._api.deregister(ident)
        except CatalogError as error:
            if not error.unknown_outcome:
                raise
            with contextlib.suppress(CatalogError):
                if self._api.table(ident) is None:
                    return
            raise

    def _disown(self, ident: Ident, location: str) -> None:
        self._inventory.save("Table", ident, Record(Marks(), location))


def _marks_only(ident: Ident, before: Mapping[str, str], after: Mapping[str, str]) -> Marks:
    users, marks = split(after)
    if users != split(before)[0]:
        raise CatalogError(
            Code.UNSUPPORTED, f"the properties of {dotted(ident)} cannot be changed in the Lance REST protocol"
        )
    return marks
