"""The executor on catalogs that show columns and replace entries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from engine_plans import columns, dataset, declare, ns, plan

from reconciler.catalog.base import WriteContext, Written
from reconciler.catalog.memory import MemoryCapabilities, MemoryCatalog, place
from reconciler.core.world import World
from reconciler.engine.execute import execute
from reconciler.model import change as c
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Present
from reconciler.model.state import Column, Marks, TableState

OURS = Marks("us")
T = ("a", "t")
SHOWN = (Column("id", "bigint"),)
MORE = (*SHOWN, Column("n", "string"))
UNITY = MemoryCapabilities(shows_columns=True, replaces_tables=True, chooses_location=True)
GLUE = replace(UNITY, replaces_tables=False)


def lake(kind: MemoryCapabilities) -> MemoryCatalog:
    catalog = MemoryCatalog(World(locate=place), kind)
    for change in (ns("a"), replace(declare(*T), columns=SHOWN, location="s3://lake/t"), dataset(*T)):
        catalog.world.apply(change)
    return catalog


def state(catalog: MemoryCatalog) -> TableState:
    found = catalog.world.tables[T]
    assert isinstance(found, Present)
    assert isinstance(found.state, TableState)
    return found.state


def run(catalog: MemoryCatalog, *changes: c.Change, risk: str = "destructive"):  # type: ignore[no-untyped-def]
    the_plan = plan(catalog.world, changes, risks=dict.fromkeys(range(1, len(changes) + 1), risk))
    return execute(the_plan, {"lake": catalog}, sleep=lambda _: None)


REPLACE = c.ReplaceTable(T, {"k": "v"}, (), OURS, MORE)
SYNC = c.SyncColumns(T, MORE)


def test_a_replacement_claims_no_tag_of_a_dataset_that_it_leaves_alone() -> None:
    catalog = lake(UNITY)
    report = run(catalog, REPLACE)
    assert [(r.status, r.tag) for r in report.steps] == [("done", None)]
    assert (state(catalog).columns, dict(state(catalog).properties)) == (MORE, {"k": "v"})


@pytest.mark.parametrize(("kind", "change"), [(UNITY, REPLACE), (GLUE, SYNC)])
@pytest.mark.parametrize("point", ["before", "after"])
def test_a_lost_answer_converges(kind: MemoryCapabilities, change: c.Change, point: str) -> None:
    catalog = lake(kind)
    failed: list[str] = []

    def fault(at: str, subject: object) -> None:
        if at == point and not failed:
            failed.append(at)
            raise CatalogError(Code.SERVICE_UNAVAILABLE, "cut", unknown_outcome=True)

    catalog.fault = fault
    report = run(catalog, change)
    assert report.outcome == "applied"
    assert failed == [point]
    assert state(catalog).columns == MORE
    assert catalog.calls.writes == 1


@pytest.mark.parametrize(("kind", "change"), [(UNITY, REPLACE), (GLUE, SYNC)])
def test_columns_changed_by_somebody_else_make_the_plan_stale(kind: MemoryCapabilities, change: c.Change) -> None:
    catalog = lake(kind)
    the_plan = plan(catalog.world, [change])
    catalog.world.tables[T] = Present(replace(state(catalog), columns=(Column("id", "int"),)))
    report = execute(the_plan, {"lake": catalog}, sleep=lambda _: None)
    assert report.outcome == "stale"
    assert catalog.calls.writes == 0


def test_the_columns_wait_for_the_data() -> None:
    """A column that could not be added is not shown."""
    catalog = lake(GLUE)
    added = c.AddColumns(T, columns(n="string"))
    the_plan = plan(catalog.world, [added, SYNC], needs={2: [1]})

    def fault(at: str, subject: object) -> None:
        if at == "before" and isinstance(subject, c.AddColumns):
            raise CatalogError(Code.PERMISSION_DENIED, "no")

    catalog.fault = fault
    report = execute(the_plan, {"lake": catalog}, sleep=lambda _: None)
    assert [r.status for r in report.steps] == ["failed", "not_run"]
    assert state(catalog).columns == SHOWN


def test_a_place_that_the_server_spells_differently_is_the_same_place() -> None:
    """Planned with the spelling of the manifest, read back with the server's."""
    catalog = lake(GLUE)
    the_plan = plan(catalog.world, [SYNC])
    catalog.world.tables[T] = Present(replace(state(catalog), location="s3a://lake/t/"))
    assert execute(the_plan, {"lake": catalog}, sleep=lambda _: None).outcome == "applied"


def test_what_the_catalog_shows_instead_is_told() -> None:
    catalog = lake(GLUE)
    the_plan = plan(catalog.world, [SYNC])

    class Deaf(MemoryCatalog):
        """Says yes and does nothing."""

        def apply(self, change: c.Change, context: WriteContext) -> Written:
            return Written()

    deaf = Deaf(catalog.world, GLUE)
    report = execute(the_plan, {"lake": deaf}, sleep=lambda _: None)
    assert report.outcome == "partial"
    assert "columns: the catalog shows" in (report.steps[0].error.message if report.steps[0].error else "")
