"""What a run was asked for: --target names identifiers of every catalog, `only` objects of each."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from reconciler.core.globs import matcher
from reconciler.core.options import PlanOptions
from reconciler.core.text import listing
from reconciler.model.desired import Desired
from reconciler.model.ident import Ident, Kind, ObjectKey, dotted
from reconciler.model.plan import Step

SHOWN = 5
Selected = Callable[[Ident], bool]


def selects_all(options: PlanOptions) -> bool:
    return not options.targets and options.only is None


def selected_in(options: PlanOptions, catalog: str) -> Selected:
    """True for an identifier of this catalog that the run is about: each limit given must let it through."""
    targets = matcher(options.targets) if options.targets else None
    if options.only is None:
        return targets or (lambda _: True)
    only = options.only.get(catalog, frozenset())
    return only.__contains__ if targets is None else lambda ident: ident in only and targets(ident)


def left_out(
    desired: Desired, catalogs: Container[str], options: PlanOptions, steps: tuple[Step, ...]
) -> tuple[ObjectKey, ...]:
    """The declared objects that the plan is not about. A parent that has to be made for a target is in the plan, and so
    is not left out."""
    if selects_all(options):
        return ()
    planned = {step.key for step in steps}
    names = [n for n in desired.catalogs if n in catalogs or (options.only is not None and n in options.only)]
    return tuple(sorted(k for n in names for k in _outside(desired, n, options) if k not in planned))


def _outside(desired: Desired, name: str, options: PlanOptions) -> Iterator[ObjectKey]:
    selected = selected_in(options, name)
    stores: tuple[tuple[Kind, Mapping[Ident, object]], ...] = (
        ("Namespace", desired.namespaces.get(name, {})),
        ("Table", desired.tables.get(name, {})),
    )
    return (ObjectKey(name, i, kind) for kind, store in stores for i in store if not selected(i))


def outside(options: PlanOptions, catalog: str, idents: Iterable[Ident]) -> str:
    """What to add to a reason when a step is held up by objects that the run was not asked about."""
    selected = selected_in(options, catalog)
    names = [dotted(i) for i in idents if not selected(i)]
    if not names:
        return ""
    told = f"; this run leaves out {listing(names)}"
    return told if options.only is not None else f"{told}: add " + " ".join(f"--target '{n}'" for n in names[:SHOWN])
