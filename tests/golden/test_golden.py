"""Plans as documentation: a folder per case. `UPDATE_GOLDEN=1 pytest tests/golden` writes what the program says now;
read the difference as a reviewer before you commit it.

A case is `manifests/` (its first line says what it shows), `live.json` (what the catalog holds, as
`model.codec.snapshot_from` reads it), `options.json` (the command line, where it matters) and the result: `plan.json`
with `plan.txt` and `plan.md`, or `diagnostics.txt` when there is no plan.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from reconciler.catalog import registry
from reconciler.catalog.memory import MemoryCatalog
from reconciler.core.errors import PlanError
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan, scope_of, with_id
from reconciler.core.world import World
from reconciler.engine.observe import observe
from reconciler.manifest.load import load
from reconciler.manifest.schema_files import schema
from reconciler.model.capabilities import Capabilities
from reconciler.model.codec import snapshot_from
from reconciler.model.desired import CatalogSpec, Desired
from reconciler.model.diagnostic import has_errors
from reconciler.model.plan_json import plan_from_json, plan_to_json
from reconciler.render.markdown import plan_markdown
from reconciler.render.text import diagnostics_text, plan_text

CASES = sorted(p for p in (Path(__file__).parent / "cases").iterdir() if p.is_dir())
RESULTS = ("plan.json", "plan.txt", "plan.md", "diagnostics.txt")
UPDATE = os.environ.get("UPDATE_GOLDEN", "") not in ("", "0")


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_golden(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case)
    found = results()
    if UPDATE:
        write(case, found)
    expected = {name: (case / name).read_text() for name in RESULTS if (case / name).exists()}
    assert found == expected, "read the difference; UPDATE_GOLDEN=1 accepts it"


def test_there_are_enough_cases_and_each_says_what_it_shows() -> None:
    firsts = [(case / "manifests" / "lake.yaml").read_text().splitlines()[0] for case in CASES]
    assert len(CASES) >= 60
    assert all(line.startswith("# ") and line.endswith(".") for line in firsts)
    assert len(set(firsts)) == len(firsts)


def results() -> dict[str, str]:
    """What the program says about the case in the working directory."""
    loaded = load(["manifests"], capabilities_of=capabilities_of, environ={})
    if has_errors(loaded.diagnostics):
        return {"diagnostics.txt": diagnostics_text(loaded.diagnostics)}
    desired = loaded.desired
    live = json.loads(Path("live.json").read_text())
    try:
        plan = make_plan(
            desired,
            {name: snapshot(desired, name, live) for name in desired.catalogs},
            {name: capabilities_of(spec) for name, spec in desired.catalogs.items()},
            options(),
        )
    except PlanError as error:
        return {"diagnostics.txt": diagnostics_text(error.diagnostics)}
    plan = with_id(replace(plan, tool_version="golden"))
    value = plan_to_json(plan)
    assert plan_to_json(plan_from_json(value)) == value
    jsonschema_rs.validator_for(schema("plan")).validate(value)
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    return {"plan.json": text, "plan.txt": plan_text(plan), "plan.md": plan_markdown(plan)}


def snapshot(desired: Desired, name: str, live: Mapping[str, Any]) -> Any:
    """Through a scan, so that gaps hide and `ignore` filters as they do in life."""
    whole = snapshot_from(live["catalogs"][name] if "catalogs" in live else live)
    catalog = MemoryCatalog(World(whole), gaps=whole.gaps, unsupported=whole.unsupported)
    return observe(catalog, scope_of(desired, name))


def capabilities_of(spec: CatalogSpec) -> Capabilities:
    """Of the backend itself: what it can do is part of what a case shows."""
    found = registry.capabilities_of(spec)
    assert found is not None
    return found


def options() -> PlanOptions:
    path = Path("options.json")
    given = json.loads(path.read_text()) if path.exists() else {}
    sets = {k: frozenset(given[k]) for k in ("allow", "take_over") if k in given}
    return PlanOptions(**{**given, **sets, "targets": tuple(given.get("targets", ()))})


def write(case: Path, found: Mapping[str, str]) -> None:
    for name in RESULTS:
        if name in found:
            (case / name).write_text(found[name])
        else:
            (case / name).unlink(missing_ok=True)
