"""Indexes on a table with rows: made, made again, dropped, and out of the way of a cast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.lake import Doc, Lake, cut, held_back, main, steps, table
from reconciler.model.change import AlterColumns, CreateIndex, RewriteColumns
from reconciler.model.plan import Plan, Step

COLUMNS = {"id": "int64", "n": "int32", "text": "string", "tags": "list<string>", "v": "fixed_size_list<float32>[8]",
           "s": "struct<a: int32>"}  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {"id": i, "n": i, "text": f"w{i}", "tags": [f"t{i}"], "v": [float(i)] * 8, "s": {"a": i}} for i in range(300)
]


def fill(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    lake.outsider.append(lake.t("t"), ROWS)


@pytest.fixture
def filled(copy_of: Callable[[Callable[[Lake], None]], Lake]) -> Lake:
    return copy_of(fill)


def docs(lake: Lake, *indexes: Doc, columns: dict[str, str] | None = None, **spec: Any) -> list[Doc]:
    return [*lake.home(), table(lake.t("t"), columns or COLUMNS, indexes=list(indexes), **spec)]


def index(column: str, type_: str, **params: Any) -> Doc:
    return {"column": column, "type": type_} | ({"params": params} if params else {})


def live(lake: Lake) -> dict[str, tuple[str, str]]:
    return lake.outsider.state().tables[lake.t("t")].indexes


def test_made_changed_and_dropped(filled: Lake) -> None:
    every = [
        index("id", "btree"), index("n", "bitmap"), index("text", "inverted", with_position=True),
        index("tags", "label_list"), index("s.a", "btree"),
        index("v", "ivf_pq", num_partitions=2, num_sub_vectors=2, metric="cosine"),
    ]  # fmt: skip
    filled.reach(docs(filled, *every))
    assert live(filled) == {
        "id_idx": ("btree", "id"), "n_idx": ("bitmap", "n"), "text_idx": ("inverted", "text"),
        "tags_idx": ("label_list", "tags"), "s_a_idx": ("btree", "s.a"), "v_idx": ("ivf_pq", "v"),
    }  # fmt: skip
    every[0] = index("id", "zonemap")
    every[-1] = index("v", "ivf_pq", num_partitions=2, num_sub_vectors=4, metric="cosine")
    plan = filled.plan(docs(filled, *every))
    assert [s[0] for s in steps(plan)] == ["replace_index", "replace_index"]
    filled.reach(docs(filled, *every))
    assert live(filled)["id_idx"] == ("zonemap", "id")
    plan = filled.plan(docs(filled, *every[1:]))
    assert held_back(plan)[0] == ("drop_index", filled.t("t"), "blocked", "allow:drop_index")
    filled.reach(docs(filled, *every[1:], allow=["drop_index"]))
    assert "id_idx" not in live(filled)
    assert len(filled.outsider.state().tables[filled.t("t")].rows or ()) == 300


def test_an_index_of_somebody_else_stays(filled: Lake) -> None:
    filled.outsider.open(filled.t("t")).create_scalar_index("n", "BTREE", name="theirs")  # type: ignore[attr-defined]
    filled.reach(docs(filled, index("id", "btree")))
    filled.reach(docs(filled, allow=["drop_index"]))
    assert live(filled) == {"theirs": ("btree", "n")}


def lost(plan: Plan) -> set[str]:
    return {name for s in plan.steps if isinstance(s.change, AlterColumns | RewriteColumns) for name in s.change.loses}


def test_a_cast_under_an_index_builds_the_index_again(filled: Lake) -> None:
    filled.reach(docs(filled, index("n", "btree"), index("id", "btree")))
    wider = {**COLUMNS, "n": "int64"}
    wanted = docs(filled, index("n", "btree"), index("id", "btree"), columns=wider)
    plan = filled.plan(wanted)
    assert [s[0] for s in steps(plan)] == ["alter_columns", "create_index"]
    assert "index n_idx goes with the old column and is built again afterwards" in plan.steps[0].reason
    assert plan.steps[1].needs == (plan.steps[0].id,)
    filled.reach(wanted)
    view = filled.outsider.state().tables[filled.t("t")]
    assert view.indexes == {"n_idx": ("btree", "n"), "id_idx": ("btree", "id")}
    assert sorted(r["n"] for r in view.rows or ()) == list(range(300))


@pytest.mark.parametrize("done", [0, 1])
def test_a_cast_under_an_index_that_is_cut_short_is_finished_by_the_next_run(filled: Lake, done: int) -> None:
    filled.reach(docs(filled, index("s.a", "btree"), index("v", "ivf_flat", num_partitions=2)))
    new = {**COLUMNS, "s": "struct<a: int64>", "v": "fixed_size_list<float64>[8]"}
    wanted = docs(filled, index("s.a", "btree"), index("v", "ivf_flat", num_partitions=2), columns=new)
    plan = filled.plan(wanted, data_plane=None)
    assert lost(plan) == {"s_a_idx", "v_idx"}
    filled.apply(cut(plan, done))
    assert len(live(filled)) == 2 - done
    filled.reach(wanted)
    assert live(filled) == {"s_a_idx": ("btree", "s.a"), "v_idx": ("ivf_flat", "v")}


def test_a_cast_that_cannot_succeed_costs_no_index(filled: Lake) -> None:
    """A vector of another length, a text that is no number: said in the plan, and nothing else waits for it."""
    filled.reach(docs(filled, index("v", "ivf_flat", num_partitions=2), index("text", "btree")))
    new = {**COLUMNS, "v": "fixed_size_list<float32>[16]", "text": "int32", "n": "int64"}
    declared = (index("v", "ivf_flat", num_partitions=2), index("text", "btree"), index("n", "btree"))
    plan = filled.plan(docs(filled, *declared, columns=new), data_plane=None)
    assert sorted(held_back(plan)) == [
        ("rewrite_columns", filled.t("t"), "blocked", "values"),
        ("rewrite_columns", filled.t("t"), "unsupported", None),
    ]
    assert "no fixed_size_list<float32>[8] can be made fixed_size_list<float32>[16]" in plan.steps[1].reason
    assert "300 of 300 rows have a value that is no int32, for instance 'w0' in row 0" in plan.steps[0].reason
    filled.apply(plan)
    assert live(filled) == {"v_idx": ("ivf_flat", "v"), "text_idx": ("btree", "text"), "n_idx": ("btree", "n")}
    again = filled.plan(docs(filled, *declared, columns=new), data_plane=None)
    assert [s for s in again.steps if s.verdict == "allowed"] == []


def test_a_vector_takes_another_length_while_there_are_no_rows(stored: Lake) -> None:
    declared = (index("v", "ivf_flat", num_partitions=2), index("id", "btree"))
    stored.reach(docs(stored, *declared))
    new = {**COLUMNS, "v": "fixed_size_list<float32>[16]"}
    stored.reach(docs(stored, *declared, columns=new))
    assert live(stored) == {"v_idx": ("ivf_flat", "v"), "id_idx": ("btree", "id")}
    stored.outsider.append(stored.t("t"), [{**row, "v": [1.0] * 16} for row in ROWS])
    view = stored.outsider.state().tables[stored.t("t")]
    assert view.schema is not None
    assert view.schema.names == list(COLUMNS)
    assert len(view.rows or ()) == 300


def test_a_cast_that_fails_leaves_the_index_and_holds_up_no_other_column(filled: Lake) -> None:
    """The value that does not fit came after the plan was made."""
    declared = (index("n", "btree"), index("id", "btree"), index("text", "bitmap"), index("tags", "label_list"))
    filled.reach(docs(filled, *declared[:3]))
    new = {**COLUMNS, "n": "int16", "id": "int32", "text": "large_string"}
    wanted = docs(filled, *declared, columns=new, allow=["narrow_type"])
    plan = filled.plan(wanted)
    assert held_back(plan) == []
    filled.outsider.append(filled.t("t"), [{**ROWS[0], "n": 2**20}])
    report = filled.apply(plan)
    of_n = {s.id for s in plan.steps if _column(s) == "n"}
    assert {s.step.id for s in main(report) if s.status != "done"} == of_n
    assert report.outcome == "partial"
    assert live(filled) == {
        "n_idx": ("btree", "n"), "id_idx": ("btree", "id"), "text_idx": ("bitmap", "text"),
        "tags_idx": ("label_list", "tags"),
    }  # fmt: skip
    dataset: Any = filled.outsider.open(filled.t("t"))
    assert dataset.count_rows("n = 7") == 1
    assert [str(dataset.schema.field(c).type) for c in ("n", "id", "text")] == ["int32", "int32", "large_string"]
    assert held_back(filled.plan(wanted)) == [("alter_columns", filled.t("t"), "blocked", "values")]


def _column(step: Step) -> str | None:
    match step.change:
        case AlterColumns(columns=(first, *_)):
            return first.path
        case CreateIndex(index=made):
            return made.column
        case _:
            return None


def test_an_index_that_nobody_declares_is_lost_only_when_allowed(filled: Lake) -> None:
    filled.outsider.open(filled.t("t")).create_scalar_index("n", "BTREE", name="theirs")  # type: ignore[attr-defined]
    wider = {**COLUMNS, "n": "int64"}
    plan = filled.plan(docs(filled, columns=wider))
    assert held_back(plan) == [("alter_columns", filled.t("t"), "blocked", "allow:drop_index")]
    assert "index theirs is not declared and would be lost" in plan.steps[0].reason
    filled.unchanged_by(lambda: filled.apply(plan))
    report = filled.reach(docs(filled, columns=wider, allow=["drop_index"]))
    assert live(filled) == {}
    assert main(report)[0].tag is not None


def test_an_index_that_appears_after_the_plan_is_not_lost(filled: Lake) -> None:
    filled.reach(docs(filled, index("n", "btree")))
    plan = filled.plan(docs(filled, index("n", "btree"), columns={**COLUMNS, "n": "int64"}))
    filled.outsider.open(filled.t("t")).create_scalar_index("n", "BITMAP", name="theirs")  # type: ignore[attr-defined]
    assert filled.apply(plan).outcome == "stale"
    assert live(filled) == {"n_idx": ("btree", "n"), "theirs": ("bitmap", "n")}


def test_a_renamed_column_keeps_its_index(filled: Lake) -> None:
    filled.reach(docs(filled, index("n", "btree")))
    rest = [{"name": n, "type": t} for n, t in COLUMNS.items() if n != "n"]
    renamed = [*rest, {"name": "m", "type": "int32", "renamedFrom": "n"}]
    kept = {"column": "m", "type": "btree", "name": "n_idx"}
    wanted = [*filled.home(), table(filled.t("t"), renamed, indexes=[kept])]
    assert "drop_index" not in [s[0] for s in steps(filled.plan(wanted))]
    filled.reach(wanted)
    assert live(filled) == {"n_idx": ("btree", "m")}


def test_a_dropped_column_takes_its_index_in_the_plan(filled: Lake) -> None:
    filled.reach(docs(filled, index("n", "btree")))
    without = {n: t for n, t in COLUMNS.items() if n != "n"}
    wanted = docs(filled, columns=without, allow=["drop_column"])
    plan = filled.plan(wanted)
    assert [s[0] for s in steps(plan)][:1] == ["drop_columns"]
    assert "(with index n_idx)" in plan.steps[0].reason
    filled.reach(wanted)
    assert live(filled) == {}


def test_an_index_on_an_empty_table_and_rows_later(stored: Lake) -> None:
    wanted = docs(stored, index("id", "btree"), index("v", "ivf_flat", num_partitions=2, metric="l2"))
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), ROWS)
    assert {s[0] for s in steps(stored.plan(wanted))} == {"refresh_index"}
    stored.reach(wanted)
