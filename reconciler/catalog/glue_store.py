"""Glue's API as an EntryStore."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciler.catalog.base import Leased, LeaseRecords
from reconciler.catalog.entries import BrokenEntry, LastLocation, Levelled, Listed, NamespaceEntry, TableEntry
from reconciler.catalog.glue_api import GlueApi
from reconciler.catalog.glue_capabilities import CATALOG, MAX_VALUE, GlueCapabilities
from reconciler.catalog.glue_catalogs import ChildCatalogs
from reconciler.catalog.glue_errors import no_such_operation
from reconciler.catalog.glue_fresh import Fresh
from reconciler.catalog.glue_lease import GlueLease
from reconciler.catalog.glue_walk import Walk, chains_of
from reconciler.catalog.glue_wire import (
    catalog_entry,
    catalog_input,
    changed_table_input,
    database_input,
    namespace_entry,
    new_table_input,
    table_entry,
)
from reconciler.catalog.remembered_place import RememberedPlaces
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ROOT, Ident, Kind, dotted, parent
from reconciler.model.observed import Scope
from reconciler.model.state import Column, Marks

_OF_THE_OBJECT = frozenset({Code.PERMISSION_DENIED, Code.INVALID_INPUT, Code.INTERNAL})
"""Answers about one object. Others (no credentials, no service) say nothing about it."""
_CHECKS_BEFORE_A_DROP = 2


class GlueStore(Leased, Levelled):
    """`storage_options` are the `storage.*` keys without their prefix."""

    def __init__(
        self,
        api: GlueApi,
        capabilities: GlueCapabilities,
        where: str,
        storage_options: Mapping[str, str],
        catalog_id: str | None = None,
        all_catalogs: bool = False,
    ) -> None:
        self._api = api
        self._capabilities = capabilities
        self._where = where
        self._remembered = RememberedPlaces(storage_options)
        self._catalogs = ChildCatalogs(api, catalog_id)
        self._walk = Walk(api, self._catalogs, all_catalogs, capabilities.max_parallelism)
        self._deep = all_catalogs
        self._upper: frozenset[Ident] = frozenset()
        self._fresh = Fresh()

    @property
    def capabilities(self) -> GlueCapabilities:
        return self._capabilities

    @property
    def where(self) -> str:
        return self._where

    @property
    def property_limit(self) -> int | None:
        return MAX_VALUE

    def lease_records(self, idents: Sequence[Ident]) -> Sequence[LeaseRecords]:
        """One for the whole account: its child catalogs have no room for notes of ours."""
        return [GlueLease(self._api, self._where, self._catalogs.arguments(ROOT) or {})]

    def close(self) -> None:
        self._api.close()

    # reads

    def walk(self, scope: Scope) -> Iterator[Listed]:
        self._deep = self._deep or bool(chains_of(scope))
        return self._walk(scope)

    def look_for(self, upper: Collection[Ident]) -> None:
        self._upper |= frozenset(upper)

    def _may_be_catalog(self, ident: Ident) -> bool:
        """Where nobody speaks of child catalogs, they are not looked at: that may take a privilege nobody gave."""
        return self._deep or len(ident) > 1 or ident in self._upper

    def namespace(self, ident: Ident) -> NamespaceEntry | BrokenEntry | None:
        """A database, or the child catalog of that name where child catalogs are looked at."""
        try:
            return self._fresh.read("Namespace", ident, lambda: self._found(ident), self._api.sleep)
        except CatalogError as error:
            return _broken("Namespace", ident, error)

    def _found(self, ident: Ident) -> NamespaceEntry | BrokenEntry | None:
        database = self._database(ident)
        if database is not None:
            return namespace_entry(ident, database)
        catalog = self._catalogs.read(ident) if self._may_be_catalog(ident) else None
        return catalog_entry(ident, catalog) if catalog is not None else None

    def table(self, ident: Ident) -> TableEntry | BrokenEntry | None:
        if len(ident) < 2:
            return None  # a table is always in a database
        try:
            found = self._fresh.read("Table", ident, lambda: self._table(ident), self._api.sleep)
        except CatalogError as error:
            return _broken("Table", ident, error)
        return table_entry(ident, found) if found is not None else None

    def _database(self, ident: Ident) -> dict[str, Any] | None:
        return self._get(ident, "get_database", {"Name": ident[-1]}, "Database", Code.NAMESPACE_NOT_FOUND)

    def _table(self, ident: Ident) -> dict[str, Any] | None:
        arguments = {"DatabaseName": ident[-2], "Name": ident[-1]}
        return self._get(parent(ident), "get_table", arguments, "Table", Code.TABLE_NOT_FOUND)

    def _get(
        self, database: Ident, call: str, arguments: Mapping[str, Any], key: str, missing: Code
    ) -> dict[str, Any] | None:
        """None only for the answer "not found", or where the catalog above is not there."""
        catalog = self._catalogs.arguments(parent(database))
        if catalog is None:
            return None
        doing = f"read {'.'.join(v for k, v in arguments.items() if k.endswith('Name'))}"
        try:
            answer = self._api.read(doing, call, key, {**catalog, **arguments}, missing)
        except CatalogError as error:
            if error.code is missing:
                return None
            raise
        found: dict[str, Any] = answer[key]
        return found

    def inside(self, ident: Ident) -> Sequence[str]:
        """Tables of whatever kind, and user-defined functions; of a catalog its databases and catalogs."""
        try:
            names = [t["Name"] for page in self._walk.tables(ident) for t in page]
        except CatalogError as error:
            if error.code is not Code.NAMESPACE_NOT_FOUND or not self._may_be_catalog(ident):
                raise
            return self._in_catalog(ident)
        return [*names, *self._functions(ident)]

    def _in_catalog(self, ident: Ident) -> list[str]:
        arguments = self._within(ident)
        doing, missing = f"list the databases of {dotted(ident)}", Code.NAMESPACE_NOT_FOUND
        databases = self._api.pages(doing, "get_databases", "DatabaseList", arguments, missing)
        names = [d["Name"] for page in databases for d in page]
        return [*names, *(name for name, _ in self._catalogs.children(ident))]

    def _functions(self, ident: Ident) -> list[str]:
        """An endpoint that says it has no such operation has no functions. Every other failure stops the drop."""
        arguments = {**self._arguments(ident), "DatabaseName": ident[-1], "Pattern": ".*"}
        doing = f"list the functions of {dotted(ident)}"
        missing = Code.NAMESPACE_NOT_FOUND
        pages = self._api.pages(doing, "get_user_defined_functions", "UserDefinedFunctions", arguments, missing)
        try:
            return [f["FunctionName"] for page in pages for f in page]
        except CatalogError as error:
            if no_such_operation(error.__cause__):
                return []
            raise

    # writes

    def create_namespace(self, ident: Ident, properties: Mapping[str, str]) -> None:
        """The default permissions of its tables are left to the account's settings."""
        arguments = {**self._arguments(ident), "DatabaseInput": database_input(ident[-1], properties, {}, ())}
        self._api.write(
            f"create database {dotted(ident)}",
            "create_database",
            arguments,
            Code.NAMESPACE_NOT_FOUND,
            Code.NAMESPACE_ALREADY_EXISTS,
        )
        self._fresh.made("Namespace", ident)

    def create_upper(self, ident: Ident, properties: Mapping[str, str]) -> None:
        """A child catalog of the account."""
        self._catalogs.need_own_account()
        self.look_for([ident])
        shape = self._api.client.meta.service_model.shape_for("CatalogInput")
        self._api.write(
            f"create catalog {dotted(ident)}",
            "create_catalog",
            {"Name": ident[-1], "CatalogInput": catalog_input(properties, {}, shape)},
            Code.NAMESPACE_NOT_FOUND,
            Code.NAMESPACE_ALREADY_EXISTS,
        )
        self._fresh.made("Namespace", ident)

    def update_namespace(self, entry: NamespaceEntry, properties: Mapping[str, str]) -> None:
        """Glue has no version of a database: what another writes between our read and this is lost."""
        _need_changeable(entry)
        if entry.level == CATALOG:
            shape = self._api.client.meta.service_model.shape_for("CatalogInput")
            arguments = {**self._within(entry.ident), "CatalogInput": catalog_input(properties, entry.raw, shape)}
            doing = f"update catalog {dotted(entry.ident)}"
            self._api.write(doing, "update_catalog", arguments, Code.NAMESPACE_NOT_FOUND)
            return
        new = database_input(entry.ident[-1], properties, entry.raw or {}, self._members("DatabaseInput"))
        arguments = {**self._arguments(entry.ident), "Name": entry.ident[-1], "DatabaseInput": new}
        doing = f"update database {dotted(entry.ident)}"
        self._api.write(doing, "update_database", arguments, Code.NAMESPACE_NOT_FOUND)

    def rename_namespace(self, entry: NamespaceEntry, ident: Ident) -> None:
        raise CatalogError(Code.UNSUPPORTED, "Glue cannot rename a database")

    def drop_namespace(self, entry: NamespaceEntry) -> None:
        """Glue would delete the tables with the database, and the databases with a catalog, so emptiness is looked at
        twice right before. What is created in the moment between the second look and the delete is lost: the API
        offers nothing against it."""
        _need_changeable(entry)
        catalog = entry.level == CATALOG
        what = f"{entry.level or 'database'} {dotted(entry.ident)}"
        for _ in range(_CHECKS_BEFORE_A_DROP):
            if names := self._in_catalog(entry.ident) if catalog else self.inside(entry.ident):
                raise CatalogError(Code.NAMESPACE_NOT_EMPTY, f"{what} holds {', '.join(sorted(names)[:5])}")
        if catalog:
            call, arguments = "delete_catalog", self._within(entry.ident)
            self._catalogs.forget(entry.ident)
        else:
            call, arguments = "delete_database", {**self._arguments(entry.ident), "Name": entry.ident[-1]}
        self._fresh.gone("Namespace", entry.ident)
        self._api.write(f"delete {what}", call, arguments, Code.NAMESPACE_NOT_FOUND)

    def create_table(
        self, ident: Ident, location: str | None, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        if location is None:
            raise CatalogError(Code.INVALID_INPUT, f"table {dotted(ident)} needs a location")
        new = new_table_input(ident[-1], location, properties, columns)
        self._api.write(
            f"create table {dotted(ident)}",
            "create_table",
            {**self._arguments(parent(ident)), "DatabaseName": ident[-2], "TableInput": new},
            Code.NAMESPACE_NOT_FOUND,
            Code.TABLE_ALREADY_EXISTS,
        )
        self._fresh.made("Table", ident)

    def update_table(
        self, entry: TableEntry, properties: Mapping[str, str] | None, columns: tuple[Column, ...] | None
    ) -> None:
        """Under the version that was read. Old versions are not archived: an account can have only so many."""
        new = changed_table_input(entry.raw, properties, columns, self._members("TableInput"))
        arguments = {**self._arguments(parent(entry.ident)), "DatabaseName": entry.ident[-2], "TableInput": new}
        if version := entry.raw.get("VersionId"):
            arguments["VersionId"] = version
        doing = f"update table {dotted(entry.ident)}"
        self._api.write(doing, "update_table", {**arguments, "SkipArchive": True}, Code.TABLE_NOT_FOUND)

    def replace_table(
        self, entry: TableEntry, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        raise CatalogError(Code.UNSUPPORTED, "Glue updates a table in place")

    def save_marks(self, entry: TableEntry, marks: Marks) -> bool:
        return False

    def rename_table(self, entry: TableEntry, ident: Ident) -> None:
        raise CatalogError(Code.UNSUPPORTED, "Glue cannot rename a table")

    def drop_table(self, entry: TableEntry) -> None:
        home = self._capabilities.location_of(entry.ident)
        if home is not None:
            self._remembered.remember(home, entry.location)
        arguments = {**self._arguments(parent(entry.ident)), "DatabaseName": entry.ident[-2], "Name": entry.ident[-1]}
        self._fresh.gone("Table", entry.ident)
        self._api.write(f"delete table {dotted(entry.ident)}", "delete_table", arguments, Code.TABLE_NOT_FOUND)

    def interrupted(self, ident: Ident) -> TableEntry | None:
        return None

    def last_location(self, ident: Ident) -> LastLocation | None:
        """Without a `root` there is no place for a note: then only the manifest can say where the data is."""
        home = self._capabilities.location_of(ident)
        return self._remembered.recall(home) if home is not None else None

    def _arguments(self, database: Ident) -> dict[str, str]:
        return self._within(parent(database))

    def _within(self, catalog: Ident) -> dict[str, str]:
        found = self._catalogs.arguments(catalog)
        if found is None:
            raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"there is no catalog {dotted(catalog)}")
        return found

    def _members(self, shape: str) -> frozenset[str]:
        """What an input may hold, from the service's own description: new fields are kept as soon as boto3 has them."""
        return frozenset(self._api.client.meta.service_model.shape_for(shape).members)


def _broken(kind: Kind, ident: Ident, error: CatalogError) -> BrokenEntry:
    if error.code not in _OF_THE_OBJECT:
        raise error
    return BrokenEntry(kind, ident, error.code, error.message)


def _need_changeable(entry: NamespaceEntry) -> None:
    if entry.container:
        why = "is a catalog of AWS itself (federated, of Redshift, or inside another one): it is listed, never changed"
        raise CatalogError(Code.UNSUPPORTED, f"{dotted(entry.ident)} {why}")
