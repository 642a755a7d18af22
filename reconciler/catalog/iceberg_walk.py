"""Everything in a warehouse, many calls at a time, and never much of it in memory.

What is to be asked is a stack: the loads of a page's tables lie above the next page, so that a namespace with a
hundred thousand tables is read page by page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING

from reconciler.catalog.entries import BrokenEntry, Listed, NamespaceEntry, OtherEntry
from reconciler.catalog.iceberg_capabilities import is_own
from reconciler.catalog.iceberg_client import IcebergClient, Listing, MaybeMissing
from reconciler.catalog.iceberg_wire import VIEWS, Warehouse
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

    def run(self) -> Iterator[Listed]:
        """Never raises CatalogError: what cannot be listed is a Gap, what cannot be read is Broken."""
        top: Ident = (self._at.name,)
        yield NamespaceEntry(top)
        tasks: list[Task] = [self._children(top, self._client.child_namespaces(self._at, top))]
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
        def task() -> Found:
            more: list[Task] = []
            listed: list[Listed] = []
            for name in listing.page():
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

        return self._guarded(ident, task)

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
                if found is None and still_listed(self._client, self._at, kind, ident):
                    raise CatalogError(
                        Code.INTERNAL, f"the server lists {dotted(ident)} and says that it does not exist"
                    )
            except CatalogError as error:
                found = BrokenEntry(kind, ident, error.code, error.message)
            return [found] if found is not None else (), ()

        return task

    def _guarded(self, ident: Ident, task: Task) -> Task:
        """A listing that fails is a Gap, unless its namespace has gone meanwhile."""

        def guarded() -> Found:
            try:
                return task()
            except CatalogError as error:
                try:
                    gone = error.code is Code.NAMESPACE_NOT_FOUND and not still_listed(
                        self._client, self._at, "Namespace", ident
                    )
                except CatalogError:
                    gone = False
                return [] if gone else [_gap(ident, error)], ()

        return guarded


def still_listed(client: IcebergClient, at: Warehouse, kind: Kind, ident: Ident) -> bool:
    """Not found, and listed all the same: a name that this server cannot be asked for, or an object that is damaged.
    Not listed: it is not there."""
    if len(ident) == 1:
        return True
    above = parent(ident)
    listing = client.child_namespaces(at, above) if kind == "Namespace" else client.tables(at, above)
    try:
        return ident[-1] in listing.all()
    except CatalogError as error:
        missing = error.code is Code.NAMESPACE_NOT_FOUND or isinstance(error, MaybeMissing)
        if missing and len(above) > 1:
            return still_listed(client, at, "Namespace", above)
        raise


def _gap(ident: Ident, error: CatalogError) -> Gap:
    return Gap(ident, error.code, error.message)
