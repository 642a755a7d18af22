"""What plan and apply need for the rows of tables: where they come from, and what moves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from reconciler.catalog.deadline import answers
from reconciler.core.options import PlanOptions
from reconciler.core.selection import selected_in
from reconciler.engine.progress import Line, Progress, status_line
from reconciler.model.change import DATA_PLANE, tables_read
from reconciler.model.data import SourceState
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ObjectKey
from reconciler.model.observed import Origin, Present, Snapshot
from reconciler.model.spark import Runner, SparkOptions
from reconciler.model.state import DatasetState, TableState
from reconciler.session import Failure, Session, options_schema, unanswered

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.pipeline.data_plane import SparkDataPlane

AT_A_TIME = 8
STORAGE = "storage."


def with_sources(
    desired: Desired, snapshots: Mapping[str, Snapshot], options: PlanOptions, at: Session
) -> dict[str, Snapshot]:
    """The sources of the selected tables, looked at side by side, without Spark. One that cannot be read holds back the
    step that would read it, and nothing else. Raises Failure when one has not answered in time."""
    chosen = {name: selected_in(options, name) for name in snapshots}
    tables = {
        ObjectKey(name, t.ident, "Table"): t
        for name in snapshots
        for t in desired.tables.get(name, {}).values()
        if t.data is not None and not t.absent and chosen[name](t.ident)
    }
    if not tables:
        return dict(snapshots)
    sources = [t.data.source for t in tables.values() if t.data is not None]
    _opened({name for source in sources for name, _ in tables_read(source)}, desired, at)

    def look(key: ObjectKey) -> SourceState:
        return _looked_at(tables[key], snapshots[key.catalog], desired, at)

    seen = answers(look, tables, AT_A_TIME, _late("the source of table"), "source")
    by_catalog: dict[str, dict[tuple[str, ...], SourceState]] = {}
    for key, state in zip(tables, seen, strict=True):
        by_catalog.setdefault(key.catalog, {})[key.ident] = state
    return {name: replace(s, sources=by_catalog.get(name, {})) for name, s in snapshots.items()}


def with_origins(
    desired: Desired, snapshots: Mapping[str, Snapshot], options: PlanOptions, at: Session
) -> dict[str, Snapshot]:
    """The tables that selected ones get their rows from, looked at side by side, also in catalogs that are not planned.
    Where the rows have arrived the source is nobody's business any more. Raises Failure when one has not answered in
    time."""
    chosen = {name: selected_in(options, name) for name in snapshots}
    tables = {
        ObjectKey(name, t.ident, "Table"): t
        for name in snapshots
        for t in desired.tables.get(name, {}).values()
        if t.migration is not None and not t.absent and chosen[name](t.ident) and not _arrived(t, snapshots[name])
    }
    if not tables:
        return dict(snapshots)
    unopened = _opened({t.migration.catalog for t in tables.values() if t.migration is not None}, desired, at)

    def look(key: ObjectKey) -> Origin:
        return _origin_of(tables[key], snapshots[key.catalog], unopened, at)

    seen = answers(look, tables, AT_A_TIME, _late("the table that is moved to"), "origin")
    by_catalog: dict[str, dict[tuple[str, ...], Origin]] = {}
    for key, origin in zip(tables, seen, strict=True):
        problem = at.redactor.text(origin.problem) if origin.problem is not None else None
        by_catalog.setdefault(key.catalog, {})[key.ident] = replace(origin, problem=problem)
    return {name: replace(s, origins=by_catalog.get(name, {})) for name, s in snapshots.items()}


def with_values(
    desired: Desired, plan: Plan, snapshots: Mapping[str, Snapshot], at: Session
) -> dict[str, Snapshot] | None:
    """With what the values say about the steps that depend on them, and with the earlier values of columns that steps
    create; None when there is nothing of either. A catalog that was read elsewhere (a fleet's executors) is opened."""
    from reconciler.core.kept_columns import new_columns
    from reconciler.core.value_checks import value_checks

    read = dict(snapshots)
    asked, created = value_checks(plan.steps, snapshots), new_columns(plan.steps, snapshots)
    unopened = _opened({key.catalog for key in (*asked, *created)}, desired, at)
    asked = {key: checks for key, checks in asked.items() if key.catalog not in unopened}
    created = {key: columns for key, columns in created.items() if key.catalog not in unopened}
    if asked:
        from reconciler.pipeline.value_check import with_findings

        read = with_findings(asked, read, at.catalogs, _late("the values of table"), at.redactor.text)
    if created:
        from reconciler.pipeline.kept_columns import with_kept

        read = with_kept(created, read, at.catalogs, _late("the tags of table"), at.redactor.text)
    return read if asked or any(s.kept for s in read.values()) else None


def _late(what: str) -> Callable[[object], NoReturn]:
    """A plan without it would be half a truth, as one without a catalog."""

    def late(item: object) -> NoReturn:
        raise unanswered(f"{what} {item}")

    return late


def _arrived(table: DesiredTable, snapshot: Snapshot) -> bool:
    state = _live(table, snapshot)
    data = state.dataset.data if state is not None and isinstance(state.dataset, DatasetState) else None
    return data is not None and table.migration is not None and data.digest == table.migration.digest


def _live(table: DesiredTable, snapshot: Snapshot) -> TableState | None:
    found = snapshot.tables.get(table.ident)
    return found.state if isinstance(found, Present) and isinstance(found.state, TableState) else None


def _opened(names: set[str], desired: Desired, at: Session) -> dict[str, str]:
    """The catalogs that cannot be opened, with the reason."""

    def problem(name: str) -> str | None:
        try:
            at.connect(desired.catalogs[name])
        except Failure as error:
            return error.summary
        return None

    asked = sorted(names - at.catalogs.keys())
    found = answers(problem, asked, AT_A_TIME, _late("catalog"), "catalog")
    return {name: why for name, why in zip(asked, found, strict=True) if why is not None}


def _origin_of(table: DesiredTable, snapshot: Snapshot, unopened: Mapping[str, str], at: Session) -> Origin:
    from reconciler.pipeline.origin import is_copied, look_at_origin

    migration, live = table.migration, _live(table, snapshot)
    assert migration is not None
    if live is not None and isinstance(live.dataset, DatasetState):
        try:
            copied = is_copied(at.catalogs[table.catalog], table.ident, live, migration, at.redactor.add)
            return Origin(copied=copied)
        except CatalogError as error:
            return Origin(problem=error.message)
    if migration.catalog in unopened:
        return Origin(problem=unopened[migration.catalog])
    return look_at_origin(at.catalogs[migration.catalog], migration)


def _looked_at(table: DesiredTable, snapshot: Snapshot, desired: Desired, at: Session) -> SourceState:
    from reconciler.pipeline.source_state import look

    assert table.data is not None
    if table.data.unread is not None:
        return SourceState(problem=table.data.unread)
    try:
        source = resolved(table.data.source, at)
        storage = _storage_of(desired.catalogs[table.catalog], at)
        found = look(source, table.data, table.fields or (), storage, _taken(table, snapshot))
    except CatalogError as error:
        return SourceState(problem=at.redactor.text(error.message))
    return found if found.problem is None else replace(found, problem=at.redactor.text(found.problem))


def _taken(table: DesiredTable, snapshot: Snapshot) -> Mapping[str, str]:
    """The files of which no row is read again."""
    live = _live(table, snapshot)
    data = live.dataset.data if live is not None and isinstance(live.dataset, DatasetState) else None
    return data.files if data is not None and table.data is not None and table.data.mode == "append" else {}


def _storage_of(spec: CatalogSpec, at: Session) -> dict[str, str]:
    """What opens the stores of the table's own catalog opens those of a source that says nothing else."""
    from reconciler.manifest.secrets import connection_options

    options, secrets = connection_options(spec.options, options_schema(spec.type), limits=at.limits)
    at.redactor.add(secrets)
    return {key.removeprefix(STORAGE): value for key, value in options.items() if key.startswith(STORAGE)}


def resolved(source: Mapping[str, object], at: Session) -> dict[str, Any]:
    """With what `${env:}` and `${file:}` stand for. Raises CatalogError."""
    from reconciler.manifest.problem import ManifestError
    from reconciler.manifest.secrets import resolved_source

    try:
        values, secrets = resolved_source(source, limits=at.limits)
    except ManifestError as error:
        lacking = "; ".join(dict.fromkeys(p.message for p in error.problems))
        raise CatalogError(Code.INVALID_INPUT, f"the source: {lacking}; {error.hint}") from error
    at.redactor.add(secrets)
    return _located(values, at)


def _located(source: dict[str, Any], at: Session) -> dict[str, Any]:
    """A table of a catalog as the place where it is now, with what opens it."""
    from reconciler.pipeline.origin import source_place

    if source.get("views"):
        source = {**source, "views": {name: _located(dict(view), at) for name, view in source["views"].items()}}
    for name, ident in tables_read({k: v for k, v in source.items() if k != "views"}):
        place = source_place(at.catalogs.get(name), name, ident, at.redactor.add)
        options = {STORAGE + key: value for key, value in place.storage_options.items()}
        source = {**{k: v for k, v in source.items() if k != "table"}, **options, "path": place.uri}
    return source


def lacking_functions(desired: Desired) -> dict[str, str]:
    """Why functions of backfills cannot run here, by their names."""
    from reconciler.manifest.backfill_rules import function_problem

    tables = [t for tables in desired.tables.values() for t in tables.values()]
    names = sorted({f.function for t in tables for f in t.fields or () if f.function is not None})
    found = {name: function_problem(name) for name in names}
    return {name: f"{problem[0]}; {problem[1]}" for name, problem in found.items() if problem is not None}


def lacking(spark: SparkOptions, runner: Runner | None) -> str | None:
    """Why no data step that takes Spark can run here."""
    from reconciler.pipeline.session import missing

    problem = missing(spark) if runner != "local" else "`--runner local` starts none"
    return None if problem is None else f"it moves table data, which takes Spark; {problem}"


class Told:
    """The progress of the steps, with what the data step that reported last is at."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._last: Line | None = None

    def update(self, done: int, total: int, running: Sequence[str]) -> None:
        last = self._last if running else None
        if last is None:
            self._shown.update(done, total, running)
            return
        self._shown.show(lambda seconds: f"{status_line(done, total, running, seconds)}; {last(seconds)}")

    def show(self, line: Line) -> None:
        self._last = line

    def close(self) -> None:
        self._shown.close()


def data_plane(
    plan: Plan, spark: SparkOptions, at: Session, progress: Progress, stopped: Callable[[], bool], *, saved: bool
) -> SparkDataPlane | None:
    """None when no step needs it. Starts nothing. `saved`: the plan was read from a file."""
    if not any(isinstance(s.change, DATA_PLANE) and s.verdict == "allowed" for s in plan.steps):
        return None
    from reconciler.pipeline.data_plane import Running, SparkDataPlane

    running = Running(
        spark,
        progress.show,
        stopped,
        lambda source: resolved(source, at),
        lambda catalog: _storage_of(at.specs[catalog], at),
        at.redactor.add,
        at.catalogs,
        saved,
    )
    return SparkDataPlane(running)
