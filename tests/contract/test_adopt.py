"""Whose is it? Unowned objects, adoption, other owners, protection, properties that others set too."""

from __future__ import annotations

import pytest

from contract.lake import US, Doc, Lake, held_back, namespace, steps, table
from contract.outsider import users
from contract.sample import FOREIGN, FOREIGN_ROWS
from reconciler.model.ident import ObjectKey

COLUMNS = {"id": "int64"}
WIDER = {"id": "int64", "more": "string"}


@pytest.fixture
def theirs(lake: Lake) -> Lake:
    lake.make_home()
    lake.outsider.create_table(lake.t("t"), FOREIGN, FOREIGN_ROWS)
    return lake


def test_the_same_but_not_ours_is_listed_and_left_alone(theirs: Lake) -> None:
    plan = theirs.plan([*theirs.home(), table(theirs.t("t"), COLUMNS)])
    assert plan.steps == ()
    assert {k.ident for k in plan.unowned} == {theirs.t("t"), theirs.at} - {()}
    theirs.unchanged_by(lambda: theirs.apply(plan))


def test_a_difference_waits_for_adopt(theirs: Lake) -> None:
    plan = theirs.plan([table(theirs.t("t"), WIDER)])
    assert held_back(plan) == [("add_columns", theirs.t("t"), "blocked", "adopt")]
    assert len(steps(plan)) == 1
    assert theirs.unchanged_by(lambda: theirs.apply(plan)).outcome == "refused"


def test_adopting_takes_it_over_and_changes_it(theirs: Lake) -> None:
    more = theirs.with_properties(team="one") if theirs.changes_tables else {}
    home = {"properties": {"team": "one"}} if theirs.changes_namespaces else {}
    docs = [*theirs.home(**home), table(theirs.t("t"), WIDER, config={"a": "b"}, **more)]
    theirs.reach(docs, adopt=True)
    view = theirs.outsider.state().tables[theirs.t("t")]
    assert (view.owner, view.config) == (US, {"a": "b"})
    assert view.rows in (None, [{"id": 1, "more": None}, {"id": 2, "more": None}])
    if theirs.at:
        assert theirs.outsider.state().namespaces[theirs.at]["reconciler.owner"] == US
    assert theirs.plan(docs).unowned == ()


def test_adopting_what_is_as_declared_only_marks_it(theirs: Lake) -> None:
    before = theirs.outsider.state()
    theirs.reach([*theirs.home(), table(theirs.t("t"), COLUMNS)], adopt=True)
    after = theirs.outsider.state()
    old, new = before.tables[theirs.t("t")], after.tables[theirs.t("t")]
    assert (new.schema, new.rows, new.config, new.properties) == (old.schema, old.rows, old.config, old.properties)
    assert (old.owner, new.owner) == (None, US)
    assert {i: users(p) for i, p in after.namespaces.items()} == before.namespaces


def test_management_adopt_does_the_same(theirs: Lake) -> None:
    theirs.management["adopt"] = True
    theirs.reach([table(theirs.t("t"), WIDER)])


def test_another_owner_is_asked_for_by_name(lake: Lake) -> None:
    lake.management = {"owner": "team-b"}
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    lake.management = {"owner": US}
    docs = [*lake.home(**({"properties": {"x": "y"}} if lake.changes_namespaces else {})), table(lake.t("t"), WIDER)]
    plan = lake.plan(docs, adopt=True, prune=True)
    assert {h[3] for h in held_back(plan)} == {"foreign_owner"}
    changed = 1 + (len(lake.home()) if lake.changes_namespaces else 0)
    assert len(held_back(plan)) == len(steps(plan)) == changed
    lake.unchanged_by(lambda: lake.apply(plan))
    lake.unchanged_by(lambda: lake.apply(lake.plan(docs, take_over=frozenset({"team-c"}))))
    lake.reach(docs, take_over=frozenset({"team-b"}))
    seen = lake.outsider.state()
    assert {t.owner for t in seen.tables.values()} | {p["reconciler.owner"] for p in seen.namespaces.values()} == {US}


def test_data_that_another_owner_took_is_left_alone(lake: Lake) -> None:
    """One dataset in two catalogs: our entry stays ours, but not what is in the data."""
    same, other = ([*lake.home(), table(lake.t("t"), columns)] for columns in (COLUMNS, WIDER))
    lake.reach(same)
    lake.outsider.mark_data(lake.t("t"), "team-b")
    plan = lake.plan(same)
    assert (plan.steps, plan.unowned) == ((), (ObjectKey("lake", lake.t("t"), "Table"),))
    plan = lake.plan(other)
    assert held_back(plan) == [("add_columns", lake.t("t"), "blocked", "foreign_owner")]
    assert len(steps(plan)) == 1
    lake.unchanged_by(lambda: lake.apply(plan))
    lake.reach(other, take_over=frozenset({"team-b"}))
    assert lake.plan(other).unowned == ()


def test_absent_never_applies_to_another_owner(lake: Lake) -> None:
    lake.management = {"owner": "team-b"}
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    lake.management = {"owner": US}
    plan = lake.plan([table(lake.t("t"), state="absent")], adopt=True)
    assert held_back(plan) == [("deregister_table", lake.t("t"), "blocked", "not_owned")]
    lake.unchanged_by(lambda: lake.apply(plan))


def test_protected_objects_stay(lake: Lake) -> None:
    lake.reach([*lake.home(protect=True), table(lake.t("t"), COLUMNS, protect=True)])
    gone = [table(lake.t("t"), state="absent"), *(namespace(n["metadata"]["id"], state="absent") for n in lake.home())]
    for plan in (lake.plan(gone), lake.plan([table(lake.t("x"), state="absent")], prune=True)):
        assert {h[3] for h in held_back(plan)} == {"protected"}
        assert len(held_back(plan)) == len(steps(plan)) == 1 + len(lake.home())
        lake.unchanged_by(lambda plan=plan: lake.apply(plan))
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])  # says nothing: it stays
    assert {h[3] for h in held_back(lake.plan(gone))} == {"protected"}
    lake.reach([*lake.home(protect=False), table(lake.t("t"), COLUMNS, protect=False)])
    lake.reach(gone)
    assert lake.outsider.state().tables == {}


def test_namespace_properties_of_others_are_left_alone(lake: Lake) -> None:
    s = lake.ns("s")
    if not lake.has_namespaces:
        assert lake.refusals([namespace(s)]) == ["M408"]
        return
    lake.reach([namespace(s, properties={"a": "1", "b": "2"})])
    lake.outsider.set_properties("Namespace", s, {"theirs": "x", "b": "other"})
    changed = [namespace(s, properties={"b": "3", "c": "4"})]
    if not lake.changes_namespaces:
        cannot(lake, changed, "update_namespace")
        return
    lake.reach(changed)
    assert users(lake.outsider.state().namespaces[s]) == {"b": "3", "c": "4", "theirs": "x"}
    lake.reach([namespace(s)])
    assert users(lake.outsider.state().namespaces[s]) == {"theirs": "x"}


def cannot(lake: Lake, docs: list[Doc], action: str) -> None:
    """The plan says so with a reason, and nothing is tried."""
    plan = lake.plan(docs)
    assert [(s.action, s.verdict) for s in plan.steps] == [(action, "unsupported")]
    assert "propert" in plan.steps[0].reason
    assert lake.unchanged_by(lambda: lake.apply(plan)).outcome == "refused"


def test_table_properties_of_others_are_left_alone(lake: Lake) -> None:
    if not lake.has_properties:
        plan = lake.plan([table(lake.t("t"), COLUMNS, properties={"a": "1"})])
        assert [s.verdict for s in plan.steps if s.action == "update_table"] == ["unsupported"]
        return
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS, properties={"a": "1", "b": "2"})])
    lake.outsider.set_properties("Table", lake.t("t"), {"theirs": "x", "b": "other"})
    changed = [*lake.home(), table(lake.t("t"), COLUMNS, properties={"b": "3"}, description="new")]
    if not lake.changes_tables:
        cannot(lake, changed, "update_table")
        return
    lake.reach(changed)
    seen = lake.outsider.state().tables[lake.t("t")]
    assert seen.properties == {"b": "3", "description": "new", "theirs": "x"}
    docs = [*lake.home(), table(lake.t("t"), COLUMNS, ignoreDifferences=["properties.b"])]
    lake.reach(docs)
    assert lake.outsider.state().tables[lake.t("t")].properties == {"b": "3", "theirs": "x"}


def test_config_of_others_is_left_alone(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS, config={"a": "1", "b": "2"}, schemaMetadata={"m": "1"})])
    lake.outsider.set_config(lake.t("t"), {"theirs": "x", "b": "other"})
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS, config={"b": "3"})])
    view = lake.outsider.state().tables[lake.t("t")]
    assert view.config == {"b": "3", "theirs": "x"}
    assert view.schema is not None
    assert not view.schema.metadata


def test_ignored_objects_are_neither_seen_nor_touched(theirs: Lake) -> None:
    theirs.reach([table(theirs.t("ours"), COLUMNS)])
    theirs.management["ignore"] = ["**"]
    plan = theirs.plan([], prune=True)
    assert (steps(plan), plan.orphans, plan.unowned) == ([], (), ())
    theirs.unchanged_by(lambda: theirs.apply(plan))
