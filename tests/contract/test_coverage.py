"""Rows that come after an index was made: the plan shows them, and apply builds the index of a small table again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from contract.lake import Doc, Lake, cut, steps, table
from reconciler.catalog import lance_write
from reconciler.model.coverage import Coverage, parse_limit
from reconciler.model.plan import Plan

COLUMNS = {"id": "int64", "text": "string", "tags": "list<string>", "v": "fixed_size_list<float32>[8]",
           "s": "struct<a: int32>"}  # fmt: skip


def rows(count: int, start: int = 0, vectors: bool = True) -> list[dict[str, Any]]:
    return [
        {"id": i, "text": f"w{i} x", "tags": [f"t{i}"], "v": [float(i % 7 + n) for n in range(8)] if vectors else None,
         "s": {"a": i}}
        for i in range(start, start + count)
    ]  # fmt: skip


EVERY: list[Doc] = [
    {"column": "id", "type": "btree"},
    {"column": "text", "type": "inverted", "params": {"with_position": True}},
    {"column": "tags", "type": "label_list"},
    {"column": "s.a", "type": "zonemap"},
    {"column": "v", "type": "ivf_flat", "params": {"num_partitions": 3, "metric": "cosine"}},
]
NAMES = {"id_idx", "text_idx", "tags_idx", "s_a_idx", "v_idx"}
PQ: Doc = {"column": "v", "type": "ivf_pq", "params": {"num_partitions": 1, "num_sub_vectors": 2}}


def docs(lake: Lake, *indexes: Doc, **spec: Any) -> list[Doc]:
    return [*lake.home(), table(lake.t("t"), COLUMNS, indexes=list(indexes), **spec)]


def stats(lake: Lake, name: str) -> dict[str, Any]:
    return dict(lake.outsider.open(lake.t("t")).stats.index_stats(name))  # type: ignore[attr-defined]


def unindexed(lake: Lake) -> dict[str, int]:
    names = [d.name for d in lake.outsider.open(lake.t("t")).describe_indices()]  # type: ignore[attr-defined]
    return {name: stats(lake, name)["num_unindexed_rows"] for name in names}


def refreshed(plan: Plan) -> set[str]:
    assert {s[0] for s in steps(plan)} <= {"refresh_index", "replace_index"}, steps(plan)
    return {s.change.index.name for s in plan.steps if s.action in ("refresh_index", "replace_index")}  # type: ignore[union-attr]


def noted(plan: Plan) -> Sequence[Coverage]:
    return plan.catalogs["lake"].coverage


def test_an_index_of_an_empty_table_takes_in_the_first_rows(stored: Lake) -> None:
    wanted = docs(stored, *EVERY)
    stored.reach(wanted)
    assert stored.plan(wanted).steps == ()
    stored.outsider.append(stored.t("t"), rows(40))
    plan = stored.plan(wanted)
    assert refreshed(plan) == NAMES
    assert {(s.plane, s.risk, s.verdict) for s in plan.steps} == {("control", "safe", "allowed")}
    assert stored.apply(plan).outcome == "applied"
    assert unindexed(stored) == dict.fromkeys(NAMES, 0)
    assert stats(stored, "v_idx")["indices"][0]["num_partitions"] == 3
    again = stored.plan(wanted)
    assert (again.steps, noted(again)) == ((), ())
    assert len(stored.outsider.state().tables[stored.t("t")].rows or ()) == 40


def test_a_writer_that_appends_a_few_rows_makes_no_plan(stored: Lake) -> None:
    wanted = docs(stored, EVERY[0])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(100))
    stored.reach(wanted)
    for n in range(5):
        stored.outsider.append(stored.t("t"), rows(5, 100 + 5 * n))
        plan = stored.plan(wanted)
        assert (plan.steps, noted(plan)) == ((), ())
    stored.outsider.append(stored.t("t"), rows(1, 200))
    assert refreshed(stored.plan(wanted)) == {"id_idx"}  # 26 of 126 are more than 20 %.
    stored.reach(wanted)
    assert unindexed(stored) == {"id_idx": 0}


@pytest.mark.parametrize("written", [False, {"maxRows": 0}, {"maxRows": 39}])
def test_a_table_that_is_too_large_is_left_to_maintain(stored: Lake, written: Any) -> None:
    stored.management["indexRefresh"] = written
    wanted = docs(stored, EVERY[0])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(40))
    plan = stored.plan(wanted)
    assert plan.steps == ()
    assert [(c.index, c.indexed_rows, c.rows) for c in noted(plan)] == [("id_idx", 0, 40)]
    assert "reconciler pipeline maintain" in noted(plan)[0].advice
    stored.management["indexRefresh"] = {"maxRows": 40}
    stored.reach(wanted)
    assert unindexed(stored) == {"id_idx": 0}


def test_a_threshold_of_its_own(stored: Lake) -> None:
    stored.management["indexRefresh"] = {"maxUnindexed": 2}
    wanted = docs(stored, EVERY[0])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(40))
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(2, 40))
    assert stored.plan(wanted).steps == ()
    stored.outsider.append(stored.t("t"), rows(1, 42))
    assert refreshed(stored.plan(wanted)) == {"id_idx"}


@pytest.mark.parametrize(
    ("index", "vectors", "why"),
    [
        (PQ, True, "Lance needs 256 vectors to train ivf_pq, and the table has only 40"),
        (PQ, False, "Lance needs 256 vectors to train ivf_pq, and the table has none"),
        (EVERY[4], False, "Lance needs a vector to train ivf_flat, and the table has none"),
    ],
)
@pytest.mark.parametrize("first", ["index", "rows"])
def test_too_few_vectors_to_train(stored: Lake, index: Doc, vectors: bool, why: str, first: str) -> None:
    """The index is made all the same, the plan says why it covers nothing, and there is no step for ever."""
    wanted = docs(stored, index)
    stored.reach(wanted if first == "index" else docs(stored))
    stored.outsider.append(stored.t("t"), rows(40, vectors=vectors))
    stored.reach(wanted)
    plan = stored.plan(wanted)
    assert [(c.index, c.indexed_rows, c.rows, c.advice) for c in noted(plan)] == [("v_idx", 0, 40, why)]
    stored.outsider.append(stored.t("t"), rows(300, 40))
    assert refreshed(stored.plan(wanted)) == {"v_idx"}
    stored.reach(wanted)
    assert unindexed(stored) == {"v_idx": 0}


def test_vectors_that_are_not_embedded_yet(stored: Lake) -> None:
    """Zeros have no direction: with cosine Lance leaves the index empty, as often as it is built."""
    wanted = docs(stored, EVERY[4])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), [{**row, "v": [0.0] * 8} for row in rows(40)])
    plan = stored.plan(wanted)
    assert plan.steps == ()
    assert "the table has none that has only numbers and is not zero" in noted(plan)[0].advice
    stored.outsider.append(stored.t("t"), rows(3, 40))
    stored.reach(wanted)
    assert unindexed(stored) == {"v_idx": 0}


def test_a_table_of_somebody_else_is_shown_and_left_alone(stored: Lake) -> None:
    import pyarrow as pa

    stored.make_home()
    stored.outsider.create_table(stored.t("t"), pa.schema([("id", pa.int64())]), [])
    stored.outsider.open(stored.t("t")).create_scalar_index("id", "BTREE", name="id_idx")  # type: ignore[attr-defined]
    stored.outsider.append(stored.t("t"), [{"id": 1}])
    wanted = [*stored.home(), table(stored.t("t"), {"id": "int64"}, indexes=[EVERY[0]])]
    plan = stored.plan(wanted)
    assert not [s for s in plan.steps if s.change.kind == "Table"]
    assert [(c.index, c.indexed_rows, c.rows) for c in noted(plan)] == [("id_idx", 0, 1)]
    stored.unchanged_by(lambda: stored.apply(stored.plan([wanted[-1]])))
    stored.reach(wanted, adopt=True)
    assert unindexed(stored) == {"id_idx": 0}


def test_an_index_that_is_left_to_others_is_not_refreshed(stored: Lake) -> None:
    stored.reach(docs(stored, EVERY[0]))
    wanted = docs(stored, EVERY[0], ignoreDifferences=["indexes"])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(3))
    plan = stored.plan(wanted)
    assert (plan.steps, noted(plan)) == ((), ())


def test_a_limit_reports_what_exceeds_it(stored: Lake) -> None:
    wanted = docs(stored, EVERY[0])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(40))
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(4, 40))
    for limit, over in (("3", "3"), ("4", None), ("9%", "9%"), ("10%", None), ("0", "0")):
        plan = stored.plan(wanted, max_unindexed=parse_limit(limit))
        assert ([c.over for c in noted(plan)] or [None]) == [over]
        assert plan.steps == ()


def test_refreshed_by_somebody_else_between_plan_and_apply(stored: Lake) -> None:
    wanted = docs(stored, *EVERY[:2])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(40))
    plan = stored.plan(wanted)
    stored.outsider.open(stored.t("t")).optimize.optimize_indices(index_names=["id_idx"])  # type: ignore[attr-defined]
    report = stored.apply(plan)
    told = {r.step.change.index.name: r.status for r in report.steps}  # type: ignore[union-attr]
    assert told == {"id_idx": "skipped", "text_idx": "done"}
    assert unindexed(stored) == {"id_idx": 0, "text_idx": 0}


def test_rows_that_come_between_plan_and_apply_do_not_make_it_stale(stored: Lake) -> None:
    wanted = docs(stored, EVERY[0])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(40))
    plan = stored.plan(wanted)
    stored.outsider.append(stored.t("t"), rows(400, 40))
    assert stored.apply(plan).outcome == "applied"
    assert unindexed(stored) == {"id_idx": 0}


def test_a_run_that_was_cut_off_goes_on_with_the_other_index(stored: Lake) -> None:
    wanted = docs(stored, *EVERY[:3])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(40))
    plan = stored.plan(wanted)
    stored.apply(cut(plan, 1))
    assert sorted(unindexed(stored).values()) == [0, 40, 40]
    report = stored.apply(plan)
    assert sorted(r.status for r in report.steps) == ["done", "done", "skipped"]
    assert set(unindexed(stored).values()) == {0}


def test_rows_that_come_while_the_index_is_built_are_left_to_the_next_plan(
    stored: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = docs(stored, EVERY[0])
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(40))

    def meanwhile(*args: Any) -> Any:
        stored.outsider.append(stored.t("t"), rows(60, 40))
        return swap(*args)

    swap = lance_write.swap
    monkeypatch.setattr(lance_write, "swap", meanwhile)
    assert stored.apply(stored.plan(wanted)).outcome == "applied"
    assert unindexed(stored) == {"id_idx": 60}
    monkeypatch.setattr(lance_write, "swap", swap)
    stored.reach(wanted)
    assert unindexed(stored) == {"id_idx": 0}


def test_an_index_is_there_in_every_version(stored: Lake) -> None:
    wanted = docs(stored, *EVERY)
    stored.reach(wanted)
    stored.outsider.append(stored.t("t"), rows(40))
    first = stored.outsider.open(stored.t("t")).version  # type: ignore[attr-defined]
    stored.reach(wanted)
    dataset: Any = stored.outsider.open(stored.t("t"))  # type: ignore[attr-defined]
    for version in range(first, dataset.version + 1):
        assert {d.name for d in dataset.checkout_version(version).describe_indices()} >= NAMES
