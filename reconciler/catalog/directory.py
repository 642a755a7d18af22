"""The directory backend (`type: dir`): Lance tables in a folder or a bucket.

The parts: `storage` (files), `directory_manifest` (`__manifest`), `directory_inventory` (our notes beside the tables),
`directory_roots` (folders that are tables), `directory_unfinished` (what is being made, or was never finished),
`directory_read`, `directory_namespaces`, `directory_write`, and the dataset side that all backends share
(`lance_dataset`, `lance_write`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.catalog.base import DataPlace, Leased, LeaseRecords, Searched, WriteContext, Written
from reconciler.catalog.directory_capabilities import DirectoryCapabilities, directory_capabilities
from reconciler.catalog.directory_inventory import FOLDER, Inventory
from reconciler.catalog.directory_manifest import Manifest
from reconciler.catalog.directory_namespaces import DirectoryNamespaces
from reconciler.catalog.directory_neighbours import elsewhere
from reconciler.catalog.directory_read import DirectoryReader
from reconciler.catalog.directory_search import search
from reconciler.catalog.directory_write import DirectoryWriter
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.lease_files import LeaseFiles
from reconciler.catalog.marks import signed
from reconciler.catalog.options import STORAGE, under
from reconciler.catalog.stats import Stats
from reconciler.catalog.storage import open_storage
from reconciler.core.uris import contains
from reconciler.model.change import (
    DATA_PLANE,
    AddColumns,
    AdoptNamespace,
    AdoptTable,
    AlterColumns,
    Change,
    CreateDataset,
    CreateIndex,
    CreateNamespace,
    DeclareTable,
    DeregisterTable,
    DropColumns,
    DropIndex,
    DropNamespace,
    RefreshIndex,
    RenameNamespace,
    RenameTable,
    ReplaceIndex,
    UpdateDataset,
    UpdateNamespace,
    UpdateTable,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.missed import Unlisted
from reconciler.model.observed import Observation, RootSeen, Scope, Seen
from reconciler.model.state import TableState


class DirectoryCatalog(Leased, Searched):
    """`options` are resolved strings: path, manifest_enabled, dir_listing_enabled, plain_folders, storage.*."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._capabilities = directory_capabilities(options)
        if self._capabilities.problem:
            raise CatalogError(Code.INVALID_INPUT, self._capabilities.problem)
        self._options = options
        self._storage_options = under(options, STORAGE)
        self.stats = Stats()
        self.storage = open_storage(options.get("path", ""), self._storage_options)
        datasets = Datasets(self.storage.lance_options, self.stats)
        manifest = Manifest(self.storage, datasets)
        inventory = Inventory(self.storage, self.stats)
        self._reader = DirectoryReader(self.storage, manifest, inventory, datasets, self._capabilities)
        self._namespaces = DirectoryNamespaces(self._reader)
        self._writer = DirectoryWriter(self._reader)

    @property
    def capabilities(self) -> DirectoryCapabilities:
        return self._capabilities

    def scan(self, scope: Scope) -> Iterator[Seen]:
        with translated(f"scan {self.storage.root}"):
            for found in self._reader.scan(scope):
                yield self._looked_beside(found, scope) if isinstance(found, RootSeen) and found.new else found

    def _looked_beside(self, root: RootSeen, scope: Scope) -> RootSeen:
        def read(path: str, keys: Sequence[tuple[Kind, Ident]], at: Scope) -> Iterator[Observation]:
            return DirectoryCatalog({**self._options, "path": path}).read(keys, at)

        path = self._options["path"]
        return replace(root, elsewhere=elsewhere(path, self._storage_options, scope.detail, read))

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        with translated(f"read {self.storage.root}"):
            yield from self._reader.read(keys, scope)

    def children(self, ident: Ident) -> Sequence[str]:
        with translated(f"list {self.storage.root}"):
            return self._reader.children(ident)

    def unlisted(self) -> Unlisted:
        with translated(f"search {self.storage.root}"):
            tables = self._reader.table_folders()
            return search(self.storage, {*tables, *(self.storage.resolved(folder) or folder for folder in tables)})

    def data_place(self, ident: Ident, state: TableState) -> DataPlace:
        if state.place is None:
            raise CatalogError(Code.INVALID_INPUT, f"the place of {dotted(ident)} is not known")
        root = self.storage.canonical("")
        uri = self.storage.uri(state.place[len(root) + 1 :]) if contains(root, state.place) else state.place
        return DataPlace(uri, self.storage.lance_options or {})

    def apply(self, change: Change, context: WriteContext) -> Written:
        with translated(f"{change.action.replace('_', ' ')} {dotted(change.ident)}", write=True):
            if isinstance(change, DATA_PLANE):
                raise CatalogError(
                    Code.UNSUPPORTED, f"{change.action} moves data: the pipeline runs it, not the catalog"
                )
            self.storage.check_root()
            return self._apply(signed(change, context.applied_by), context)

    def _apply(self, change: Change, context: WriteContext) -> Written:
        writer = self._writer
        match change:
            case CreateNamespace():
                self._namespaces.create(change)
            case RenameNamespace():
                self._namespaces.rename(change)
            case UpdateNamespace() | AdoptNamespace():
                self._namespaces.update(change)
            case DropNamespace():
                self._namespaces.drop(change)
            case DeclareTable():
                writer.declare(change)
            case UpdateTable():
                writer.update_table(change)
            case RenameTable():
                writer.rename(change)
            case DeregisterTable():
                writer.deregister(change)
            case AdoptTable():
                return writer.adopt_table(change, context)
            case CreateDataset():
                return writer.create_dataset(change, context)
            case (
                UpdateDataset()
                | AddColumns()
                | AlterColumns()
                | DropColumns()
                | CreateIndex()
                | ReplaceIndex()
                | RefreshIndex()
                | DropIndex()
            ):
                return writer.change_dataset(change, context)
        return Written()

    def lease_records(self, idents: Sequence[Ident]) -> Sequence[LeaseRecords] | None:
        return [LeaseFiles(self.storage, f"{FOLDER}/lease", len(set(idents)))]

    def close(self) -> None:
        """Nothing is held open between calls."""
