"""`pipeline inventory`: what is in the catalogs of the manifests, kept in a history; and on request how it differs from
the manifests, as `plan` would say it."""

from __future__ import annotations

import datetime
import os
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler import app
from reconciler.core.globs import matches
from reconciler.core.planner import scope_of
from reconciler.core.text import plural
from reconciler.model.desired import Desired
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.errors import ReadError
from reconciler.model.inventory import Inventory, ReadCatalog, Uncompared
from reconciler.model.observed import Scope
from reconciler.model.plan import Plan
from reconciler.pipeline.session import SparkOptions, missing
from reconciler.verbs.tables import loaded, spark_for

if TYPE_CHECKING:
    from reconciler.engine.progress import Progress
    from reconciler.pipeline.fleet_task import CatalogTask
    from reconciler.pipeline.history import History
    from reconciler.session import Session

_ROOTS = ("path", "root")
"""The keys that may name a local folder."""


@dataclass(frozen=True)
class InventoryRequest:
    what: app.Request
    spark: SparkOptions
    history: str
    history_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """As written: values may be `${env:NAME}` and `${file:PATH}`."""
    diff: bool = False
    report: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class Done:
    found: Inventory
    warnings: list[Diagnostic]
    page: Mapping[str, Any] | None = None
    """What a report shows, of all runs."""


def inventory(request: InventoryRequest, at: Session) -> Done:
    """Reads the catalogs, appends to the history. A catalog that cannot be listed is recorded as such."""
    desired, warnings = loaded(request.what)
    names = app.selected(desired, request.what.catalogs)
    history = _history(request, at)
    if request.dry_run:
        return Done(_foreseen(request, desired, names, at), warnings)
    if lacking := missing(request.spark):
        raise app.Failure(lacking)
    tasks = [_task(desired, name, at) for name in names]
    with (
        tempfile.TemporaryDirectory(prefix="reconciler-", ignore_cleanup_errors=True) as folder,
        spark_for(request.spark, at) as (spark, progress),
    ):
        return replace(_run(request, desired, tasks, history, spark, progress, Path(folder), at), warnings=warnings)


def _history(request: InventoryRequest, at: Session) -> History:
    """Looked at before anything else is: it may be something else's place."""
    from reconciler.pipeline.history import History, HistoryError

    options = at.storage_options(request.history_options, "--history-option")
    history = History(_anchored(request.history), options)
    try:
        history.version()
    except HistoryError as error:
        raise app.Failure(at.redactor.text(str(error))) from error
    return history


def _task(desired: Desired, name: str, at: Session) -> CatalogTask:
    from reconciler.pipeline.fleet_task import CatalogTask

    spec = desired.catalogs[name]
    if spec.management.expect:
        at.connect(spec)  # Executors do not look whether it is the catalog that is meant.
    options, hidden = at.resolved(spec)
    namespaces, management = scope_of(desired, name).namespaces, spec.management
    local = [options[key] for key in _ROOTS if options.get(key) and "://" not in options[key]]
    folders = tuple(os.path.abspath(path) for path in local if os.path.isdir(path))
    start = "" if all(os.path.isabs(path) for path in local) else os.getcwd()
    owner, ignore = management.owner, management.ignore
    return CatalogTask(name, spec.type, options, hidden, owner, ignore, namespaces, folders, start)


def _anchored(path: str) -> str:
    """Relative paths count from the working directory of this process, wherever they are used."""
    return path if "://" in path else os.path.abspath(path)


def _foreseen(request: InventoryRequest, desired: Desired, names: Sequence[str], at: Session) -> Inventory:
    """Lists the catalogs here, and opens no table."""
    targets = request.what.options.targets

    def listed(name: str) -> ReadCatalog:
        spec = desired.catalogs[name]
        try:
            at.connect(spec)
            seen = at.look(name, Scope(ignore=spec.management.ignore, namespaces=scope_of(desired, name).namespaces))
        except app.Failure as error:
            return ReadCatalog(name, {"tables": 0}, (error.error or ReadError(None, error.summary),))
        tables = [i for i in seen.tables if not targets or any(matches(t, i) for t in targets)]
        return ReadCatalog(name, {"tables": len(tables)}, tuple(g.error for g in seen.gaps))

    return Inventory(None, request.history, None, tuple(at.side_by_side(listed, names).values()))


def _run(
    request: InventoryRequest,
    desired: Desired,
    tasks: Sequence[CatalogTask],
    history: History,
    spark: Any,
    progress: Progress,
    folder: Path,
    at: Session,
) -> Done:
    from reconciler.pipeline import fleet
    from reconciler.pipeline.history import HistoryError
    from reconciler.pipeline.package import add_package
    from reconciler.pipeline.summary import read_catalogs

    now = datetime.datetime.now(datetime.UTC)
    run = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    progress.show(lambda seconds: f"reading {plural(len(tasks), 'catalog')}, {seconds:.0f} s")
    add_package(spark, folder)
    targets = request.what.options.targets
    from reconciler.verbs.fleet_diff import compared, declared_rows, targets_of_strangers

    declared = declared_rows(desired, tasks) if request.diff else []
    asked = targets_of_strangers(desired, [t.name for t in tasks], targets) if request.diff else []
    listed = fleet.listed_frame(spark, tasks, targets, asked)
    rows = fleet.read_frame(spark, fleet.joined(listed, fleet.declared_frame(spark, declared)), tasks)
    catalogs = read_catalogs(rows, [t.name for t in tasks], at.redactor.text)
    diff: Plan | None = None
    uncompared: Uncompared | None = None
    if request.diff:
        progress.show(lambda seconds: f"comparing, {seconds:.0f} s")
        try:
            diff = compared(spark, rows, desired, tasks, request.what, at)
        except app.Failure as error:
            uncompared = _uncompared(error, at.redactor.text)
    progress.show(lambda seconds: f"writing, {seconds:.0f} s")
    try:
        version = _recorded(history, run, now, rows, catalogs, diff, targets, spark)
    except HistoryError as error:
        raise app.Failure(at.redactor.text(str(error))) from error
    finally:
        rows.unpersist()
    page = _page(spark, history) if request.report else None
    return Done(Inventory(run, request.history, version, tuple(catalogs), diff, uncompared), [], page)


def _uncompared(error: app.Failure, clean: Callable[[str], str]) -> Uncompared:
    """For a result, which nobody cleans on its way out."""
    found = [replace(d, message=clean(d.message), hint=clean(d.hint)) for d in error.diagnostics]
    return Uncompared(clean(error.message), tuple(found))


def _recorded(
    history: History,
    run: str,
    now: datetime.datetime,
    rows: Any,
    catalogs: Sequence[ReadCatalog],
    diff: Plan | None,
    targets: Sequence[str],
    spark: Any,
) -> int:
    from reconciler.pipeline.fleet_task import READ
    from reconciler.pipeline.jobs import cores

    since = history.create()
    named = [part.split()[0] for part in READ[: READ.index(", key string")].split(", ")]
    stamp = [f"'{run}' AS run", f"timestamp_micros({int(now.timestamp() * 1e6)}) AS at", "CAST(NULL AS long) AS drift"]
    fragments = history.write(rows.where("recorded").selectExpr(*stamp, *named), cores(spark))
    only = f"only {', '.join(targets)} was read" if targets else None
    told: list[dict[str, Any]] = [
        {
            "run": run,
            "at": now,
            "kind": "Catalog",
            "catalog": c.name,
            "id": "",
            "path": [],
            "drift": None if diff is None else _drift(diff, c.name),
            "error": "; ".join(p.text for p in c.problems) or only,
        }
        for c in catalogs
    ]
    return history.commit(run, [*fragments, *history.write_here(told)], since)


def _drift(diff: Plan, catalog: str) -> int:
    """Objects with a step, and orphans: what `drift` counts."""
    keys = {s.key for s in diff.steps} | {*diff.orphans}
    return sum(1 for k in keys if k.catalog == catalog)


def _page(spark: Any, history: History) -> Mapping[str, Any]:
    from reconciler.pipeline.history_figures import figures

    return figures(spark, history)
