"""The diff of a fleet is the plan, whatever manifests and catalogs hold. The code of executors runs in process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import event, given
from prop_cases import Case, cases
from prop_run import ListingCatalog, apply_all, catalog_of, plan_on

from reconciler import app
from reconciler.core.errors import PlanError
from reconciler.core.fleet import only, watch
from reconciler.core.planner import make_plan, scope_of
from reconciler.model.arrow import Field, parse_type
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.observed import Snapshot
from reconciler.model.plan_json import plan_to_json
from reconciler.pipeline import fleet_task
from reconciler.pipeline.fleet import Doubt
from reconciler.pipeline.fleet_task import CatalogTask, ident_of
from reconciler.verbs import fleet_diff

NUMBERS = pa.RecordBatch.from_pydict({"id": [0]})
HERE = Source("here.yaml")


class Here:
    """As much of Spark as a second look needs."""

    def range(self, *_parts: int) -> Here:
        return self

    def mapInArrow(self, job: Any, _layout: str) -> Here:
        self.job = job
        return self

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in made(self.job([NUMBERS]))]


def made(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def doubts(case: Case, task: CatalogTask) -> list[Doubt]:
    targets = case.options.targets
    asked = fleet_diff.targets_of_strangers(case.desired, ["lake"], targets)
    listed = {r["key"]: r for r in made(fleet_task.listing([task], targets, asked)([NUMBERS])) if r["kind"] == "Table"}
    empty = {"kind": None, "error": None, "ours": False, "asked": False, "strange": False}
    rows = {k: {**r, "desired_hash": None, "location": None, "declared": False} for k, r in listed.items()}
    for name, key, settled, location in fleet_diff.declared_rows(case.desired, [task]):
        row = {"catalog": name, "key": key, "desired_hash": settled, "location": location, "declared": True}
        rows[key] = {**listed.get(key, empty), **row}
    read = made(fleet_task.reading([task])([pa.RecordBatch.from_pylist([*rows.values()])])) if rows else ()
    return [Doubt("lake", ident_of(r["key"]), r["kind"] is not None, r["place"]) for r in read if r["doubt"]]


def diffed(case: Case, catalog: ListingCatalog) -> tuple[Any, int]:
    """And how many declared tables were left out."""
    spec = case.desired.catalogs["lake"]
    management, namespaces = spec.management, scope_of(case.desired, "lake").namespaces
    task = CatalogTask("lake", "dir", {}, frozenset(), management.owner, management.ignore, namespaces,
                       connect=lambda _spec, _options: catalog)  # fmt: skip
    with (
        patch.object(app, "capabilities_of", lambda *_: {"lake": case.capabilities}),
        patch.object(
            app, "planned", lambda desired, seen, rules, what, at: make_plan(desired, seen, rules, what.options)
        ),
        patch.object(fleet_task, "measured", lambda *_: {}),
    ):
        found = doubts(case, task)
        watched, kept = watch(case.desired, "lake"), {d.ident for d in found}
        smaller = only(case.desired, {"lake": lambda i: i in kept or watched.holds(i)})
        what = app.Request((), options=case.options)
        plan = fleet_diff.looked_at(Here(), found, smaller, {"lake": watched}, [task], what, app.Session())
    return plan, len(case.desired.tables.get("lake", {})) - len(smaller.tables["lake"])


@given(cases())
def test_the_diff_of_a_fleet_is_the_plan(case: Case) -> None:
    case = replace(case, options=replace(case.options, prune=False))
    catalog = catalog_of(case)
    try:
        plan = plan_on(case, catalog)
    except PlanError as error:
        with pytest.raises(PlanError) as same:
            diffed(case, catalog)
        refused = error.diagnostics
    else:
        assert plan_to_json(diffed(case, catalog)[0]) == plan_to_json(plan)
        return
    assert same.value.diagnostics == refused


@given(cases(gaps=False))
def test_what_was_just_applied_is_left_out(case: Case) -> None:
    case = replace(case, options=replace(case.options, prune=False))
    catalog = catalog_of(case)
    try:
        plan = plan_on(case, catalog)
        apply_all(plan, catalog)
        again = plan_on(case, catalog)
    except PlanError:
        return
    found, left_out = diffed(case, catalog)
    assert plan_to_json(found) == plan_to_json(again)
    event(f"{left_out} left out")


@pytest.mark.parametrize(("ours", "held"), [(14, "threshold"), (15, None), (9, None)])
def test_the_thresholds_count_what_is_ours_of_a_fleet(ours: int, held: str | None) -> None:
    """Three tables are to go. Those that are as declared are left out and count; those of others do not."""
    spec = CatalogSpec("lake", "dir", {}, Management("us"), HERE)
    schema = (Field("id", parse_type("int64")),)
    tables = {i: DesiredTable("lake", i, HERE, fields=schema) for i in ((f"t{n:02}",) for n in range(ours))}
    case = Case(Desired({"lake": spec}, {"lake": {}}, {"lake": tables}), Snapshot({}, {}))
    catalog = catalog_of(case)
    apply_all(plan_on(case, catalog), catalog)
    theirs = replace(case.desired, catalogs={"lake": replace(spec, management=Management("them"))})
    strangers = {i: DesiredTable("lake", i, HERE, fields=schema) for i in ((f"s{n:02}",) for n in range(30))}
    other = replace(case, desired=replace(theirs, tables={"lake": strangers}))
    apply_all(plan_on(other, catalog), catalog)
    gone = {i: replace(t, absent=n < 3) for n, (i, t) in enumerate(sorted(tables.items()))}
    case = replace(case, desired=replace(case.desired, tables={"lake": gone}))
    plan, left_out = diffed(case, catalog)
    assert [s.blocked_by for s in plan.steps] == [held] * 3
    assert left_out == ours - 3
    assert plan_to_json(plan) == plan_to_json(plan_on(case, catalog))
