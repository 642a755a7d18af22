"""Columns that a catalog shows follow the dataset's schema; where that means a new entry, only when it is allowed."""

from __future__ import annotations

from contract.lake import Lake, is_projection, table
from contract.sample import FOREIGN, FOREIGN_ROWS
from reconciler.engine.observe import observe
from reconciler.model.observed import Present, Scope
from reconciler.model.state import Column, TableState

OLD = {"id": "int64 not null", "name": "string"}
NEW = {"id": "int64 not null", "name": "string", "place": "struct<x: float64, tags: list<string>>"}


def shown(lake: Lake) -> tuple[Column, ...] | None:
    """What a fresh scan of the catalog says, without opening the dataset."""
    found = observe(lake.site.open(), Scope(namespaces=frozenset({lake.at}))).tables[lake.t("t")]
    assert isinstance(found, Present)
    assert isinstance(found.state, TableState)
    return found.state.columns


def expected(lake: Lake, columns: dict[str, str]) -> tuple[Column, ...] | None:
    (wanted,) = lake.desired([*lake.home(), table(lake.t("t"), columns)]).tables["lake"].values()
    assert wanted.fields is not None
    return lake.site.capabilities.columns_of(wanted.fields)


def test_the_columns_of_a_new_table_are_shown_and_follow_its_schema(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), OLD)])
    assert shown(lake) == expected(lake, OLD)
    lake.reach([*lake.home(), table(lake.t("t"), NEW)])
    assert shown(lake) == expected(lake, NEW)


def test_where_it_would_mean_a_new_entry_it_waits_for_the_word(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), OLD)])
    docs = [*lake.home(), table(lake.t("t"), NEW)]
    lake.reach(docs, allow=frozenset())
    if lake.site.capabilities.replaces_tables:
        assert shown(lake) == expected(lake, OLD), "stale, and no change is counted"
        assert [is_projection(s) for s in lake.plan(docs).steps] == [True], "the word makes it a step"
        lake.reach(docs)
    assert shown(lake) == expected(lake, NEW)


def test_the_columns_of_others_are_left_as_they_are(lake: Lake) -> None:
    lake.make_home()
    lake.outsider.create_table(lake.t("t"), FOREIGN, FOREIGN_ROWS)
    before = lake.outsider.raw_of(lake.t("t"))
    plan = lake.plan([table(lake.t("t"), {"id": "int64"})])
    assert plan.steps == ()
    lake.apply(plan)
    assert lake.outsider.raw_of(lake.t("t")) == before
