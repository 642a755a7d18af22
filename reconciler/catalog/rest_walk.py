"""A whole REST namespace as a stream: namespaces breadth first, several at a time, every page.

The listings hold names only, so each namespace and each table is described: the protocol forces that one call.
What is listed and then not known to the describe only makes its parent not empty: it has just gone, or it is deeper
(pylance's server lists grandchildren as children of a namespace whose name is not ASCII).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from reconciler.catalog.entries import BrokenEntry, Listed, OtherEntry
from reconciler.catalog.paging import MOST_LEVELS, too_deep
from reconciler.catalog.rest_api import RestApi, What
from reconciler.catalog.rest_capabilities import DELIMITER, INVENTORY, RestCapabilities
from reconciler.catalog.rest_entries import broken, namespace_entry, staying, table_entry
from reconciler.catalog.rest_inventory import Inventory, Notes
from reconciler.core.globs import matcher
from reconciler.model.change import DeregisterTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ROOT, Ident, Kind, dotted
from reconciler.model.observed import Gap, Scope, Unsupported

_ANY_NAME = "\x01" * 40
_CHUNK = 16
_REFUSALS = frozenset({Code.PERMISSION_DENIED, Code.UNAUTHENTICATED, Code.UNSUPPORTED})
"""The answers by which a server says for good that it does not do this, or not for us. Any other may pass."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A namespace to describe and list, or some tables to describe."""

    namespace: Ident | None = None
    tables: tuple[Ident, ...] = ()


@dataclass(frozen=True, slots=True)
class _Done:
    found: list[Listed]
    more: list[_Job]


class Walk:
    def __init__(self, api: RestApi, inventory: Inventory, capabilities: RestCapabilities, scope: Scope) -> None:
        self._api = api
        self._inventory = inventory
        self._capabilities = capabilities
        self._threads = capabilities.max_parallelism
        self._ignored = matcher(scope.ignore)
        declared = scope.detail | scope.absent | scope.locations.keys()
        self._needs_root_tables = scope.pruned_by is not None or any(len(ident) == 1 for ident in declared)

    def __call__(self) -> Iterator[Listed]:
        """Raises when the root or our own notes cannot be listed: then nothing can be said."""
        notes = self._inventory.load()
        root = self._inside(ROOT)
        if not root.more and root.found and all(isinstance(f, Gap) for f in root.found):
            gap = root.found[0]
            assert isinstance(gap, Gap)
            raise CatalogError(gap.code, gap.message)
        yield from root.found
        waiting = deque(root.more)
        running: set[Future[_Done]] = set()
        with ThreadPoolExecutor(self._threads) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < 2 * self._threads:
                        running.add(pool.submit(self._run, waiting.popleft(), notes))
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        result = future.result()
                        waiting.extend(result.more)
                        yield from result.found
            finally:
                for future in running:
                    future.cancel()

    def _run(self, job: _Job, notes: Notes) -> _Done:
        if job.namespace is None:
            return _Done([entry for ident in job.tables for entry in self._table(ident, notes)], [])
        done = self._inside(job.namespace)
        done.found.extend(self._namespace(job.namespace, notes))
        return done

    def _inside(self, ident: Ident) -> _Done:
        """A namespace that cannot be listed to the end is a gap, with what was seen before."""
        done = _Done([], [])
        tables = self._listed("Table", ident, done.found)
        size = max(1, min(_CHUNK, len(tables) // (4 * self._threads)))
        done.more.extend(_Job(tables=tuple(tables[at : at + size])) for at in range(0, len(tables), size))
        done.more.extend(_Job(child) for child in self._listed("Namespace", ident, done.found))
        return done

    def _listed(self, kind: Kind, ident: Ident, found: list[Listed]) -> list[Ident]:
        what: What = "namespace" if kind == "Namespace" else "table"
        names: set[str] = set()
        try:
            for page in self._api.pages(ident, what):
                names.update(page)
        except CatalogError as error:
            found.append(Gap(ident, error.code, error.message, ident == ROOT and self._is_failure(kind, error)))
        if ident == ROOT and kind == "Namespace":
            names.discard(INVENTORY)
        if names and kind == "Namespace" and len(ident) >= MOST_LEVELS:
            found.append(too_deep(ident))
            return []
        return [(*ident, name) for name in sorted(names) if self._wanted(kind, (*ident, name), found)]

    def _is_failure(self, kind: Kind, error: CatalogError) -> bool:
        """Of the root. Some servers refuse its tables and list its namespaces: that is none where no root table is
        declared and none may be removed."""
        return kind == "Namespace" or error.code not in _REFUSALS or self._needs_root_tables

    def _wanted(self, kind: Kind, ident: Ident, found: list[Listed]) -> bool:
        """What is ignored is not asked for, only known to be there; what cannot be addressed is there as well."""
        if not self._addressable(ident[-1]):
            why = f"{dotted(ident)} cannot be read: {self._capabilities.name_problem(ident[-1])}"
            found.append(BrokenEntry(kind, ident, Code.INVALID_INPUT, why))
            if kind == "Namespace":
                found.append(Gap(ident, Code.INVALID_INPUT, why))
            return False
        if self._ignored(ident) and (kind == "Table" or self._ignored((*ident, _ANY_NAME))):
            found.append(OtherEntry(ident))
            return False
        return True

    def _addressable(self, name: str) -> bool:
        """Other people's names may break our rules and still be reached; one with the delimiter in it cannot."""
        return bool(name) and name not in (".", "..") and (self._capabilities.delimiter or DELIMITER) not in name

    def _namespace(self, ident: Ident, notes: Notes) -> Iterator[Listed]:
        try:
            properties = self._api.namespace(ident)
            if properties is None:
                yield OtherEntry(ident)
                return
            yield namespace_entry(ident, properties, notes.of("Namespace", ident))
        except CatalogError as error:
            yield broken("Namespace", ident, error)

    def _table(self, ident: Ident, notes: Notes) -> Iterator[Listed]:
        try:
            answer = self._api.table(ident)
            if answer is None:
                yield OtherEntry(ident)
                return
            record = notes.of("Table", ident)
            if (reason := staying(ident, answer, record)) is not None:
                yield Unsupported(ident, DeregisterTable.__name__, reason)
            yield table_entry(ident, answer, record)
        except CatalogError as error:
            yield broken("Table", ident, error)
