"""`schemaMode: at_least`, and another writer that adds columns all the time: between plan, reads and writes.
Its columns are no matter of ours, so that they neither make a plan stale nor fail a step."""

from __future__ import annotations

from typing import Any

import lance
import pytest

from contract.faults import Unlucky
from contract.lake import Doc, Lake, is_projection, table
from contract.test_schema import ROWS, START, columns
from reconciler.model.change import Change
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident
from reconciler.model.observed import Present, Scope
from reconciler.model.plan_json import plan_from_json, plan_to_json
from reconciler.model.state import TableState

WANTED: dict[str, Any] = {"config": {"k": "v"}, "indexes": [{"column": "id", "type": "btree"}]}
STEPS = ["alter_columns", "add_columns", "update_table", "create_index"]


def dataset(lake: Lake, ident: Ident) -> Any:
    catalog = lake.site.open()
    scope = Scope(detail=frozenset([ident]), namespaces=frozenset([ident[:-1]]))
    (seen,) = catalog.read([("Table", ident)], scope)
    assert isinstance(seen.finding, Present)
    assert isinstance(seen.finding.state, TableState)
    place = catalog.data_place(ident, seen.finding.state)
    return lance.dataset(place.uri, storage_options=dict(place.storage_options) or None)


class Busy:
    """Adds a column, with values, whenever it is asked."""

    def __init__(self, lake: Lake, ident: Ident) -> None:
        self.lake, self.ident, self.added = lake, ident, 0

    def __call__(self, change: Change | None = None, attempt: int = 1) -> CatalogError | None:
        self.added += 1
        dataset(self.lake, self.ident).add_columns({f"theirs{self.added}": "id * 2"})
        return None


@pytest.fixture
def live(stored: Lake) -> Lake:
    stored.reach([*stored.home(), table(stored.t("t"), START)])
    stored.outsider.append(stored.t("t"), ROWS)
    return stored


def wanted(lake: Lake, **spec: Any) -> list[Doc]:
    docs = columns(small="int64", more="string")
    return [*lake.home(), table(lake.t("t"), docs, schemaMode="at_least", **WANTED, **spec)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_apply_is_enough(live: Lake, when: str) -> None:
    theirs = Busy(live, live.t("t"))
    plan = plan_from_json(plan_to_json(live.plan(wanted(live))))
    assert [s.change.action for s in plan.steps if not is_projection(s)] == STEPS
    theirs()
    report = live.apply(plan, Unlucky(live.site.open(), **{when: theirs}))
    assert report.outcome == "applied", (report.message, [s.error for s in report.steps])
    assert theirs.added > len(STEPS)
    left = live.plan(wanted(live)).steps
    assert all(is_projection(s) for s in left), left
    live.reach(wanted(live))  # Where the catalog shows columns, theirs follow.
    rows = dataset(live, live.t("t")).to_table().to_pylist()
    assert [r["id"] for r in rows] == [1, 2, 3]
    assert all(r[f"theirs{n}"] == r["id"] * 2 for n in range(1, theirs.added + 1) for r in rows)


def test_a_column_that_the_plan_is_about_counts(live: Lake) -> None:
    """The name that we were to add, and a declared column that became another one: the plan is stale."""
    plan = live.plan(wanted(live))
    dataset(live, live.t("t")).add_columns({"more": "id * 2"})
    assert live.apply(plan).outcome == "stale"
    dataset(live, live.t("t")).drop_columns(["more"])
    dataset(live, live.t("t")).drop_columns(["big"])
    assert live.apply(plan).outcome == "stale"


def test_without_at_least_every_column_counts(live: Lake) -> None:
    docs = [*live.home(), table(live.t("t"), columns(more="string"))]
    plan = live.plan(docs)
    Busy(live, live.t("t"))()
    assert live.apply(plan).outcome == "stale"
