"""A plan from a file, held against what is trusted: the catalogs of this place, or the plan that is made just now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.core.known_places import is_known
from reconciler.model.change import DeclareTable, MaterializeTable, catalogs_read
from reconciler.model.codec import canonical
from reconciler.model.desired import NOT_OPTIONS, CatalogSpec, Desired
from reconciler.model.plan import CatalogSummary, Plan, Step


def strange_places(plan: Plan, base: Desired, public: Mapping[str, CatalogSpec]) -> Iterator[str]:
    """Where the plan would connect to, and `base` does not: a plan file says where credentials are sent. `public` are
    the catalogs of `base` as they are written into a plan."""
    steps = [s for s in plan.steps if s.verdict == "allowed"]
    for name in sorted({s.catalog for s in steps} | {n for s in steps for n in catalogs_read(s.change)}):
        described, spec = plan.catalogs.get(name), public.get(name)
        if spec is None:
            yield f"catalog {name} is not declared there"
        elif described is None or not _same(described, spec):
            yield f"catalog {name} is another one in the plan than at {spec.source}"
    for step in steps:
        if isinstance(step.change, MaterializeTable):
            table = base.tables.get(step.catalog, {}).get(step.change.ident)
            if table is None or table.data is None or table.data.source != step.change.reads:
                yield f"{step.id}: the rows of {step.key} come from another source in the plan than there"
        elif isinstance(step.change, DeclareTable) and step.change.location is not None and step.catalog in public:
            tables = base.tables.get(step.catalog, {}).values()
            locations = [t.location for t in tables if t.location is not None]
            if not is_known(step.change.location, base.catalogs[step.catalog], locations):
                yield f"{step.id}: the location of {step.key} is another one in the plan than there"


def _same(described: CatalogSummary, spec: CatalogSpec) -> bool:
    options = {k: v for k, v in described.spec.items() if k not in NOT_OPTIONS}
    return described.type == spec.type and options == dict(spec.options)


def unreviewed(now: Plan, reviewed: Plan) -> Iterator[str]:
    """Why `now` does more than what was reviewed: each of its steps that may run has to be there, the same action on
    the same object with the same result. Fewer are fine: a run that was cut off has done them."""
    if now.manifests_digest != reviewed.manifests_digest:
        yield "it was made from other manifests or other Catalog documents"
        return
    known = {_what(s) for s in reviewed.steps if s.verdict == "allowed"}
    for step in now.steps:
        if step.verdict == "allowed" and _what(step) not in known:
            yield f"it does not have {step.action} {step.key} ({step.risk}) as it would be done now"


def _what(step: Step) -> tuple[str, ...]:
    return step.action, str(step.key), step.key.kind, step.risk, canonical(step.after)
