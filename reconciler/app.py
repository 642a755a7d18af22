"""The use cases: validate, plan, apply, drift, import. Short enough to read as the algorithm."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reconciler.core.options import PlanOptions
from reconciler.engine.redact import RedactingFormatter, Redactor
from reconciler.model.diagnostic import Diagnostic, Source, has_errors
from reconciler.model.errors import CatalogError

if TYPE_CHECKING:
    from reconciler.catalog.base import Catalog
    from reconciler.engine.journal import Journal
    from reconciler.manifest.load import Loaded
    from reconciler.model.capabilities import Capabilities
    from reconciler.model.desired import CatalogSpec, Desired
    from reconciler.model.observed import Scope, Snapshot
    from reconciler.model.plan import Plan
    from reconciler.model.report import Report

__all__ = ["PlanOptions", "RedactingFormatter", "Redactor"]

T = TypeVar("T")
Say = Callable[[str], None]


class Failure(Exception):
    """The user's problem, told in full: what, where, how to fix it. Nothing was written."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.diagnostics = list(diagnostics)

    @property
    def summary(self) -> str:
        """For a report, which has no diagnostics: the first of them says what is wrong, the rest is counted."""
        errors = [d for d in self.diagnostics if d.severity == "error"]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return f"{self.message}: {errors[0].source}: {errors[0].message}{more}" if errors else self.message


@dataclass(frozen=True)
class Request:
    """What to plan for. No catalog named means all of them."""

    paths: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    catalogs: tuple[str, ...] = ()
    options: PlanOptions = field(default_factory=PlanOptions)


@dataclass
class Session:
    """One run of the program: the secrets it has seen, the catalogs it has open, whether it has begun to write."""

    say: Say = lambda message: None
    redactor: Redactor = field(default_factory=Redactor)
    writing: bool = False
    catalogs: dict[str, Catalog] = field(default_factory=dict)
    specs: dict[str, CatalogSpec] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)

    def connect(self, spec: CatalogSpec) -> Catalog:
        from reconciler.catalog.registry import connect
        from reconciler.manifest.problem import ManifestError
        from reconciler.manifest.secrets import connection_options

        try:
            options, secrets = connection_options(spec.options)
            self.redactor.add(secrets)
            catalog = connect(spec, options)
        except ManifestError as error:
            where = Diagnostic(spec.source, error.code, "error", error.message, error.hint)
            raise Failure(f"catalog {spec.name} cannot be opened", [where]) from error
        except CatalogError as error:
            raise self._unreachable(spec.name, error) from error
        self.catalogs[spec.name] = catalog
        self.specs[spec.name] = spec
        self._open.callback(catalog.close)
        return catalog

    def observe(self, desired: Desired, names: Sequence[str]) -> dict[str, Snapshot]:
        """The catalogs side by side. All or nothing: a plan on some of them would be half a truth."""
        from reconciler.core.planner import scope_of

        return self.side_by_side(lambda name: self.look(name, scope_of(desired, name)), names)

    def look(self, name: str, scope: Scope) -> Snapshot:
        from reconciler.engine.observe import observe

        try:
            return observe(self.catalogs[name], scope, clean=self.redactor.text)
        except CatalogError as error:
            raise self._unreachable(name, error) from error

    def side_by_side(self, action: Callable[[str], T], names: Sequence[str]) -> dict[str, T]:
        pool = ThreadPoolExecutor(max(1, min(16, len(names))), thread_name_prefix="catalog")
        try:
            return dict(zip(names, pool.map(action, names), strict=True))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _unreachable(self, name: str, error: CatalogError) -> Failure:
        message = self.redactor.text(error.message)
        return Failure(f"catalog {name} cannot be read: {error.code.title} ({int(error.code)}): {message}")

    def close(self) -> None:
        self._open.close()


def validate(paths: Sequence[str], variables: Mapping[str, str]) -> Loaded:
    """Offline."""
    from reconciler.catalog.registry import capabilities_of
    from reconciler.manifest.load import load

    return load(paths, variables=variables, capabilities_of=capabilities_of)


def plan(request: Request, at: Session) -> tuple[Plan, list[Diagnostic]]:
    """The plan and the warnings. Reads every selected catalog, writes nothing."""
    from reconciler.core.planner import PlanError, make_plan
    from reconciler.engine.select import unmatched_target

    loaded = validate(request.paths, request.variables)
    if has_errors(loaded.diagnostics):
        raise Failure("the manifests have errors", loaded.diagnostics)
    desired = loaded.desired
    names = _selected(desired, request.catalogs)
    capabilities = {name: _capabilities(desired.catalogs[name]) for name in names}
    at.side_by_side(lambda name: at.connect(desired.catalogs[name]), names)
    snapshots = at.observe(desired, names)
    problem = unmatched_target(request.options.targets, desired, snapshots)
    if problem is not None:
        raise Failure(problem)
    public = replace(desired, catalogs={n: _public(s) for n, s in desired.catalogs.items()})
    try:
        return make_plan(public, snapshots, capabilities, request.options), loaded.diagnostics
    except PlanError as error:
        raise Failure("there is no plan for these manifests", error.diagnostics) from error


def _selected(desired: Desired, wanted: Sequence[str]) -> list[str]:
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


def _public(spec: CatalogSpec) -> CatalogSpec:
    from reconciler.engine.redact import without_literal_secrets
    from reconciler.manifest.schema_files import is_secret

    return without_literal_secrets(spec, is_secret)


@dataclass(frozen=True)
class RunOptions:
    parallelism: int = 8
    timeout: float | None = None
    journal: Path | None = None


def apply(the_plan: Plan, options: RunOptions, at: Session) -> Report:
    """Runs the plan on the catalogs of the session. The report comes back whatever happens to the steps."""
    from reconciler.engine.execute import execute
    from reconciler.engine.progress import progress_on
    from reconciler.engine.signals import stop_on_signals

    journal = _journal(the_plan, options.journal, at)
    with stop_on_signals(at.say) as stop:
        at.writing = any(s.verdict == "allowed" for s in the_plan.steps)
        report = execute(
            the_plan,
            at.catalogs,
            parallelism=options.parallelism,
            timeout=options.timeout,
            journal=journal,
            progress=progress_on(sys.stderr, at.redactor.text),
            stop=stop,
        )
        at.writing = False
    clean = tuple(
        replace(r, error=replace(r.error, message=at.redactor.text(r.error.message))) if r.error else r
        for r in report.steps
    )
    return replace(report, steps=clean, message=at.redactor.text(report.message))


def _journal(the_plan: Plan, chosen: Path | None, at: Session) -> Journal:
    """The chosen file must be writable; the default place need not be (a read-only container)."""
    from reconciler.engine.journal import FileJournal, JournalError, NoJournal, default_path

    if not the_plan.steps:
        return NoJournal()
    try:
        return FileJournal(chosen or default_path(the_plan.plan_id), the_plan.plan_id, at.redactor.value)
    except JournalError as error:
        if chosen is not None:
            raise Failure(f"{error}; nothing was written") from error
        at.say(f"warning: {error}; the run goes on without a journal (choose a place with --journal FILE)")
        return NoJournal()


def saved_plan(path: Path) -> Plan:
    from reconciler.model.plan_json import PlanFormatError, plan_from_json

    value = read_json(path)
    if is_report(value):
        raise Failure(f"{path} is a report, not a plan: give the file that `reconciler plan -o FILE` wrote")
    try:
        return plan_from_json(value)
    except PlanFormatError as error:
        raise Failure(f"{path}: {error}") from error


def is_report(value: object) -> bool:
    return isinstance(value, dict) and "outcome" in value


def warn_of_literals(at: Session, where: str) -> None:
    """Secrets that stand in a manifest are not written down again: whoever uses what was written has to supply them."""
    from reconciler.engine.redact import literal_warning
    from reconciler.manifest.schema_files import is_secret

    for _, spec in sorted(at.specs.items()):
        warning = literal_warning(spec, is_secret, where)
        if warning is not None:
            at.say(warning)


def connect_for(the_plan: Plan, source: Path, at: Session) -> None:
    """Opens what a saved plan is about, from the specs in it."""
    from reconciler.model.desired import CatalogSpec, Management

    for name in sorted({s.catalog for s in the_plan.steps if s.verdict == "allowed"}):
        spec = the_plan.catalogs.get(name)
        if spec is None:
            raise Failure(f"{source}: the plan has steps on catalog {name} but does not describe it")
        options = {k: v for k, v in spec.spec.items() if k not in ("type", "management")}
        at.connect(CatalogSpec(name, spec.type, options, Management(), Source(str(source))))


def read_json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Failure(f"{path} is not JSON: {error}") from error


def write_file(path: Path, text: str) -> None:
    from reconciler.engine.files import write_atomically

    try:
        write_atomically(path, text)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error


def import_catalogs(paths: Sequence[str], variables: Mapping[str, str], folder: Path, at: Session) -> list[Path]:
    """Live state as manifests, one file per catalog. Never overwrites a file, and writes none unless all can be."""
    from reconciler.manifest.emit import export
    from reconciler.model.observed import Scope

    loaded = validate(paths, variables)
    if has_errors(loaded.diagnostics):
        raise Failure("the manifests have errors", loaded.diagnostics)
    names = _selected(loaded.desired, ())
    targets = {name: folder / f"{name}.yaml" for name in names}
    for target in targets.values():
        if target.exists():
            raise Failure(f"{target} exists already: choose another folder or move it away")
    texts = {}
    for name in names:
        spec = loaded.desired.catalogs[name]
        capabilities = _capabilities(spec)
        at.connect(spec)
        ignore = spec.management.ignore
        tables = at.look(name, Scope(ignore=ignore)).tables
        snapshot = at.look(name, Scope(detail=frozenset(tables), ignore=ignore))
        for gap in snapshot.gaps:
            raise Failure(f"catalog {name} cannot be listed completely: {gap.message}; nothing was written")
        emitted = export(_public(spec), snapshot, capabilities.type_problem, capabilities.ident_problem)
        texts[name] = emitted.text
        for warning in emitted.warnings:
            at.say(at.redactor.text(f"warning: catalog {name}: {warning}"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, target in targets.items():
            with open(target, "x", encoding="utf-8", newline="\n") as file:
                file.write(texts[name])
    except OSError as error:
        raise Failure(f"cannot write {error.filename}: {error.strerror}") from error
    warn_of_literals(at, str(folder))
    return [targets[name] for name in names]
