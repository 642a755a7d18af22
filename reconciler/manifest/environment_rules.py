"""What keeps a run from the wrong environment: `requireEnvironment` and `management.expect` of a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reconciler.core.expectations import possible
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Problem
from reconciler.manifest.registry import CatalogEntry
from reconciler.manifest.schema_files import options_of, secret_keys
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.ident import dotted
from reconciler.model.observed import RootSeen


def unexpected(spec: CatalogSpec, problems: Iterable[str]) -> list[Diagnostic]:
    """`problems`: what is not as `management.expect` wants it."""
    hint = "check --env, the variables and the credentials of this run; nothing was read"
    return [Diagnostic(spec.source, "M443", "error", f"catalog {spec.name}: {p}", hint) for p in problems]


def elsewhere(spec: CatalogSpec, at: Source | None, root: RootSeen) -> Iterator[Diagnostic]:
    """Nothing is where the manifests say, and what they declare is ours in a place beside it."""
    ours: dict[str, list[str]] = {}
    for ident, place, owner in root.elsewhere:
        if owner == spec.management.owner:
            ours.setdefault(place, []).append(dotted(ident))
    for place, tables in ours.items():
        more = f" (and {len(tables) - 1} more)" if len(tables) > 1 else ""
        message = f"nothing exists at {root.new} yet, and our table {tables[0]}{more} exists at {place}"
        yield Diagnostic(at or spec.source, "M444", "warning", message, "is spec.path the path that you mean?")


def check_environment(catalogs: Iterable[CatalogEntry], environments: Sequence[str]) -> None:
    """The run has none. Without one, the documents outside of `overlays/` would be taken for an environment."""
    for entry in catalogs:
        if entry.spec.require_environment:
            message = "this catalog is used with an environment only, and --env is not given"
            known = (
                f"environments: {', '.join(environments)}" if environments else "no folder overlays/ is in the paths"
            )
            entry.report(Problem("M516", ("spec", "requireEnvironment"), message, f"give --env NAME; {known}"))


def check_expected(entry: CatalogEntry, capabilities: Capabilities | None) -> None:
    """A plug-in's options are not known here: what it does not have is told when it is opened."""
    options = options_of(entry.spec.type)
    if capabilities is None or options is None:
        return
    known = possible(options, secret_keys(options), capabilities.told)
    for what in entry.spec.management.expect:
        if what not in known:
            near = nearest(what, known)
            hint = f"did you mean {near}?" if near else f"it can be one of: {', '.join(known)}"
            message = f"a catalog of type {entry.spec.type} has no {what!r} that could be expected"
            entry.report(Problem("M442", ("spec", "management", "expect", what), message, hint, at_key=True))
