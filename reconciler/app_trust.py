"""Plan files that others may have written: what has to hold before one counts for anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler import app, app_files
from reconciler.core.saved_plans import strange_places, unreviewed
from reconciler.engine.redact import without_literal_secrets
from reconciler.manifest.schema_files import secret_keys
from reconciler.model.diagnostic import has_errors
from reconciler.session import Failure, Refusal, Stale, options_schema

if TYPE_CHECKING:
    from reconciler.model.desired import CatalogSpec
    from reconciler.model.plan import Plan
    from reconciler.model.reading import Reading


def catalogs_for(the_plan: Plan, source: Path, reading: Reading) -> Mapping[str, CatalogSpec]:
    """The catalogs of `--catalogs-from`, to open instead of those that a plan file describes. Raises Refusal when the
    file would connect to anything else."""
    loaded = app.validate(reading.catalogs_from, replace(reading, catalogs_from=(), environment_needed=False))
    if has_errors(loaded.diagnostics):
        raise Failure("the manifests of --catalogs-from have errors", loaded.diagnostics)
    base = loaded.desired
    as_written = {
        name: without_literal_secrets(spec, secret_keys(options_schema(spec.type)))
        for name, spec in base.catalogs.items()
    }
    problems = list(strange_places(the_plan, base, as_written))
    if problems:
        where = ", ".join(reading.catalogs_from)
        raise Refusal(f"{source} is not a plan for the catalogs of {where}: {_some(problems)}; nothing was written")
    return base.catalogs


def check_reviewed(the_plan: Plan, reviewed: Path) -> None:
    """Raises Stale unless all that would be done now was in the plan that was reviewed."""
    problems = list(unreviewed(the_plan, app_files.saved_plan(reviewed)))
    if problems:
        hint = "nothing was written; plan and review again"
        raise Stale(f"the reviewed plan {reviewed} does not cover this run: {_some(problems)}; {hint}")


def _some(problems: Sequence[str], shown: int = 5) -> str:
    more = f"; and {len(problems) - shown} more" if len(problems) > shown else ""
    return "; ".join(problems[:shown]) + more
