"""The use cases of the data pipeline: what moves or reads table data, on Spark. Here: verify."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler import app
from reconciler.core.globs import matcher, matches, parse_dotted
from reconciler.core.planner import scope_of
from reconciler.core.verdicts import schema_verdict, tasks_of, verdicts
from reconciler.model.desired import Desired, DesiredTable
from reconciler.model.diagnostic import Diagnostic, has_errors
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident
from reconciler.model.observed import Detached, Finding, Present, Scope, Snapshot, Unreadable
from reconciler.model.state import DatasetState, TableState
from reconciler.model.verification import READ, CheckResult, Verification, VerifiedTable
from reconciler.pipeline.session import SparkError, SparkOptions, missing, session

if TYPE_CHECKING:
    from reconciler.pipeline.verify import Reading, Source
    from reconciler.session import Session

__all__ = ["SparkOptions", "VerifyRequest", "verify"]

AGAINST = "against"


@dataclass(frozen=True)
class VerifyRequest:
    what: app.Request
    spark: SparkOptions
    against: str | None = None
    """CATALOG:ID of one table, compared with the one table that is selected."""
    dry_run: bool = False


@dataclass(frozen=True)
class _Declared:
    """A table to verify: what it is, or why it cannot be read."""

    want: DesiredTable
    source: Source | None = None
    problem: str | None = None
    schema: CheckResult | None = None


def verify(request: VerifyRequest, at: Session) -> tuple[Verification, list[Diagnostic]]:
    """And the warnings. Reads only; tables of others too. A table that cannot be read is a result, not left out."""
    loaded = app.validate(request.what.paths, request.what.variables)
    if has_errors(loaded.diagnostics):
        raise app.Failure("the manifests have errors", loaded.diagnostics)
    wanted = _wanted(loaded.desired, request.what)
    if request.against is not None and len(wanted) != 1:
        raise app.Failure(f"--against compares one table, and {len(wanted)} are selected: choose it with --target")
    if not request.dry_run and wanted and (lacking := missing(request.spark)):
        raise app.Failure(lacking)
    names = sorted({t.catalog for t in wanted})
    looked = at.side_by_side(lambda name: _looked(name, loaded.desired, wanted, at), names)
    tables = [table for name in names for table in looked[name]]
    other = _other(request.against, loaded.desired, at) if request.against is not None else None
    if request.dry_run:
        return Verification(tuple(_foreseen(t, request.against) for t in tables)), loaded.diagnostics
    return Verification(tuple(_results(tables, other, request, at))), loaded.diagnostics


def _wanted(desired: Desired, what: app.Request) -> list[DesiredTable]:
    names = app.selected(desired, what.catalogs)
    tables = [t for n in names for _, t in sorted(desired.tables.get(n, {}).items()) if not t.absent]
    for target in what.options.targets:
        if not any(matches(target, t.ident) for t in tables):
            raise app.Failure(f"--target {target}: no declared table has such an identifier")
    chosen = matcher(what.options.targets)
    return [t for t in tables if not what.options.targets or chosen(t.ident)]


def _looked(name: str, desired: Desired, wanted: Sequence[DesiredTable], at: Session) -> list[_Declared]:
    mine = [t for t in wanted if t.catalog == name]
    try:
        at.connect(desired.catalogs[name])
        scope = replace(scope_of(desired, name), detail=frozenset(t.ident for t in mine))
        snapshot = at.look(name, scope)
    except app.Failure as error:
        return [_Declared(t, problem=error.summary) for t in mine]
    with ThreadPoolExecutor(at.catalogs[name].capabilities.max_parallelism) as pool:
        return list(pool.map(lambda t: _declared(t, _finding(snapshot, t.ident), at), mine))


def _finding(snapshot: Snapshot, ident: Ident) -> Finding | str:
    """Or why nothing is known: a listing with a gap does not say that a table is absent."""
    found = snapshot.tables.get(ident)
    if found is not None:
        return found
    gap = snapshot.gap_at(ident)
    return f"the catalog cannot be listed there: {gap.message}" if gap else "the table is not in the catalog"


def _declared(want: DesiredTable, finding: Finding | str, at: Session) -> _Declared:
    source = _source(want.catalog, want.ident, finding, at)
    if isinstance(source, str):
        return _Declared(want, problem=source)
    if source is None:
        empty = want.fields is None and next(tasks_of(want.checks), None) is None and want.checks.min_rows is None
        return _Declared(want, problem=None if empty else "the table is declared only: it has no dataset yet")
    return _Declared(want, replace(source, checks=want.checks), schema=schema_verdict(want, source.fields))


def _source(catalog: str, ident: Ident, finding: Finding | str, at: Session) -> Source | str | None:
    """None: declared only. A text: why it cannot be read."""
    from reconciler.pipeline.verify import Source

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
            return Source(place, dataset.version, dataset.fields)
        case Present(state=TableState(dataset=None)):
            return None
        case _:
            return "the table is not in the catalog"


def _other(against: str, desired: Desired, at: Session) -> Source | str:
    """The table to compare with; a text says why it cannot be read. It need not be declared."""
    catalog, colon, text = against.partition(":")
    ident = parse_dotted(text)
    if not colon or not ident or catalog not in desired.catalogs:
        known = ", ".join(sorted(desired.catalogs))
        raise app.Failure(f"--against {against}: write CATALOG:ID, with one of the catalogs {known} and a dotted id")
    try:
        if catalog not in at.catalogs:
            at.connect(desired.catalogs[catalog])
        scope = Scope(detail=frozenset([ident]), namespaces=frozenset([ident[:-1]]))
        (seen,) = at.catalogs[catalog].read([("Table", ident)], scope)
    except app.Failure as error:
        return error.summary
    except CatalogError as error:
        return f"{error.code.title} ({int(error.code)}): {error.message}"
    return _source(catalog, ident, seen.finding, at) or "the table is declared only: it has no dataset yet"


def _foreseen(table: _Declared, against: str | None) -> VerifiedTable:
    want = table.want
    if table.problem is not None:
        return VerifiedTable(want.catalog, want.ident, (CheckResult(READ, False, table.problem),))
    counted = want.checks.min_rows is not None or want.checks.max_rows is not None
    names = [*(["schema"] if table.schema else []), *(["rowCount"] if counted else [])]
    names += [str(t["name"]) for t in tasks_of(want.checks)] + ([AGAINST] if against else [])
    shown = tuple(CheckResult(name, None) for name in names or ["checksum"])
    return VerifiedTable(want.catalog, want.ident, shown)


def _results(
    tables: Sequence[_Declared], other: Source | str | None, request: VerifyRequest, at: Session
) -> Iterable[VerifiedTable]:
    sources = [t.source for t in tables if t.source is not None]
    compared = [other] if sources and other is not None and not isinstance(other, str) else []
    readings = iter(_readings([*sources, *compared], request.spark, at) if sources else [])
    now = int(time.time())
    verified = [_verified(t, next(readings) if t.source is not None else None, now, at) for t in tables]
    if other is None or not verified or verified[0].unreadable:
        return verified
    (only,) = verified
    return [replace(only, checks=(*only.checks, _compared(only, other, next(readings, None), at)))]


def _readings(sources: Sequence[Source], spark: SparkOptions, at: Session) -> list[Reading]:
    from reconciler.engine.progress import progress_on
    from reconciler.pipeline.verify import read_tables

    progress = progress_on(sys.stderr, at.redactor.text)
    try:
        progress.show(lambda seconds: "starting Spark")
        with session(spark) as running:
            return read_tables(running, sources, lambda pace: progress.show(pace.line))
    except SparkError as error:
        raise app.Failure(at.redactor.text(str(error))) from error
    finally:
        progress.close()


def _verified(table: _Declared, reading: Reading | None, now: int, at: Session) -> VerifiedTable:
    want = table.want
    schema = (table.schema,) if table.schema is not None else ()
    problem = table.problem if reading is None else reading.error
    if problem is not None:
        unread = CheckResult(READ, False, at.redactor.text(problem))
        return VerifiedTable(want.catalog, want.ident, (*schema, unread))
    if reading is None:
        return VerifiedTable(want.catalog, want.ident, ())
    results = [
        replace(c, detail=at.redactor.text(c.detail)) for c in verdicts(want.checks, reading.rows, reading.found, now)
    ]
    return VerifiedTable(want.catalog, want.ident, (*schema, *results), reading.rows, reading.checksum)


def _compared(table: VerifiedTable, other: Source | str, reading: Reading | None, at: Session) -> CheckResult:
    if isinstance(other, str) or reading is None or reading.error is not None:
        problem = other if isinstance(other, str) else reading.error if reading is not None else None
        return CheckResult(AGAINST, False, at.redactor.text(f"the other table cannot be read: {problem}"))
    if reading.rows != table.rows:
        return CheckResult(AGAINST, False, f"{table.rows} rows here, {reading.rows} there")
    same = reading.checksum == table.checksum
    told = "" if same else f"as many rows, but the checksum is {reading.checksum} there: some rows differ"
    return CheckResult(AGAINST, same, told)
