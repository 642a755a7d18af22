"""The declared tables that a verb works on: which ones, and where their data is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reconciler import app
from reconciler.core.globs import matcher, matches
from reconciler.core.planner import scope_of
from reconciler.core.targets import of_catalog
from reconciler.core.uris import canonical_of
from reconciler.engine.progress import Progress
from reconciler.model.desired import Desired, DesiredTable
from reconciler.model.diagnostic import Diagnostic, has_errors
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident
from reconciler.model.observed import Detached, Finding, Present, Snapshot, Unreadable
from reconciler.model.state import DatasetState, TableState
from reconciler.pipeline.session import SparkError, SparkOptions, session

if TYPE_CHECKING:
    from reconciler.catalog.base import DataPlace
    from reconciler.session import Session

DECLARED_ONLY = "the table is declared only: it has no dataset yet"


@dataclass(frozen=True)
class Found:
    """A dataset that was just read."""

    place: DataPlace
    dataset: DatasetState
    state: TableState

    @property
    def version(self) -> int:
        assert self.dataset.version is not None
        return self.dataset.version


@dataclass(frozen=True)
class Declared:
    """A declared table: its data, or why there is none. With neither it is declared only, in the catalog too."""

    want: DesiredTable
    found: Found | None = None
    problem: str | None = None
    same_data: Ident | None = None
    """Another declared table of the catalog with the same dataset: neither gets a step."""


def loaded(what: app.Request) -> tuple[Desired, list[Diagnostic]]:
    """The manifests and the warnings. Raises Failure."""
    read = app.validate(what.paths, what.reading)
    if has_errors(read.diagnostics):
        raise app.Failure("the manifests have errors", read.diagnostics)
    return read.desired, read.diagnostics


def wanted(desired: Desired, what: app.Request) -> list[DesiredTable]:
    names = app.selected(desired, what.catalogs)
    tables = [t for n in names for _, t in sorted(desired.tables.get(n, {}).items()) if not t.absent]
    for target in what.options.targets:
        if not any(matches(target, t.ident) for t in tables):
            told = of_catalog(target, desired.catalogs)
            raise app.Failure(f"--target {target}: no declared table has such an identifier{told}")
    chosen = matcher(what.options.targets)
    return [t for t in tables if not what.options.targets or chosen(t.ident)]


def look_at(tables: Sequence[DesiredTable], desired: Desired, at: Session) -> list[Declared]:
    """Connects to the catalogs. A table that cannot be read is a result, not left out."""
    names = sorted({t.catalog for t in tables})
    looked = at.side_by_side(lambda name: _looked(name, desired, tables, at), names)
    return [table for name in names for table in looked[name]]


def _looked(name: str, desired: Desired, tables: Sequence[DesiredTable], at: Session) -> list[Declared]:
    mine = [t for t in tables if t.catalog == name]
    try:
        at.connect(desired.catalogs[name])
        scope = replace(scope_of(desired, name), detail=frozenset(t.ident for t in mine))
        snapshot = at.look(name, scope)
    except app.Failure as error:
        return [Declared(t, problem=error.summary) for t in mine]
    with ThreadPoolExecutor(at.catalogs[name].capabilities.max_parallelism) as pool:
        looked = list(pool.map(lambda t: _declared(t, _finding(snapshot, t.ident), at), mine))
    users = _users(desired, name, snapshot)
    return [replace(t, same_data=_other(t, users)) for t in looked]


def _users(desired: Desired, name: str, snapshot: Snapshot) -> dict[str, list[Ident]]:
    """The declared tables of a catalog by where they are, whichever of them a verb works on."""
    users: dict[str, list[Ident]] = {}
    for ident, want in sorted(desired.tables.get(name, {}).items()):
        found = snapshot.tables.get(ident)
        if not want.absent and isinstance(found, Present) and isinstance(found.state, TableState):
            place = canonical_of(found.state)
            if place is not None:
                users.setdefault(place, []).append(ident)
    return users


def _other(table: Declared, users: dict[str, list[Ident]]) -> Ident | None:
    place = canonical_of(table.found.state) if table.found is not None else None
    return next((i for i in users.get(place or "", ()) if i != table.want.ident), None)


def _finding(snapshot: Snapshot, ident: Ident) -> Finding | str:
    """Or why nothing is known: a listing with a gap does not say that a table is absent."""
    found = snapshot.tables.get(ident)
    if found is not None:
        return found
    gap = snapshot.gap_at(ident)
    return f"the catalog cannot be listed there: {gap.message}" if gap else "the table is not in the catalog"


def _declared(want: DesiredTable, finding: Finding | str, at: Session) -> Declared:
    found = found_at(want.catalog, want.ident, finding, at)
    return Declared(want, problem=found) if isinstance(found, str) else Declared(want, found)


def found_at(catalog: str, ident: Ident, finding: Finding | str, at: Session) -> Found | str | None:
    """None: declared only. A text: why it cannot be read."""
    match finding:
        case str():
            return finding
        case Unreadable():
            return f"{finding.code.title} ({int(finding.code)}): {finding.message}"
        case Detached():
            return f"the table is not in the catalog; its data is still at {finding.location}"
        case Present(state=TableState(dataset=DatasetState() as dataset) as state) if dataset.version is not None:
            try:
                place = at.catalogs[catalog].data_place(ident, state)
            except CatalogError as error:
                return f"{error.code.title} ({int(error.code)}): {error.message}"
            at.redactor.add(place.storage_options.values())
            return Found(place, dataset, state)
        case Present(state=TableState(dataset=None)):
            return None
        case _:
            return "the table is not in the catalog"


@contextmanager
def spark_for(options: SparkOptions, at: Session) -> Iterator[tuple[Any, Progress]]:
    """The one session of a command, and a display on stderr. A Spark that fails is a Failure, without secrets."""
    progress = at.progress()
    try:
        progress.show(lambda seconds: "starting Spark")
        with session(options) as running:
            yield running, progress
    except SparkError as error:
        raise app.Failure(at.redactor.text(str(error))) from error
    finally:
        progress.close()
