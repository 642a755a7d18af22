"""Every kind of schema change on a table with rows: what is asked for happens, and no row is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.lake import Doc, Lake, held_back, is_projection, main, table
from contract.outsider import TableView
from reconciler.model.report import Report

START = {
    "id": "int64 not null",
    "small": "int32",
    "big": "int64",
    "text": "string",
    "ratio": "float32",
    "place": "struct<x: int32, y: int32>",
    "at": "timestamp[ms, tz=UTC]",
}
ROWS: list[dict[str, Any]] = [
    {"id": 1, "small": 7, "big": 70, "text": "a", "ratio": 0.5, "place": {"x": 1, "y": 2}, "at": None},
    {"id": 2, "small": 8, "big": 2**40, "text": "b", "ratio": None, "place": {"x": 3, "y": 4}, "at": None},
    {"id": 3, "small": 9, "big": 90, "text": None, "ratio": 1.5, "place": None, "at": None},
]


def fill(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), START)])
    lake.outsider.append(lake.t("t"), ROWS)


@pytest.fixture
def filled(copy_of: Callable[[Callable[[Lake], None]], Lake]) -> Lake:
    return copy_of(fill)


def columns(**changes: Any) -> list[Doc]:
    """The columns at the start with some changed: a type, a document, or None to leave one out."""
    docs: list[Doc] = []
    for name, type_ in {**START, **changes}.items():
        if isinstance(type_, dict):
            docs.append({"name": name, **type_})
        elif type_ is not None:
            text = type_.removesuffix(" not null")
            docs.append({"name": name, "type": text} | ({} if text == type_ else {"nullable": False}))
    return docs


def reach(lake: Lake, docs: list[Doc], **spec: Any) -> tuple[Report, TableView]:
    report = lake.reach([*lake.home(), table(lake.t("t"), docs, **spec)])
    return report, lake.outsider.state().tables[lake.t("t")]


def rows_with(**changes: Any) -> list[dict[str, Any]]:
    """The rows at the start, each changed by a function of the row or with a column left out (None)."""
    out = []
    for row in ROWS:
        new = {k: v for k, v in row.items() if not (k in changes and changes[k] is None)}
        out.append(new | {k: f(row) for k, f in changes.items() if f is not None})
    return sorted(out, key=str)


def sorted_rows(view: TableView) -> list[dict[str, Any]]:
    assert view.rows is not None
    names = list(START)
    order = {n: i for i, n in enumerate(names)}
    return sorted((dict(sorted(r.items(), key=lambda kv: order.get(kv[0], 99))) for r in view.rows), key=str)


def test_add_a_column(filled: Lake) -> None:
    _, view = reach(filled, columns(extra={"type": "list<string>", "comment": "new"}))
    assert sorted_rows(view) == rows_with(extra=lambda r: None)
    assert view.schema is not None
    assert view.schema.field("extra").metadata == {b"comment": b"new"}


def test_a_new_column_without_nulls_is_unsupported(filled: Lake) -> None:
    plan = filled.plan([*filled.home(), table(filled.t("t"), columns(extra="int32 not null"))])
    ((_, _, verdict, _),) = held_back(plan)
    assert verdict == "unsupported"
    assert "default" in plan.steps[0].reason
    filled.unchanged_by(lambda: filled.apply(plan))


def test_rename_a_column(filled: Lake) -> None:
    _, view = reach(filled, columns(text=None, words={"type": "string", "renamedFrom": "text"}))
    assert view.rows is not None
    assert {r["id"]: r["words"] for r in view.rows} == {1: "a", 2: "b", 3: None}
    assert view.schema is not None
    assert "text" not in view.schema.names


def test_rename_inside_a_struct(filled: Lake) -> None:
    fields = [{"name": "lon", "type": "int32", "renamedFrom": "x"}, {"name": "y", "type": "int32"}]
    _, view = reach(filled, columns(place={"type": "struct", "fields": fields}))
    assert view.rows is not None
    by_id = {r["id"]: r["place"] for r in view.rows}
    assert by_id == {1: {"lon": 1, "y": 2}, 2: {"lon": 3, "y": 4}, 3: None}


def test_a_new_column_under_the_old_name_is_refused(filled: Lake) -> None:
    docs = columns(small="string", middle={"type": "int32", "renamedFrom": "small"})
    assert filled.refusals([*filled.home(), table(filled.t("t"), docs)]) == ["M422"]


def test_drop_a_column_only_when_allowed(filled: Lake) -> None:
    docs = columns(text=None)
    plan = filled.plan([*filled.home(), table(filled.t("t"), docs)])
    assert held_back(plan) == [("drop_columns", filled.t("t"), "blocked", "allow:drop_column")]
    filled.unchanged_by(lambda: filled.apply(plan))
    before = filled.outsider.state().tables[filled.t("t")]
    report, view = reach(filled, docs, allow=["drop_column"])
    assert sorted_rows(view) == rows_with(text=None)
    (step,) = [s for s in report.steps if s.step.action == "drop_columns"]
    assert step.tag is not None
    assert filled.outsider.tagged(filled.t("t"), step.tag).rows == before.rows
    assert (step.version_before, step.version_after) != (None, None)
    assert step.version_before is not None
    assert step.version_after is not None
    assert step.version_after > step.version_before


def test_at_least_leaves_columns_of_others(filled: Lake) -> None:
    report, view = reach(filled, columns(text=None), schemaMode="at_least")
    assert report.outcome == "no_changes"
    assert sorted_rows(view) == rows_with()


@pytest.mark.parametrize(
    ("column", "type_"),
    [("small", "int64"), ("ratio", "float64"), ("text", "large_string"), ("at", "timestamp[us, tz=UTC]")],
)
def test_widen(filled: Lake, column: str, type_: str) -> None:
    report, view = reach(filled, columns(**{column: type_}))
    assert sorted_rows(view) == rows_with()
    (step,) = [s for s in report.steps if s.step.action == "alter_columns"]
    assert step.tag is not None
    old = filled.outsider.tagged(filled.t("t"), step.tag)
    assert old.schema is not None
    assert view.schema is not None
    assert old.schema.field(column).type != view.schema.field(column).type


def test_widening_keeps_comment_and_metadata(filled: Lake) -> None:
    notes = {"comment": "c", "metadata": {"a": "b"}}
    reach(filled, columns(small={"type": "int32", **notes}))
    _, view = reach(filled, columns(small={"type": "int64", **notes}))
    assert view.schema is not None
    assert view.schema.field("small").metadata == {b"comment": b"c", b"a": b"b"}


def test_narrow_only_when_allowed(filled: Lake) -> None:
    docs = columns(small="int16")
    plan = filled.plan([*filled.home(), table(filled.t("t"), docs)])
    assert held_back(plan) == [("alter_columns", filled.t("t"), "blocked", "allow:narrow_type")]
    filled.unchanged_by(lambda: filled.apply(plan))
    _, view = reach(filled, docs, allow=["narrow_type"])
    assert sorted_rows(view) == rows_with()


def test_narrow_that_would_lose_a_value_is_blocked_with_the_value(filled: Lake) -> None:
    docs = [*filled.home(), table(filled.t("t"), columns(big="int32"), allow=["narrow_type"])]
    plan = filled.plan(docs)
    assert held_back(plan) == [("alter_columns", filled.t("t"), "blocked", "values")]
    assert f"1 of 3 rows has a value that is no int32, for instance {2**40} in row 1" in plan.steps[0].reason
    assert "backfill" in plan.steps[0].reason
    filled.unchanged_by(lambda: filled.apply(plan))


def test_a_value_that_comes_after_the_plan_fails_the_step_and_changes_nothing(filled: Lake) -> None:
    docs = [*filled.home(), table(filled.t("t"), columns(small="int8"), allow=["narrow_type"])]
    plan = filled.plan(docs)
    filled.outsider.append(filled.t("t"), [{**ROWS[0], "small": 1000}])
    before = filled.comparable()
    report = filled.apply(plan)
    (step,) = main(report)
    assert (step.status, step.error and step.error.name) == ("failed", "TableSchemaValidationError")
    assert filled.comparable() == before
    assert report.outcome == "failed"
    assert held_back(filled.plan(docs)) == [("alter_columns", filled.t("t"), "blocked", "values")]


def test_no_nulls_any_more_only_when_allowed_and_true(filled: Lake) -> None:
    docs = columns(small="int32 not null", text="string not null")
    plan = filled.plan([*filled.home(), table(filled.t("t"), docs)])
    assert held_back(plan) == [("alter_columns", filled.t("t"), "blocked", "allow:set_not_null")] * 2
    plan = filled.plan([*filled.home(), table(filled.t("t"), docs, allow=["set_not_null"])])
    assert held_back(plan) == [("alter_columns", filled.t("t"), "blocked", "values")]
    (stuck,) = [s for s in plan.steps if s.verdict == "blocked"]
    assert "column text: 1 of 3 rows has no value, for instance row 2" in stuck.reason
    before = rows_with()
    assert filled.apply(plan).outcome == "refused"
    view = filled.outsider.state().tables[filled.t("t")]
    assert view.schema is not None
    assert (view.schema.field("small").nullable, view.schema.field("text").nullable) == (False, True)
    assert sorted_rows(view) == before


@pytest.mark.parametrize(("column", "type_"), [("text", "large_string"), ("ratio", "string")])
def test_a_null_blocks_a_column_that_a_cast_writes_too(filled: Lake, column: str, type_: str) -> None:
    """In place, or written anew: a cast keeps the null, so the step would fail once the cast has landed."""
    docs = columns(**{column: f"{type_} not null"})
    plan = filled.plan([*filled.home(), table(filled.t("t"), docs, allow=["set_not_null"])], data_plane=None)
    (stuck,) = [s for s in plan.steps if s.verdict == "blocked"]
    assert (stuck.action, stuck.blocked_by) == ("alter_columns", "values")
    assert f"column {column}: 1 of 3 rows has no value, for instance row " in stuck.reason


@pytest.mark.parametrize(
    ("column", "type_", "told"),
    [
        ("text", "int32", "2 of 3 rows have a value that is no int32, for instance 'a' in row 0, 'b' in row 1"),
        ("big", "date32", f"1 of 3 rows has a value that is no date32, for instance {2**40} in row 1"),
        ("ratio", "int8", "2 of 3 rows have a value that is no int8, for instance 0.5 in row 0"),
    ],
)
def test_values_decide_a_rewrite_when_it_is_planned(filled: Lake, column: str, type_: str, told: str) -> None:
    docs = [*filled.home(), table(filled.t("t"), columns(**{column: type_}, small="int64"))]
    plan = filled.plan(docs, data_plane=None)
    assert held_back(plan) == [("rewrite_columns", filled.t("t"), "blocked", "values")]
    (stuck,) = [s for s in plan.steps if s.verdict == "blocked"]
    assert told in stuck.reason
    report = filled.apply(plan)
    assert [s.status for s in main(report) if s.step.action == "alter_columns"] == ["done"], "another column goes on"


def test_values_that_fit_let_a_rewrite_through(filled: Lake) -> None:
    plan = filled.plan([*filled.home(), table(filled.t("t"), columns(small="string"))], data_plane=None)
    assert [(s.action, s.verdict) for s in plan.steps if not is_projection(s)] == [("rewrite_columns", "allowed")]


@pytest.mark.parametrize("type_", ["list<string>", "int32", "fixed_size_list<float32>[4]"])
def test_what_no_cast_gives_is_unsupported_while_there_are_rows(filled: Lake, type_: str) -> None:
    plan = filled.plan([*filled.home(), table(filled.t("t"), columns(place=type_))], data_plane=None)
    assert held_back(plan) == [("rewrite_columns", filled.t("t"), "unsupported", None)]
    assert "`renamedFrom` the new column" in plan.steps[0].reason
    filled.unchanged_by(lambda: filled.apply(plan))


NEW_TYPES = {"text": "int32", "place": "list<int64>", "big": "int8", "ratio": "fixed_size_list<float32>[4]"}


def test_without_rows_every_type_becomes_every_other(stored: Lake) -> None:
    notes = {"comment": "c", "metadata": {"a": "b"}}
    old = [{"name": n, "type": t.removesuffix(" not null"), **notes} for n, t in START.items()]
    stored.reach([*stored.home(), table(stored.t("t"), old, indexes=[{"column": "small", "type": "btree"}])])
    new = [{**doc, "type": NEW_TYPES.get(doc["name"], doc["type"])} for doc in old]
    _, view = reach(stored, new, indexes=[{"column": "small", "type": "btree"}])
    assert view.schema is not None
    assert view.schema.names == list(START)
    assert {f.metadata[b"comment"] for f in view.schema} == {b"c"}
    assert view.indexes == {"small_idx": ("btree", "small")}
    stored.outsider.append(stored.t("t"), [{"small": 1, "text": 5, "place": [1, 2], "big": 3, "ratio": [1.0] * 4}])
    (row,) = stored.outsider.state().tables[stored.t("t")].rows or ()
    assert (row["text"], row["place"], row["big"]) == (5, [1, 2], 3)


def test_rows_that_come_after_the_plan_keep_the_old_type(stored: Lake) -> None:
    stored.reach([*stored.home(), table(stored.t("t"), START)])
    plan = stored.plan([*stored.home(), table(stored.t("t"), columns(text="int32"))])
    assert [s.verdict for s in plan.steps if not is_projection(s)] == ["allowed"]
    stored.outsider.append(stored.t("t"), ROWS)
    before = stored.comparable()
    report = stored.apply(plan)
    assert report.outcome == "failed"
    assert "has some now" in report.message
    assert stored.comparable() == before


def test_a_column_is_replaced_by_one_that_was_filled(filled: Lake) -> None:
    """The second half of the recipe in the reason of a cast that cannot be done; the first is an ordinary backfill."""
    filled.outsider.open(filled.t("t")).add_columns({"parts": "make_array(place.x, place.y)"})  # type: ignore[attr-defined]
    docs = columns(place={"type": "list<int32>", "renamedFrom": "parts"})
    plan = filled.plan([*filled.home(), table(filled.t("t"), docs)])
    assert held_back(plan)[0] == ("drop_columns", filled.t("t"), "blocked", "allow:drop_column")
    before = filled.outsider.state().tables[filled.t("t")]
    filled.apply(plan)  # Where the catalog shows columns, it learns of the new one.
    after = filled.outsider.state().tables[filled.t("t")]
    assert (after.schema, after.rows) == (before.schema, before.rows)
    _, view = reach(filled, docs, allow=["drop_column"])
    assert {r["id"]: r["place"] for r in view.rows or ()} == {1: [1, 2], 2: [3, 4], 3: [None, None]}
    filled.outsider.open(filled.t("t")).add_columns({"parts": "place"})  # type: ignore[attr-defined]
    again = filled.plan([*filled.home(), table(filled.t("t"), docs, allow=["drop_column"])])
    assert held_back(again) == [("alter_columns", filled.t("t"), "blocked", "rename_conflict")], "not a second time"


def test_allow_nulls(filled: Lake) -> None:
    _, view = reach(filled, columns(id="int64"))
    assert view.schema is not None
    assert view.schema.field("id").nullable
    assert sorted_rows(view) == rows_with()


def test_what_lance_cannot_do_in_place_waits_for_the_data_plane(filled: Lake) -> None:
    filled.management["inProcess"] = {"maxRows": 0}
    docs = columns(text="int64", place="struct<x: int32, y: int32, z: int32>")
    plan = filled.plan([*filled.home(), table(filled.t("t"), docs)])
    assert {(s.plane, s.verdict, s.blocked_by) for s in plan.steps if not is_projection(s)} == {
        ("data", "blocked", "data_plane")
    }
    filled.unchanged_by(lambda: filled.apply(plan))


def test_everything_at_once(filled: Lake) -> None:
    docs = columns(
        small="int64",
        big={"type": "int64", "comment": "large"},
        text=None,
        words={"type": "large_string", "renamedFrom": "text"},
        ratio=None,
        extra="string",
        id="int64",
    )
    _, view = reach(filled, docs, allow=["drop_column"], config={"a": "b"}, schemaMetadata={"s": "t"})
    assert view.rows is not None
    assert sorted((r["id"], r["small"], r["words"], r["extra"]) for r in view.rows) == [
        (1, 7, "a", None),
        (2, 8, "b", None),
        (3, 9, None, None),
    ]
    assert view.schema is not None
    assert "ratio" not in view.schema.names
    assert (view.config, view.schema.metadata) == ({"a": "b"}, {b"s": b"t"})
