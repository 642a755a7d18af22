"""What keeps a run from the wrong environment: `requireEnvironment` and `management.expect` of a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.core.expectations import possible
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Problem
from reconciler.manifest.registry import CatalogEntry
from reconciler.manifest.schema_files import options_of, secret_keys
from reconciler.model.capabilities import Capabilities


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
