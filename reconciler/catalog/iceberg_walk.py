"""Everything in a warehouse, many calls at a time, and never much of it in memory.

What is to be asked is a stack: the loads of a page's tables lie above the next page, so that a namespace with a
hundred thousand tables is read page by page.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING

from reconciler.catalog.entries import BrokenEntry, Listed, NamespaceEntry, OtherEntry
from reconciler.catalog.iceberg_capabilities import is_own
from reconciler.catalog.iceberg_client import IcebergClient, Listing, MaybeMissing
from reconciler.catalog.iceberg_wire import VIEWS, Warehouse
from reconciler.catalog.paging import MOST_LEVELS, too_deep
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted, parent
from reconciler.model.observed import Gap

if TYPE_CHECKING:
    Found = tuple[Sequence[Listed], Sequence["Task"]]
    Task = Callable[[], Found]


class Crawl:
    """`ignored` objects are named, not read."""

    def __init__(self, client: IcebergClient, at: Warehouse, ignored: Callable[[Ident], bool], parallel: int) -> None:
        self._client, self._at, self._ignored, self._parallel = client, at, ignored, parallel
        self._again: dict[tuple[Kind, Ident], Collection[str] | CatalogError] = {}
        self._lock = threading.Lock()

    def start(self) -> Iterator[Listed]:
        """Raises CatalogError when the warehouse cannot be listed at all: then nothing can be said of it. After that
        nothing is raised: what cannot be listed is a Gap, what cannot be read is Broken."""
        top: Ident = (self._at.name,)
        listing = self._client.child_namespaces(self._at, top)
        return self._run(top, self._below(top, listing, listing.page()))

    def _run(self, top: Ident, first: Found) -> Iterator[Listed]:
        yield NamespaceEntry(top)
        yield from first[0]
        tasks = [*first[1]]
        pool = ThreadPoolExecutor(self._parallel)
        done: SimpleQueue[Future[Found]] = SimpleQueue()
        running = 0
        try:
            while tasks or running:
                while tasks and running < 2 * self._parallel:
                    pool.submit(tasks.pop()).add_done_callback(done.put)
                    running += 1
                listed, more = done.get().result()
                running -= 1
                tasks += more
                yield from listed
        finally:
            pool.shutdown(cancel_futures=True)

    # tasks: each answers with what it found and with what is to be asked next, the least urgent first

    def _children(self, ident: Ident, listing: Listing) -> Task:
        return self._guarded(ident, lambda: self._below(ident, listing, listing.page()))

    def _below(self, ident: Ident, listing: Listing, names: Sequence[str]) -> Found:
        more: list[Task] = []
        listed: list[Listed] = []
        if names and len(ident) > MOST_LEVELS:
            return [too_deep(ident)], ()
        for name in names:
            if len(ident) == 1 and is_own(name):
                continue
            below = (*ident, name)
            try:
                more += self._namespace_tasks(below)
            except CatalogError as error:  # its name cannot be addressed
                listed += [BrokenEntry("Namespace", below, error.code, error.message), _gap(below, error)]
        if not listing.finished:
            more.insert(0, self._children(ident, listing))
        return listed, more

    def _namespace_tasks(self, ident: Ident) -> list[Task]:
        client, at = self._client, self._at
        more = [
            self._children(ident, client.child_namespaces(at, ident)),
            self._tables(ident, client.tables(at, ident)),
        ]
        if at.offers(VIEWS):
            more.append(self._views(ident, client.views(at, ident)))
        more.append(self._namespace(ident))
        return more

    def _tables(self, ident: Ident, listing: Listing) -> Task:
        def task() -> Found:
            names = listing.page()
            more: list[Task] = [] if listing.finished else [self._tables(ident, listing)]
            return (), more + [self._load((*ident, name)) for name in names]

        return self._guarded(ident, task)

    def _views(self, ident: Ident, listing: Listing) -> Task:
        def task() -> Found:
            views = [(*ident, name) for name in listing.page()]
            more = [] if listing.finished else [self._views(ident, listing)]
            view = "is a view, not a table"
            listed = [BrokenEntry("Table", v, Code.INVALID_INPUT, f"{dotted(v)} {view}", foreign=True) for v in views]
            return listed, more

        return self._guarded(ident, task)

    def _namespace(self, ident: Ident) -> Task:
        return self._read("Namespace", ident, lambda: self._client.namespace(self._at, ident))

    def _load(self, ident: Ident) -> Task:
        return self._read("Table", ident, lambda: self._client.table(self._at, ident))

    def _read(self, kind: Kind, ident: Ident, ask: Callable[[], Listed | None]) -> Task:
        def task() -> Found:
            if self._ignored(ident):
                return [OtherEntry(ident)], ()
            try:
                found = ask()
                if found is None and still_listed(self._listed_again, kind, ident):
                    raise CatalogError(
                        Code.INTERNAL, f"the server lists {dotted(ident)} and says that it does not exist"
                    )
            except CatalogError as error:
                found = BrokenEntry(kind, ident, error.code, error.message)
            return [found] if found is not None else (), ()

        return task

    def _listed_again(self, kind: Kind, ident: Ident) -> Collection[str]:
        """Once for each namespace, however many of its names are not found: a server whose lists are long and whose
        names lead nowhere would be listed anew for every one of them."""
        with self._lock:
            if (kind, ident) not in self._again:
                try:
                    self._again[kind, ident] = frozenset(names_in(self._client, self._at, kind, ident))
                except CatalogError as error:
                    self._again[kind, ident] = error
            found = self._again[kind, ident]
        if isinstance(found, CatalogError):
            raise found
        return found

    def _guarded(self, ident: Ident, task: Task) -> Task:
        """A listing that fails is a Gap, unless its namespace has gone meanwhile."""

        def guarded() -> Found:
            try:
                return task()
            except CatalogError as error:
                try:
                    gone = error.code is Code.NAMESPACE_NOT_FOUND and not still_listed(
                        self._listed_again, "Namespace", ident
                    )
                except CatalogError:
                    gone = False
                return [] if gone else [_gap(ident, error)], ()

        return guarded


Names = Callable[[Kind, Ident], Collection[str]]
"""What of this kind is in a namespace. Raises CatalogError."""


def still_listed(names: Names, kind: Kind, ident: Ident) -> bool:
    """Not found, and listed all the same: a name that this server cannot be asked for, or an object that is damaged.
    Not listed: it is not there."""
    if len(ident) == 1:
        return True
    above = parent(ident)
    try:
        return ident[-1] in names(kind, above)
    except CatalogError as error:
        missing = error.code is Code.NAMESPACE_NOT_FOUND or isinstance(error, MaybeMissing)
        if missing and len(above) > 1:
            return still_listed(names, "Namespace", above)
        raise


def names_in(client: IcebergClient, at: Warehouse, kind: Kind, ident: Ident) -> Sequence[str]:
    return (client.child_namespaces(at, ident) if kind == "Namespace" else client.tables(at, ident)).all()


def _gap(ident: Ident, error: CatalogError) -> Gap:
    return Gap(ident, error.code, error.message, root=len(ident) == 1)
