"""The life of an index: what is live is read, what differs is replaced in one commit, what Lance adjusts is a note."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from contract.lake import Doc, Lake, held_back, steps, table
from contract.test_import import declared, imported
from reconciler.model.plan import Plan
from reconciler.render.text import plan_text

COLUMNS = {"id": "int64", "v": "fixed_size_list<float32>[8]", "w": "fixed_size_list<float32>[8]"}


def row(n: int, vector: bool = True) -> dict[str, Any]:
    values = [float((n * 7919 + i * 104729) % 997) for i in range(8)]
    return {"id": n, "v": values if vector else None, "w": values}


def fill(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS)])
    lake.outsider.append(lake.t("t"), [row(n) for n in range(300)])


@pytest.fixture
def filled(copy_of: Callable[[Callable[[Lake], None]], Lake]) -> Lake:
    return copy_of(fill)


def docs(lake: Lake, *indexes: Doc, **spec: Any) -> list[Doc]:
    return [*lake.home(), table(lake.t("t"), COLUMNS, indexes=list(indexes), **spec)]


def flat(partitions: int, column: str = "v", **more: Any) -> Doc:
    return {"column": column, "type": "ivf_flat", "params": {"num_partitions": partitions, "metric": "l2"}, **more}


def pq(partitions: int) -> Doc:
    return {"column": "v", "type": "ivf_pq", "params": {"num_partitions": partitions, "num_sub_vectors": 2}}


def opened(lake: Lake) -> Any:
    return lake.outsider.open(lake.t("t"))  # type: ignore[attr-defined]


def partitions(lake: Lake, name: str = "v_idx") -> int:
    return len(opened(lake).get_ivf_model(name).centroids)


def retrain(lake: Lake, count: int, **more: Any) -> None:
    """By somebody else."""
    given = {"name": "v_idx", "metric": "l2", "num_partitions": count, "replace": True, **more}
    opened(lake).create_index("v", "IVF_FLAT", **given)


def shown(plan: Plan) -> str:
    return plan_text(plan)


def test_an_index_that_somebody_retrained_is_drift(filled: Lake) -> None:
    wanted = docs(filled, flat(4))
    filled.reach(wanted)
    retrain(filled, 2)
    plan = filled.plan(wanted)
    assert [s[0] for s in steps(plan)] == ["replace_index"]
    assert "~ index v_idx: num_partitions 2 -> 4\n" in shown(plan)
    assert "num_partitions 2 -> 8\n" in shown(filled.plan(docs(filled, flat(8))))
    filled.reach(wanted)
    assert partitions(filled) == 4


def test_an_index_of_somebody_else_gets_the_declared_parameters(filled: Lake) -> None:
    """Nothing is lost by that, so no word is needed. Import writes what is live, not what a file said."""
    retrain(filled, 4)
    assert imported(filled)
    (index,) = declared(filled).tables["lake"][filled.t("t")].indexes
    assert index.params["num_partitions"] == 4
    assert filled.plan_desired(declared(filled)).steps == ()
    filled.reach(docs(filled, flat(16)))
    assert partitions(filled) == 16
    filled.reach(docs(filled, allow=["drop_index"]))  # It is ours now.
    assert opened(filled).describe_indices() == []


def test_an_index_of_somebody_else_is_not_lost_without_the_word(filled: Lake) -> None:
    retrain(filled, 4)
    for other in ({"column": "id", "type": "btree", "name": "v_idx"}, flat(4, "w", name="v_idx")):
        plan = filled.plan(docs(filled, other))
        assert held_back(plan) == [("replace_index", filled.t("t"), "blocked", "allow:drop_index")]
    filled.reach(docs(filled, other, allow=["drop_index"]))
    assert [(d.name, d.field_names) for d in opened(filled).describe_indices()] == [("v_idx", ["w"])]


def test_an_index_of_somebody_else_under_a_name_of_ours_is_not_lost_without_the_word(filled: Lake) -> None:
    """Ours was dropped and another one took its name, which is still in our record. One that Lance has merged since has
    no segment that we built, and is ours."""
    named: Doc = {"column": "id", "type": "btree", "name": "ix"}
    filled.reach(docs(filled, named))
    filled.outsider.append(filled.t("t"), [row(n) for n in range(300, 320)])
    opened(filled).optimize.optimize_indices(num_indices_to_merge=1, index_names=["ix"])
    other = {**named, "type": "zonemap"}
    assert [(s.action, s.verdict) for s in filled.plan(docs(filled, other)).steps] == [("replace_index", "allowed")]
    opened(filled).drop_index("ix")
    opened(filled).create_scalar_index("id", "BITMAP", name="ix")
    plan = filled.plan(docs(filled, named))
    assert held_back(plan) == [("replace_index", filled.t("t"), "blocked", "allow:drop_index")]
    assert filled.plan(docs(filled, allow=["drop_index"])).steps == (), "nobody declares it: it stays"
    narrower = table(filled.t("t"), {**COLUMNS, "id": "int32"}, indexes=[named], allow=["narrow_type"])
    cast = filled.plan([*filled.home(), narrower]).steps[0]
    assert (cast.action, cast.blocked_by) == ("alter_columns", "allow:drop_index"), "it would go with the old column"
    filled.reach(docs(filled, named, allow=["drop_index"]))
    assert [(d.name, d.index_type) for d in opened(filled).describe_indices()] == [("ix", "BTree")]
    filled.reach(docs(filled, other))  # It is ours again.


@pytest.mark.parametrize(
    "second",
    [flat(4), flat(2, "w", name="v_idx"), {"column": "id", "type": "bitmap", "name": "v_idx"}],
    ids=["parameter", "column", "type"],
)
def test_no_version_is_without_the_index(filled: Lake, second: Doc) -> None:
    filled.reach(docs(filled, flat(2)))
    before = opened(filled).version
    plan = filled.plan(docs(filled, second))
    assert [s[0] for s in steps(plan)] == ["replace_index"]
    filled.reach(docs(filled, second))
    after = opened(filled).version
    assert after > before
    for version in range(before, after + 1):
        names = [d.name for d in opened(filled).checkout_version(version).describe_indices()]
        assert names == ["v_idx"], version
    assert opened(filled).describe_indices()[0].num_rows_indexed == 300


def test_what_lance_adjusts_is_a_note_until_the_table_has_grown(filled: Lake) -> None:
    filled.management["indexRefresh"] = False  # It would take in the new rows as they come.
    wanted = docs(filled, pq(4))
    filled.reach(wanted)
    assert partitions(filled) == 1
    plan = filled.plan(wanted)
    assert plan.steps == ()
    (note,) = plan.notes
    assert note.message == (
        "num_partitions of index v_idx is adjusted: declared 4, built 1: Lance builds one partition for each 256 "
        "vectors, and the table has 300 rows"
    )
    filled.outsider.append(filled.t("t"), [row(n) for n in range(300, 700)])
    assert filled.plan(wanted).steps == ()  # Two could be built, and four are declared.
    filled.outsider.append(filled.t("t"), [row(n) for n in range(700, 1024)])
    assert "num_partitions 1 -> 4\n" in shown(filled.plan(wanted))
    filled.reach(wanted)
    assert partitions(filled) == 4


def test_what_lance_adjusts_stays_a_note_when_others_compact(filled: Lake) -> None:
    """The segments are other ones then: what was adjusted is told by the number of rows."""
    filled.outsider.append(filled.t("t"), [row(n) for n in range(300, 600)])
    wanted = docs(filled, pq(4))
    filled.reach(wanted)
    before = {s.uuid for s in opened(filled).describe_indices()[0].segments}
    opened(filled).optimize.compact_files()
    assert before.isdisjoint(s.uuid for s in opened(filled).describe_indices()[0].segments)
    plan = filled.plan(wanted)
    assert (plan.steps, len(plan.notes)) == ((), 1)


def test_rows_without_a_vector_do_not_make_an_endless_plan(filled: Lake) -> None:
    filled.outsider.append(filled.t("t"), [row(n, vector=False) for n in range(300, 1300)])
    wanted = docs(filled, pq(4))
    filled.reach(wanted)
    assert partitions(filled) == 1
    (note,) = filled.plan(wanted).notes
    assert "not all of them with a vector" in note.message


def test_fewer_than_would_be_built_is_a_difference_on_a_small_table_too(filled: Lake) -> None:
    filled.outsider.append(filled.t("t"), [row(n) for n in range(300, 600)])
    opened(filled).create_index("v", "IVF_PQ", name="v_idx", num_partitions=1, num_sub_vectors=2)
    wanted = docs(filled, pq(4))
    plan = filled.plan(wanted)
    assert "num_partitions 1 -> 2 (declared 4; Lance builds one partition for each 256 vectors" in shown(plan)
    filled.reach(wanted)
    assert partitions(filled) == 2


def test_an_unread_parameter_is_unknown_and_never_the_recorded_one(stored: Lake) -> None:
    """An index over no rows has no partitions yet."""
    stored.reach(docs(stored, flat(4)))
    plan = stored.plan(docs(stored, flat(8)))
    assert "num_partitions unknown -> 8 (declared 4 before; the live value cannot be read)" in shown(plan)
    stored.reach(docs(stored, flat(8)))
    opened(stored).create_index("v", "IVF_FLAT", name="v_idx", metric="l2", num_partitions=3, replace=True)
    assert stored.plan(docs(stored, flat(16))).steps == ()  # It is another build: our record is not about it.
    imported(stored)
    (index,) = declared(stored).tables["lake"][stored.t("t")].indexes
    assert dict(index.params) == {"metric": "l2"}


def test_retrained_between_plan_and_apply_is_stale(filled: Lake) -> None:
    filled.reach(docs(filled, flat(2)))
    for wanted in (docs(filled, flat(4)), docs(filled, flat(2), {"column": "id", "type": "btree"})):
        plan = filled.plan(wanted)
        retrain(filled, 5)
        report = filled.unchanged_by(lambda plan=plan: filled.apply(plan))
        assert report.outcome == "stale", report.message
        retrain(filled, 2)


def test_an_index_of_others_that_is_retrained_between_plan_and_apply_is_stale(filled: Lake) -> None:
    retrain(filled, 2)
    plan = filled.plan(docs(filled, flat(4)))
    retrain(filled, 5)
    report = filled.unchanged_by(lambda: filled.apply(plan))
    assert report.outcome == "stale", report.message


def test_rows_and_a_compaction_between_plan_and_apply_are_not_stale(filled: Lake) -> None:
    filled.reach(docs(filled, flat(2), {"column": "id", "type": "btree"}))
    plan = filled.plan(docs(filled, flat(4), {"column": "id", "type": "btree"}))
    filled.outsider.append(filled.t("t"), [row(n) for n in range(300, 400)])
    opened(filled).optimize.optimize_indices(index_names=["id_idx"])
    opened(filled).optimize.compact_files()
    assert filled.apply(plan).outcome == "applied"
    assert partitions(filled) == 4


def test_the_run_that_dies_in_a_replace_is_ended_by_the_next(filled: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the record, before the swap: with the saved plan, and with a new one."""
    from reconciler.catalog import lance_write

    def die(*_: Any) -> None:
        raise RuntimeError("the process is gone")

    wanted = docs(filled, flat(4))
    for again in (lambda plan: plan, lambda _: filled.plan(wanted)):
        filled.reach(docs(filled, flat(2)))
        plan = filled.plan(wanted)
        with monkeypatch.context() as m:
            m.setattr(lance_write, "swap", die)
            assert filled.apply(plan).outcome in ("failed", "partial")
        assert partitions(filled) == 2
        assert filled.apply(again(plan)).outcome == "applied"
        assert partitions(filled) == 4
        assert filled.plan(wanted).steps == ()


def test_two_appliers_and_a_writer(filled: Lake) -> None:
    filled.reach(docs(filled, flat(2)))
    wanted = docs(filled, flat(4))
    plan = filled.plan(wanted)
    ended: list[str] = []

    def append() -> None:
        for n in range(5):
            filled.outsider.append(filled.t("t"), [row(1000 + n)])

    def apply() -> None:
        ended.append(filled.apply(plan, filled.site.open(), sleep=time.sleep).outcome)

    before = opened(filled).version
    work = [threading.Thread(target=target) for target in (apply, append, apply)]
    for one in work:
        one.start()
    for one in work:
        one.join()
    assert set(ended) <= {"applied", "stale", "no_changes"}, ended
    filled.reach(wanted)
    assert partitions(filled) == 4
    for version in range(before, opened(filled).version + 1):
        names = [d.name for d in opened(filled).checkout_version(version).describe_indices()]
        assert names == ["v_idx"], version
    assert len(filled.outsider.state().tables[filled.t("t")].rows or ()) == 305


def test_an_index_without_a_name_goes_on_under_the_name_that_it_has(filled: Lake) -> None:
    """Its column was renamed, and then other parameters are declared, in one plan or in two: no second index."""
    filled.reach(docs(filled, flat(2)))
    renamed = [
        {"name": "id", "type": "int64"},
        {"name": "vec", "type": COLUMNS["v"], "renamedFrom": "v"},
        {"name": "w", "type": COLUMNS["w"]},
    ]

    def wanted(count: int) -> list[Doc]:
        return [*filled.home(), table(filled.t("t"), renamed, indexes=[flat(count, "vec")])]

    assert [s[0] for s in steps(filled.plan(wanted(4)))] == ["alter_columns", "replace_index"]
    for count in (4, 8):
        filled.reach(wanted(count))
        assert [(d.name, d.field_names) for d in opened(filled).describe_indices()] == [("v_idx", ["vec"])]
        assert partitions(filled) == count


def test_an_index_that_its_column_cannot_have_yet_waits_for_it(filled: Lake) -> None:
    """The column's own step cannot be done: what Lance would refuse on the column as it is is not promised."""
    filled.reach(docs(filled, flat(2)))
    longer = {**COLUMNS, "v": "fixed_size_list<float32>[16]"}
    parts = {"column": "v", "type": "ivf_pq", "params": {"num_partitions": 1, "num_sub_vectors": 16}}
    new = {"column": "id", "type": "label_list", "name": "labels"}
    wanted = [*filled.home(), table(filled.t("t"), {**longer, "id": "list<int64>"}, indexes=[parts, new])]
    plan = filled.plan(wanted)
    assert {(s.action, s.verdict) for s in plan.steps if "index" in s.action} == {
        ("replace_index", "blocked"),
        ("create_index", "blocked"),
    }
    assert "needs column v as fixed_size_list<float32>[16]: it is fixed_size_list<float32>[8] still" in shown(plan)
    assert filled.unchanged_by(lambda: filled.apply(plan)).outcome == "refused"
    fits = [*filled.home(), table(filled.t("t"), longer, indexes=[flat(4)])]  # On the column as it is, too.
    assert ("replace_index", "allowed") in {(s.action, s.verdict) for s in filled.plan(fits).steps}


def test_an_index_of_a_table_without_a_schema_has_to_fit_the_live_column(filled: Lake) -> None:
    index = {"column": "v", "type": "ivf_flat", "params": {"metric": "hamming"}}
    plan = filled.plan([*filled.home(), table(filled.t("t"), indexes=[index])])
    assert [(s.action, s.verdict) for s in plan.steps if "index" in s.action] == [("create_index", "unsupported")]
    assert "the metric hamming needs uint8 items" in shown(plan)


UNDECLARED = {"column": "v", "type": "ivf_flat", "params": {"num_partitions": 4}}
TEXT: Doc = {"column": "s", "type": "inverted", "params": {"with_position": True}}


def live_params(lake: Lake) -> dict[str, tuple[Any, ...]]:
    details = {d.name: d.details for d in opened(lake).describe_indices()}
    v, s = details["v_idx"], details.get("s_idx")
    out: dict[str, tuple[Any, ...]] = {"v": (v["metric_type"], partitions(lake))}
    return out if s is None else out | {"s": (s["with_position"], s["language"], s["stem"])}


def fill_text(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("t"), {**COLUMNS, "s": "string"})])
    lake.outsider.append(lake.t("t"), [{**row(n), "s": f"text {n}"} for n in range(300)])


def test_what_is_not_declared_is_kept_by_every_build(copy_of: Callable[[Callable[[Lake], None]], Lake]) -> None:
    """A replace, a refresh, and the build after a cast: the metric and the language that somebody chose stay."""
    lake = copy_of(fill_text)
    columns = {**COLUMNS, "s": "string"}

    def wanted(columns: dict[str, str]) -> list[Doc]:
        return [*lake.home(), table(lake.t("t"), columns, indexes=[UNDECLARED, TEXT])]

    lake.reach(wanted(columns))
    retrain(lake, 2, metric="cosine")
    given = {"name": "s_idx", "with_position": False, "language": "German", "stem": False, "replace": True}
    opened(lake).create_scalar_index("s", "INVERTED", **given)
    text = shown(lake.plan(wanted(columns)))
    assert '~ index v_idx: num_partitions 2 -> 4; keeps metric="cosine" (not declared)\n' in text
    assert '~ index s_idx: with_position False -> True; keeps language="German", stem=false (not declared)\n' in text
    lake.reach(wanted(columns))
    kept = {"v": ("COSINE", 4), "s": (True, "German", False)}
    assert live_params(lake) == kept
    lake.outsider.append(lake.t("t"), [{**row(n), "s": f"text {n}"} for n in range(300, 900)])
    plan = lake.plan(wanted(columns))
    assert {s.action for s in plan.steps} == {"refresh_index"}
    assert 'of 900 rows -> all of them; keeps metric="cosine" (not declared)\n' in shown(plan)
    lake.reach(wanted(columns))
    assert live_params(lake) == kept
    cast = wanted({**columns, "v": "fixed_size_list<float64>[8]", "s": "large_string"})
    assert '+ index v_idx: ivf_flat on v (num_partitions=4); keeps metric="cosine"' in shown(lake.plan(cast))
    lake.reach(cast)
    assert live_params(lake) == kept


def test_what_is_not_declared_is_kept_of_an_index_of_somebody_else(filled: Lake) -> None:
    """Also by the builds after the first one, which is ours."""
    retrain(filled, 2, metric="cosine")
    filled.reach(docs(filled, {"column": "v", "type": "ivf_flat", "params": {"metric": "dot"}}))
    assert live_params(filled) == {"v": ("DOT", 2)}
    filled.outsider.append(filled.t("t"), [row(n) for n in range(300, 900)])
    filled.reach(docs(filled, {"column": "v", "type": "ivf_flat"}))
    assert opened(filled).describe_indices()[0].num_rows_indexed == 900
    assert live_params(filled) == {"v": ("DOT", 2)}


def test_what_somebody_chose_between_plan_and_apply_is_stale(filled: Lake) -> None:
    """Otherwise the build would take it away unsaid."""
    filled.reach(docs(filled, UNDECLARED))
    plan = filled.plan(docs(filled, {**UNDECLARED, "params": {"num_partitions": 8}}))
    retrain(filled, 4, metric="cosine")
    report = filled.unchanged_by(lambda: filled.apply(plan))
    assert report.outcome == "stale", report.message
    filled.reach(docs(filled, {**UNDECLARED, "params": {"num_partitions": 8}}))
    assert live_params(filled) == {"v": ("COSINE", 8)}
