"""Tags of earlier runs go with the next apply that changes the table, whichever catalog it is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lance
import pytest

from contract.lake import Doc, Lake, table
from reconciler.catalog.base import DataPlace
from reconciler.catalog.lance_tags import count_tags, expire_tags
from reconciler.model.observed import Present, Scope
from reconciler.model.state import TableState

COLUMNS = {"id": "int64"}
OURS, THEIRS = "reconciler-0123456789ab-s1", "prod"


def place_of(lake: Lake) -> DataPlace:
    catalog, ident = lake.site.open(), lake.t("t")
    (found,) = catalog.read([("Table", ident)], Scope(detail=frozenset({ident})))
    assert isinstance(found.finding, Present)
    assert isinstance(found.finding.state, TableState)
    return catalog.data_place(ident, found.finding.state)


def dataset(lake: Lake) -> Any:
    place = place_of(lake)
    return lance.dataset(place.uri, storage_options=dict(place.storage_options) or None)


def everything_is_old(catalog: str, place: DataPlace, plan: str) -> Sequence[str]:
    return expire_tags(place, -1, plan)


def docs(lake: Lake, change: str) -> list[Doc]:
    if change == "properties":
        return [*lake.home(), table(lake.t("t"), COLUMNS, **lake.with_properties(a="c"))]
    more = {"more": "string"} if change == "columns" else {}
    config = {"config": {"k": "2"}} if change == "config" else {}
    return [*lake.home(), table(lake.t("t"), COLUMNS | more, **config, **lake.with_properties(a="b"))]


@pytest.mark.parametrize("change", ["columns", "config", "properties"])
def test_old_tags_of_ours_go_and_those_of_others_stay(lake: Lake, change: str) -> None:
    if not lake.outsider.holds_rows or (change == "properties" and not lake.changes_tables):
        assert lake.backend.name == "memory" or not lake.changes_tables
        return
    lake.reach(docs(lake, "none"))
    for tag in (OURS, THEIRS):
        dataset(lake).tags.create(tag, 1)
    unchanged = lake.plan(docs(lake, "none"))
    assert lake.apply(unchanged, expire=everything_is_old).expired == ()
    assert count_tags(place_of(lake)) == 1
    plan = lake.plan(docs(lake, change))
    report = lake.apply(plan, expire=everything_is_old)
    assert (report.outcome, [(e.key.ident, e.tags, e.problem) for e in report.expired]) == (
        "applied",
        [(lake.t("t"), (OURS,), None)],
    )
    assert set(dataset(lake).tags.list()) == {THEIRS}


def test_tags_that_cannot_be_deleted_fail_no_step(lake: Lake) -> None:
    if not lake.outsider.holds_rows:
        return

    def broken(catalog: str, place: DataPlace, plan: str) -> Sequence[str]:
        raise RuntimeError("the store is away")

    lake.reach(docs(lake, "none"))
    report = lake.apply(lake.plan(docs(lake, "columns")), expire=broken)
    assert report.outcome == "applied"
    assert [e.problem for e in report.expired] == ["old tags were not deleted: RuntimeError: the store is away"]
