"""The calls of the service: here, reads and writes of one file under a lock."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reconciler.catalog.entries import LastLocation, Listed, NamespaceEntry, TableEntry
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.options import STORAGE, required, text, under
from reconciler.model.capabilities import Capabilities
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, dotted, parent
from reconciler.model.observed import Scope
from reconciler.model.state import Column, Marks
from reconciler_jsonfile import capabilities

Data = dict[str, Any]


def open_catalog(options: Mapping[str, str]) -> EntryCatalog:
    store = JsonStore(Path(required(options, "file")), text(options, "pin"), capabilities(options))
    return EntryCatalog(store, under(options, STORAGE))


def key(ident: Ident) -> str:
    return json.dumps(ident, ensure_ascii=False)


class JsonStore:
    property_limit = None

    def __init__(self, file: Path, pin: str | None, rules: Capabilities) -> None:
        self.file, self.pin, self.capabilities = file, pin, rules

    @property
    def where(self) -> str:
        return f"the catalog file {self.file}"

    # the file

    def _load(self) -> Data:
        """No file in a folder that can be read is an empty catalog. Nothing else is."""
        try:
            data: Data = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            if not self.file.parent.is_dir():
                raise CatalogError(Code.SERVICE_UNAVAILABLE, f"there is no folder {self.file.parent}") from None
            data = {"namespaces": {}, "tables": {}, "detached": {}}
        except (OSError, ValueError) as error:
            raise CatalogError(Code.INTERNAL, f"{self.where} cannot be read: {error}") from error
        if data.get("pin", self.pin) != self.pin:
            raise CatalogError(Code.UNAUTHENTICATED, f"{self.where} has another pin: check spec.pin")
        return data

    @contextmanager
    def _changed(self) -> Iterator[Data]:
        """One writer at a time; readers see the file before or after, never in between."""
        with open(f"{self.file}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            data = self._load()
            yield data
            new = Path(f"{self.file}.new")
            new.write_text(json.dumps(data, indent=1, ensure_ascii=False))
            os.replace(new, self.file)

    # reads

    def walk(self, scope: Scope) -> Iterator[Listed]:
        data = self._load()
        for name, properties in data["namespaces"].items():
            yield NamespaceEntry(tuple(json.loads(name)), properties)
        for name, table in data["tables"].items():
            yield TableEntry(tuple(json.loads(name)), table["location"], table["properties"])

    def namespace(self, ident: Ident) -> NamespaceEntry | None:
        found = self._load()["namespaces"].get(key(ident))
        return None if found is None else NamespaceEntry(ident, found)

    def table(self, ident: Ident) -> TableEntry | None:
        found = self._load()["tables"].get(key(ident))
        return None if found is None else TableEntry(ident, found["location"], found["properties"])

    def inside(self, ident: Ident) -> Sequence[str]:
        return self._inside(self._load(), ident)

    def _inside(self, data: Data, ident: Ident) -> list[str]:
        idents = [tuple(json.loads(name)) for name in (*data["namespaces"], *data["tables"])]
        return [i[-1] for i in idents if parent(i) == ident]

    def interrupted(self, ident: Ident) -> TableEntry | None:
        return None

    def last_location(self, ident: Ident) -> LastLocation | None:
        found: str | None = self._load()["detached"].get(key(ident))
        if found:
            return LastLocation(found, f"{key(ident)} below `detached`")
        home = self.capabilities.location_of(ident)
        return LastLocation(home) if home is not None else None

    # writes

    def create_namespace(self, ident: Ident, properties: Mapping[str, str]) -> None:
        with self._changed() as data:
            self._need_room(data, ident, Code.NAMESPACE_ALREADY_EXISTS)
            data["namespaces"][key(ident)] = dict(properties)

    def update_namespace(self, entry: NamespaceEntry, properties: Mapping[str, str]) -> None:
        with self._changed() as data:
            self._need_same(data["namespaces"].get(key(entry.ident)), entry.properties, entry.ident)
            data["namespaces"][key(entry.ident)] = dict(properties)

    def drop_namespace(self, entry: NamespaceEntry) -> None:
        with self._changed() as data:
            if self._inside(data, entry.ident):
                raise CatalogError(Code.NAMESPACE_NOT_EMPTY, f"{dotted(entry.ident)} is not empty")
            data["namespaces"].pop(key(entry.ident), None)

    def create_table(
        self, ident: Ident, location: str | None, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        with self._changed() as data:
            self._need_room(data, ident, Code.TABLE_ALREADY_EXISTS)
            data["tables"][key(ident)] = {"location": location, "properties": dict(properties)}
            data["detached"].pop(key(ident), None)

    def update_table(
        self, entry: TableEntry, properties: Mapping[str, str] | None, columns: tuple[Column, ...] | None
    ) -> None:
        with self._changed() as data:
            live = data["tables"].get(key(entry.ident))
            self._need_same(live and live["properties"], entry.properties, entry.ident)
            live["properties"] = dict(properties or {})

    def drop_table(self, entry: TableEntry) -> None:
        with self._changed() as data:
            if data["tables"].pop(key(entry.ident), None):
                data["detached"][key(entry.ident)] = entry.location

    def save_marks(self, entry: TableEntry, marks: Marks) -> bool:
        return False

    def rename_namespace(self, entry: NamespaceEntry, ident: Ident) -> None:
        raise NotImplementedError("the capabilities refuse it")

    def rename_table(self, entry: TableEntry, ident: Ident) -> None:
        raise NotImplementedError("the capabilities refuse it")

    def replace_table(
        self, entry: TableEntry, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        raise NotImplementedError("update_table does it")

    def close(self) -> None:
        pass

    def _need_room(self, data: Data, ident: Ident, taken: Code) -> None:
        if parent(ident) and key(parent(ident)) not in data["namespaces"]:
            raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"there is no namespace {dotted(parent(ident))}")
        if key(ident) in data["namespaces"] or key(ident) in data["tables"]:
            raise CatalogError(taken, f"{dotted(ident)} is there already")

    def _need_same(self, live: Mapping[str, str] | None, read: Mapping[str, str], ident: Ident) -> None:
        if live != read:
            raise CatalogError(Code.CONCURRENT_MODIFICATION, f"{dotted(ident)} was changed by somebody else")
