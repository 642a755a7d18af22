"""What an executor does for a whole catalog or for many of its tables: lists, reads, measures.

It uses the catalog classes of this program, which `package` brings there. What goes wrong with a table or a listing is
a row of its own; no secret is in any row.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from reconciler.catalog.base import Catalog
from reconciler.catalog.registry import connect
from reconciler.core.fingerprint import fingerprint, schema_print
from reconciler.core.fleet import Watch, as_declared, in_doubt, without_location
from reconciler.core.globs import matcher
from reconciler.core.uris import canonical_of, contains, folders_above
from reconciler.engine.redact import Redactor
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import CatalogError, Code, ReadError
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Detached, Finding, Gap, LeftOut, Observation, Present, Scope, Unreadable
from reconciler.model.state import DatasetState, TableState
from reconciler.pipeline.measure import measured
from reconciler.pipeline.parcel import packed

ROWS_AT_A_TIME = 1000
THREADS = 8
TRIES = (0.0, 0.2, 1.0)
"""Seconds before each: an answer such as `busy` is raised by `read`, and asked for again."""
LISTED = "catalog string, key string, kind string, ours boolean, asked boolean, error string, strange boolean"
"""`strange`: it is there and none of our kind, or not selected: no row of the history."""
READ = (
    "kind string, catalog string, id string, path array<string>, owner string, location string, state_hash string, "
    "schema_hash string, rows long, bytes long, fragments long, small_fragments long, unindexed_rows long, "
    "versions long, last_commit timestamp, version long, error string, "
    "key string, place string, declared boolean, doubt boolean, recorded boolean"
)


@dataclass(frozen=True)
class CatalogTask:
    """One catalog, with all it takes to open it. Travels in the function that Spark carries, and nowhere else."""

    name: str
    type: str
    options: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    owner: str = ""
    ignore: tuple[str, ...] = ()
    namespaces: frozenset[Ident] = frozenset()
    folders: tuple[str, ...] = ()
    """Of the driver's machine. A missing folder is an empty catalog to some: here it is a disk that is not shared."""
    start: str = ""
    """The folder that relative paths count from, if there are any."""
    connect: Callable[[CatalogSpec, Mapping[str, str]], Catalog] = connect

    def opened(self) -> Catalog:
        """Raises CatalogError."""
        spec = CatalogSpec(self.name, self.type, {}, Management(), Source(""))
        for folder in (*self.folders, *([self.start] if self.start else [])):
            if not os.path.isdir(folder):
                what = f"the executors do not see {folder}: the catalog has to be on storage that they share"
                raise CatalogError(Code.SERVICE_UNAVAILABLE, what)
        try:
            with _starting_in(self.start) if self.start else nullcontext():
                return self.connect(spec, self.options)
        except ImportError as error:
            what = (
                f"the executors lack a library for catalogs of type {self.type} ({error}): install it in their Python"
            )
            raise CatalogError(Code.UNSUPPORTED, what) from error

    def scope(self, detail: Iterable[Ident] = (), locations: Mapping[Ident, str] | None = None) -> Scope:
        return Scope(frozenset(detail), locations or {}, self.ignore, self.namespaces)


@dataclass(frozen=True)
class Keep:
    """Which observations a plan has to have, of all that a scan gives."""

    idents: frozenset[Ident]
    watch: Watch
    places: frozenset[str]
    ignored: bool
    """Ignored tables too: data that was found without a table may be theirs."""

    def near(self, place: str) -> bool:
        """At one of the places, inside one, or around one."""
        return (
            place in self.places
            or any(folder in self.places for folder in folders_above(place))
            or any(contains(place, wanted) for wanted in self.places)
        )


@contextmanager
def _starting_in(folder: str) -> Iterator[None]:
    """For as long as it takes to open a catalog, which makes its paths absolute: the process does one task at a time,
    but the next may be somebody else's. Spark may have put our code on the path relative to where the process is."""
    before = os.getcwd()
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] == "reconciler" and hasattr(module, "__path__"):
            module.__path__ = [os.path.abspath(entry) for entry in module.__path__]
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def key_of(ident: Ident) -> str:
    return json.dumps(ident, ensure_ascii=False, separators=(",", ":"))


def ident_of(key: str) -> Ident:
    return tuple(json.loads(key))


def listing(tasks: Sequence[CatalogTask], targets: Sequence[str], asked: Sequence[str]) -> Callable[..., Any]:
    """Every table of these catalogs, and where a listing could not be finished. Rows as LISTED."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for number in _numbers(batches):
            yield from row_batches(_listed(tasks[number], targets, asked), LISTED)

    return run


def _listed(task: CatalogTask, targets: Sequence[str], asked: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    redactor = Redactor(task.secrets)
    ignored, selected, wanted = matcher(task.ignore), matcher(targets), matcher(asked)
    try:
        with closing(task.opened()) as catalog:
            for found in catalog.scan(task.scope()):
                if isinstance(found, Gap) and not (found.ident and ignored(found.ident)):
                    yield task.name, key_of(found.ident), "Gap", False, False, _noted(found.error, redactor), True
                elif isinstance(found, Observation) and found.kind == "Table" and not ignored(found.ident):
                    ident, finding = found.ident, found.finding
                    owner = finding.state.marks.owner if isinstance(finding, Present) else None
                    strange = isinstance(finding, Unreadable) and finding.foreign
                    strange = strange or (bool(targets) and not selected(ident))
                    error = _told(finding, redactor) if isinstance(finding, Unreadable) else None
                    ours = owner == task.owner
                    yield task.name, key_of(ident), "Table", ours, wanted(ident), error, strange
    except Exception as error:
        yield task.name, "[]", "Gap", False, False, _noted(_read_error(error), redactor), True


def reading(tasks: Sequence[CatalogTask]) -> Callable[..., Any]:
    """From rows of the listing joined with what is declared to rows as READ."""
    known = {task.name: task for task in tasks}

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        with ExitStack() as stack:
            open_: dict[str, _Reader] = {}
            for batch in batches:
                rows = batch.to_pylist()
                for name in sorted({r["catalog"] for r in rows}):
                    if name not in open_:
                        open_[name] = stack.enter_context(closing(_Reader(known[name])))
                    mine = [r for r in rows if r["catalog"] == name]
                    for start in range(0, len(mine), ROWS_AT_A_TIME):
                        yield from row_batches(open_[name].rows(mine[start : start + ROWS_AT_A_TIME]), READ)

    return run


class _Reader:
    """One catalog in one task."""

    def __init__(self, task: CatalogTask) -> None:
        self._task = task
        self._redactor = Redactor(task.secrets)
        self._catalog: Catalog | None = None
        self._pool = ThreadPoolExecutor(THREADS)

    def close(self) -> None:
        self._pool.shutdown()
        if self._catalog is not None:
            self._catalog.close()

    def rows(self, asked: Sequence[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
        live = [r for r in asked if r["kind"] == "Table" and not r["error"] and (r["declared"] or not r["strange"])]
        found = self._found(live)
        yield from self._pool.map(lambda row: self._row(row, found.get(ident_of(row["key"]))), asked)

    def _found(self, rows: Sequence[dict[str, Any]]) -> dict[Ident, Finding]:
        idents = {ident_of(r["key"]): r["location"] for r in rows}
        scope = self._task.scope(idents, {i: place for i, place in idents.items() if place is not None})
        try:
            return self._read([*idents], scope)
        except CatalogError:  # One object may be the culprit.
            return {i: self._alone(i, scope) for i in idents}

    def _alone(self, ident: Ident, scope: Scope) -> Finding:
        for pause in TRIES:
            time.sleep(pause)
            try:
                return self._read([ident], scope)[ident]
            except CatalogError as error:
                found = Unreadable(error.code, error.message)
        return found

    def _read(self, idents: Sequence[Ident], scope: Scope) -> dict[Ident, Finding]:
        if not idents:
            return {}
        if self._catalog is None:
            self._catalog = self._task.opened()
        return {o.ident: o.finding for o in self._catalog.read([("Table", i) for i in idents], scope)}

    def _row(self, row: dict[str, Any], finding: Finding | None) -> tuple[Any, ...]:
        ident = ident_of(row["key"])
        out: dict[str, Any] = dict.fromkeys(_names(READ))
        out |= {n: row[n] for n in ("kind", "catalog", "key", "declared", "error")}
        out |= {"id": dotted(ident), "path": [*ident]}
        out["recorded"] = row["kind"] == "Table" and not row["strange"]
        prints: list[str | None] = []
        if isinstance(finding, Present) and isinstance(finding.state, TableState):
            out |= self._measured(ident, finding.state)
            if as_declared(finding.state):
                prints = [out["state_hash"], fingerprint(without_location(finding.state))]
        elif finding is not None:
            out["error"] = _told(finding, self._redactor)
        out["doubt"] = row["asked"] or in_doubt(row["desired_hash"], prints, row["declared"], row["ours"])
        return tuple(out.values())

    def _measured(self, ident: Ident, state: TableState) -> dict[str, Any]:
        place = canonical_of(state)
        out: dict[str, Any] = {
            "owner": state.marks.owner,
            "location": self._redactor.text(place) if place is not None else None,
            "state_hash": fingerprint(Present(state)),
            "place": place,
        }
        if not isinstance(state.dataset, DatasetState):
            return out  # Declared only.
        out["schema_hash"] = schema_print(state.dataset.fields)
        assert self._catalog is not None
        try:
            where = self._catalog.data_place(ident, state)
            self._redactor.add(where.storage_options.values())
            return out | measured(where.uri, where.storage_options, state.dataset.version)
        except Exception as error:
            return out | {"error": self._redactor.text(_read_error(error).text)}


def looking(task: CatalogTask, scope: Scope, keep: Keep) -> Callable[..., Any]:
    """What a plan has to know of a catalog, as parcels: observations, then how much was left out; or the error."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for _ in _numbers(batches):
            yield from row_batches(((packed(seen),) for seen in _looked(task, scope, keep)), "parcel binary")

    return run


def _looked(task: CatalogTask, scope: Scope, keep: Keep) -> Iterator[object]:
    ignored = matcher(task.ignore)
    tables = owned = 0
    try:
        with closing(task.opened()) as catalog:
            for found in catalog.scan(scope):
                if not isinstance(found, Observation) or found.kind != "Table" or _kept(found, keep, ignored):
                    yield found
                elif not ignored(found.ident):
                    tables += 1
                    owned += isinstance(found.finding, Present) and found.finding.state.marks.owner == task.owner
    except CatalogError as error:
        yield error.code, error.message
    yield LeftOut(tables, owned)


def _kept(found: Observation, keep: Keep, ignored: Callable[[Ident], bool]) -> bool:
    finding = found.finding
    if found.ident in keep.idents or keep.watch.holds(found.ident) or isinstance(finding, Detached):
        return True
    if isinstance(finding, Unreadable):
        return not finding.foreign
    if keep.ignored and ignored(found.ident):
        return True
    if not isinstance(finding, Present) or not isinstance(finding.state, TableState):
        return True
    place = canonical_of(finding.state) if keep.places else None
    return place is not None and keep.near(place)


def _numbers(batches: Iterable[Any]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _names(layout: str) -> list[str]:
    return [part.split()[0] for part in layout.split(", ")]


_TYPES: dict[str, Any] = {
    "string": pa.string(), "long": pa.int64(), "boolean": pa.bool_(), "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"), "array<string>": pa.list_(pa.string()),
}  # fmt: skip


def arrow_schema(layout: str) -> Any:
    return pa.schema([(name, _TYPES[kind]) for name, kind in (part.split() for part in layout.split(", "))])


def row_batches(rows: Iterable[tuple[Any, ...]], layout: str) -> Iterator[Any]:
    schema, some = arrow_schema(layout), []
    for row in rows:
        some.append(row)
        if len(some) >= ROWS_AT_A_TIME:
            yield _batch(some, schema)
            some = []
    if some:
        yield _batch(some, schema)


def _batch(rows: Sequence[tuple[Any, ...]], schema: Any) -> Any:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _noted(error: ReadError, redactor: Redactor) -> str:
    """In a row of a gap: the code comes back as data from an executor."""
    return json.dumps([error.code, redactor.text(error.message)])


def gap_error(noted: str) -> ReadError:
    code, message = json.loads(noted)
    return ReadError(None if code is None else Code(code), message)


def _told(finding: Finding, redactor: Redactor) -> str:
    if isinstance(finding, Unreadable):
        return ReadError(finding.code, redactor.text(finding.message)).text
    return "it was gone when it was to be read"


def _read_error(error: Exception) -> ReadError:
    if isinstance(error, CatalogError):
        return ReadError(error.code, error.message)
    return ReadError(None, f"{type(error).__name__}: {error}")
