"""Manifests on disk -> Desired, with every diagnostic in one run.

Except inside one document: its further rules are checked on what its structure leaves intact (`prune`), and not before
it is corrected when a part is wrong that the rest depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.manifest import files
from reconciler.manifest.cross_rules import CapabilitiesOf, check
from reconciler.manifest.document_loader import Loader
from reconciler.manifest.environment_rules import check_environment
from reconciler.manifest.limits import UNLIMITED, Limits
from reconciler.manifest.links import bounds
from reconciler.manifest.origins import Origins
from reconciler.manifest.others_catalogs import Others
from reconciler.manifest.overlay import environments_in, folders
from reconciler.manifest.plugin_options import PluginTypes
from reconciler.manifest.prepare import File, opened, prepare
from reconciler.manifest.sql_at_run import SqlProblems, check_sql_at_run
from reconciler.manifest.variables import MAX_EXPANSION, Resolver
from reconciler.model.collector import collection_paused
from reconciler.model.desired import Desired
from reconciler.model.diagnostic import Diagnostic, Source, has_errors, tidy

if TYPE_CHECKING:
    from reconciler.manifest.affected import Changed
    from reconciler.manifest.since import Since


@dataclass(frozen=True)
class Loaded:
    desired: Desired
    """Best effort when there are errors: never act on it then."""
    diagnostics: list[Diagnostic]
    documents: int
    variables: frozenset[str] = frozenset()
    """Those that a document refers to, or gives a value."""
    changed: Changed | None = None
    """What the run is about, when it is about what changed since a revision."""
    origins: Origins | None = None
    """When it was asked for: it keeps the text of the manifests."""


_NOTHING: Mapping[str, str] = MappingProxyType({})


def load(
    paths: Sequence[str],
    *,
    variables: Mapping[str, str] = _NOTHING,
    capabilities_of: CapabilitiesOf | None = None,
    sql_problems: SqlProblems | None = None,
    plugins: PluginTypes | None = None,
    environ: Mapping[str, str] | None = None,
    environment: str = "",
    changed_since: str = "",
    limits: Limits = UNLIMITED,
    catalogs_from: Sequence[str] = (),
    keep_origins: bool = False,
    environment_needed: bool = True,
) -> Loaded:
    """Reads files and folders. Nothing is raised for bad input: everything wrong is a diagnostic. `environment_needed`:
    paths without a folder for the environment are wrong, and not just without anything for it."""
    plugins = plugins or PluginTypes()
    loader = Loader(Resolver(variables, environ, limits=limits), plugins)
    with collection_paused():
        base = None
        if catalogs_from:
            base = Loader(Resolver(variables, environ, limits=Limits(resolve=limits.resolve)), plugins)
            _read(base, catalogs_from, environment, environment_needed=False)
            base.finish()
            base.check_defaults()
            loader.others = Others(base.registry, base.prepared.overlay, ", ".join(catalogs_from))
        if keep_origins:
            loader.origins = Origins()
        since = _since(changed_since) if changed_since and paths else None
        strange = base is not None or not limits.resolve  # Whoever wants nothing resolved wants nothing else read.
        kept_in = bounds(paths, whole_repository=base is None) if strange else None
        _read(loader, paths, environment, kept_in, since, environment_needed)
        loader.finish()
        if base is not None:
            loader.take_catalogs(base, ", ".join(catalogs_from))
        loader.check_defaults()
        loaded = _checked(loader, paths, environment, capabilities_of, sql_problems)
        if since is None:
            return loaded
        loader.resolver.room = MAX_EXPANSION
        changed = since.changed(loaded.desired, loader.uses, loader.prepared.defaults, loader.resolver.plain)
        return replace(loaded, changed=changed, diagnostics=tidy([*loaded.diagnostics, *since.diagnostics]))


def warnings_of_changed(loaded: Loaded) -> list[Diagnostic]:
    """Without the warnings about files that nobody touched, when the run is about what changed. Errors always stay, and
    so do files that were skipped: what they declare may look changed."""
    changed = loaded.changed
    if changed is None:
        return loaded.diagnostics
    stores = (loaded.desired.namespaces, loaded.desired.tables)
    objects = [o for store in stores for n, found in store.items() for i, o in found.items() if i in changed.only[n]]
    files_ = changed.files | {o.source.file for o in objects}
    return [d for d in loaded.diagnostics if d.severity == "error" or d.code == files.ALMOST or d.source.file in files_]


def _since(revision: str) -> Since:
    from reconciler.manifest.since import Since

    return Since(revision)


def _read(
    loader: Loader,
    paths: Sequence[str],
    environment: str,
    kept_in: tuple[str, ...] | None = None,
    since: Since | None = None,
    environment_needed: bool = True,
) -> None:
    base = _opened(files.find(paths, loader.diagnostics, loader.overlays, kept_in), loader)
    changes = None
    if environment:
        given = paths[0] if paths else "."
        found = folders(environment, loader.overlays, given, loader.diagnostics if environment_needed else [])
        changes = _opened(files.find(found, loader.diagnostics, kept_in=kept_in), loader)
    if since is not None:
        since.ask(paths, base, changes or [], environment)
    loader.prepared = prepare(base, changes, loader.resolver)
    loader.documents += loader.prepared.documents
    loader.uses |= loader.prepared.uses
    loader.asked |= {name for used in loader.uses.values() for name in used}
    loader.resolver.asked.clear()
    if loader.origins is not None:
        loader.origins.defaults = loader.prepared.defaults
        loader.origins.overlay_files = frozenset(f.sink.file for f in changes or ())
    for file in base:
        loader.read(file)


def _opened(names: Iterable[str], loader: Loader) -> list[File]:
    out = []
    for name in names:
        data = files.read(name, loader.diagnostics)
        if data is not None:
            out.append(opened(name, data, loader.diagnostics))
    return out


def _checked(
    loader: Loader,
    paths: Sequence[str],
    environment: str,
    capabilities_of: CapabilitiesOf | None,
    sql_problems: SqlProblems | None,
) -> Loaded:
    if not loader.documents and not has_errors(loader.diagnostics):
        shown = ", ".join(paths) or "no path"
        loader.diagnostics.append(
            Diagnostic(
                Source(paths[0] if paths else "."),
                "M102",
                "error",
                f"no manifest found in {shown}",
                "folders are searched for *.yaml and *.yml, in either case",
            )
        )
    check(loader.registry, capabilities_of)
    if not environment:
        check_environment(loader.registry.catalogs.values(), environments_in(loader.overlays))
    if sql_problems is not None:
        check_sql_at_run(loader.registry, sql_problems)
    desired = loader.desired()
    if not has_errors(loader.diagnostics):
        _check_policies(loader, desired, capabilities_of)
    known = frozenset({*loader.asked, *loader.prepared.variables})
    told = loader.resolver.missing.counted(tidy(loader.diagnostics))
    return Loaded(desired, told, loader.documents, known, origins=loader.origins)


def _check_policies(loader: Loader, desired: Desired, capabilities_of: CapabilitiesOf | None) -> None:
    """What waivers are for is known once everything else is right."""
    waived = (o.waivers for stores in (desired.namespaces, desired.tables) for s in stores.values() for o in s.values())
    if loader.registry.policies or any(waived):
        from reconciler.manifest.policy_rules import check_policies

        environments = environments_in(loader.overlays) if loader.overlays else None
        check_policies(loader.registry, desired, capabilities_of, environments)
