"""`pipeline maintain`: compact, then indexes, then cleanup of the declared tables that are past their thresholds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reconciler import app
from reconciler.app_lease import refusal, turn_to_write
from reconciler.core.maintenance import skipped
from reconciler.core.ownership import data_owner
from reconciler.core.uris import place_of
from reconciler.engine.lease_keeper import Keeper, LeaseRefused, LeaseUnavailable
from reconciler.model.desired import Desired, DesiredTable
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.ident import Ident, dotted
from reconciler.model.maintained import Decision, Maintained, MaintainedTable, Result
from reconciler.pipeline.session import SparkError, SparkOptions, missing
from reconciler.session import LeaseHeld
from reconciler.verbs.tables import DECLARED_ONLY, Declared, Found, loaded, look_at, spark_for, wanted

if TYPE_CHECKING:
    from reconciler.pipeline.maintain import Assessed, Run, Subject
    from reconciler.session import Session

INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class MaintainRequest:
    what: app.Request
    spark: SparkOptions
    dry_run: bool = False
    lock_timeout: float | None = None


@dataclass
class _Table:
    """A table with maintenance: one to work on, or why it is not."""

    want: DesiredTable
    subject: Subject | None = None
    assessed: Assessed | None = None
    held: tuple[Decision, ...] = ()
    error: str | None = None
    results: dict[str, Result] = field(default_factory=dict)


def maintain(request: MaintainRequest, at: Session) -> tuple[Maintained, list[Diagnostic]]:
    """And the warnings. Changes only tables that carry our owner mark. One that cannot be read is a result, not left
    out; when the run is cut off, the result says how far it got."""
    from reconciler.pipeline.maintain import assess

    desired, warnings = loaded(request.what)
    chosen = [table for table in wanted(desired, request.what) if table.maintenance is not None]
    if not request.dry_run and chosen and (lacking := missing(request.spark)):
        raise app.Failure(lacking)
    tables = _tables(look_at(chosen, desired, at), desired, time.time())
    ours = [t for t in tables if t.subject is not None]
    _note(ours, assess(_subjects(ours)))
    due = [t for t in ours if _due(t) or (t.assessed is not None and t.assessed.left)]
    interrupted = bool(due) and not request.dry_run and _in_turn(due, request, at)
    return Maintained(tuple(_maintained(t, at) for t in tables), interrupted), warnings


def _subjects(tables: Sequence[_Table]) -> list[Subject]:
    return [t.subject for t in tables if t.subject is not None]


def _note(tables: Sequence[_Table], assessed: Iterable[Assessed | str]) -> None:
    for table, found in zip(tables, assessed, strict=True):
        table.assessed, table.error = (None, found) if isinstance(found, str) else (found, None)


def _due(table: _Table) -> bool:
    return table.assessed is not None and any(d.run for d in table.assessed.decisions)


def _tables(looked: Sequence[Declared], desired: Desired, now: float) -> list[_Table]:
    """A dataset that is declared in two catalogs is maintained once, through the first of them that owns it."""
    first: dict[str, DesiredTable] = {}
    return [_table(table, desired, now, first) for table in looked]


def _table(table: Declared, desired: Desired, now: float, first: dict[str, DesiredTable]) -> _Table:
    from reconciler.pipeline.maintain import Subject

    want, found = table.want, table.found
    if found is None:
        return _Table(want, error=table.problem) if table.problem else _Table(want, held=skipped(DECLARED_ONLY))
    us = desired.catalogs[want.catalog].management.owner
    owner = data_owner(us, found.state)
    if owner != us:
        whose = f"it belongs to {owner}" if owner else "nobody owns it: `apply --adopt` takes it"
        return _Table(want, held=skipped(f"{whose}; only tables of {us} are changed"))
    leader = first.setdefault(_place(found), want)
    if leader is not want:
        return _Table(want, held=skipped(f"{leader.catalog}:{dotted(leader.ident)} is the same data: done there"))
    assert want.maintenance is not None
    return _Table(want, Subject(found.place, want.maintenance, now))


def _place(found: Found) -> str:
    location = found.state.place or found.state.location
    return place_of(location if isinstance(location, str) else found.place.uri)


def _in_turn(due: Sequence[_Table], request: MaintainRequest, at: Session) -> bool:
    """What another run did meanwhile is found by Lance, and measured again: a compaction that lost is planned anew."""
    what: dict[str, list[Ident]] = {}
    for table in due:
        what.setdefault(table.want.catalog, []).append(table.want.ident)
    try:
        with turn_to_write(what, request.lock_timeout, at) as turn:
            interrupted = not _settled(due, at, turn)
            due = [table for table in due if _due(table)]
            if due and not interrupted:
                interrupted = _run(due, request.spark, at, turn)
            at.writing = False
            return interrupted
    except LeaseRefused as error:
        raise LeaseHeld(refusal(error)) from error
    except LeaseUnavailable as error:
        raise app.Failure(f"nothing was written: {error}") from error


def _settled(due: Sequence[_Table], at: Session, turn: Keeper) -> bool:
    """False when it was interrupted. What was left behind is written about, so it waits for our turn as the rest."""
    from reconciler.pipeline.maintain import settled

    left = [table for table in due if table.assessed is not None and table.assessed.left]
    at.writing = bool(left)
    try:
        _note(left, settled(_subjects(left), turn.problem))
    except KeyboardInterrupt:
        return False
    return True


def _run(due: Sequence[_Table], options: SparkOptions, at: Session, turn: Keeper) -> bool:
    """True when it was interrupted. Once tables may have been changed nothing but the result tells what was done, so
    there is one whatever happens."""
    from reconciler.pipeline.maintain import Run

    assessed = [t.assessed for t in due if t.assessed is not None]
    with spark_for(options, at) as (spark, progress):
        run = Run(spark, _subjects(due), assessed, lambda pace: progress.show(pace.line), may_write=turn.problem)
        at.writing = True
        try:
            run.run()
        except SparkError as error:
            _cut_off(run, str(error))
        except KeyboardInterrupt:
            _cut_off(run, INTERRUPTED)
            return True
        finally:
            for table, results in zip(due, run.results, strict=True):
                table.results = results
    return False


def _cut_off(run: Run, why: str) -> None:
    """What had no result yet: where the part was under way nobody knows, the rest was not begun."""
    for found, results in zip(run.assessed, run.results, strict=True):
        for decision in found.decisions:
            if decision.run and decision.part not in results:
                begun = decision.part == run.under_way
                results[decision.part] = Result("unknown" if begun else "not_run", why)


def _maintained(table: _Table, at: Session) -> MaintainedTable:
    want, found = table.want, table.assessed
    if table.error is not None:
        return MaintainedTable(want.catalog, want.ident, error=at.redactor.text(table.error))
    if found is None:
        return MaintainedTable(want.catalog, want.ident, table.held)
    results = {p: replace(r, detail=at.redactor.text(r.detail)) for p, r in table.results.items()}
    facts = found.facts
    size = facts.version, facts.rows, facts.bytes
    return MaintainedTable(want.catalog, want.ident, found.decisions, results, None, *size)
