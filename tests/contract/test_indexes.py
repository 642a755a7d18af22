"""Indexes on a table with rows: made, made again, dropped, and out of the way of a cast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.lake import Doc, Lake, held_back, steps, table

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
    assert [s[0] for s in steps(plan)] == ["drop_index", "drop_index", "create_index", "create_index"]
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


def test_a_cast_under_an_index_makes_the_index_again(filled: Lake) -> None:
    filled.reach(docs(filled, index("n", "btree")))
    wider = {**COLUMNS, "n": "int64"}
    plan = filled.plan(docs(filled, index("n", "btree"), columns=wider))
    assert [s[0] for s in steps(plan) if s[0] != "update_table"] == ["drop_index", "alter_columns", "create_index"]
    filled.reach(docs(filled, index("n", "btree"), columns=wider))
    view = filled.outsider.state().tables[filled.t("t")]
    assert view.indexes == {"n_idx": ("btree", "n")}
    assert sorted(r["n"] for r in view.rows or ()) == list(range(300))


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
    assert [s[0] for s in steps(filled.plan(wanted))][:2] == ["drop_index", "drop_columns"]
    filled.reach(wanted)
    assert live(filled) == {}


def test_an_index_on_an_empty_table_and_rows_later(stored: Lake) -> None:
    wanted = docs(stored, index("id", "btree"), index("v", "ivf_flat", num_partitions=2, metric="l2"))
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), ROWS)
    assert stored.plan(wanted).steps == ()
