"""Removal: asked for, owned, within limits; the data stays where it is and comes back with its rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.lake import US, Lake, held_back, namespace, steps, table
from contract.sample import FOREIGN, FOREIGN_ROWS
from reconciler.catalog.base import WriteContext
from reconciler.catalog.memory import MemoryCatalog
from reconciler.core.errors import PlanError
from reconciler.model.change import DeclareTable
from reconciler.model.errors import CatalogError
from reconciler.model.state import Marks

COLUMNS = {"id": "int64"}


def test_a_manifest_that_is_gone_is_reported_and_nothing_else(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("a"), COLUMNS), table(lake.t("b"), COLUMNS)])
    plan = lake.plan([*lake.home(), table(lake.t("a"), COLUMNS)])
    assert (plan.steps, [o.ident for o in plan.orphans]) == ((), [lake.t("b")])
    lake.unchanged_by(lambda: lake.apply(plan))


def test_prune_removes_orphans_and_keeps_their_data(lake: Lake) -> None:
    docs = [*lake.home(), table(lake.t("a"), COLUMNS), table(lake.t("b"), COLUMNS)]
    if lake.has_namespaces:
        inner = lake.ns("x", "y") if lake.nests else lake.ns("x")
        docs += [namespace(i) for i in sorted({lake.ns("x"), inner})]
        docs += [table((*inner, "t"), COLUMNS)]
    lake.reach(docs)
    lake.outsider.append(lake.t("b"), FOREIGN_ROWS)
    before = lake.outsider.data_of(lake.t("b"))
    lake.reach([*lake.home(), table(lake.t("a"), COLUMNS)], prune=True)
    seen = lake.outsider.state()
    assert set(seen.tables) == {lake.t("a")}
    assert set(seen.namespaces) == {lake.at} - {()}
    assert lake.outsider.data_of(lake.t("b")) == before


@pytest.mark.parametrize("times", [1, 2])
def test_a_table_that_comes_back_has_its_rows(lake: Lake, times: int) -> None:
    there = [*lake.home(), table(lake.t("t"), COLUMNS, config={"k": "v"}, **lake.with_properties(a="b"))]
    gone = [*lake.home(), table(lake.t("t"), state="absent")]
    lake.reach(there)
    lake.outsider.append(lake.t("t"), FOREIGN_ROWS)
    before = lake.comparable()
    data = lake.outsider.data_of(lake.t("t"))
    for _ in range(times):
        lake.reach(gone)
        assert lake.outsider.state().tables == {}
        assert lake.outsider.data_of(lake.t("t")) == data
        plan = lake.plan(there)
        assert steps(plan) == [("declare_table", lake.t("t"))]
        lake.reach(there)
        assert lake.comparable() == before
        assert lake.outsider.data_of(lake.t("t")) == data


def test_a_table_comes_back_though_another_one_is_ignored(lake: Lake) -> None:
    """Where the ignored one is gets asked for: it might have this data."""
    there, gone = [*lake.home(), table(lake.t("t"), COLUMNS)], [*lake.home(), table(lake.t("t"), state="absent")]
    lake.reach(there)
    lake.reach(gone)
    lake.outsider.create_table(lake.t("scratch"), FOREIGN)
    lake.management["ignore"] = [".".join(lake.t("scratch"))]
    lake.reach(there)


def test_data_that_another_table_has_by_now_is_left_to_it(lake: Lake) -> None:
    there, gone = [*lake.home(), table(lake.t("t"), COLUMNS)], [*lake.home(), table(lake.t("t"), state="absent")]
    lake.reach(there)
    lake.reach(gone)
    plan = lake.plan(there)
    (declare,) = (s.change for s in plan.steps if isinstance(s.change, DeclareTable))
    taking = replace(declare, ident=lake.t("other"), marks=Marks("them"))
    if lake.site.options["type"] == "dir" and not lake.at:  # A root table is a folder, and that has one name.
        with pytest.raises(CatalogError, match="a root table lives at"):
            lake.site.open().apply(taking, WriteContext())
        return
    catalog = lake.site.open()
    if isinstance(catalog, MemoryCatalog):  # Its data has no place of its own.
        catalog.world.detached[taking.ident] = catalog.world.detached[lake.t("t")]
    catalog.apply(taking, WriteContext())
    report = lake.unchanged_by(lambda: lake.apply(plan))
    assert report.outcome == "stale"
    assert "is table " + ".".join(lake.t("other")) in report.message
    for ignored in ([], [".".join(lake.t("other"))]):
        lake.management["ignore"] = ignored
        with pytest.raises(PlanError, match=r"is table .* already"):
            lake.plan(there)


def test_data_that_others_changed_meanwhile_is_diffed_not_replaced(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    lake.reach([*lake.home(), table(lake.t("t"), state="absent")])
    lake.reach(
        [*lake.home(), table(lake.t("t"), {**COLUMNS, "more": "string"}, indexes=[{"column": "id", "type": "btree"}])]
    )
    view = lake.outsider.state().tables[lake.t("t")]
    assert view.schema is not None
    assert view.schema.names == ["id", "more"]
    assert view.indexes == {"id_idx": ("btree", "id")}


def test_absent_removes_tables_then_namespaces(lake: Lake) -> None:
    spaces = [lake.ns("x")] if lake.has_namespaces else []
    spaces += [lake.ns("x", "y")] if lake.nests else []
    tables = [(*s, "t") for s in spaces] or [("t",), ("u",)]
    lake.reach([*(namespace(s) for s in spaces), *(table(t, COLUMNS) for t in tables)])
    gone = [*(namespace(s, state="absent") for s in spaces), *(table(t, state="absent") for t in tables)]
    plan = lake.plan(gone)
    assert steps(plan) == [("deregister_table", t) for t in sorted(tables)] + [
        ("drop_namespace", s) for s in reversed(spaces)
    ]
    lake.reach(gone)
    assert (lake.outsider.state().tables, lake.outsider.state().namespaces) == ({}, {})
    assert lake.plan(gone).steps == ()


def test_a_namespace_that_holds_something_is_blocked(lake: Lake) -> None:
    x = lake.ns("x")
    if not lake.has_namespaces:
        assert lake.refusals([namespace(x)]) == ["M408"]
        return
    lake.reach([namespace(x), table((*x, "ours"), COLUMNS)])
    lake.outsider.create_table((*x, "theirs"), FOREIGN, FOREIGN_ROWS)
    gone = [namespace(x, state="absent"), table((*x, "ours"), state="absent")]
    plan = lake.plan(gone)
    assert held_back(plan) == [("drop_namespace", x, "blocked", "not_empty")]
    assert "theirs" in plan.steps[-1].reason
    assert lake.apply(plan).outcome == "refused"
    assert set(lake.outsider.state().tables) == {(*x, "theirs")}
    assert set(lake.outsider.state().namespaces) == {x}


def test_an_ignored_table_keeps_its_namespace(lake: Lake) -> None:
    x = lake.ns("x")
    if not lake.has_namespaces:
        assert lake.refusals([namespace(x)]) == ["M408"]
        return
    lake.reach([namespace(x)])
    lake.outsider.create_table((*x, "scratch"), FOREIGN)
    lake.management["ignore"] = [".".join((*x, "scratch"))]
    plan = lake.plan([namespace(x, state="absent")])
    assert held_back(plan) == [("drop_namespace", x, "blocked", "not_empty")]


def test_without_an_owner_nothing_is_deleted(lake: Lake) -> None:
    lake.management = {}
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    for plan in (
        lake.plan([table(lake.t("t"), state="absent")]),
        lake.plan(lake.home() or [table(lake.t("z"), state="absent")], prune=True),
    ):
        assert {h[3] for h in held_back(plan)} == {"owner_not_set"}
        assert lake.unchanged_by(lambda plan=plan: lake.apply(plan)).outcome == "refused"


@pytest.mark.parametrize(("limits", "word"), [({"deletes": 2}, "deletes"), ({"deletePercent": 20}, "deletePercent")])
def test_too_many_deletes_stop_the_whole_run(lake: Lake, limits: dict[str, int], word: str) -> None:
    tables = [table(lake.t(f"t{i:02}"), COLUMNS) for i in range(12)]
    lake.reach([*lake.home(), *tables])
    lake.management["thresholds"] = limits
    plan = lake.plan([*lake.home(), *tables[:-3], table(lake.t("new"), COLUMNS)], prune=True)
    assert {h[3] for h in held_back(plan)} == {"threshold"}
    assert len(held_back(plan)) == 3
    report = lake.unchanged_by(lambda: lake.apply(plan))
    assert report.outcome == "refused"
    assert word in report.message
    lake.management["thresholds"] = {"deletes": 3, "deletePercent": 50}
    lake.reach([*lake.home(), *tables[:-3], table(lake.t("new"), COLUMNS)], prune=True)


def test_a_table_in_the_place_of_a_namespace_needs_two_applies(lake: Lake) -> None:
    s, x = lake.ns("s"), lake.ns("s", "x")
    if not lake.nests:
        assert lake.refusals([namespace(x)]) == ["M408"]
        return
    lake.reach([namespace(s), namespace(x)])
    docs = [namespace(s), table(x, COLUMNS)]
    plan = lake.plan(docs, prune=True)
    assert {(s.verdict, s.blocked_by) for s in plan.steps if s.change.kind == "Table"} == {
        ("blocked", "needs_two_applies")
    }
    lake.apply(plan)
    lake.reach(docs, prune=True)
    assert set(lake.outsider.state().tables) == {x}
    assert lake.outsider.state().tables[x].owner == US
