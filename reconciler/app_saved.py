"""A saved plan on its way to apply: what of it counts today, which secrets it leads to, which catalogs it opens."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler import app
from reconciler.app_files import saved_plan
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.session import Failure, Session

if TYPE_CHECKING:
    from reconciler.model.desired import CatalogSpec
    from reconciler.model.plan import Plan


def plan_to_apply(path: Path) -> Plan:
    """A saved plan as it counts today: waivers in it may have expired since."""
    from reconciler.core.policy_waivers import as_of

    return as_of(saved_plan(path), app.today())


def learn_secrets(the_plan: Plan, source: Path, at: Session, trusted: Mapping[str, CatalogSpec] | None = None) -> None:
    """So that a saved plan can be shown without them. Key by key: what cannot be resolved is told when its catalog is
    opened."""
    specs = [_spec_in(the_plan, name, source) for name in the_plan.catalogs] if trusted is None else trusted.values()
    for spec in specs:
        for key, value in spec.options.items():
            with suppress(Failure):
                at.resolved(replace(spec, options={key: value}))


def _spec_in(the_plan: Plan, name: str, source: Path) -> CatalogSpec:
    from reconciler.model.desired import NOT_OPTIONS, CatalogSpec, Management
    from reconciler.model.maintenance import tag_retention

    spec = the_plan.catalogs[name]
    options = {k: v for k, v in spec.spec.items() if k not in NOT_OPTIONS}
    found = spec.spec.get("management")
    written = found if isinstance(found, dict) else {}
    expect = written.get("expect")
    pinned = {str(k): str(v) for k, v in expect.items()} if isinstance(expect, dict) else {}
    management = Management(tag_retention=tag_retention(written.get("tagRetention")), expect=pinned)
    return CatalogSpec(name, spec.type, options, management, Source(str(source)))


def connect_for(the_plan: Plan, source: Path, at: Session, trusted: Mapping[str, CatalogSpec] | None = None) -> None:
    """Opens what a saved plan is about, and what it only copies from; from the specs in it, or from `trusted`."""
    from reconciler.model.change import catalogs_read

    allowed = [s for s in the_plan.steps if s.verdict == "allowed"]
    origins = {name for s in allowed for name in catalogs_read(s.change)}
    names = sorted({s.catalog for s in allowed} | origins)
    if trusted is None and (strange := [name for name in names if name not in the_plan.catalogs]):
        raise Failure(f"{source}: the plan has steps on catalog {strange[0]} but does not describe it")
    specs = [_spec_in(the_plan, name, source) if trusted is None else trusted[name] for name in names]
    try:
        at.connect_all(specs)
    except Failure as error:
        if trusted is None:
            error.diagnostics = [_in_a_plan(d) for d in error.diagnostics]
        raise


def _in_a_plan(found: Diagnostic) -> Diagnostic:
    """Nobody edits a plan file: what a manifest would be given, the run has to have."""
    hint = "set it for this run: a saved plan is applied as it is"
    return replace(found, hint=hint) if found.code == "M302" else found
