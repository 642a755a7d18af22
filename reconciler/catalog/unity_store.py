"""Unity Catalog as an EntryStore: one catalog, its schemas, and their EXTERNAL tables with `table_type=lance`.

There is no update of a table, so a replacement is DELETE and POST. Before the DELETE the whole entry is written down
(`unity_records`). A run that dies in between leaves a table that is not in the catalog while its data is: the next
run attaches it by an ordinary declare, without an allow word, and what others had set on the entry comes from the
record. The plan that was being applied knows the table from the record and can go on where it was cut.

The server does not keep two writers of one name apart: within a process writes of one name take turns, and after a
create the name is read again.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from reconciler.catalog.base import Leased, LeaseRecords, Recorded
from reconciler.catalog.entries import BrokenEntry, LastLocation, Listed, NamespaceEntry, TableEntry
from reconciler.catalog.fence import counting
from reconciler.catalog.locations import same_location
from reconciler.catalog.marks import split
from reconciler.catalog.unity_capabilities import LIMIT, UnityCapabilities
from reconciler.catalog.unity_client import KINDS, UnityClient, Wire
from reconciler.catalog.unity_entries import (
    brought_back,
    namespace_entry,
    need_storable,
    replacement,
    restored,
    schema_body,
    schema_update,
    shown_properties,
    table_body,
    table_entry,
)
from reconciler.catalog.unity_grants import Grants
from reconciler.catalog.unity_records import Records
from reconciler.catalog.unity_walk import UnityWalk, duplicates
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted, parent
from reconciler.model.observed import Scope
from reconciler.model.state import Column, Marks

_MOMENT = (0.05, 0.1, 0.2)
_FIRST, _LONGEST = 0.2, 10.0
"""Seconds between the tries to make the new entry, when the old one is removed already."""


class UnityStore(Leased, Recorded):
    def __init__(
        self,
        client: UnityClient,
        records: Records,
        capabilities: UnityCapabilities,
        catalog: str,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.client = client
        self.records = records
        self._capabilities = capabilities
        self._catalog = catalog
        self._sleep = sleep
        self._guard = threading.Lock()
        self._turns: defaultdict[Ident, threading.Lock] = defaultdict(threading.Lock)
        self._removed: dict[Ident, CatalogError] = {}
        """Entries that this run removed, or may have, and did not make again: until the next walk a read says so."""
        self._kept: dict[Ident, frozenset[str]] = {}
        """Keys of others that this run brought back: not shown until the next walk, for the plan did not know them."""
        self._made: dict[Ident, int] = {}
        """When entries that were seen were made: a record of an older one is void."""

    @property
    def capabilities(self) -> UnityCapabilities:
        return self._capabilities

    @property
    def where(self) -> str:
        return f"Unity catalog {self._catalog} at {self.client.where}"

    @property
    def property_limit(self) -> int | None:
        return LIMIT

    def lease_records(self, idents: Sequence[Ident]) -> Sequence[LeaseRecords]:
        """In the storage: the server itself lets two create one name."""
        return [self.records.lease()]

    def close(self) -> None:
        self.client.close()

    # reads

    def walk(self, scope: Scope) -> Iterator[Listed]:
        self._removed.clear()
        self._kept.clear()
        walk = UnityWalk(self.client, self.records, self._catalog, self._capabilities.max_parallelism, self._note)
        return walk(scope, self.table)

    def namespace(self, ident: Ident) -> NamespaceEntry | BrokenEntry | None:
        if len(ident) not in (1, 2) or ident[0] != self._catalog:
            return None  # There can be no such thing, and the server would call the question invalid.
        try:
            if len(ident) == 1:
                return NamespaceEntry(ident) if self.client.catalog(ident[0]) is not None else None
            wire = self.client.schema(ident)
        except CatalogError as error:
            return self._duplicates("Namespace", ident, error) or _broken("Namespace", ident, error)
        return namespace_entry(ident, wire) if wire is not None else None

    def table(self, ident: Ident) -> TableEntry | BrokenEntry | None:
        if len(ident) != 3 or ident[0] != self._catalog:
            return None
        try:
            wire = self.client.table(ident)
            if wire is None and ident not in self._removed and self._cut(ident) is not None:
                wire = self._settled(ident)
            if wire is not None:
                return self._entry(ident, wire)
        except CatalogError as error:
            return self._duplicates("Table", ident, error) or _broken("Table", ident, error)
        if ident in self._removed:
            raise self._removed[ident]
        return None

    def _note(self, ident: Ident, wire: Wire) -> None:
        if isinstance(made := wire.get("created_at"), int):
            self._made[ident] = made

    def _cut(self, ident: Ident) -> Wire | None:
        """The entry that a replacement removed, if none was made again, from the record of it. A record can outlive its
        replacement (a run that was killed right after): once a newer entry was seen it says nothing any more."""
        old = self.records.replaced(ident)
        if old is None or not isinstance(before := old.get("created_at"), int):
            return old
        return None if self._made.get(ident, before) > before else old

    def settle_records(self) -> None:
        """A record beside an entry that is newer would speak for it when it is gone some day."""
        for ident in self.records.replacing(self.records.files()):
            if (wire := self.client.table(ident)) is not None:
                self.records.void(ident, wire.get("table_id"))

    def _entry(self, ident: Ident, wire: Wire) -> TableEntry | BrokenEntry:
        self._note(ident, wire)
        entry = table_entry(ident, wire, self.records.marks(str(wire.get("table_id"))))
        kept = self._kept.get(ident)
        if not kept or isinstance(entry, BrokenEntry):
            return entry
        return replace(entry, properties={k: v for k, v in entry.properties.items() if k not in kept})

    def _settled(self, ident: Ident) -> Wire | None:
        """Another run may be between the two calls of a replacement: that takes a moment, a run that died takes for
        ever."""
        wire = None
        for pause in _MOMENT:
            self._sleep(pause)
            begun = self.records.replaced(ident) is not None
            wire = self.client.table(ident)
            if wire is not None or not begun:
                break
        return wire

    def _duplicates(self, kind: Kind, ident: Ident, error: CatalogError) -> BrokenEntry | None:
        """With two objects of one name the server fails on every question but the listing."""
        if error.code is not Code.INTERNAL or len(ident) < 2:
            return None
        with suppress(CatalogError):
            pages = self.client.schemas(ident[0]) if len(ident) == 2 else self.client.inside("tables", ident[:2])
            count = sum(w.get("name") == ident[-1] for page in pages for w in page)
            return duplicates(kind, ident, count) if count > 1 else None
        return None

    def inside(self, ident: Ident) -> Sequence[str]:
        if len(ident) == 1:
            return [str(w["name"]) for page in self.client.schemas(ident[0]) for w in page]
        return [str(w.get("name")) for kind in KINDS for page in self.client.inside(kind, ident) for w in page]

    def last_location(self, ident: Ident) -> LastLocation | None:
        cut = self._cut(ident) or {}
        if location := cut.get("storage_location"):
            return LastLocation(location)
        if location := self.records.detached(ident):
            return LastLocation(location, self.records.detached_file(ident))
        home = self._capabilities.location_of(ident)
        return LastLocation(home) if home is not None else None

    def interrupted(self, ident: Ident) -> TableEntry | None:
        cut = self._cut(ident)
        if cut is None or self.client.table(ident) is not None:
            return None
        entry = table_entry(ident, cut, self.records.marks(str(cut.get("table_id"))))
        return entry if isinstance(entry, TableEntry) else None

    # namespaces

    def create_namespace(self, ident: Ident, properties: Mapping[str, str]) -> None:
        self._need_known(ident, "Namespace")
        body = schema_body(ident, properties)
        need_storable(ident, body)
        with self._turn(ident):
            self.client.create_schema(body)
            self._check_single("Namespace", ident)

    def update_namespace(self, entry: NamespaceEntry, properties: Mapping[str, str]) -> None:
        body = schema_update(entry, properties)
        need_storable(entry.ident, body)
        self.client.update_schema(entry.ident, body)

    def rename_namespace(self, entry: NamespaceEntry, ident: Ident) -> None:
        self._need_known(ident, "Namespace")
        for table in self.records.replacing(self.records.files()):
            if parent(table) == entry.ident and (wire := self.client.table(table)) is not None:
                self._unrecorded(table, wire)
        self.client.update_schema(entry.ident, {"new_name": ident[1]})

    def drop_namespace(self, entry: NamespaceEntry) -> None:
        """The server refuses to drop what is not empty; that is not left to it alone."""
        if held := self.inside(entry.ident):
            raise CatalogError(Code.NAMESPACE_NOT_EMPTY, f"schema {dotted(entry.ident)} holds {sorted(held)[0]!r}")
        self.client.delete_schema(entry.ident)

    # tables

    def create_table(
        self, ident: Ident, location: str | None, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        self._need_known(ident, "Table")
        if location is None:
            raise CatalogError(Code.INVALID_INPUT, f"{dotted(ident)} needs a location: set spec.root, or `location`")
        with self._turn(ident):
            cut = self._cut(ident)
            if cut is None:
                body = table_body(ident, location, properties, columns)
                need_storable(ident, body)
                self.client.create_table(body)
            else:
                self._bring_back(ident, cut, location, properties, columns)
            self._check_single("Table", ident)

    def _bring_back(
        self,
        ident: Ident,
        cut: Wire,
        location: str,
        properties: Mapping[str, str],
        columns: tuple[Column, ...] | None,
    ) -> None:
        """Ends a replacement that was cut. For a table somewhere else the record says nothing; for this one, a refusal
        brings back the entry that the replacement removed."""
        body = table_body(ident, location, properties, columns)
        same = same_location(str(cut.get("storage_location")), location)
        kept = self.records.marks(str(cut.get("table_id")))
        if same:
            marks = kept or split(cut.get("properties") or {})[1]
            body, self._kept[ident] = brought_back(ident, cut, marks, properties, columns)
        need_storable(ident, body)
        try:
            self._post(ident, body)
        except CatalogError as error:
            if not same or not self._back(ident, cut, kept, error):
                raise
            self._kept.pop(ident, None)
            raise _put_back(ident, error) from error
        self._ended(ident, cut, marks=True)

    def update_table(
        self, entry: TableEntry, properties: Mapping[str, str] | None, columns: tuple[Column, ...] | None
    ) -> None:
        raise CatalogError(Code.UNSUPPORTED, "Unity has no update of a table: it needs `allow: [replace_table]`")

    def replace_table(
        self, entry: TableEntry, properties: Mapping[str, str], columns: tuple[Column, ...] | None
    ) -> None:
        ident, old = entry.ident, entry.raw
        kept = self._kept.get(ident, frozenset()) - properties.keys()
        if kept:
            shown = shown_properties(old)
            properties = {**{k: v for k, v in shown.items() if k in kept}, **properties}
        new = replacement(entry, properties, columns)
        need_storable(ident, new)
        self._need_right(ident, old)
        with self._turn(ident):
            self._remove(ident, old)
            self._make_again(ident, entry, new)
            self._check_single("Table", ident)
            self._ended(ident, old, marks=True)
            if kept:
                self._kept[ident] = kept

    def _need_right(self, ident: Ident, old: Wire) -> None:
        """Asked again: a saved plan may be applied by another principal than the one that made it."""
        reason = None
        if old.get("owner"):  # The server knows of owners.
            reason = Grants(self.client).refusal(ident, old, self.client.schema(ident[:2]))
        if reason is not None:
            raise CatalogError(Code.PERMISSION_DENIED, f"{reason}; nothing was written")

    def _make_again(self, ident: Ident, entry: TableEntry, body: Wire) -> None:
        """When it does not succeed, the old entry is put back; when that does not succeed either, the write has an
        unknown outcome and the next read says what has become of the table."""
        try:
            self._post(ident, body)
        except CatalogError as error:
            if error.code is Code.TABLE_ALREADY_EXISTS:  # Somebody else has made one.
                self._ended(ident, entry.raw)
                raise CatalogError(error.code, error.message, landed=True) from error
            if self._back(ident, entry.raw, entry.marks, error):
                raise _put_back(ident, error) from error
            self._removed[ident] = _left(ident, entry.raw)
            if not error.gave_up:
                error.unknown_outcome = True
            raise

    def _post(self, ident: Ident, body: Wire) -> None:
        """The old entry is removed already, so a re-read of the step would find nothing to go on with: the call is
        repeated here, until it is spent."""
        with counting():
            for attempt in range(self.client.max_retries + 1):
                try:
                    self.client.create_table(body)
                    return
                except CatalogError as error:
                    if error.unknown_outcome and self._is_there(ident):
                        return
                    passes = error.unknown_outcome or error.retryable
                    if not passes or error.spent or attempt == self.client.max_retries:
                        raise
                    pause = min(_LONGEST, _FIRST * 2.0**attempt)
                    self._sleep(max(pause, min(error.retry_after or 0.0, _LONGEST)))

    def _is_there(self, ident: Ident) -> bool:
        """After a POST whose answer was lost: with the entry in the catalog its record has no more use, and must not
        speak for it when it is gone one day."""
        with suppress(CatalogError):
            return self.client.table(ident) is not None
        return False

    def _remove(self, ident: Ident, old: Wire) -> None:
        """Writes the entry down, then removes it, if it is still that entry. Where another run does the same, the
        quicker one ends it."""
        first = self.records.begin(ident, old)
        try:
            now = self.client.table(ident)
            if now is None or now.get("table_id") != old.get("table_id"):
                raise _quicker(ident)
            self.client.delete_table(ident)
        except CatalogError as error:
            if error.unknown_outcome and self._is_gone(ident):
                return
            if error.unknown_outcome:
                self._removed[ident] = _left(ident, old)
            elif first:
                self._ended(ident, old)
            raise _quicker(ident) if error.code is Code.TABLE_NOT_FOUND else error from None

    def _is_gone(self, ident: Ident) -> bool:
        with suppress(CatalogError):
            return self.client.table(ident) is None
        return False

    def _back(self, ident: Ident, old: Wire, marks: Marks | None, refused: CatalogError) -> bool:
        """The server did not take the new entry, however often it was asked: the old one is made again, as it was. Not
        while the new one may be there after all, and not by a run that has lost its turn: whoever has it now goes on
        from the record. True when it is done."""
        if refused.gave_up or refused.code is Code.TABLE_ALREADY_EXISTS or not self._is_gone(ident):
            return False
        try:
            self._post(ident, restored(old, marks))
        except CatalogError:
            return False
        self._ended(ident, old, marks=True)
        return True

    def _ended(self, ident: Ident, old: Wire, *, marks: bool = False) -> None:
        """`marks`: those of the old entry are in the new one's properties now."""
        if marks:
            self.records.forget_marks(str(old.get("table_id")))
        self.records.end(ident, old.get("table_id"))
        self._removed.pop(ident, None)

    def save_marks(self, entry: TableEntry, marks: Marks) -> bool:
        self.records.save_marks(str(entry.raw.get("table_id")), marks)
        return True

    def rename_table(self, entry: TableEntry, ident: Ident) -> None:
        """The server's own call: a new entry would have another id, and no grants."""
        self._need_known(ident, "Table")
        first, second = sorted((entry.ident, ident))
        with self._turn(first), self._turn(second):
            self._unrecorded(entry.ident, entry.raw)
            self.client.rename_table(entry.ident, ident[2])
            self._check_single("Table", ident)

    def drop_table(self, entry: TableEntry) -> None:
        ident = entry.ident
        by_rule = self._capabilities.location_of(ident)
        known = by_rule is not None and same_location(by_rule, entry.location)
        with self._turn(ident):
            self._unrecorded(entry.ident, entry.raw)
            self.records.detach(ident, None if known else entry.location)
            try:
                self.client.delete_table(ident)
            except CatalogError as error:  # The step ends once the entry is gone: its records go now or never.
                if not error.unknown_outcome or not self._is_gone(ident):
                    raise
            self.records.forget_marks(str(entry.raw.get("table_id")))

    def _unrecorded(self, ident: Ident, live: Wire) -> None:
        """Before the name becomes free: what a cut replacement noted under it would be taken for the table that was
        removed from there. The live entry itself has all that was noted."""
        with suppress(CatalogError):
            self.records.void(ident, live.get("table_id"))
        self.records.end(ident)

    def _check_single(self, kind: Kind, ident: Ident) -> None:
        """Two processes that create one name at the same time both succeed on this server."""
        found: object = None
        with suppress(CatalogError):  # the caller reads it again in any case
            found = self.namespace(ident) if kind == "Namespace" else self.table(ident)
        if isinstance(found, BrokenEntry) and found.code is Code.INVALID_TABLE_STATE:
            raise CatalogError(found.code, found.message)

    @contextmanager
    def _turn(self, ident: Ident) -> Iterator[None]:
        with self._guard:
            lock = self._turns[ident]
        with lock:
            yield

    def _need_known(self, ident: Ident, kind: str) -> None:
        problem = self._capabilities.ident_problem("Table" if kind == "Table" else "Namespace", ident)
        if problem is not None:
            raise CatalogError(Code.INVALID_INPUT, f"{dotted(ident)}: {problem}")


def _left(ident: Ident, old: Wire) -> CatalogError:
    return CatalogError(
        Code.INVALID_TABLE_STATE,
        f"the entry of {dotted(ident)} is removed and could not be made again; its data is untouched at "
        f"{old.get('storage_location')}, and the next apply restores the entry",
    )


def _put_back(ident: Ident, refused: CatalogError) -> CatalogError:
    why = (
        f"{refused.message}; the entry of {dotted(ident)}, which was removed for this, is put back as it was, "
        "under a new table id: grants on it have to be given again"
    )
    return CatalogError(refused.code, why, landed=True, spent=True)


def _quicker(ident: Ident) -> CatalogError:
    return CatalogError(
        Code.CONCURRENT_MODIFICATION, f"somebody else has removed or replaced {dotted(ident)} just now: make a new plan"
    )


def _broken(kind: str, ident: Ident, error: CatalogError) -> BrokenEntry:
    """What will not pass by waiting is a property of the object; the rest is raised, to be asked again."""
    if error.retryable or error.code is Code.UNAUTHENTICATED or error.code is Code.NAMESPACE_NOT_FOUND:
        raise error
    return BrokenEntry("Table" if kind == "Table" else "Namespace", ident, error.code, error.message)
