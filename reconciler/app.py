"""The use cases: validate, plan, apply, drift. Short enough to read as the algorithm."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.app_files import no_folder
from reconciler.core.options import PlanOptions
from reconciler.engine.redact import Redactor
from reconciler.model.diagnostic import Diagnostic, Source, has_errors
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import Ident
from reconciler.model.reading import Reading
from reconciler.model.spark import SparkOptions
from reconciler.session import Failure, Needs, Refusal, Session, options_schema

if TYPE_CHECKING:
    from reconciler.catalog.base import DataPlace
    from reconciler.engine.journal import Journal
    from reconciler.manifest.load import Loaded
    from reconciler.model.arrow import Field
    from reconciler.model.capabilities import Capabilities
    from reconciler.model.desired import CatalogSpec, Desired
    from reconciler.model.errors import ReadError
    from reconciler.model.observed import Snapshot
    from reconciler.model.plan import Plan
    from reconciler.model.report import Outcome, Report, StepResult

__all__ = ["Failure", "PlanOptions", "Reading", "Redactor", "Refusal", "Session", "SparkOptions"]


@dataclass(frozen=True)
class Request:
    """What to plan for. No catalog named means all of them."""

    paths: tuple[str, ...]
    reading: Reading = field(default_factory=Reading)
    catalogs: tuple[str, ...] = ()
    options: PlanOptions = field(default_factory=PlanOptions)
    spark: SparkOptions = field(default_factory=SparkOptions)
    """Where data steps would run."""


def validate(paths: Sequence[str], reading: Reading, *, keep_origins: bool = False) -> Loaded:
    """Offline."""
    from reconciler.catalog.registry import capabilities_of, known_types, plugin_options
    from reconciler.catalog.sql_process import SqlCompiler
    from reconciler.manifest.limits import limits_of
    from reconciler.manifest.load import load, warnings_of_changed
    from reconciler.manifest.plugin_options import PluginTypes
    from reconciler.manifest.unused_variables import unused

    plugins = PluginTypes(known_types, plugin_options)
    with SqlCompiler() as sql_problems:
        loaded = load(
            paths,
            variables=reading.variables,
            capabilities_of=capabilities_of,
            sql_problems=sql_problems,
            plugins=plugins,
            environment=reading.environment,
            changed_since=reading.changed_since,
            limits=limits_of(reading),
            catalogs_from=reading.catalogs_from,
            keep_origins=keep_origins,
            environment_needed=reading.environment_needed,
        )
    if has_errors(loaded.diagnostics):
        return loaded
    misspelt = unused(reading.variables, loaded.variables, paths[0])
    found = sorted([*warnings_of_changed(loaded), *misspelt])
    return replace(loaded, diagnostics=[replace(d, severity="error") for d in found] if reading.strict else found)


def filter_problems(tables: Iterable[tuple[Sequence[Field], Sequence[str]]]) -> list[list[str | None]]:
    """For the filters of each table with these columns: what pylance has against them, or None."""
    from reconciler.catalog.sql_process import SqlCompiler

    with SqlCompiler() as compiler:
        return [compiler(fields, filters, ()) if filters else [] for fields, filters in tables]


def against_policy(loaded: Loaded, reading: Reading) -> list[tuple[Diagnostic, Waiver | None]]:
    """What the policies have against the manifests, as far as that can be said offline, and what waives it."""
    from reconciler.catalog.registry import capabilities_of as rules_of
    from reconciler.core.policy import judge_manifests
    from reconciler.manifest.policy_rules import known_rules

    desired = loaded.desired
    if not desired.policies:
        return []
    only = loaded.changed.only if loaded.changed is not None else None
    judged = judge_manifests(desired, known_rules(desired, rules_of), environment_of(reading), today())
    return [
        (_as_diagnostic(f), f.waiver)
        for f in judged.findings
        if only is None or f.key is None or f.key.ident in only.get(f.key.catalog, ())
    ]


def _as_diagnostic(f: Finding) -> Diagnostic:
    message = f"{f.key}: {f.message}" if f.key else f.message
    return Diagnostic(f.source or Source(""), f.code, f.severity, message, f.hint)


def environment_of(reading: Reading) -> str | None:
    return reading.environment or None


def today() -> str:
    """The same day for everyone who runs at the same moment: UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _prune_at_one_root(desired: Desired, names: Sequence[str]) -> str | None:
    """What one of two catalogs at one root does not declare would look like an orphan to it."""
    from reconciler.manifest.same_root import at_one_root

    for shared in at_one_root(desired.catalogs.values()):
        if set(shared) & set(names):
            return (
                f"--prune is refused: the catalogs {' and '.join(shared)} are one place, and each would take what only "
                "the other declares for an orphan; declare everything in one of them"
            )
    return None


def needs_of(request: Request) -> Needs:
    """By --target and --changed-since: the run does without a root that holds nothing they select."""
    from reconciler.core.globs import reaches

    targets, only = request.options.targets, request.options.only

    def needs(name: str, ident: Ident) -> bool:
        aimed = not targets or any(reaches(target, ident) for target in targets)
        changed = only is None or not ident or any(i[: len(ident)] == ident for i in only.get(name, ()))
        return aimed and changed

    return needs


def _almost_read(loaded: Loaded) -> str | None:
    """What a file declares that was skipped for its name would look like an orphan."""
    from reconciler.manifest.files import ALMOST

    found = [d for d in loaded.diagnostics if d.code == ALMOST]
    if not found:
        return None
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    taken = "and what it may declare would be taken for an orphan"
    return f"{found[0].message}{more}, {taken}: {found[0].hint}"


@contextmanager
def _said_too(warnings: Sequence[Diagnostic]) -> Iterator[None]:
    """What is wrong with the manifests is told as well when something else ends the run."""
    try:
        yield
    except Failure as failure:
        failure.diagnostics = [*warnings, *failure.diagnostics]
        raise


def plan(request: Request, at: Session) -> tuple[Plan, list[Diagnostic]]:
    """The plan and the warnings. Reads every selected catalog, writes nothing."""
    from reconciler.engine.select import prune_without_owner
    from reconciler.manifest.environment_rules import elsewhere
    from reconciler.manifest.scopes import scope_problems
    from reconciler.manifest.sparse import why_not_to_prune

    loaded = validate(request.paths, request.reading)
    if has_errors(loaded.diagnostics):
        raise Failure("the manifests have errors", loaded.diagnostics)
    desired = loaded.desired
    names = selected(desired, request.catalogs)
    if loaded.changed is not None:
        only = {name: loaded.changed.only[name] for name in names}
        names = [name for name in names if name in loaded.changed.catalogs]
        request = replace(request, options=replace(request.options, only=only))
    if request.options.prune and (problem := prune_without_owner(desired, names) or _prune_at_one_root(desired, names)):
        raise Refusal(problem)
    if request.options.prune and (hidden := why_not_to_prune(request.paths, request.reading.environment)):
        raise Refusal(f"--prune is refused: {hidden}")
    if request.options.prune and (skipped := _almost_read(loaded)):
        raise Refusal(f"--prune is refused: {skipped}")
    if request.options.prune and (nowhere := scope_problems(desired, names)):
        raise Failure("--prune has nothing to look through", nowhere)
    capabilities = capabilities_of(desired, names)
    with _said_too(loaded.diagnostics):
        snapshots = at.observe(desired, names, needs_of(request), request.options.prune)
        made = planned(desired, snapshots, capabilities, request, at)
    beside = [
        warning
        for name, seen in snapshots.items()
        for warning in elsewhere(desired.catalogs[name], desired.place(name, ("spec", "path")), seen.root)
    ]
    return made, [*loaded.diagnostics, *beside]


def planned(
    desired: Desired,
    snapshots: Mapping[str, Snapshot],
    capabilities: Mapping[str, Capabilities],
    request: Request,
    at: Session,
) -> Plan:
    """From what was observed, and what the sources of the rows are now. Raises Failure."""
    from reconciler.app_data import lacking, lacking_functions, with_origins, with_sources, with_values
    from reconciler.core.planner import PlanError, make_plan
    from reconciler.engine.select import unmatched_target

    targets = request.options.targets
    snapshots = with_sources(desired, snapshots, request.options, at)
    snapshots = with_origins(desired, snapshots, request.options, at)
    problem = unmatched_target(targets, desired, snapshots, request.options.only or ())
    if problem is not None:
        raise Failure(problem)
    public = replace(desired, catalogs={n: public_spec(s) for n, s in desired.catalogs.items()})
    try:
        options = replace(
            request.options,
            data_plane=lacking(request.spark, request.options.runner),
            functions=lacking_functions(desired),
            environment=environment_of(request.reading),
            today=request.options.today or today(),
            opened={name: c.capabilities for name, c in at.catalogs.items()},
            clean=at.redactor.content,
        )
        first = make_plan(public, snapshots, capabilities, options)
        read = with_values(desired, first, snapshots, at)
        return first if read is None else make_plan(public, read, capabilities, options)
    except PlanError as error:
        raise Failure("there is no plan for these manifests", error.diagnostics) from error


def capabilities_of(desired: Desired, names: Sequence[str]) -> dict[str, Capabilities]:
    return {name: _capabilities(desired.catalogs[name]) for name in names}


def selected(desired: Desired, wanted: Sequence[str]) -> list[str]:
    from reconciler.engine.select import unknown_catalog

    problem = unknown_catalog(desired, wanted)
    if problem is not None:
        raise Failure(problem)
    names = sorted(set(wanted) or desired.catalogs)
    if not names:
        raise Failure("the manifests declare no catalog: add a document of kind Catalog")
    return names


def _capabilities(spec: CatalogSpec) -> Capabilities:
    from reconciler.catalog.registry import capabilities_of

    found = capabilities_of(spec)
    if found is None:
        raise Failure(f"catalog {spec.name}: the type {spec.type} is not supported by this version")
    return found


def public_spec(spec: CatalogSpec) -> CatalogSpec:
    from reconciler.engine.redact import without_literal_secrets
    from reconciler.manifest.schema_files import secret_keys

    return without_literal_secrets(spec, secret_keys(options_schema(spec.type)))


@dataclass(frozen=True)
class RunOptions:
    parallelism: int = 8
    timeout: float | None = None
    journal: Path | None = None
    spark: SparkOptions = field(default_factory=SparkOptions)
    lock_timeout: float | None = None
    """Seconds to wait for a lease; None: until a holder that is gone has certainly been noticed."""
    saved: bool = False
    """The plan was read from a file."""


def apply(
    the_plan: Plan,
    options: RunOptions,
    at: Session,
    keep: Callable[[Report], None] = lambda report: None,
    began: Callable[[str, Path], None] = lambda plan_id, journal: None,
) -> Report:
    """Runs the plan on the catalogs of the session. The report comes back whatever happens to the steps. `keep` gets it
    before signals mean anything else again; or, at a second signal, as it is then, and the program ends. `began` gets
    the plan and the journal before anything is written."""
    from reconciler.app_data import Told, data_plane
    from reconciler.app_lease import turn_to_write, without_turn, written_to
    from reconciler.catalog.deadline import writing
    from reconciler.engine.events import told_steps
    from reconciler.engine.execute import execute
    from reconciler.engine.journal import JournalError, Witness
    from reconciler.engine.lease_keeper import LeaseRefused, LeaseUnavailable
    from reconciler.engine.outcome import cut_short, nothing_ran
    from reconciler.engine.signals import stop_on_signals

    opened, path = _journal(the_plan, options.journal, at)
    journal, named = Witness(told_steps(opened, at.tell)), None if path is None else str(path)
    if path is not None:
        began(the_plan.plan_id, path)

    def last_words() -> None:
        report = replace(cut_short(the_plan, journal.started, journal.ended), journal=named)
        keep(_cleaned(report, at, the_plan))

    progress = Told(at.progress())
    with stop_on_signals(at.say, last_words) as stop, writing():
        try:
            with turn_to_write(
                written_to(the_plan),
                options.lock_timeout,
                at,
                plan_id=the_plan.plan_id,
                stop=stop,
                note=journal.lease,
            ) as turn:
                at.writing = any(s.verdict == "allowed" for s in the_plan.steps)
                data = data_plane(
                    the_plan, options.spark, at, progress, lambda: stop.is_set() or turn.lost, saved=options.saved
                )
                with closing(data) if data is not None else nullcontext():
                    report = execute(
                        the_plan,
                        at.catalogs,
                        parallelism=options.parallelism,
                        timeout=options.timeout,
                        journal=journal,
                        progress=progress,
                        stop=stop,
                        max_retries=at.retries,
                        data=data,
                        guard=turn.problem,
                        lost=turn.known,
                        applied_by=at.run.applied_by() if at.run is not None else "",
                        expire=_expiry(at),
                    )
            if report.outcome == "stale" and stop.is_set():  # Who was told to stop is not to plan anew.
                report = nothing_ran(the_plan, "interrupted", f"interrupted before the first write; {report.message}")
            report = replace(report, leases=tuple(turn.uses()))
        except (LeaseRefused, LeaseUnavailable) as error:
            report = without_turn(the_plan, error, journal)
        except Failure as error:
            with suppress(JournalError):
                journal.finish(error.outcome)
            raise
        report = _cleaned(replace(report, journal=named), at, the_plan)
        keep(report)
        at.writing = False
    return report


def _expiry(at: Session) -> Callable[[str, DataPlace, str], Sequence[str]]:
    """Deletes tags of earlier runs by `management.tagRetention` of the catalog."""

    def expire(catalog: str, place: DataPlace, plan: str) -> Sequence[str]:
        from reconciler.catalog.lance_tags import expire_tags

        retention = at.specs[catalog].management.tag_retention
        return expire_tags(place, retention, plan) if retention is not None else ()

    return expire


def unapplied(
    the_plan: Plan | None, outcome: Outcome, message: str, at: Session, error: ReadError | None = None
) -> Report:
    """The report of a run that ended outside of `apply`: without a plan, before the first step of one, or, when it had
    begun to write, by a bug: then nobody knows of its steps. `error`: what a catalog said."""
    from reconciler.engine.outcome import nothing_ran
    from reconciler.model.report import Report

    if the_plan is None or outcome == "partial":
        made = Report(the_plan.plan_id if the_plan is not None else "", outcome, (), message)
    else:
        made = nothing_ran(the_plan, outcome, message)
    return _cleaned(replace(made, error=error), at, the_plan)


def identify(at: Session, paths: Sequence[str] = (), the_plan: Plan | None = None) -> None:
    """Finds out which run this is, for its report and for what it writes: from the manifests, or those of a plan."""
    from reconciler.engine.run_context import run_context

    sources = {s.source.file for s in the_plan.steps if s.source is not None} if the_plan is not None else set()
    at.identity = run_context([*paths, *sorted(sources)])


def _cleaned(report: Report, at: Session, the_plan: Plan | None) -> Report:
    """Without secrets, and with what the run and the plan have to say."""
    from reconciler.render.masked import masked, masked_findings

    found = masked_findings(the_plan.findings if the_plan is not None else (), at.redactor.content)
    clean = tuple(_cleaned_result(r, at.redactor) for r in report.steps)
    leases = tuple(replace(u, holder=at.redactor.text(u.holder)) for u in report.leases)
    return replace(
        report,
        steps=clean,
        message=at.redactor.text(report.message),
        leases=leases,
        run=at.run,
        findings=found,
        stale=masked(report.stale, at.redactor.content),
        expired=masked(report.expired, at.redactor.content),
        journal=None if report.journal is None else at.redactor.text(report.journal),
    )


def _cleaned_result(result: StepResult, redactor: Redactor) -> StepResult:
    from reconciler.render.masked import masked_step

    error, place = result.error, result.location
    return replace(
        result,
        step=masked_step(result.step, redactor.content),
        error=replace(error, message=redactor.text(error.message)) if error is not None else None,
        location=redactor.content(place) if place is not None else None,
    )


def _journal(the_plan: Plan, chosen: Path | None, at: Session) -> tuple[Journal, Path | None]:
    """With its file. The chosen one must be writable; the default place need not be (a read-only container)."""
    from reconciler.engine.journal import FileJournal, JournalError, NoJournal, default_path

    if not the_plan.steps:
        return NoJournal(), None
    try:
        path = chosen or default_path(the_plan.plan_id, make_folder=True)
        return FileJournal(path, the_plan.plan_id, at.redactor.value, at.run.to_json() if at.run else None), path
    except JournalError as error:
        if chosen is not None:
            raise Failure(f"{error}{no_folder(chosen)}; nothing was written") from error
        at.say(f"warning: {error}; the run goes on without a journal (choose a place with --journal FILE)")
        return NoJournal(), None


def warn_of_literals(at: Session, where: str) -> None:
    """Secrets that stand in a manifest are not written down again: whoever uses what was written has to supply them."""
    from reconciler.engine.redact import literal_warning
    from reconciler.manifest.schema_files import secret_keys

    for _, spec in sorted(at.specs.items()):
        warning = literal_warning(spec, secret_keys(options_schema(spec.type)), where)
        if warning is not None:
            at.say(warning)
