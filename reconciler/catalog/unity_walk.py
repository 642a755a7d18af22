"""A whole Unity catalog as a stream: the schemas, then one listing of tables for each, several at a time.

A listing has the whole tables, so no table is asked for on its own. A page that fails leaves a gap below its schema.
A table whose entry a cut replacement has removed is told of when no manifest declares it any more: nobody else would.
A declared table that must not be replaced, because its principal could not make it again, is told of too.
Volumes, functions and models are listed only where a drop may be planned: in schemas with an owner's mark that hold
no declared table. Right before a drop they are listed in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby

from reconciler.catalog.entries import BrokenEntry, Listed, NamespaceEntry, OtherEntry, TableEntry
from reconciler.catalog.spread import spread
from reconciler.catalog.unity_client import KINDS, UnityClient, Wire
from reconciler.catalog.unity_entries import namespace_entry, table_entry
from reconciler.catalog.unity_grants import Grants
from reconciler.catalog.unity_records import Records, marks_file
from reconciler.core.globs import matcher
from reconciler.model.change import ReplaceTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted, parent
from reconciler.model.observed import Gap, Scope, Unsupported
from reconciler.model.state import OWNER_KEY

_ANY_NAME = "\x01" * 40
_TOGETHER = 100


class UnityWalk:
    """`seen`: is told of every entry in the catalog that a replacement was noted for."""

    def __init__(
        self,
        client: UnityClient,
        records: Records,
        catalog: str,
        threads: int,
        seen: Callable[[Ident, Wire], None],
    ) -> None:
        self._client = client
        self._records = records
        self._catalog = catalog
        self._threads = threads
        self._seen = seen
        self._grants = Grants(client)

    def __call__(self, scope: Scope, again: Callable[[Ident], Listed | None]) -> Iterator[Listed]:
        """`again` reads a table that is not listed but whose replacement was begun. Raises when the schemas cannot be
        listed."""
        files = self._records.files()
        replacing = self._records.replacing(files)
        declared = {parent(t) for t in scope.detail}

        def look(table: Ident) -> Listed | None:
            entry = again(table)
            return entry if entry is not None or table in scope.detail else self._cut(table)

        def refused(schema: Wire, table: Ident, wire: Wire) -> Iterator[Unsupported]:
            reason = self._grants.refusal(table, wire, schema) if table in scope.detail else None
            if reason is not None:
                yield Unsupported(table, ReplaceTable.__name__, reason)

        ignored = matcher(scope.ignore)
        jobs: list[Callable[[], Iterator[list[Listed]]]] = []
        first = True
        lost = set(replacing)
        try:
            for page in self._client.schemas(self._catalog):
                if first:
                    yield NamespaceEntry((self._catalog,))
                    first = False
                for name, wires in groupby(page, key=lambda w: str(w["name"])):
                    ident, same = (self._catalog, name), list(wires)
                    cut = [t for t in replacing if parent(t) == ident]
                    lost.difference_update(cut)
                    if len(same) > 1:
                        yield duplicates("Namespace", ident, len(same))
                        continue
                    entry = namespace_entry(ident, same[0])
                    known = entry.properties if isinstance(entry, NamespaceEntry) else {}
                    yield entry if isinstance(entry, BrokenEntry) else NamespaceEntry(ident, known)
                    if ignored(ident) and ignored((*ident, _ANY_NAME)):
                        continue
                    jobs.append(partial(self._tables, ident, files, cut, look, partial(refused, same[0])))
                    if OWNER_KEY in known and ident not in declared:
                        jobs.append(lambda i=ident: self._others(i))  # type: ignore[misc]
        except CatalogError as error:
            if first:
                raise
            yield Gap((self._catalog,), error.code, error.message, root=True)
        else:
            jobs += [lambda t=table: self._lost(t, look) for table in sorted(lost)]  # type: ignore[misc]
        yield from spread(jobs, self._threads)

    def _tables(
        self,
        ident: Ident,
        files: frozenset[str],
        cut: list[Ident],
        look: Callable[[Ident], Listed | None],
        refused: Callable[[Ident, Wire], Iterator[Unsupported]],
    ) -> Iterator[list[Listed]]:
        """Two tables of one name (this server lets that happen) are next to each other: the order is by name. Many in
        one list: handing over costs more than what is handed over."""
        missing = set(cut)
        found: list[Listed] = []
        try:
            for name, wires in groupby(self._wires(ident), key=lambda w: str(w.get("name"))):
                same = list(wires)
                if (*ident, name) in missing:
                    missing.discard((*ident, name))
                    self._seen((*ident, name), same[0])
                found.append(self._table((*ident, name), same, files))
                found.extend(refused((*ident, name), same[0]))
                if len(found) >= _TOGETHER:
                    yield found
                    found = []
            for table in sorted(missing):
                entry = look(table)
                if entry is not None:
                    found.append(entry)
        except CatalogError as error:
            found.append(Gap(ident, error.code, error.message))
        yield found

    def _lost(self, ident: Ident, look: Callable[[Ident], Listed | None]) -> Iterator[list[Listed]]:
        """A table whose replacement was cut and whose schema is gone too."""
        try:
            entry = look(ident)
        except CatalogError as error:
            entry = Gap(ident, error.code, error.message)
        yield [entry] if entry is not None else []

    def _cut(self, ident: Ident) -> BrokenEntry | None:
        """A declared one is left to the look for its data."""
        try:
            old = self._records.replaced(ident)
        except CatalogError as error:
            return BrokenEntry("Table", ident, error.code, error.message)
        if old is None:
            return None
        return BrokenEntry(
            "Table",
            ident,
            Code.INVALID_TABLE_STATE,
            f"its replacement was cut when its entry was removed; its data was left at {old.get('storage_location')}. "
            f"Declare it again and apply, or remove {self._records.file_of(ident)} to let go of it",
        )

    def _wires(self, ident: Ident) -> Iterator[Wire]:
        for page in self._client.inside("tables", ident):
            yield from page

    def _table(self, ident: Ident, same: list[Wire], files: frozenset[str]) -> Listed:
        if len(same) > 1:
            return duplicates("Table", ident, len(same))
        table_id = str(same[0].get("table_id"))
        try:
            marks = self._records.marks(table_id) if marks_file(table_id) in files else None
        except CatalogError as error:
            return BrokenEntry("Table", ident, error.code, error.message)
        entry = table_entry(ident, same[0], marks)
        if isinstance(entry, TableEntry):  # without the answer itself: a large catalog does not stay in memory
            return TableEntry(ident, entry.location, entry.properties, entry.columns, entry.marks)
        return entry

    def _others(self, ident: Ident) -> Iterator[list[Listed]]:
        try:
            for kind in KINDS:
                if kind != "tables":
                    for page in self._client.inside(kind, ident):
                        yield [OtherEntry((*ident, str(w.get("name")))) for w in page]
        except CatalogError as error:
            yield [Gap(ident, error.code, error.message)]


def duplicates(kind: Kind, ident: Ident, count: int) -> BrokenEntry:
    what = "schemas" if kind == "Namespace" else "tables"
    return BrokenEntry(
        kind,
        ident,
        Code.INVALID_TABLE_STATE,
        f"the server holds {count} {what} named {dotted(ident)}, made by writers that ran at the same time: it can "
        "neither read nor drop them, remove all but one in its database",
    )
