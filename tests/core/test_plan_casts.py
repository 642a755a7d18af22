"""Casts: what the types decide, what the values decide, and what it costs the indexes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_planning_rules import RUNS, SPACE, columns, live_table, ns, on_table, plan, steps, table

from reconciler.core.needs import Steps, depends
from reconciler.core.options import PlanOptions
from reconciler.core.value_checks import value_checks
from reconciler.model import change as c
from reconciler.model.arrow import parse_type
from reconciler.model.ident import ObjectKey
from reconciler.model.observed import Snapshot
from reconciler.model.plan import Plan
from reconciler.model.state import Index
from reconciler.model.values import ValueCheck, ValueFinding
from reconciler.verbs.data_steps import ACTIONS, only

T = ("a", "t")


def test_a_pipeline_verb_brings_back_the_index_that_its_rewrite_takes_away() -> None:
    index = Index("s_idx", "s", "btree")
    want = table("a", "t", fields=columns(id="int64", s="int32"), indexes=(index,))
    live = live_table("a", "t", fields=columns(id="int32", s="string"), indexes=(index,), applied=("index:s_idx",))
    whole = on_table(want, live)
    assert [a for a, _ in steps(whole)] == ["rewrite_columns", "create_index", "alter_columns"]
    assert steps(only(whole, ACTIONS["evolve"])) == steps(whole)[:2]
    renamed = (*columns(id="int64"), replace(columns(s="int32")[0], renamed_from="old"))
    live = live_table("a", "t", fields=columns(id="int64", old="string"), indexes=(replace(index, column="old"),))
    alone = only(on_table(replace(want, fields=renamed), live), ACTIONS["evolve"])
    assert {(s.verdict, s.blocked_by) for s in alone.steps} == {("blocked", "needs_blocked_step")}
    assert "needs alter_columns of" in alone.steps[0].reason


def test_the_length_of_a_vector_is_decided_by_the_types_alone() -> None:
    index = Index("v_idx", "v", "ivf_flat")
    want = table("a", "t", fields=columns(v="fixed_size_list<float32>[16]"), indexes=(index,))
    old = columns(v="fixed_size_list<float32>[8]")
    (stuck,) = on_table(want, live_table("a", "t", fields=old, indexes=(index,), applied=("index:v_idx",))).steps
    assert (stuck.action, stuck.verdict) == ("rewrite_columns", "unsupported")
    empty = on_table(want, live_table("a", "t", fields=old, indexes=(index,), applied=("index:v_idx",), empty=True))
    assert [a for a, _ in steps(empty)] == ["alter_columns", "create_index"]
    assert empty.steps[1].needs == (empty.steps[0].id,)


@pytest.mark.parametrize("empty", [False, True])
def test_an_index_that_moves_waits_for_the_type_of_its_new_column(empty: bool) -> None:
    """The cast of `a` takes it away. On `b` it fits once `b` is cast too, and not while that cannot be done."""
    old, new = columns(a="int32", b="list<int32>"), columns(a="int64", b="int32")
    want = table(*T, fields=new, indexes=(Index("i", "b", "btree"),))
    live = live_table(*T, fields=old, indexes=(Index("i", "a", "btree"),), applied=("index:i",), empty=empty)
    result = on_table(want, live)
    built = next(s for s in result.steps if isinstance(s.change, c.CreateIndex))
    casts = {s.id: s.change.loses for s in result.steps if isinstance(s.change, c.AlterColumns)}
    assert ("i",) in casts.values()
    if empty:
        assert (built.verdict, set(built.needs)) == ("allowed", {*casts})
    else:
        assert (built.verdict, built.blocked_by) == ("blocked", "needs_blocked_step")
        assert "needs column b as int32: it is list<int32> still" in built.reason


def test_a_function_that_is_not_installed_blocks_the_step_that_needs_it() -> None:
    """With and without Spark; not the other columns, and nothing once the column is there."""
    new = (*columns(id="int64"), replace(columns(v="int32")[0], function="embed"))
    new = (*new, replace(columns(d="int32")[0], default="1"))
    lacking = {"embed": "there is no function 'embed'; install it"}
    live = live_table(*T, fields=columns(id="int64"))
    for options in (replace(RUNS, functions=lacking), PlanOptions(functions=lacking)):
        result = on_table(table(*T, fields=new), live, options)
        (stuck,) = (s for s in result.steps if "new columns with values for existing rows: v" in s.reason)
        assert (stuck.verdict, stuck.blocked_by) == ("blocked", "data_plane")
        assert stuck.reason.startswith("column v cannot be filled: there is no function 'embed'; install it")
    filled = [s for s in on_table(table(*T, fields=new), live, replace(RUNS, functions=lacking)).steps if s != stuck]
    assert [(s.action, s.verdict) for s in filled if s.verdict == "allowed"] == [("backfill_columns", "allowed")]
    there = live_table(*T, fields=columns(id="int64", v="int32", d="int32"))
    assert on_table(table(*T, fields=new), there, replace(RUNS, functions=lacking)).steps == ()
    assert [s.verdict for s in on_table(table(*T, fields=new), live, RUNS).steps] == ["allowed"]


N, M = ValueCheck("n", parse_type("int8")), ValueCheck("m", parse_type("int8"))


def narrowed(*findings: tuple[ValueCheck, ValueFinding]) -> Plan:
    want = table(*T, fields=columns(id="int64", n="int8", m="int8"), allow=("narrow_type",))
    live = live_table(*T, fields=columns(id="int64", n="int64", m="int64"))
    values = {(T, check): finding for check, finding in findings}
    return plan([ns("a"), want], {("a",): SPACE, T: live}, RUNS, values=values)


def test_what_was_found_in_the_values_decides_each_column() -> None:
    both = narrowed()
    assert [s.verdict for s in both.steps] == ["allowed", "allowed"]
    assert [s.needs for s in both.steps] == [(), ()]
    bad = narrowed((N, ValueFinding(400, True, 3, ("300 in row 7",))), (M, ValueFinding(400, True)))
    assert {s.blocked_by: s.reason for s in bad.steps if s.verdict == "blocked"}.keys() == {"values"}
    assert [a for a, _ in steps(bad)] == ["alter_columns"]
    (stuck,) = [s for s in bad.steps if s.verdict == "blocked"]
    assert stuck.reason.startswith("column n: 3 of 400 rows have a value that is no int8, for instance 300 in row 7: ")


def test_what_was_read_in_part_says_so() -> None:
    made = narrowed((N, ValueFinding(1_000_000, False)), (M, ValueFinding(1000, False, 1000)))
    reasons = [s.reason for s in made.steps]
    assert any("plan read 1,000,000 rows, and they fit: apply reads all of them" in r for r in reasons)
    assert any("column m: 1,000 of the first 1,000 rows have a value that is no int8" in r for r in reasons)


def test_only_values_that_decide_are_asked_for() -> None:
    made = narrowed()
    live = live_table(*T, fields=columns(id="int64", n="int64", m="int64"))
    key = ObjectKey("lake", T, "Table")
    assert value_checks(made.steps, {"lake": Snapshot({}, {T: live})}) == {key: {N: "n", M: "m"}}
    empty = live_table(*T, fields=columns(id="int64", n="int64", m="int64"), empty=True)
    assert value_checks(made.steps, {"lake": Snapshot({}, {T: empty})}) == {}
    blocked = narrowed((N, ValueFinding(1, True, 1)), (M, ValueFinding(1, True, 1)))
    assert value_checks(blocked.steps, {"lake": Snapshot({}, {T: live})}) == {}


def test_a_table_without_rows_needs_no_word_to_be_narrowed() -> None:
    want = table(*T, fields=columns(n="int8"))
    (step,) = on_table(want, live_table(*T, fields=columns(n="int64"), empty=True)).steps
    assert (step.verdict, step.risk) == ("allowed", "metadata")
    (step,) = on_table(want, live_table(*T, fields=columns(n="int64"))).steps
    assert step.blocked_by == "allow:narrow_type"


DECIMAL = "decimal128(30, 2)"


@pytest.mark.parametrize(
    ("old", "new", "rounds"),
    [
        (DECIMAL, "float32", True),
        (DECIMAL, "float64", True),
        ("decimal128(16, 2)", "float64", True),
        ("decimal128(15, 2)", "float64", False),
        ("decimal128(6, 2)", "float32", False),
        (f"list<struct<a: {DECIMAL}>>", "list<struct<a: float64>>", True),
        ("struct<a: int8, b: decimal128(9, 2)>", "struct<a: string, b: float64>", False),
        (DECIMAL, "string", False),
    ],
)
def test_digits_are_lost_only_with_the_word(old: str, new: str, rounds: bool) -> None:
    want, live = table(*T, fields=columns(n=new)), live_table(*T, fields=columns(n=old))
    (step,) = on_table(want, live).steps
    decided = (step.action, step.verdict, step.blocked_by, step.risk)
    if not rounds:
        assert decided == ("rewrite_columns", "allowed", None, "rewrite")
        return
    assert decided == ("rewrite_columns", "blocked", "allow:narrow_type", "destructive")
    assert f"{new} does not have all digits of {old}" in step.reason
    (step,) = on_table(replace(want, allow=("narrow_type",)), live).steps
    assert (step.verdict, step.risk) == ("allowed", "destructive")


def test_no_number_is_a_time_without_a_unit() -> None:
    want = table(*T, fields=columns(n="timestamp[us]"))
    (step,) = on_table(want, live_table(*T, fields=columns(n="int64"))).steps
    assert (step.action, step.verdict) == ("rewrite_columns", "unsupported")
    assert "no int64 can be made timestamp[us]" in step.reason


def cast(path: str, *lost: str) -> c.AlterColumns:
    return c.AlterColumns(T, (c.ColumnAlteration(path, type=parse_type("int64")),), lost)


def index(column: str) -> c.CreateIndex:
    return c.CreateIndex(T, Index(f"{column}_idx", column, "btree"))


RENAME = c.AlterColumns(T, (c.ColumnAlteration("a", rename="b"),))


@pytest.mark.parametrize(
    ("change", "before", "needed"),
    [
        (cast("a"), cast("b"), False),
        (cast("a.x"), cast("a.y"), True),
        (index("b"), cast("a"), False),
        (index("a"), cast("a"), True),
        (index("b"), cast("a", "b_idx"), True),
        (c.ReplaceIndex(T, Index("b_idx", "b", "btree")), cast("a"), False),
        (index("a"), index("b"), False),
        (c.DropColumns(T, ("a",)), cast("a"), True),
        (c.DropColumns(T, ("b",)), cast("a"), False),
        (c.DropColumns(T, ("b",)), c.BackfillColumns(T, columns(d="int8")), True),
        (c.BackfillColumns(T, columns(d="int8")), cast("a"), True),
        (c.BackfillColumns(T, columns(d="int8")), index("a"), False),
        (cast("a"), RENAME, True),
        (RENAME, cast("a"), True),
        (c.UpdateDataset(T, {}, {}, {"a": {"k": "v"}}, "us", ()), cast("a"), False),
        (c.UpdateDataset(T, {}, {}, {"a.x": {"k": "v"}}, "us", ()), c.RewriteColumns(T, columns(a="int8")), True),
        (c.SyncColumns(T, ()), cast("a"), True),
        (c.SyncColumns(T, ()), index("a"), True),
    ],
    ids=str,
)
def test_what_builds_on_what(change: c.Change, before: c.Change, needed: bool) -> None:
    assert depends(change, before) is needed


def test_needs_name_no_step_that_another_one_needs_already() -> None:
    done = Steps()
    done.add("s1", RENAME, [])
    done.add("s2", cast("a"), ["s1"])
    done.add("s3", cast("b"), ["s1"])
    assert done.needs(index("a")) == ["s2"]
    assert done.needs(c.SyncColumns(T, ())) == ["s2", "s3"]
