"""`pipeline maintain`: compact, then indexes, then cleanup of the declared tables that are past their thresholds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reconciler import app
from reconciler.app_lease import refusal, turn_to_write
from reconciler.core.coverage import past
from reconciler.core.maintenance import declared_builds, skipped
from reconciler.core.ownership import data_owner
from reconciler.core.plan_index import wanted_indexes, with_live_names
from reconciler.core.plan_locations import moved, one_dataset
from reconciler.core.uris import canonical_location, canonical_of
from reconciler.engine.lease_keeper import Keeper, LeaseRefused, LeaseUnavailable
from reconciler.model.desired import Desired, DesiredTable
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.ident import Ident, dotted
from reconciler.model.maintained import Decision, Maintained, MaintainedTable, Result
from reconciler.model.maintenance import Indexes, Maintenance
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
    chosen = [t for t in wanted(desired, request.what) if t.maintenance is not None or wanted_indexes(t)]
    if any(t.maintenance is not None for t in chosen):
        _need_spark(request)
    tables = _tables(look_at(chosen, desired, at), desired, time.time())
    if tables:
        _need_spark(request)
    ours = [t for t in tables if t.subject is not None]
    _note(ours, assess(_subjects(ours)))
    due = [t for t in ours if _due(t) or (t.assessed is not None and t.assessed.left)]
    interrupted = bool(due) and not request.dry_run and _in_turn(due, request, at)
    return Maintained(tuple(_maintained(t, at) for t in tables), interrupted), warnings


def _need_spark(request: MaintainRequest) -> None:
    if not request.dry_run and (lacking := missing(request.spark)):
        raise app.Failure(lacking)


def _subjects(tables: Sequence[_Table]) -> list[Subject]:
    return [t.subject for t in tables if t.subject is not None]


def _note(tables: Sequence[_Table], assessed: Iterable[Assessed | str]) -> None:
    for table, found in zip(tables, assessed, strict=True):
        table.assessed, table.error = (None, found) if isinstance(found, str) else (found, None)


def _due(table: _Table) -> bool:
    return table.assessed is not None and any(d.run for d in table.assessed.decisions)


def _tables(looked: Sequence[Declared], desired: Desired, now: float) -> list[_Table]:
    """Those with `maintenance`, and those without it that have an index to be refreshed. A dataset that is declared in
    two catalogs is maintained once, through the first of them that owns it."""
    first: dict[str, DesiredTable] = {}
    return [_table(t, desired, now, first) for t in looked if t.want.maintenance is not None or _lacks_rows(t, desired)]


def _lacks_rows(table: Declared, desired: Desired) -> bool:
    """Of a table without `maintenance` nobody asks but the plan, which names this command for such an index."""
    management = desired.catalogs[table.want.catalog].management
    if table.found is None or data_owner(management.owner, table.found.state) != management.owner:
        return False
    names, limit = _declared_names(table.want, table.found), management.index_refresh.max_unindexed
    return any(i.name in names and i.untrained is None and past(i, limit) for i in table.found.dataset.indexes)


def _declared_names(want: DesiredTable, found: Found) -> frozenset[str]:
    live = found.dataset.indexes
    return frozenset(i.name for i in wanted_indexes(with_live_names(want, found.dataset))) & {i.name for i in live}


def _table(table: Declared, desired: Desired, now: float, first: dict[str, DesiredTable]) -> _Table:
    from reconciler.pipeline.maintain import Subject

    want, found = table.want, table.found
    if found is None:
        return _Table(want, error=table.problem) if table.problem else _Table(want, held=skipped(DECLARED_ONLY))
    if (elsewhere := moved(want, found.state)) is not None:
        return _Table(want, held=skipped(elsewhere))
    if table.same_data is not None:
        return _Table(want, held=skipped(one_dataset(found.state, table.same_data)))
    management = desired.catalogs[want.catalog].management
    us = management.owner
    owner = data_owner(us, found.state)
    if owner != us:
        whose = f"it belongs to {owner}" if owner else "nobody owns it: `apply --adopt` takes it"
        return _Table(want, held=skipped(f"{whose}; only tables of {us} are changed"))
    leader = first.setdefault(_place(found), want)
    if leader is not want:
        return _Table(want, held=skipped(f"{leader.catalog}:{dotted(leader.ident)} is the same data: done there"))
    uncovered = Indexes(management.index_refresh.max_unindexed, _declared_names(want, found))
    maintenance = replace(want.maintenance or Maintenance(), uncovered=uncovered if uncovered.only else None)
    untrained = frozenset(i.name for i in found.dataset.indexes if i.untrained is not None)
    builds = declared_builds(want, found.dataset)
    return _Table(want, Subject(found.place, maintenance, now, management.tag_retention, untrained, builds))


def _place(found: Found) -> str:
    return canonical_of(found.state) or canonical_location(found.place.uri)


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
        raise app.Failure(f"nothing was written: {error}", error=error.error) from error


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
