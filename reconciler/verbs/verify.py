"""`pipeline verify`: the rows of declared tables against the manifest, or against another table."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler import app
from reconciler.core.content_types import content_differences
from reconciler.core.globs import parse_dotted
from reconciler.core.plan_locations import moved
from reconciler.core.text import listing
from reconciler.core.verdicts import origin_verdict, schema_verdict, tasks_of, verdicts
from reconciler.model.desired import Desired, DesiredTable
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.errors import CatalogError
from reconciler.model.observed import Scope
from reconciler.model.verification import READ, CheckResult, Verification, VerifiedTable
from reconciler.pipeline.session import SparkOptions, missing
from reconciler.verbs.tables import DECLARED_ONLY, Declared, Found, found_at, loaded, look_at, spark_for, wanted

if TYPE_CHECKING:
    from reconciler.pipeline.verify import Reading, Source
    from reconciler.session import Session

AGAINST = "against"
_KEPT = re.compile(r"v[0-9]+:[0-9a-f]{32}")
"""What a checksum looks like, in any version."""


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
    origin: CheckResult | None = None

    @property
    def known(self) -> tuple[CheckResult, ...]:
        """What is known before any row is read."""
        return tuple(c for c in (self.schema, self.origin) if c is not None)


def verify(request: VerifyRequest, at: Session) -> tuple[Verification, list[Diagnostic]]:
    """And the warnings. Reads only; tables of others too. A table that cannot be read is a result, not left out."""
    desired, warnings = loaded(request.what)
    chosen = wanted(desired, request.what)
    if request.against is not None and len(chosen) != 1:
        raise app.Failure(f"--against compares one table, and {len(chosen)} are selected: choose it with --target")
    if not request.dry_run and chosen and (lacking := missing(request.spark)):
        raise app.Failure(lacking)
    if request.against is not None:
        _need_a_table(request.against, desired)
    tables = [_declared(table) for table in look_at(chosen, desired, at)]
    if not request.dry_run:
        tables = _compiled(tables)
    other = _other(request.against, desired, at) if request.against is not None else None
    if request.dry_run:
        return Verification(tuple(_foreseen(t, request.against) for t in tables)), warnings
    return Verification(tuple(_results(tables, other, request, at))), warnings


def _declared(table: Declared) -> _Declared:
    want = table.want
    if table.found is not None and (elsewhere := moved(want, table.found.state)) is not None:
        return _Declared(want, problem=elsewhere)
    if table.found is not None:
        source = replace(_source(table.found), checks=want.checks)
        schema = schema_verdict(want, source.fields)
        return _Declared(want, source, schema=schema, origin=origin_verdict(want, table.found.dataset))
    empty = want.fields is None and next(tasks_of(want.checks), None) is None and want.checks.min_rows is None
    return _Declared(want, problem=table.problem or (None if empty else DECLARED_ONLY))


def _compiled(tables: Sequence[_Declared]) -> list[_Declared]:
    """The SQL of their checks, against the columns that they have, before anything reads a row: what ends a process or
    takes all memory must not do that to an executor. Against the declared columns `validate` has done it."""
    new = {n: t.source for n, t in enumerate(tables) if t.source is not None and not _as_declared(t.want, t.source)}
    told = app.filter_problems((s.fields, [e.sql for e in s.checks.expressions]) for s in new.values())
    done = list(tables)
    for (number, source), problems in zip(new.items(), told, strict=True):
        found = zip(source.checks.expressions, problems, strict=True)
        refused = {
            f"expression:{e.name}": f"pylance does not evaluate it in a filter: {why}" for e, why in found if why
        }
        done[number] = replace(tables[number], source=replace(source, refused=refused))
    return done


def _as_declared(want: DesiredTable, source: Source) -> bool:
    return want.fields is not None and [(f.name, f.type) for f in want.fields] == [
        (f.name, f.type) for f in source.fields
    ]


def _source(found: Found) -> Source:
    from reconciler.pipeline.verify import Source

    return Source(found.place, found.version, found.dataset.fields)


def _need_a_table(against: str, desired: Desired) -> None:
    """A checksum that was kept is no table, and nothing is compared with one of another version."""
    from reconciler.pipeline.checksum import VERSION

    version = against.partition(":")[0]
    if version in desired.catalogs or not _KEPT.fullmatch(against):
        return
    if version != VERSION:
        raise app.Failure(
            f"--against {against}: checksums of version {version} cannot be compared with those of {VERSION}: take it "
            "again with pipeline verify"
        )
    raise app.Failure(f"--against {against}: this is a checksum, write CATALOG:ID of a table")


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
    found = found_at(catalog, ident, seen.finding, at)
    return _source(found) if isinstance(found, Found) else found or DECLARED_ONLY


def _foreseen(table: _Declared, against: str | None) -> VerifiedTable:
    want = table.want
    if table.problem is not None:
        return VerifiedTable(want.catalog, want.ident, (CheckResult(READ, False, table.problem),))
    counted = want.checks.min_rows is not None or want.checks.max_rows is not None
    names = [*(c.name for c in table.known), *(["rowCount"] if counted else [])]
    names += [str(t["name"]) for t in tasks_of(want.checks)] + ([AGAINST] if against else [])
    shown = tuple(CheckResult(name, None) for name in names or ["checksum"])
    return VerifiedTable(want.catalog, want.ident, shown)


def _results(
    tables: Sequence[_Declared], other: Source | str | None, request: VerifyRequest, at: Session
) -> Iterable[VerifiedTable]:
    sources = [t.source for t in tables if t.source is not None]
    differs = _columns(sources[0], other, at) if sources and other is not None else None
    compared = [other] if sources and other is not None and not isinstance(other, str) and differs is None else []
    readings = iter(_readings([*sources, *compared], request.spark, at) if sources else [])
    now = int(time.time())
    verified = [_verified(t, next(readings) if t.source is not None else None, now, at) for t in tables]
    if other is None or not verified or verified[0].unreadable:
        return verified
    (only,) = verified
    return [replace(only, checks=(*only.checks, differs or _compared(only, other, next(readings, None), at)))]


def _columns(source: Source, other: Source | str, at: Session) -> CheckResult | None:
    """Two tables are compared by their columns first: where those differ, the rows of the other one are not read."""
    differences = content_differences(source.fields, other.fields) if not isinstance(other, str) else []
    return CheckResult(AGAINST, False, at.redactor.text(listing(differences))) if differences else None


def _readings(sources: Sequence[Source], spark: SparkOptions, at: Session) -> list[Reading]:
    from reconciler.pipeline.verify import read_tables

    with spark_for(spark, at) as (running, progress):
        return read_tables(running, sources, lambda pace: progress.show(pace.line))


def _verified(table: _Declared, reading: Reading | None, now: int, at: Session) -> VerifiedTable:
    want = table.want
    known = tuple(replace(c, detail=at.redactor.text(c.detail)) for c in table.known)
    problem = table.problem if reading is None else reading.error
    if problem is not None:
        unread = CheckResult(READ, False, at.redactor.text(problem))
        return VerifiedTable(want.catalog, want.ident, (*known, unread))
    if reading is None:
        return VerifiedTable(want.catalog, want.ident, ())
    results = [
        replace(c, detail=at.redactor.text(c.detail)) for c in verdicts(want.checks, reading.rows, reading.found, now)
    ]
    return VerifiedTable(want.catalog, want.ident, (*known, *results), reading.rows, reading.checksum)


def _compared(table: VerifiedTable, other: Source | str, reading: Reading | None, at: Session) -> CheckResult:
    if isinstance(other, str) or reading is None or reading.error is not None:
        problem = other if isinstance(other, str) else reading.error if reading is not None else None
        return CheckResult(AGAINST, False, at.redactor.text(f"the other table cannot be read: {problem}"))
    if reading.rows != table.rows:
        return CheckResult(AGAINST, False, f"{table.rows} rows here, {reading.rows} there")
    same = reading.checksum == table.checksum
    told = "" if same else f"as many rows, but the checksum is {reading.checksum} there: some rows differ"
    return CheckResult(AGAINST, same, told)
