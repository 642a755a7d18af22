"""One dataset in two catalogs: made and altered through the first, declared and shown by both, in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from reconciler.catalog.base import WriteContext, Written
from reconciler.catalog.memory import MemoryCapabilities, MemoryCatalog
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan, scope_of
from reconciler.core.world import World
from reconciler.engine.execute import execute
from reconciler.engine.observe import observe
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import Change
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Detached, Gap, Observation, Present, Scope, Snapshot, Unreadable
from reconciler.model.plan import Plan
from reconciler.model.state import DatasetState, Marks, TableState

HERE = Source("m.yaml")
PLACE = "s3://lake/t"
T: Ident = ("t",)
ID = (Field("id", parse_type("int64")),)
TWO = (*ID, Field("n", parse_type("string")))
OLD = DatasetState(ID, owner="us")
KIND = MemoryCapabilities(chooses_location=True, shows_columns=True)


@dataclass
class Door(MemoryCatalog):
    """A catalog on a bucket that other catalogs are on too."""

    bucket: dict[str, DatasetState] = field(default_factory=dict)

    def _look(self, scope: Scope) -> None:
        world = self.world
        for ident, found in list(world.tables.items()):
            if not isinstance(found, Present):
                continue
            assert isinstance(found.state, TableState)
            data = self.bucket.get(str(found.state.location))
            world.tables[ident] = Present(replace(found.state, dataset=data))
        for ident, place in scope.locations.items():
            if ident not in world.tables and place in self.bucket:
                world.detached[ident] = Detached(place, self.bucket[place])

    def scan(self, scope: Scope) -> Iterator[Observation | Gap]:
        self._look(scope)
        yield from super().scan(scope)

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        self._look(scope)
        yield from super().read(keys, scope)

    def apply(self, change: Change, context: WriteContext) -> Written:
        self._look(Scope(locations={T: PLACE}))
        try:
            return super().apply(change, context)
        finally:
            for found in self.world.tables.values():
                if isinstance(found, Present) and isinstance(found.state, TableState):
                    data = found.state.dataset
                    if isinstance(data, DatasetState):
                        self.bucket[str(found.state.location)] = data


def doors(there: dict[str, Marks], data: DatasetState | None) -> dict[str, Door]:
    """Catalogs a and b; `there` says which have an entry already, and whose it is."""
    bucket = {PLACE: data} if data is not None else {}
    columns = KIND.columns_of(data.fields if data is not None else ())
    entry = {n: Present(TableState(PLACE, {}, m, data, columns)) for n, m in there.items()}
    return {n: Door(World(Snapshot({}, {T: entry[n]} if n in entry else {})), KIND, bucket=bucket) for n in "ab"}


def desired() -> Desired:
    specs = {n: CatalogSpec(n, "memory", {}, Management("us"), HERE) for n in "ab"}
    tables = {n: {T: DesiredTable(n, T, HERE, {"k": "v"}, PLACE, TWO)} for n in "ab"}
    return Desired(specs, {}, tables)


def planned(catalogs: dict[str, Door]) -> Plan:
    want = desired()
    live = {n: observe(c, scope_of(want, n)) for n, c in catalogs.items()}
    return make_plan(want, live, dict.fromkeys(catalogs, KIND), PlanOptions(adopt=True))


OURS, NOBODYS = Marks("us"), Marks()
CASES: dict[str, tuple[dict[str, Marks], DatasetState | None]] = {
    "both are new": ({}, None),
    "the data is there": ({}, OLD),
    "the first is there": ({"a": OURS}, OLD),
    "the second is there": ({"b": OURS}, OLD),
    "the first is declared only": ({"a": OURS}, None),
    "the second is declared only": ({"b": OURS}, None),
    "both are there": ({"a": OURS, "b": OURS}, OLD),
    "both are to be adopted": ({"a": NOBODYS, "b": NOBODYS}, replace(OLD, owner=None)),
    "the second is to be adopted": ({"a": OURS, "b": NOBODYS}, OLD),
}


def good(catalogs: dict[str, Door]) -> None:
    for catalog in catalogs.values():
        found = catalog.world.tables[T]
        assert isinstance(found, Present)
        assert isinstance(found.state, TableState)
        assert found.state.columns is not None
        assert {*found.state.columns} == {*(KIND.columns_of(TWO) or ())}
        assert dict(found.state.properties) == {"k": "v"}
        assert found.state.marks.owner == "us"
    assert {f.name for f in catalogs["a"].bucket[PLACE].fields} == {"id", "n"}
    assert catalogs["a"].bucket[PLACE].owner == "us"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("parallelism", [1, 4])
def test_one_run_and_nothing_is_left(name: str, parallelism: int) -> None:
    catalogs = doors(*CASES[name])
    plan = planned(catalogs)
    data = [s for s in plan.steps if s.action in ("create_dataset", "add_columns")]
    assert {s.catalog for s in data} == {"a"}
    report = execute(plan, catalogs, parallelism=parallelism, sleep=lambda _: None)
    assert (report.outcome, [r.error for r in report.steps if r.error]) == ("applied", [])
    good(catalogs)
    assert planned(catalogs).steps == ()
    again = execute(plan, catalogs, sleep=lambda _: None)
    assert {r.status for r in again.steps} == {"skipped"}


@pytest.mark.parametrize("name", CASES)
def test_killed_after_any_write_and_run_again(name: str) -> None:
    for k in range(len(planned(doors(*CASES[name])).steps)):
        catalogs = doors(*CASES[name])
        left = [k]

        def kill(point: str, subject: object, left: list[int] = left) -> None:
            if point == "before":
                left[0] -= 1
                if left[0] < 0:
                    raise CatalogError(Code.PERMISSION_DENIED, "killed")

        for catalog in catalogs.values():
            catalog.fault = kill
        execute(planned(catalogs), catalogs, parallelism=1, sleep=lambda _: None)
        for catalog in catalogs.values():
            catalog.fault = None
        report = execute(planned(catalogs), catalogs, parallelism=1, sleep=lambda _: None)
        assert report.outcome in ("applied", "no_changes"), (k, [r.error for r in report.steps])
        good(catalogs)
        assert planned(catalogs).steps == ()


@pytest.mark.parametrize(
    ("other", "outcome", "why"),
    [
        (Present(TableState(PLACE, {}, NOBODYS, OLD)), "stale", "is table u now"),
        (Unreadable(Code.INTERNAL, "no answer"), "failed", "u cannot be read"),
        (Gap((), Code.SERVICE_UNAVAILABLE, "cut off"), "failed", "the listing of the catalog is incomplete"),
    ],
    ids=["taken", "unreadable", "gap"],
)
def test_data_that_another_table_may_have_by_now_is_not_given_back(
    other: Present | Unreadable | Gap, outcome: str, why: str
) -> None:
    """It came after the plan, which no read of the planned objects shows."""
    catalogs = doors({}, OLD)
    plan = planned(catalogs)
    assert "declare_table" in {s.action for s in plan.steps if s.verdict == "allowed"}
    if isinstance(other, Gap):
        catalogs["a"].gaps = (other,)
    else:
        catalogs["a"].world.tables[("u",)] = other
    before = [dict(c.world.tables) for c in catalogs.values()]
    report = execute(plan, catalogs, sleep=lambda _: None)
    assert (report.outcome, {r.status for r in report.steps}) == (outcome, {"not_run"})
    assert why in report.message
    assert [dict(c.world.tables) for c in catalogs.values()] == before
