"""Our entry, somebody else's data: an entry that was pointed at another dataset does not make that dataset ours."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from contract.lake import US, Doc, Lake, held_back, steps, table
from reconciler.catalog.base import WriteContext
from reconciler.catalog.directory_capabilities import DirectoryCapabilities
from reconciler.model.change import AddColumns, DropColumns
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ObjectKey
from reconciler.model.observed import Present, Scope
from reconciler.model.state import TableState

COLUMNS = {"id": "int64"}
THEIRS = pa.schema([("id", pa.int64()), ("secret", pa.string())])
ROWS = [{"id": 1, "secret": "a"}, {"id": 2, "secret": "b"}]
EVERYTHING: dict[str, Any] = {"adopt": True, "take_over": frozenset({"team-b"})}


def ours(lake: Lake, **spec: Any) -> list[Doc]:
    return [*lake.home(), table(lake.t("t"), COLUMNS, allow=["drop_column"], **spec)]


@pytest.fixture
def pointed(lake: Lake) -> Lake:
    """`t` is ours; somebody made `f`, and pointed the entry of `t` at its data."""
    lake.reach(ours(lake))
    lake.outsider.create_table(lake.t("f"), THEIRS, ROWS)
    lake.outsider.move(lake.t("t"), lake.t("f"))
    return lake


def is_folder(lake: Lake) -> bool:
    """Our record of the table counts only with our mark beside it: no entry of ours is left."""
    return isinstance(lake.site.capabilities, DirectoryCapabilities)


def test_data_without_our_mark_is_not_ours_whatever_the_entry_says(pointed: Lake) -> None:
    plan = pointed.plan(ours(pointed))
    assert held_back(plan) == [("drop_columns", pointed.t("t"), "blocked", "adopt")]
    assert len(steps(plan)) == 1
    assert ("nobody owns it" if is_folder(pointed) else "does not carry our mark") in plan.steps[0].reason
    data = pointed.outsider.data_of(pointed.t("f"))
    assert pointed.apply(plan).outcome == "refused"
    assert pointed.outsider.data_of(pointed.t("f")) == data


def test_without_differences_it_is_listed_as_unowned(pointed: Lake) -> None:
    docs = [*pointed.home(), table(pointed.t("t"), {"id": "int64", "secret": "string"})]
    plan = pointed.plan(docs)
    assert steps(plan) == []
    if not plan.steps:  # Else the columns that our entry shows follow the data it leads to.
        assert plan.unowned == (ObjectKey("lake", pointed.t("t"), "Table"),)
    data = pointed.outsider.data_of(pointed.t("f"))
    pointed.apply(plan)
    assert pointed.outsider.data_of(pointed.t("f")) == data


def test_adopting_it_is_a_step_of_its_own(pointed: Lake) -> None:
    docs = ours(pointed)
    plan = pointed.plan(docs, adopt=True)
    adopt = [s for s in plan.steps if s.action == "adopt"]
    assert [s.change.ident for s in adopt] == [pointed.t("t")]
    assert isinstance(adopt[0].before, dict)
    assert is_folder(pointed) or adopt[0].before["data_owner"] is None
    pointed.reach(docs, adopt=True)
    shown = "f" if pointed.outsider.holds_rows else "t"  # One dataset, unless there are no files.
    view = pointed.outsider.state().tables[pointed.t(shown)]
    assert view.schema is not None
    assert view.schema.names == ["id"]
    assert pointed.plan(docs).steps == ()


def test_the_data_of_another_owner_is_asked_for_by_name(pointed: Lake) -> None:
    pointed.outsider.mark_data(pointed.t("f"), "team-b")
    if not pointed.outsider.holds_rows:
        pointed.outsider.move(pointed.t("t"), pointed.t("f"))
    plan = pointed.plan(ours(pointed), adopt=True)
    assert held_back(plan) == [("drop_columns", pointed.t("t"), "blocked", "foreign_owner")]
    data = pointed.outsider.data_of(pointed.t("f"))
    pointed.apply(plan)
    assert pointed.outsider.data_of(pointed.t("f")) == data
    pointed.reach(ours(pointed), take_over=frozenset({"team-b"}))


def test_a_move_between_plan_and_apply_is_stale(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), {"id": "int64", "secret": "string"})])
    lake.outsider.create_table(lake.t("f"), THEIRS, ROWS)
    plan = lake.plan(ours(lake))
    assert [s.action for s in plan.steps if s.verdict == "allowed"][:1] == ["drop_columns"]
    lake.outsider.move(lake.t("t"), lake.t("f"))
    assert lake.unchanged_by(lambda: lake.apply(plan)).outcome == "stale"


def test_a_write_goes_only_where_the_data_was_read(stored: Lake) -> None:
    """Between the last read of a step and its write: location and mark are looked at once more."""
    lake, t = stored, stored.t("t")
    lake.reach([*lake.home(), table(t, {"id": "int64", "secret": "string"})])
    lake.outsider.create_table(lake.t("f"), THEIRS, ROWS)
    catalog = lake.site.open()
    (seen,) = catalog.read([("Table", t)], Scope(detail=frozenset({t})))
    assert isinstance(seen.finding, Present)
    assert isinstance(seen.finding.state, TableState)
    context = WriteContext("sha256:p", "s1", table=seen.finding.state)
    lake.outsider.mark_data(t, "team-b")
    changes = [DropColumns(t, ("secret",)), AddColumns(t, seen.finding.state.dataset.fields)]  # type: ignore[union-attr]
    for change in changes:
        with pytest.raises(CatalogError, match="team-b") as refused:
            lake.unchanged_by(lambda change=change: catalog.apply(change, context))
        assert refused.value.code is Code.CONCURRENT_MODIFICATION
    lake.outsider.mark_data(t, US)
    lake.outsider.move(t, lake.t("f"))
    for change in changes:
        with pytest.raises(CatalogError, match=r"is at .* now") as refused:
            lake.unchanged_by(lambda change=change: catalog.apply(change, context))
        assert refused.value.code is Code.CONCURRENT_MODIFICATION


def test_a_table_that_is_not_where_its_manifest_says_gets_no_step(stored: Lake) -> None:
    """Whatever else differs and whatever was allowed: neither the entry nor the data is touched."""
    lake, t = stored, stored.t("t")
    lake.reach(ours(lake))
    location = _location(lake)
    lake.reach(ours(lake, location=location))
    lake.outsider.create_table(lake.t("f"), THEIRS, ROWS)
    lake.outsider.move(t, lake.t("f"))
    more = lake.with_properties(team="one") if lake.changes_tables else {}
    for marked in (None, "team-b", US):
        if marked is not None:
            lake.outsider.mark_data(lake.t("f"), marked)
        plan = lake.plan(ours(lake, location=location, **more), **EVERYTHING)
        if lake.at:
            assert [(s.action, s.change.ident, s.verdict) for s in plan.steps if s.change.ident == t] == [
                ("update_table", t, "unsupported")
            ]
            assert "it is at" in plan.steps[-1].reason
            lake.unchanged_by(lambda plan=plan: lake.apply(plan))
        data = lake.outsider.data_of(lake.t("f"))
        lake.apply(lake.plan(ours(lake, location=location, **more)))
        assert lake.outsider.data_of(lake.t("f")) == data or marked == US


def test_a_table_that_was_pointed_at_another_one_of_ours_gets_no_step(stored: Lake) -> None:
    """Also when that one is in no manifest. Taking it out is the way back."""
    lake, t = stored, stored.t("t")
    wide = {"id": "int64", "secret": "string"}
    lake.reach([*lake.home(), table(t, wide), table(lake.t("f"), wide)])
    lake.outsider.move(t, lake.t("f"))
    plan = lake.plan(ours(lake))
    assert held_back(plan) == [("drop_columns", t, "blocked", "location_conflict")]
    data = lake.outsider.data_of(lake.t("f"))
    lake.apply(plan)
    assert lake.outsider.data_of(lake.t("f")) == data
    gone = lake.plan([*ours(lake), table(lake.t("f"), state="absent")])
    assert held_back(gone) == []


def _location(lake: Lake) -> str:
    (seen,) = lake.site.open().read([("Table", lake.t("t"))], Scope())
    assert isinstance(seen.finding, Present)
    assert isinstance(seen.finding.state, TableState)
    assert isinstance(seen.finding.state.location, str)
    return seen.finding.state.location
