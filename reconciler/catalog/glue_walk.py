"""A whole Glue catalog as a stream: one GetTables listing for each database, several databases at a time.

A listing has the full definitions, so no table is asked for on its own. A page that fails leaves a gap below its
database; child catalogs that cannot be listed leave gaps of their own, never one over the root's databases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from reconciler.catalog.entries import Listed, NamespaceEntry
from reconciler.catalog.glue_api import GlueApi
from reconciler.catalog.glue_capabilities import CATALOG, OWN, chains
from reconciler.catalog.glue_catalogs import ChildCatalogs
from reconciler.catalog.glue_wire import catalog_entry, namespace_entry, table_entry
from reconciler.catalog.paging import MOST_LEVELS, bounded, too_deep
from reconciler.catalog.spread import spread
from reconciler.core.globs import matcher
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ROOT, Ident, dotted
from reconciler.model.observed import Gap, Scope

SOME_CATALOG: Ident = ("(child catalogs)",)
"""Where a gap goes when the names of the child catalogs are not known: no database can have this name."""
_ANY_NAME = "\x01" * 40

Batch = list[Listed]


@dataclass
class Walk:
    api: GlueApi
    catalogs: ChildCatalogs
    all_catalogs: bool
    threads: int

    def __call__(self, scope: Scope) -> Iterator[Listed]:
        """Raises when the root's databases cannot be listed at all."""
        ignored = matcher(scope.ignore)
        seen: dict[Ident, NamespaceEntry] = {}
        jobs: list[Callable[[], Iterator[Batch]]] = []
        for listed in bounded(self._containers(scope)):
            if isinstance(listed, NamespaceEntry) and listed.level == CATALOG:
                database = seen.get(listed.ident)
                # A name may be that of both: together they hold whatever there is.
                seen[listed.ident] = replace(listed, raw=None) if database is None else replace(database, level=None)
            elif isinstance(listed, NamespaceEntry):
                seen[listed.ident] = replace(listed, raw=None)
                if not (ignored(listed.ident) and ignored((*listed.ident, _ANY_NAME))):
                    jobs.append(lambda ident=listed.ident: self._tables(ident))  # type: ignore[misc]
            else:
                yield listed
        yield from seen.values()
        yield from spread(jobs, self.threads)

    def _containers(self, scope: Scope) -> Iterator[Listed]:
        """Databases and the catalogs above them."""
        yield from self._databases(ROOT, raise_first=True)
        wanted = chains_of(scope)
        if wanted or self.all_catalogs:
            yield from self._below(ROOT, wanted)

    def _below(self, chain: Ident, wanted: frozenset[Ident]) -> Iterator[Listed]:
        depth = len(chain) + 1
        names = {w[:depth] for w in wanted if len(w) >= depth and w[: depth - 1] == chain}
        if not names and not self.all_catalogs:
            return
        try:
            found = [((*chain, name), catalog) for name, catalog in self.catalogs.children(chain)]
        except CatalogError as error:
            places = set(names) | ({SOME_CATALOG if chain == ROOT else chain} if self.all_catalogs else set())
            yield from (Gap(place, error.code, error.message) for place in sorted(places))
            return
        if found and len(chain) >= MOST_LEVELS:
            yield too_deep(chain)
            return
        for ident, catalog in found:
            if self.all_catalogs or ident in names:
                yield catalog_entry(ident, catalog)
                yield from self._databases(ident)
                yield from self._below(ident, wanted)

    def _databases(self, chain: Ident, raise_first: bool = False) -> Iterator[Listed]:
        arguments = self.catalogs.arguments(chain)
        first = True
        try:
            if arguments is None:
                return
            doing = f"list the databases of {dotted(chain) or 'the catalog'}"
            missing = Code.NAMESPACE_NOT_FOUND
            for page in self.api.pages(doing, "get_databases", "DatabaseList", arguments, missing):
                yield from (namespace_entry((*chain, d["Name"]), d) for d in page if chain or d["Name"] != OWN)
                first = False
        except CatalogError as error:
            if raise_first and first:
                raise
            yield Gap(chain, error.code, error.message, root=chain == ROOT)

    def _tables(self, ident: Ident) -> Iterator[Batch]:
        """A database that has gone since it was listed leaves a gap, not an empty database."""
        try:
            for page in self.tables(ident):
                yield [table_entry((*ident, t["Name"]), t, keep=False) for t in page]
        except CatalogError as error:
            yield [Gap(ident, error.code, error.message)]

    def tables(self, ident: Ident) -> Iterator[list[dict[str, Any]]]:
        """Every table of whatever kind, page by page. Raises CatalogError."""
        arguments = self.catalogs.arguments(ident[:-1])
        if arguments is None:
            raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"there is no catalog {dotted(ident[:-1])}")
        doing = f"list the tables of {dotted(ident)}"
        arguments = {**arguments, "DatabaseName": ident[-1]}
        return self.api.pages(doing, "get_tables", "TableList", arguments, Code.NAMESPACE_NOT_FOUND)


def chains_of(scope: Scope) -> frozenset[Ident]:
    """The child catalogs that the manifests speak of."""
    return scope.catalogs | chains({*scope.namespaces, *(t[:-1] for t in (*scope.detail, *scope.locations))})
