"""One run of the program: the catalogs it has open, the secrets it has seen, how it ends when something is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler.core.secret_names import harmless_values
from reconciler.engine.redact import Redactor
from reconciler.manifest.limits import UNLIMITED, Limits, limits_of
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.errors import CatalogError, Code, ReadError
from reconciler.model.ident import Ident, dotted

if TYPE_CHECKING:
    from reconciler.catalog.base import Catalog
    from reconciler.engine.events import Tell
    from reconciler.engine.observe import Scanned
    from reconciler.engine.progress import Progress
    from reconciler.manifest.problem import Problem
    from reconciler.model.desired import CatalogSpec, Desired
    from reconciler.model.observed import Scope, Snapshot
    from reconciler.model.reading import Reading
    from reconciler.model.report import Outcome
    from reconciler.model.run_context import RunContext

DEFAULT_RETRIES = 3
FROM_ENVIRONMENT = (
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_CLIENT_SECRET", "GOOGLE_SERVICE_ACCOUNT_KEY",
)  # fmt: skip
"""What the libraries find by themselves, and a service may repeat."""
T = TypeVar("T")
Needs = Callable[[str, Ident], bool]
"""Whether the run is about anything below this identifier of the catalog."""
_ALL: Needs = lambda name, ident: True  # noqa: E731
Say = Callable[[str], None]


class Failure(Exception):
    """The user's problem, told in full: what, where, how to fix it. Nothing was written."""

    outcome: Outcome = "failed"
    exit_code: int | None = None
    """When it is another than that of the outcome."""
    others: tuple[str, ...] = ()
    """Of several catalogs those with which nothing is wrong."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = (), error: ReadError | None = None) -> None:
        """`error`: what a catalog said, when that is the reason."""
        super().__init__(message)
        self.message = message
        self.error = error
        self.diagnostics = list(diagnostics)

    @property
    def summary(self) -> str:
        """For a report, which has no diagnostics: the first of them says what is wrong, the rest is counted."""
        errors = [d for d in self.diagnostics if d.severity == "error"]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        from reconciler.catalog.known_secrets import without_secrets
        from reconciler.render.safe_text import bounded

        if not errors:
            return self.message
        return f"{self.message}: {errors[0].source}: {bounded(without_secrets(errors[0].message))}{more}"


class Refusal(Failure):
    """Understood, and not done: a rule of ours stands against it."""

    outcome: Outcome = "refused"


class Stale(Failure):
    """Not what it was when somebody looked at it."""

    outcome: Outcome = "stale"


class LeaseHeld(Refusal):
    """Another run is at it."""

    exit_code = 6


@dataclass
class Session:
    """One run of the program: the secrets it has seen, the catalogs it has open, whether it has begun to write."""

    say: Say = lambda message: None
    redactor: Redactor = field(default_factory=Redactor)
    writing: bool = False
    catalogs: dict[str, Catalog] = field(default_factory=dict)
    specs: dict[str, CatalogSpec] = field(default_factory=dict)
    retries: dict[str, int] = field(default_factory=dict)
    """Of the catalogs that have `max_retries`: how often a write that did not hold is sent again."""
    identity: RunContext | None = None
    """Who and what this run is; None while nobody asked."""
    limits: Limits = UNLIMITED
    """What the references of connections and sources may reach."""
    _open: ExitStack = field(default_factory=ExitStack)
    tell: Tell | None = None
    """Where events go when stderr is for programs."""
    command: str = ""
    """What was asked for, as others may see it: without the values of flags."""

    def keep_to(self, reading: Reading) -> None:
        """What `validate` refuses is refused once more where it would be resolved: the first looks, this one reads."""
        self.limits = limits_of(reading).when_opened()

    def progress(self) -> Progress:
        """How far the run is, on stderr: for people, or for programs."""
        from reconciler.engine.events import ProgressEvents
        from reconciler.engine.progress import progress_on

        return progress_on(sys.stderr, self.shown) if self.tell is None else ProgressEvents(self.tell)

    def shown(self, line: str) -> str:
        """A line for people, with names of others in it."""
        from reconciler.render.safe_text import safe_line

        return safe_line(self.redactor.text(line))

    @property
    def run(self) -> RunContext | None:
        """Its identity as it may be written down."""
        who, clean = self.identity, self.redactor.text
        return who and replace(who, by=clean(who.by), url=clean(who.url) if who.url is not None else None)

    def connect(self, spec: CatalogSpec) -> Catalog:
        from reconciler.catalog.registry import connect

        options, _ = self.resolved(spec)
        try:
            schema = options_schema(spec.type)
            catalog = connect(spec, options)
            self._as_expected(spec, options, catalog)
        except CatalogError as error:
            raise self._unreachable(spec.name, error) from error
        self.catalogs[spec.name] = catalog
        if "max_retries" in schema.get("properties", {}):
            default = schema["properties"]["max_retries"].get("default", DEFAULT_RETRIES)
            self.retries[spec.name] = int(options.get("max_retries", default))
        self._open.callback(catalog.close)
        return catalog

    def _as_expected(self, spec: CatalogSpec, options: Mapping[str, str], catalog: Catalog) -> None:
        """Before the first read. Raises Failure when it is another catalog, CatalogError when nothing says so."""
        from reconciler.catalog.base import Placed
        from reconciler.core.expectations import unmet
        from reconciler.manifest.environment_rules import unexpected

        expect = spec.management.expect
        if not expect:
            return
        told = [what for what in catalog.capabilities.told if what in expect and isinstance(catalog, Placed)]
        others = unmet({k: v for k, v in expect.items() if k not in told}, options)
        try:
            said = {what: catalog.told(what) for what in told if isinstance(catalog, Placed) and not others}
        except CatalogError:
            catalog.close()
            raise
        wrong = others or unmet({k: v for k, v in expect.items() if k in told}, said)
        if wrong:
            catalog.close()
            shown = unexpected(spec, [self.redactor.text(problem.message) for problem in wrong])
            raise Failure(f"catalog {spec.name} is not the one that is expected", shown)

    def connect_all(self, specs: Sequence[CatalogSpec]) -> None:
        """Side by side. What is missing for any of them is told at once, before the first is opened."""
        self._resolve_all(specs)
        by_name = {spec.name: spec for spec in specs}
        self.side_by_side(lambda name: self.connect(by_name[name]), [*by_name])

    def _resolve_all(self, specs: Sequence[CatalogSpec]) -> None:
        failed: dict[str, list[Diagnostic]] = {}
        for spec in specs:
            try:
                self.resolved(spec)
            except Failure as failure:
                if not failure.diagnostics:
                    raise
                failed[spec.name] = failure.diagnostics
        if failed:
            names = f"catalog {next(iter(failed))}" if len(failed) == 1 else f"the catalogs {', '.join(failed)}"
            told = Failure(f"{names} cannot be opened", [d for found in failed.values() for d in found])
            told.others = tuple(spec.name for spec in specs if spec.name not in failed)
            raise told

    def resolved(self, spec: CatalogSpec) -> tuple[dict[str, str], frozenset[str]]:
        """The keys to open it with, and which of their values are secret. Raises Failure."""
        from reconciler.manifest.problem import ManifestError
        from reconciler.manifest.secrets import connection_options

        self.specs[spec.name] = spec
        try:
            options, secrets = connection_options(spec.options, options_schema(spec.type), limits=self.limits)
        except ManifestError as error:
            raise Failure(f"catalog {spec.name} cannot be opened", located(spec, error.problems)) from error
        except CatalogError as error:
            raise self._unreachable(spec.name, error) from error
        self.redactor.add(secrets, harmless=harmless_values(options))
        self.redactor.add(os.environ.get(name, "") for name in FROM_ENVIRONMENT)
        return options, secrets

    def storage_options(self, written: Mapping[str, str], where: str) -> dict[str, str]:
        """Options of a place that no catalog leads to; every value is taken for a secret. Raises Failure."""
        from reconciler.manifest.problem import ManifestError
        from reconciler.manifest.secrets import connection_options

        try:
            options, _ = connection_options(written)
        except ManifestError as error:
            raise Failure(f"{where}: {error.message}") from error
        self.redactor.add(options.values(), harmless=harmless_values(options))
        return options

    def observe(
        self, desired: Desired, names: Sequence[str], needs: Needs = _ALL, prune: bool = False
    ) -> dict[str, Snapshot]:
        """Opens the catalogs and reads them, side by side. All or nothing: a plan on some of them would be half a
        truth; the error says how to ask for the others."""
        from reconciler.core.planner import scope_of
        from reconciler.engine.way_around import way_around

        def read(name: str) -> Snapshot:
            self.connect(desired.catalogs[name])
            return self.whole(self.look(name, scope_of(desired, name, prune)), name, needs)

        try:
            self._resolve_all([desired.catalogs[name] for name in names])
            return self.side_by_side(read, names)
        except Failure as failure:
            message = failure.message + way_around(failure.others)
            raise Failure(message, failure.diagnostics, failure.error) from failure

    def look(self, name: str, scope: Scope) -> Snapshot:
        return self.seen_through(self.catalogs[name], name, scope)

    def seen_through(self, catalog: Scanned, name: str, scope: Scope) -> Snapshot:
        """As `look`, with another way to the catalog."""
        from reconciler.engine.observe import observe

        try:
            return observe(catalog, scope, clean=self.redactor.text)
        except CatalogError as error:
            raise self._unreachable(name, error) from error

    def whole(self, seen: Snapshot, name: str, needs: Needs = _ALL) -> Snapshot:
        """The snapshot, for a plan. Raises Failure when a root that the run needs was not listed to its end."""
        failed = [g for g in seen.gaps if g.root and needs(name, g.ident)]
        if failed:
            said = "; ".join(dict.fromkeys(f"{dotted(g.ident)}: {g.message}" if g.ident else g.message for g in failed))
            raise self._unreachable(name, CatalogError(failed[0].code, said))
        return seen

    def side_by_side(self, action: Callable[[str], T], names: Sequence[str]) -> dict[str, T]:
        """All are waited for, so that everything that is wrong is told at once. Raises Failure."""
        from reconciler.catalog.deadline import answers

        def tried(name: str) -> T | Failure:
            try:
                return action(name)
            except Failure as failure:
                return failure

        found = answers(tried, names, 16, lambda name: unanswered(f"catalog {name}"), "catalog")
        done = {name: one for name, one in zip(names, found, strict=True) if not isinstance(one, Failure)}
        failed = [one for one in found if isinstance(one, Failure)]
        if not failed:
            return done
        told = failed[0]
        if len(failed) > 1:
            error = next((f.error for f in failed if f.error is not None), None)
            told = Failure("; ".join(f.message for f in failed), [d for f in failed for d in f.diagnostics], error)
        told.others = tuple(done)
        raise told

    def _unreachable(self, name: str, error: CatalogError) -> Failure:
        from reconciler.engine.advice import way_to

        said = self.redactor.text(error.message)
        message = said + way_to(self.specs[name], error.code)
        text = f"catalog {name} cannot be read: {error.code.title} ({int(error.code)}): {message}"
        return Failure(text, error=ReadError(error.code, said))

    def close(self) -> None:
        from reconciler.catalog.known_secrets import forget

        self._open.close()
        forget(self.redactor)


def unanswered(what: str) -> Failure:
    """Of a storage that was still waited for when the time of the run was over."""
    from reconciler.catalog.deadline import why

    code, said = Code.SERVICE_UNAVAILABLE, f"its storage has not answered, {why()}"
    return Failure(f"{what} cannot be read: {code.title} ({int(code)}): {said}", error=ReadError(code, said))


def options_schema(type_: str) -> Mapping[str, Any]:
    """The JSON Schema of a type's keys, built in or a plug-in's. Raises CatalogError."""
    from reconciler.catalog.registry import plugin_options
    from reconciler.manifest.plugin_options import with_storage
    from reconciler.manifest.schema_files import options_of

    return options_of(type_) or with_storage(plugin_options(type_) or {})


def located(spec: CatalogSpec, problems: Sequence[Problem]) -> list[Diagnostic]:
    """Each at its reference. A catalog that came with a saved plan has no places: then its name has to do."""

    def place(problem: Problem) -> Source:
        key = str(problem.path[-1]) if problem.path else ""
        beside = next((place for (name, _), place in spec.places.items() if name == key), spec.source)
        return spec.places.get((key, problem.offset), beside)

    return [Diagnostic(place(p), p.code, "error", f"catalog {spec.name}: {p.message}", p.hint) for p in problems]
