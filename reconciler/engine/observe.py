"""One catalog as a snapshot: the scan collected, the ignored objects left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from reconciler.catalog.base import Catalog
from reconciler.core.globs import matcher
from reconciler.model.ident import Ident
from reconciler.model.observed import Absent, Detached, Gap, Present, Scope, Snapshot, Unreadable


def observe(
    catalog: Catalog,
    scope: Scope,
    ignore: Sequence[str] = (),
    clean: Callable[[str], str] = lambda message: message,
) -> Snapshot:
    """Raises CatalogError when nothing at all can be said about the catalog.

    Ignored objects are not reported, but they are remembered as `hidden`: a namespace that holds one is not empty and
    must never be planned as droppable. `clean` takes secrets out of what a library said.
    """
    ignored = matcher(tuple(dict.fromkeys((*scope.ignore, *ignore))))
    namespaces: dict[Ident, Present | Unreadable] = {}
    tables: dict[Ident, Present | Detached | Unreadable] = {}
    gaps: list[Gap] = []
    hidden: set[Ident] = set()
    for found in catalog.scan(scope):
        if isinstance(found, Gap):
            if found.ident and ignored(found.ident):
                hidden.add(found.ident)  # Something is there, and what holds it is not empty.
            else:
                gaps.append(replace(found, message=clean(found.message)))
            continue
        finding = found.finding
        if isinstance(finding, Unreadable):
            finding = replace(finding, message=clean(finding.message))
        if isinstance(finding, Absent):
            continue
        if ignored(found.ident):
            if not isinstance(finding, Detached):
                hidden.add(found.ident)
        elif found.kind == "Table":
            tables[found.ident] = finding
        elif not isinstance(finding, Detached):
            namespaces[found.ident] = finding
    return Snapshot(
        dict(sorted(namespaces.items())),
        dict(sorted(tables.items())),
        tuple(sorted(gaps, key=lambda g: (g.ident, g.code, g.message))),
        frozenset(hidden),
    )
