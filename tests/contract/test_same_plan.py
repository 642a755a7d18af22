"""One manifest set, five catalogs: the plans are the same but for what a catalog cannot do.

Once on the planner alone, with the capabilities of each type over a catalog in memory, and once on the real backends.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.backends import BACKENDS, Backend, Site
from contract.lake import Doc, Lake, is_projection, namespace, table
from contract.outsider import Ident
from contract.outsider_memory import MemoryOutsider
from reconciler.catalog.memory import MemoryCatalog, place
from reconciler.catalog.registry import capabilities_of
from reconciler.core.world import World
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.observed import Present
from reconciler.model.plan import Plan, Step
from reconciler.model.state import NamespaceState

OPTIONS: dict[str, tuple[Doc, Ident]] = {
    "dir": ({"path": "/data/lake", "dir_listing_enabled": False}, ()),
    "rest": ({"uri": "http://127.0.0.1:1"}, ()),
    "iceberg": ({"endpoint": "http://127.0.0.1:1", "warehouse": "wh", "root": "/data"}, ("wh",)),
    "unity": ({"endpoint": "http://127.0.0.1:1", "catalog": "lance", "root": "/data"}, ("lance",)),
    "glue": ({"region": "us-east-1", "root": "/data"}, ()),
}
REAL = {"dir": "dir-v2", "rest": "rest", "iceberg": "iceberg", "unity": "unity", "glue": "glue"}

Line = tuple[str, Ident]
CANNOT: dict[str, set[Line]] = {
    "dir": set(),
    "rest": {
        ("UpdateNamespace", ("n",)),
        ("UpdateTable", ("n", "orders")),
        ("RenameTable", ("n", "newer")),
        ("RenameNamespace", ("moved",)),
    },
    "iceberg": {("RenameNamespace", ("moved",))},
    "unity": set(),
    "glue": {("RenameTable", ("n", "newer")), ("RenameNamespace", ("moved",))},
}
"""What each catalog refuses of the changes below. The README's table of capabilities says the same in words."""


def first(lake: Lake) -> list[Doc]:
    return [
        namespace(lake.ns("n"), properties={"team": "one"}, description="where it all is"),
        namespace(lake.ns("moving")),
        namespace(lake.ns("going")),
        table(
            lake.ns("n", "orders"),
            {"id": "int64 not null", "name": "string", "note": "string", "amount": "int32"},
            properties={"colour": "red"},
            description="all orders",
            config={"k": "1"},
            indexes=[{"column": "id", "type": "btree"}],
        ),
        table(lake.ns("n", "older"), {"id": "int64"}),
        table(lake.ns("n", "leaving"), {"id": "int64"}),
    ]


def second(lake: Lake) -> list[Doc]:
    return [
        namespace(lake.ns("n"), properties={"team": "two"}, description="where it all is"),
        namespace(lake.ns("moved"), renamedFrom=[*lake.ns("moving")]),
        namespace(lake.ns("going"), state="absent"),
        table(
            lake.ns("n", "orders"),
            {"id": "int64 not null", "name": "large_string", "amount": "int64", "more": "list<string>"},
            properties={"colour": "blue"},
            description="all orders",
            config={"k": "2"},
            indexes=[{"column": "id", "type": "zonemap"}],
            allow=["drop_column", "drop_index"],
        ),
        table(lake.ns("n", "newer"), {"id": "int64"}, renamedFrom=[*lake.ns("n", "older")]),
        table(lake.ns("n", "leaving"), state="absent"),
        table(lake.ns("n", "fresh"), {"id": "int64"}),
    ]


def in_memory(type_: str, folder: Path) -> Lake:
    options, container = OPTIONS[type_]
    capabilities = capabilities_of(CatalogSpec("lake", type_, options, Management(), Source("-")))
    assert capabilities is not None
    world = World(locate=place)
    if container:
        world._put(world.namespaces, container, Present(NamespaceState()))

    def site() -> Site:
        outsider, catalog = MemoryOutsider(world), MemoryCatalog(world, capabilities)
        return Site({"type": type_, **options}, capabilities, outsider, lambda: catalog, site, container)

    return Lake(Backend(type_, lambda folder, fixture: site()), site(), folder)


def on_its_server(type_: str, folder: Path, request: pytest.FixtureRequest) -> Lake:
    (backend,) = [b for b in BACKENDS if b.name == REAL[type_]]
    (folder / type_).mkdir()
    return Lake(backend, backend.make(folder / type_, request.getfixturevalue), folder / type_)


@pytest.fixture(params=["planner", pytest.param("servers", marks=pytest.mark.slow)])
def lakes(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Lake]:
    if request.param == "planner":
        return {type_: in_memory(type_, tmp_path) for type_ in OPTIONS}
    return {type_: on_its_server(type_, tmp_path, request) for type_ in OPTIONS}


def line(step: Step, lake: Lake) -> Line:
    """An entry that is replaced stands for one that is updated: how it is done is the catalog's matter."""
    kind = type(step.change).__name__.replace("ReplaceTable", "UpdateTable")
    return kind, step.change.ident[len(lake.site.container) :]


def lines(plan: Plan, lake: Lake) -> list[Line]:
    return [line(s, lake) for s in plan.steps if not is_projection(s)]


def test_a_new_catalog_gets_the_same_steps_everywhere(lakes: dict[str, Lake]) -> None:
    plans = {type_: lake.plan(first(lake)) for type_, lake in lakes.items()}
    wanted = lines(plans["dir"], lakes["dir"])
    assert len(wanted) == 3 + 3 * 2 + 1
    for type_, plan in plans.items():
        assert lines(plan, lakes[type_]) == wanted, type_
        assert {s.verdict for s in plan.steps} == {"allowed"}, type_
        assert (plan.summary.create, plan.summary.update, plan.summary.delete) == (6, 0, 0), type_


def test_changes_differ_only_in_what_a_catalog_cannot_do(lakes: dict[str, Lake]) -> None:
    plans = {}
    for type_, lake in lakes.items():
        lake.reach(first(lake))
        plans[type_] = lake.plan(second(lake))
    wanted = set(lines(plans["dir"], lakes["dir"]))
    kinds = {kind for kind, _ in wanted}
    assert kinds >= {"UpdateNamespace", "RenameNamespace", "DropNamespace", "UpdateTable", "UpdateDataset"}
    assert kinds >= {"RenameTable", "DeregisterTable", "DeclareTable", "CreateDataset", "AddColumns", "ReplaceIndex"}
    for type_, plan in plans.items():
        lake = lakes[type_]
        assert set(lines(plan, lake)) == wanted, type_
        refused = {line(s, lake) for s in plan.steps if s.verdict != "allowed"}
        assert refused == CANNOT[type_], type_
        for step in (s for s in plan.steps if s.verdict != "allowed"):
            assert (step.verdict, bool(step.reason)) == ("unsupported", True), type_


def test_what_can_be_done_is_done_and_ends_alike(lakes: dict[str, Lake]) -> None:
    """Names moved, schemas, configuration and indexes are the same in the end, whatever else could not be changed."""
    ends = {}
    for type_, lake in lakes.items():
        lake.reach(first(lake))
        report = lake.apply(lake.plan(second(lake)))
        assert report.outcome == ("refused" if CANNOT[type_] else "applied"), (type_, report.message)
        assert report.count("failed") == 0, (type_, report.message)
        seen = lake.outsider.state()
        view = seen.tables[lake.ns("n", "orders")]
        assert view.schema is not None
        ends[type_] = (sorted(map(str, view.schema)), view.config, view.indexes)
        assert lake.ns("going") not in seen.namespaces
        assert {lake.ns("n", "fresh"), lake.ns("n", "orders")} <= set(seen.tables)
        assert lake.ns("n", "leaving") not in seen.tables
    assert all(end == ends["dir"] for end in ends.values()), ends
