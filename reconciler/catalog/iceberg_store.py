"""An Iceberg REST catalog as entries."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from reconciler.catalog import iceberg_wire as wire
from reconciler.catalog.base import Leased, LeaseRecords
from reconciler.catalog.entries import BrokenEntry, LastLocation, Listed, NamespaceEntry, TableEntry
from reconciler.catalog.iceberg_capabilities import IcebergCapabilities, is_own
from reconciler.catalog.iceberg_client import IcebergClient, MaybeMissing
from reconciler.catalog.iceberg_group import Commit, GroupCommit
from reconciler.catalog.iceberg_lease import IcebergLease
from reconciler.catalog.iceberg_walk import Crawl, names_in, still_listed
from reconciler.catalog.iceberg_wire import Warehouse
from reconciler.catalog.remembered_place import RememberedPlaces
from reconciler.core.globs import matcher
from reconciler.model.errors import RETRYABLE, CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted, parent
from reconciler.model.observed import Gap, Scope
from reconciler.model.state import Column, Marks

_RAISED = RETRYABLE | {Code.UNAUTHENTICATED}


class IcebergStore(Leased):
    def __init__(
        self,
        client: IcebergClient,
        capabilities: IcebergCapabilities,
        warehouse: str | None,
        storage_options: Mapping[str, str],
    ) -> None:
        self._client = client
        self._capabilities = capabilities
        self._warehouse = warehouse
        self._remembered = RememberedPlaces(storage_options)
        self._lock = threading.Lock()
        self._groups: dict[str, GroupCommit] = {}

    @property
    def capabilities(self) -> IcebergCapabilities:
        return self._capabilities

    @property
    def where(self) -> str:
        return f"Iceberg catalog {self._client.endpoint}"

    @property
    def property_limit(self) -> int | None:
        return None

    def lease_records(self, idents: Sequence[Ident]) -> Sequence[LeaseRecords]:
        """One for each warehouse."""
        names = {ident[0] for ident in idents if ident} or ({self._warehouse} if self._warehouse else set())
        return [IcebergLease(self._client, name) for name in sorted(names)]

    def close(self) -> None:
        self._client.close()

    # reads

    def walk(self, scope: Scope) -> Iterator[Listed]:
        """Only the warehouses that the manifests name: there is no call that lists them."""
        declared = scope.namespaces | scope.detail
        names = {i[0] for i in declared if i} | ({self._warehouse} if self._warehouse else set())
        if not names:
            yield Gap((), Code.INVALID_INPUT, "no warehouse is named: set spec.warehouse")
        failures: list[CatalogError] = []
        ignored = matcher(scope.ignore)
        for name in sorted(names):
            try:
                at = self._client.warehouse(name)
                found = Crawl(self._client, at, ignored, self._capabilities.max_parallelism).start()
            except CatalogError as error:
                failures.append(error)
                if len(failures) == len(names):
                    raise
                yield Gap((name,), error.code, error.message, root=True)
                continue
            yield from wire.unsupported(at)
            yield from found
            yield from self._unaddressed(at, scope)

    def _unaddressed(self, at: Warehouse, scope: Scope) -> Iterator[Listed]:
        """What the manifests name and this server cannot be asked for."""
        for kind, ident, levels in _declared(scope, at.name):
            try:
                at.check(levels)
            except CatalogError as error:
                yield BrokenEntry(kind, ident, error.code, error.message)

    def namespace(self, ident: Ident) -> NamespaceEntry | BrokenEntry | None:
        at = self._client.warehouse(ident[0])
        if len(ident) == 1:
            return NamespaceEntry(ident)
        try:
            if at.separates(ident[-1]):
                return self._unaddressable(at, ident)
            return self._client.namespace(at, ident)
        except CatalogError as error:
            return self._settled(at, "Namespace", ident, error)

    def _unaddressable(self, at: Warehouse, ident: Ident) -> BrokenEntry | None:
        """A name that cannot be asked for: the list can tell whether it is there."""
        try:
            listed = ident[-1] in self._client.child_namespaces(at, parent(ident)).all()
        except CatalogError as error:
            if error.code is not Code.NAMESPACE_NOT_FOUND:
                raise
            return None
        return BrokenEntry("Namespace", ident, Code.INVALID_INPUT, at.why_not(ident[-1])) if listed else None

    def table(self, ident: Ident) -> TableEntry | BrokenEntry | None:
        at = self._client.warehouse(ident[0])
        if len(ident) < 3:
            return None  # the protocol has no place for it
        try:
            return self._client.table(at, ident)
        except CatalogError as error:
            return self._settled(at, "Table", ident, error)

    def _settled(self, at: Warehouse, kind: Kind, ident: Ident, error: CatalogError) -> BrokenEntry | None:
        """None only where a complete list does not have it. A list that fails leaves the first error as it is, unless
        asking again may help."""
        if isinstance(error, MaybeMissing):
            try:
                if not still_listed(partial(names_in, self._client, at), kind, ident):
                    return None
            except CatalogError as failure:
                if failure.code in _RAISED:
                    raise
        return _broken(kind, ident, error)

    def inside(self, ident: Ident) -> Sequence[str]:
        at, client = self._client.warehouse(ident[0]), self._client
        names = client.child_namespaces(at, ident).all()
        if len(ident) == 1:
            names = [name for name in names if not is_own(name)]
        else:
            names += client.tables(at, ident).all()
            if at.offers(wire.VIEWS):
                names += client.views(at, ident).all()
        return names

    def interrupted(self, ident: Ident) -> TableEntry | None:
        return None

    def last_location(self, ident: Ident) -> LastLocation | None:
        home = self._capabilities.location_of(ident)
        return self._remembered.recall(home) if home is not None else None

    # namespaces

    def create_namespace(self, ident: Ident, properties: Mapping[str, str]) -> None:
        at = self._client.warehouse(ident[0])
        levels = ident[1:]
        at.check(levels)
        self._need_parent(ident)
        doing = f"create namespace {dotted(ident)}"
        reply = self._client.write(
            at,
            wire.CREATE_NAMESPACE,
            at.namespaces(),
            doing,
            {"namespace": list(levels), "properties": dict(properties)},
            conflict=Code.NAMESPACE_ALREADY_EXISTS,
        )
        made = wire.namespace_from(ident, reply.body if isinstance(reply.body, dict) else {})
        if isinstance(made, BrokenEntry):
            raise _odd_answer(doing, made.message)
        self._client.learn("Namespace", ident, properties, made.properties)

    def update_namespace(self, entry: NamespaceEntry, properties: Mapping[str, str]) -> None:
        at = self._client.warehouse(entry.ident[0])
        updates, removals = wire.difference(entry.properties, properties)
        self._client.write(
            at,
            wire.SET_PROPERTIES,
            f"{at.namespace(entry.ident[1:])}/properties",
            f"update namespace {dotted(entry.ident)}",
            {"removals": removals, "updates": updates},
        )

    def rename_namespace(self, entry: NamespaceEntry, ident: Ident) -> None:
        raise CatalogError(Code.UNSUPPORTED, "the Iceberg REST protocol cannot rename a namespace")

    def drop_namespace(self, entry: NamespaceEntry) -> None:
        ident = entry.ident
        at = self._client.warehouse(ident[0])
        if held := self.inside(ident):
            raise CatalogError(Code.NAMESPACE_NOT_EMPTY, f"namespace {dotted(ident)} holds {sorted(held)[0]!r}")
        doing = f"drop namespace {dotted(ident)}"
        self._client.write(at, wire.DROP_NAMESPACE, at.namespace(ident[1:]), doing, conflict=Code.NAMESPACE_NOT_EMPTY)

    # tables

    def create_table(
        self, ident: Ident, location: str | None, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        at = self._client.warehouse(ident[0])
        self._need_parent(ident)
        doing = f"declare table {dotted(ident)}"
        reply = self._client.write(
            at,
            wire.CREATE_TABLE,
            at.tables(ident[1:-1]),
            doing,
            wire.create_request(ident[-1], location, properties),
            conflict=Code.TABLE_ALREADY_EXISTS,
        )
        made = wire.table_from(ident, reply.body)
        if isinstance(made, BrokenEntry):
            raise _odd_answer(doing, made.message)
        lost = [k for k, v in properties.items() if made.properties.get(k) != v]
        if lost or (location is not None and made.location != location):
            raise _odd_answer(doing, f"the server did not keep {', '.join(sorted(lost)) or 'the location'}")
        self._client.learn("Table", ident, properties, made.properties)

    def update_table(
        self, entry: TableEntry, properties: Mapping[str, str] | None, columns: tuple[Column, ...] | None
    ) -> None:
        if properties is None or properties == entry.properties:
            return
        ident = entry.ident
        at = self._client.warehouse(ident[0])
        commit = wire.commit_request(ident, entry.raw, entry.properties, properties)
        if not at.groups or (not self.group(at).commit(ident, commit) and not self._holds(entry, properties)):
            self._commit(at, ident, commit)

    def group(self, at: Warehouse) -> GroupCommit:
        with self._lock:
            if at.name not in self._groups:
                self._groups[at.name] = GroupCommit(
                    lambda ident, commit: self._commit(at, ident, commit), lambda commits: self._commit_all(at, commits)
                )
            return self._groups[at.name]

    def _commit(self, at: Warehouse, ident: Ident, commit: Commit) -> None:
        path = at.table(ident[1:-1], ident[-1])
        self._client.write(at, wire.COMMIT, path, f"update table {dotted(ident)}", commit)

    def _commit_all(self, at: Warehouse, commits: Sequence[Commit]) -> None:
        path, doing = f"{at.root}/transactions/commit", f"update {len(commits)} tables of {at.name}"
        self._client.write(at, wire.TRANSACTION, path, doing, {"table-changes": commits})

    def _holds(self, entry: TableEntry, properties: Mapping[str, str]) -> bool:
        """After a group was refused: True when this table was changed all the same, False when it is as it was read."""
        now = self.table(entry.ident)
        if isinstance(now, TableEntry) and now.raw == entry.raw and now.properties in (properties, entry.properties):
            return now.properties == properties
        raise CatalogError(Code.CONCURRENT_MODIFICATION, f"table {dotted(entry.ident)} was changed by somebody else")

    def replace_table(
        self, entry: TableEntry, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        self.update_table(entry, properties, columns)

    def save_marks(self, entry: TableEntry, marks: Marks) -> bool:
        return False

    def rename_table(self, entry: TableEntry, ident: Ident) -> None:
        at = self._client.warehouse(ident[0])
        if entry.ident[0] != ident[0]:
            raise CatalogError(Code.UNSUPPORTED, "a table cannot move to another warehouse")
        at.check(ident[1:-1])
        self._need_parent(ident)
        self._client.write(
            at,
            wire.RENAME,
            f"{at.root}/tables/rename",
            f"rename table {dotted(entry.ident)} to {dotted(ident)}",
            {"source": wire.identifier(entry.ident), "destination": wire.identifier(ident)},
            conflict=Code.TABLE_ALREADY_EXISTS,
        )

    def drop_table(self, entry: TableEntry) -> None:
        """Never purges. Where the data is stays known."""
        ident = entry.ident
        at = self._client.warehouse(ident[0])
        self._client.need(at, wire.DROP_TABLE, f"deregister table {dotted(ident)}")
        home = self._capabilities.location_of(ident)
        if home is not None:
            self._remembered.remember(home, entry.location)
        self._client.write(
            at,
            wire.DROP_TABLE,
            at.table(ident[1:-1], ident[-1]),
            f"deregister table {dotted(ident)}",
            params={"purgeRequested": "false"},
        )

    # rules that servers do not keep themselves

    def _need_parent(self, ident: Ident) -> None:
        """Some servers make missing parents up."""
        above = parent(ident)
        if len(above) > 1 and self.namespace(above) is None:
            raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"namespace {dotted(above)} does not exist")


def _declared(scope: Scope, warehouse: str) -> Iterator[tuple[Kind, Ident, Ident]]:
    """What the manifests name in a warehouse, and the levels of its namespace."""
    yield from (("Namespace", i, i[1:]) for i in sorted(scope.namespaces) if len(i) > 1 and i[0] == warehouse)
    yield from (("Table", i, i[1:-1]) for i in sorted(scope.detail) if len(i) > 2 and i[0] == warehouse)


def _broken(kind: Kind, ident: Ident, error: CatalogError) -> BrokenEntry:
    """What may pass is raised, so that it is asked for again."""
    if error.code in _RAISED:
        raise error
    return BrokenEntry(kind, ident, error.code, error.message)


def _odd_answer(doing: str, what: str) -> CatalogError:
    """The write was accepted and is not what we asked for: re-read before anything is concluded."""
    return CatalogError(Code.INVALID_TABLE_STATE, f"cannot {doing}: {what}", unknown_outcome=True)
