"""When a table is moved, when that is held back, and what the plan says of it."""

from __future__ import annotations

from dataclasses import replace

import jsonschema_rs
import pytest

from reconciler.catalog.memory import MemoryCatalog
from reconciler.core.fingerprint import fingerprint
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan
from reconciler.manifest.schema_files import schema
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import MigrateTable
from reconciler.model.data import DataRecord, Migration
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.ident import Ident
from reconciler.model.observed import Origin, Present, Snapshot
from reconciler.model.plan import Plan
from reconciler.model.plan_json import plan_from_json, plan_to_json
from reconciler.model.state import DatasetState, Index, Marks, TableState

HERE = Source("m.yaml", 1)
T: Ident = ("t",)
MOVE = Migration("old", ("a", "b"))
ID, TEXT = Field("id", parse_type("int64")), Field("text", parse_type("string"))
SOURCE = DatasetState((ID,), {"s": "1"}, {"c": "2"}, (Index("by_id", "id", "btree"),), "them", ("config:c",), 7)
OURS = Marks("us")


def planned(
    found: TableState | None, origin: Origin | None, want: DesiredTable | None = None, reason: str | None = None
) -> Plan:
    want = want or DesiredTable("new", T, HERE, fields=(ID,), migration=MOVE)
    specs = {
        "new": CatalogSpec("new", "dir", {"path": "./new"}, Management("us"), HERE),
        "old": CatalogSpec("old", "dir", {"path": "./old"}, Management(), HERE),
    }
    tables = {T: Present(found)} if found is not None else {}
    snapshot = Snapshot({}, tables, origins={T: origin} if origin is not None else {})
    capabilities = {"new": MemoryCatalog().capabilities}
    desired = Desired(specs, {}, {"new": {T: want}}, "sha256:" + "0" * 64)
    return make_plan(desired, {"new": snapshot}, capabilities, PlanOptions(data_plane=reason))


def verdicts(plan: Plan) -> list[tuple[str, str, str | None]]:
    return [(s.action, s.verdict, s.blocked_by) for s in plan.steps]


def live(dataset: DatasetState | None) -> TableState:
    return TableState("./memory/t.lance", marks=OURS, dataset=dataset)


def test_declared_then_moved_then_as_declared() -> None:
    want = DesiredTable("new", T, HERE, fields=(ID, TEXT), migration=MOVE)
    plan = planned(None, Origin(SOURCE), want)
    assert [s.action for s in plan.steps] == ["declare_table", "migrate_table", "add_columns"]
    assert {s.verdict for s in plan.steps} == {"allowed"}
    _, moved, more = plan.steps
    assert (moved.plane, moved.risk, more.needs) == ("data", "safe", (moved.id,))
    assert isinstance(moved.change, MigrateTable)
    assert moved.change.applied == (), "what others have set is not ours to remove"
    assert (moved.change.copied_owner, moved.change.copied_applied) == ("them", ("config:c",))
    assert plan.summary.create == 1


def test_our_own_record_of_what_we_set_moves_too() -> None:
    plan = planned(live(None), Origin(replace(SOURCE, owner="us")))
    change = plan.steps[0].change
    assert isinstance(change, MigrateTable)
    assert change.applied == ("config:c",)


def test_the_unmarked_copy_is_a_place_on_the_way() -> None:
    (step, *_) = planned(live(None), Origin(SOURCE)).steps
    assert step.via == (fingerprint(Present(live(replace(SOURCE, version=None)))),)
    marked = replace(SOURCE, owner="us", applied=(), data=DataRecord(MOVE.digest))
    assert step.yields.fingerprint == fingerprint(Present(live(marked)))


def test_it_is_plain_data() -> None:
    plan = planned(None, Origin(replace(SOURCE, data=DataRecord("sha256:x"))))
    value = plan_to_json(plan)
    jsonschema_rs.validator_for(schema("plan")).validate(value)
    assert plan_from_json(value) == plan


def test_who_applies_the_plan_can_open_the_source() -> None:
    """Its catalog is not planned, so nothing else in the plan names it."""
    assert planned(None, Origin(SOURCE)).catalogs["old"].spec == {"type": "dir", "path": "./old"}
    assert "old" not in planned(live(moved_dataset()), None).catalogs


def moved_dataset() -> DatasetState:
    return DatasetState((ID,), owner="us", data=DataRecord(MOVE.digest))


@pytest.mark.parametrize("origin", [None, Origin(SOURCE), Origin(problem="gone")])
def test_what_has_arrived_stays(origin: Origin | None) -> None:
    assert planned(live(moved_dataset()), origin).steps == ()


@pytest.mark.parametrize("record", [None, DataRecord(Migration("old", ("other",)).digest)])
def test_a_dataset_that_came_from_elsewhere_is_not_written_over(record: DataRecord | None) -> None:
    plan = planned(live(replace(moved_dataset(), data=record)), Origin(SOURCE))
    assert verdicts(plan) == [("migrate_table", "blocked", "data_unaccounted")]


def test_a_copy_that_was_not_marked_is_marked() -> None:
    plan = planned(live(SOURCE), Origin(copied=True))
    assert verdicts(plan)[0] == ("migrate_table", "allowed", None)
    assert plan.steps[0].via == ()


@pytest.mark.parametrize(("origin", "told"), [(Origin(problem="it is gone"), "it is gone"), (None, "nobody looked")])
def test_without_a_source_the_table_stays_without_data(origin: Origin | None, told: str) -> None:
    plan = planned(None, origin)
    assert verdicts(plan) == [("declare_table", "allowed", None), ("migrate_table", "blocked", "source")]
    assert told in plan.steps[1].reason


def test_without_spark_it_is_held_back() -> None:
    plan = planned(live(None), Origin(SOURCE), reason="no Java")
    assert verdicts(plan) == [("migrate_table", "blocked", "data_plane")]


def test_the_source_as_it_is_when_no_columns_are_declared() -> None:
    plan = planned(None, Origin(SOURCE), DesiredTable("new", T, HERE, migration=MOVE))
    assert [s.action for s in plan.steps] == ["declare_table", "migrate_table"]
