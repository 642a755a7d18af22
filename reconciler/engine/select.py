"""--catalog and --target: what they name must exist, or a typing error would look like `no changes`. --prune: needs an
owner that someone chose."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from reconciler.core.globs import matches
from reconciler.core.targets import of_catalog
from reconciler.model.desired import DEFAULT_OWNER, Desired
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Snapshot


def unknown_catalog(desired: Desired, wanted: Sequence[str]) -> str | None:
    """What is wrong with --catalog, or None."""
    for name in wanted:
        if name not in desired.catalogs:
            return f"--catalog {name}: no manifest declares a catalog of this name{_nearest(name, desired.catalogs)}"
    return None


def unmatched_target(
    targets: Sequence[str], desired: Desired, snapshots: Mapping[str, Snapshot], unread: Iterable[str] = ()
) -> str | None:
    """What is wrong with --target, or None. A target may name something declared or something live. `unread`: catalogs
    that were not looked at, because nothing about them changed."""
    if not targets:
        return None
    idents: set[Ident] = set()
    for name in (*snapshots, *unread):
        idents |= {*desired.namespaces.get(name, ()), *desired.tables.get(name, ())}
    for snapshot in snapshots.values():
        idents |= {*snapshot.namespaces, *snapshot.tables}
    for target in targets:
        if not any(matches(target, ident) for ident in idents):
            near = of_catalog(target, desired.catalogs) or _nearest(target, (dotted(i) for i in idents))
            return f"--target {target}: nothing declared or live has such an identifier{near}"
    return None


def prune_without_owner(desired: Desired, names: Sequence[str]) -> str | None:
    """Why --prune is refused, or None. Also when there is nothing to prune today: with `default` every lake whose owner
    was not set has the same one, and the day on which it matters must not be the first on which this is said."""
    unset = [name for name in names if desired.catalogs[name].management.owner == DEFAULT_OWNER]
    if not unset:
        return None
    which = f"catalog {unset[0]} has" if len(unset) == 1 else f"catalogs {', '.join(unset)} have"
    others = " (or leave it out with --catalog NAME)" if len(unset) < len(names) else ""
    return f"--prune is refused: {which} no owner; set management.owner first{others}: nothing is deleted without one"


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
