"""Live x declared locations: a table is never made at, inside or around somebody's data, however that is spelled.

Each test has one kind of live data and tries every relation of a declared location to it, on each backend whose
manifests choose locations. Nothing is written to the live data, whatever the verdict.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import lance
import pyarrow as pa
import pytest

from contract.backends import BACKENDS
from contract.conftest import _param
from contract.lake import US, Doc, Lake, is_projection, table
from contract.outsider import Ident
from contract.outsider_dir import LocalFiles
from contract.outsider_service import ServiceOutsider
from reconciler.catalog.registry import capabilities_of, connect
from reconciler.catalog.storage import RESERVED
from reconciler.core.options import PlanOptions
from reconciler.core.planner import PlanError, make_plan, scope_of
from reconciler.engine.observe import observe
from reconciler.model.change import DeclareTable
from reconciler.model.diagnostic import has_errors
from reconciler.model.plan import Plan

COLUMNS = {"id": "int64"}
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture(params=[_param(b) for b in BACKENDS if b.name in ("iceberg", "unity", "glue")])
def chooses(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    backend = request.param
    lake = Lake(backend, backend.make(tmp_path, request.getfixturevalue), tmp_path)
    assert lake.site.capabilities.chooses_location
    return lake


@dataclass
class Live:
    """Data at `place`, and the documents that declare what is live around it."""

    lake: Lake
    place: Path
    docs: list[Doc]
    equal: str
    """The verdict on a table at the very location: a diagnostic's code, a word of `blocked_by`, or `allowed`."""

    def inner(self) -> Iterator[str]:
        yield f"{self.place}/data/t3"
        yield f"{self.place}/t3"
        yield f"file://{quote(str(self.place))}/_indices/x/y"
        yield f"{self.place}/../{self.place.name}/x"
        yield f"{self._link()}/x"

    def outer(self) -> Iterator[str]:
        yield str(self.place.parent)
        yield f"{self.place.parent}/"
        yield f"file:{quote(str(self.place.parent))}"
        yield str(self._link(self.place.parent))

    def same(self) -> Iterator[str]:
        """Spellings that a reader of the text can see through."""
        above, name = self.place.parent, self.place.name
        yield str(self.place)
        yield f"{self.place}/"
        yield f"{above}/./{name}"
        yield f"{above}/x/../{name}"
        yield f"{above}//{name}"
        yield f"file:{self.place}"
        yield f"file://{self.place}"
        yield f"FILE://{self.place}"
        yield f"file://{above}/%{ord(name[0]):x}{name[1:]}"

    def linked(self) -> Iterator[str]:
        yield str(self._link())
        yield f"{self._link(self.place.parent)}/{self.place.name}"
        yield f"file://{self._link(self.place.parent)}/./{self.place.name}"

    def siblings(self) -> Iterator[str]:
        yield f"{self.place}2"
        yield str(self.place)[:-1]
        yield str(self.place.parent / "other" / self.place.name)

    def _link(self, target: Path | None = None) -> Path:
        links = self.lake.folder / "links"
        links.mkdir(exist_ok=True)
        link = links / f"l{len(list(links.iterdir()))}"
        os.symlink(target or self.place, link)
        return link


def _place(lake: Lake) -> Path:
    return lake.folder / "area" / "tt"


def declared(lake: Lake) -> Live:
    docs = [*lake.home(), table(lake.t("live"), COLUMNS, location=str(_place(lake)))]
    lake.reach(docs)
    return Live(lake, _place(lake), docs, "P104")


def undeclared(lake: Lake) -> Live:
    return Live(lake, _place(lake), declared(lake).docs[:-1], "P104")


def foreign(lake: Lake) -> Live:
    lake.management = {"owner": "team-b"}
    live = undeclared(lake)
    lake.management = {"owner": US}
    return Live(lake, live.place, [], "P104")


def unowned(lake: Lake) -> Live:
    lake.make_home()
    lance.write_dataset(ROWS, str(_place(lake)))
    assert isinstance(lake.outsider, ServiceOutsider)
    lake.outsider.put_table(lake.t("live"), str(_place(lake)), {})
    return Live(lake, _place(lake), [], "P104")


def declared_only(lake: Lake) -> Live:
    """By somebody else: an entry without data and without any file."""
    lake.make_home()
    _place(lake).mkdir(parents=True)
    assert isinstance(lake.outsider, ServiceOutsider)
    lake.outsider.put_table(lake.t("live"), str(_place(lake)), {})
    return Live(lake, _place(lake), [], "P104")


def detached(lake: Lake) -> Live:
    live = declared(lake)
    lake.reach([*live.docs[:-1], table(lake.t("live"), state="absent")])
    return Live(lake, live.place, live.docs[:-1], "allowed")


def in_no_catalog(lake: Lake) -> Live:
    lake.make_home()
    lance.write_dataset(ROWS, str(_place(lake)))
    return Live(lake, _place(lake), [], "adopt")


KINDS: list[Callable[[Lake], Live]] = [
    declared, undeclared, foreign, unowned, declared_only, detached, in_no_catalog,
]  # fmt: skip


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def live(request: pytest.FixtureRequest, chooses: Lake) -> Live:
    made: Live = request.param(chooses)
    return made


def verdict(live: Live, location: str, **options: Any) -> str:
    """On a new table there. Whatever it is, carrying out what is not allowed changes nothing at all."""
    lake = live.lake
    docs = [*live.docs, table(lake.t("new"), COLUMNS, location=location)]
    loaded = lake.load(docs)
    if has_errors(loaded.diagnostics):
        return next(d.code for d in loaded.diagnostics if d.severity == "error")
    try:
        plan = lake.plan_desired(loaded.desired, **options)
    except PlanError as error:
        return error.diagnostics[0].code
    mine = [s for s in plan.steps if s.change.ident == lake.t("new")]
    first = mine[0]
    assert isinstance(first.change, DeclareTable)
    if first.verdict == "allowed":
        return "allowed"
    assert all(s.verdict != "allowed" for s in mine)
    lake.unchanged_by(lambda: lake.apply(plan))
    assert str(live.place.name) in first.reason
    return first.blocked_by or first.verdict


def _refused(lake: Lake, location: str) -> bool:
    """Unity takes no `FILE:`, in whatever manifest."""
    return lake.site.capabilities.location_problem(lake.t("x"), location) is not None


def test_inside_and_around(live: Live) -> None:
    before = LocalFiles(live.place).all()
    for location in (*live.inner(), *live.outer()):
        codes = {"location_conflict", *(["M406"] if live.docs else [])}
        assert verdict(live, location, adopt=True, take_over=frozenset({"team-b"})) in codes, location
    assert LocalFiles(live.place).all() == before


def test_the_same_location_spelled_otherwise(live: Live) -> None:
    before = LocalFiles(live.place).all()
    for location in live.same():
        codes = {live.equal, *(["M406"] if live.docs else [])}
        assert verdict(live, location) in codes | ({"M414"} if _refused(live.lake, location) else set()), location
    for location in live.linked():
        assert verdict(live, location) == live.equal, location
    assert LocalFiles(live.place).all() == before


def test_siblings_are_fine(live: Live) -> None:
    before = LocalFiles(live.place).all()
    for location in live.siblings():
        assert verdict(live, location) == "allowed", location
    docs = [*live.docs, table(live.lake.t("new"), COLUMNS, location=f"{live.place}2")]
    live.lake.reach(docs)
    assert LocalFiles(live.place).all() == before
    assert live.lake.plan(docs).steps == ()


def test_an_entry_that_was_pointed_there_gets_no_data(live: Live) -> None:
    """Ours, and declared only: the marker of a declared table in the folder does not make room for a dataset there."""
    lake, t = live.lake, live.lake.t("moved")
    lake.reach([*live.docs, table(t, COLUMNS, location=str(lake.folder / "away"))])
    docs = [*live.docs, table(t, COLUMNS)]
    at_it = [str(live.place)] if live.equal == "P104" and not (live.place / "_versions").exists() else []
    for location in (*at_it, f"{live.place}/data/t3", f"{live._link()}/t4"):
        os.makedirs(location, exist_ok=True)
        (Path(location) / RESERVED).touch()
        _point(lake, t, location)
        before = LocalFiles(live.place).all()
        plan = lake.plan(docs, adopt=True)
        assert {s.blocked_by for s in plan.steps if s.change.ident == t} == {"location_conflict"}, location
        lake.unchanged_by(lambda plan=plan: lake.apply(plan))
        assert LocalFiles(live.place).all() == before


def test_an_entry_that_is_pointed_there_after_the_plan(chooses: Lake) -> None:
    """Storage is asked again before the first write."""
    lake, t = chooses, chooses.t("moved")
    docs = [*lake.home(), table(t, COLUMNS)]
    lake.reach(docs)
    away = lake.folder / "away"
    away.mkdir()
    (away / RESERVED).touch()
    _point(lake, t, str(away))
    plan = lake.plan(docs)
    assert [(s.action, s.verdict) for s in plan.steps if not is_projection(s)] == [("create_dataset", "allowed")]
    lance.write_dataset(ROWS, str(lake.folder))
    assert lake.unchanged_by(lambda: lake.apply(plan)).outcome == "stale"


def _point(lake: Lake, ident: Ident, location: str) -> None:
    assert isinstance(lake.outsider, ServiceOutsider)
    lake.outsider.point(ident, location)


def test_a_spelling_gives_no_difference(chooses: Lake) -> None:
    live = declared(chooses)
    for location in (*live.same(), *live.linked()):
        if _refused(chooses, location):
            continue
        docs = [*chooses.home(), table(chooses.t("live"), COLUMNS, location=location)]
        assert chooses.plan(docs).steps == (), location


def test_two_new_tables_at_one_location(chooses: Lake) -> None:
    """Nothing is live yet: the plan still sees through links, in both directions."""
    area = chooses.folder / "area"
    area.mkdir()
    (chooses.folder / "link").symlink_to(area)
    chooses.make_home()

    def both(one: str, other: str) -> Plan:
        docs = [table(chooses.t("a"), COLUMNS, location=one), table(chooses.t("b"), COLUMNS, location=other)]
        return chooses.plan(docs)

    with pytest.raises(PlanError) as refused:
        both(f"{area}/t", f"{chooses.folder}/link/t")
    assert refused.value.diagnostics[0].code == "P104"
    for one, other in ((f"{area}/t", "t/x"), (f"{area}/t/x", "t")):
        plan = both(one, f"{chooses.folder}/link/{other}")
        verdicts = {s.change.ident[-1]: s.blocked_by for s in plan.steps if isinstance(s.change, DeclareTable)}
        assert verdicts == {"a": None, "b": "location_conflict"}


def test_two_entries_on_one_dataset_get_no_step(chooses: Lake) -> None:
    """Made before, or by others: each would alter the other's data. Taking one out is the way back."""
    live = declared(chooses)
    assert isinstance(chooses.outsider, ServiceOutsider)
    link = live._link()
    chooses.outsider.put_table(chooses.t("second"), str(link), chooses.outsider.entries()[chooses.t("live")].properties)
    wide = {"id": "int64", "more": "string"}
    docs = [*live.docs[:-1], table(chooses.t("live"), wide), table(chooses.t("second"), COLUMNS)]
    plan = chooses.plan(docs)
    assert [(s.action, s.blocked_by) for s in plan.steps if not is_projection(s)] == [
        ("add_columns", "location_conflict")
    ]
    assert {s.blocked_by for s in plan.steps} == {"location_conflict"}
    chooses.unchanged_by(lambda: chooses.apply(plan))
    gone = [*live.docs[:-1], table(chooses.t("live"), wide), table(chooses.t("second"), state="absent")]
    assert all(s.verdict == "allowed" for s in chooses.plan(gone).steps)


def test_what_happened_since_the_plan(chooses: Lake) -> None:
    """Somebody writes a dataset around the location, or something into it, before the plan is applied."""
    chooses.make_home()
    area = chooses.folder / "area"
    for name, others in (("a", area), ("b", area / "b" / "data" / "inner"), ("c", area / "c" / "x")):
        docs = [table(chooses.t(name), COLUMNS, location=str(chooses.folder / "area" / name))]
        plan = chooses.plan(docs)
        assert {s.verdict for s in plan.steps} == {"allowed"}
        lance.write_dataset(ROWS, str(others))
        report = chooses.unchanged_by(lambda plan=plan: chooses.apply(plan))
        assert report.outcome == "stale"
        assert str(others) in report.message or "holds" in report.message
        if others == area:
            shutil.rmtree(area)


def test_tables_of_another_catalog(chooses: Lake, tmp_path: Path) -> None:
    """Every catalog that the run reads counts. One dataset may be declared in two, never nested."""
    lake = chooses
    lake.make_home()
    outer = tmp_path / "other"
    place = outer / "t.lance"
    lance.write_dataset(ROWS, str(place))
    desired = lake.desired([])
    for location, word in (
        (f"{place}/data/x", "location_conflict"),
        (str(outer), "location_conflict"),
        (f"{place}2", None),
        (str(place), "adopt"),
    ):
        docs = [table(lake.t("new"), COLUMNS, location=location), *_second(outer)]
        loaded = lake.load(docs)
        assert not has_errors(loaded.diagnostics), loaded.diagnostics
        desired = loaded.desired
        spec = desired.catalogs["other"]
        catalogs = {"lake": lake.site.open(), "other": connect(spec, {"path": str(outer)})}
        rules = {"lake": lake.site.capabilities, "other": capabilities_of(spec)}
        snapshots = {name: observe(catalogs[name], scope_of(desired, name)) for name in catalogs}
        plan = make_plan(desired, snapshots, rules, PlanOptions())  # type: ignore[arg-type]
        assert plan.steps[0].blocked_by == word, (location, plan.steps[0].reason)
        if word == "location_conflict":
            assert "other:t" in plan.steps[0].reason


def _second(root: Path) -> list[Doc]:
    metadata = {"name": "other"}
    spec = {"type": "dir", "path": str(root), "management": {"owner": US}}
    return [{"apiVersion": "reconciler.lance/v1", "kind": "Catalog", "metadata": metadata, "spec": spec}]
