"""Renames: declared, never guessed; names move, data does not."""

from __future__ import annotations

from contract.lake import Lake, held_back, namespace, steps, table
from contract.sample import FOREIGN, FOREIGN_ROWS

COLUMNS = {"id": "int64"}


def test_a_table_is_renamed_with_its_rows_or_the_step_is_unsupported(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("old"), COLUMNS, **lake.with_properties(a="b"))])
    lake.outsider.append(lake.t("old"), FOREIGN_ROWS)
    before = lake.outsider.state().tables[lake.t("old")]
    data = lake.outsider.data_of(lake.t("old"))
    more = lake.with_properties(a="b")
    docs = [*lake.home(), table(lake.t("new"), COLUMNS, renamedFrom=[*lake.t("old")], **more)]
    plan = lake.plan(docs)
    assert steps(plan)[0] == ("rename_table", lake.t("new"))
    if lake.site.capabilities.refuses(plan.steps[0].change):
        assert {h[2] for h in held_back(plan)} == {"unsupported"}
        assert len(held_back(plan)) == len(plan.steps)
        assert "renamed" in plan.steps[0].reason
        lake.unchanged_by(lambda: lake.apply(plan))
        return
    lake.reach(docs)
    seen = lake.outsider.state().tables
    assert set(seen) == {lake.t("new")}
    assert seen[lake.t("new")].comparable() == before.comparable()
    assert lake.outsider.data_of(lake.t("new")) == data


def test_both_names_are_there_and_neither_is_touched(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("old"), COLUMNS), table(lake.t("new"), COLUMNS)])
    plan = lake.plan([*lake.home(), table(lake.t("new"), COLUMNS, renamedFrom=[*lake.t("old")])], prune=True)
    assert held_back(plan) == [("rename_table", lake.t("new"), "blocked", "rename_conflict")]
    lake.unchanged_by(lambda: lake.apply(plan))


def test_a_rename_that_was_done_is_ignored(lake: Lake) -> None:
    lake.reach([*lake.home(), table(lake.t("new"), COLUMNS)])
    lake.reach([*lake.home(), table(lake.t("new"), COLUMNS, renamedFrom=[*lake.t("old")])])
    assert set(lake.outsider.state().tables) == {lake.t("new")}


def test_a_table_of_others_is_not_renamed(lake: Lake) -> None:
    lake.make_home()
    lake.outsider.create_table(lake.t("old"), FOREIGN, FOREIGN_ROWS)
    plan = lake.plan([table(lake.t("new"), COLUMNS, renamedFrom=[*lake.t("old")])])
    assert plan.steps
    assert {s.verdict for s in plan.steps} <= {"blocked", "unsupported"}
    lake.unchanged_by(lambda: lake.apply(plan))


def test_a_namespace_is_renamed_with_all_that_is_in_it(lake: Lake) -> None:
    if not lake.has_namespaces:
        assert set(lake.refusals([namespace(("new",), renamedFrom=["old"])])) == {"M408"}
        return
    lake.reach(
        [namespace(("old",), properties={"a": "b"}), namespace(("old", "in")), table(("old", "in", "t"), COLUMNS)]
    )
    lake.outsider.append(("old", "in", "t"), FOREIGN_ROWS)
    before, data = lake.outsider.state(), lake.outsider.data_of(("old", "in", "t"))
    docs = [
        namespace(("new",), properties={"a": "b"}, renamedFrom=["old"]),
        namespace(("new", "in")),
        table(("new", "in", "t"), COLUMNS),
    ]
    assert steps(lake.plan(docs)) == [("rename_namespace", ("new",))]
    lake.reach(docs)
    after = lake.outsider.state()
    assert after.namespaces == {("new", *i[1:]): p for i, p in before.namespaces.items()}
    assert set(after.tables) == {("new", "in", "t")}
    assert after.tables["new", "in", "t"].comparable() == before.tables["old", "in", "t"].comparable()
    assert lake.outsider.data_of(("new", "in", "t")) == data


def test_a_namespace_with_something_of_others_is_not_renamed(lake: Lake) -> None:
    if not lake.has_namespaces:
        assert set(lake.refusals([namespace(("new",), renamedFrom=["old"])])) == {"M408"}
        return
    lake.reach([namespace(("old",)), table(("old", "t"), COLUMNS)])
    lake.outsider.create_table(("old", "theirs"), FOREIGN, FOREIGN_ROWS)
    plan = lake.plan([namespace(("new",), renamedFrom=["old"]), table(("new", "t"), COLUMNS)], prune=True)
    assert held_back(plan)[0] == ("rename_namespace", ("new",), "blocked", "not_owned")
    assert len(held_back(plan)) == len(plan.steps)
    lake.unchanged_by(lambda: lake.apply(plan))


def test_a_table_moves_to_another_namespace(lake: Lake) -> None:
    if not lake.has_namespaces:
        assert set(lake.refusals([namespace(("a",))])) == {"M408"}
        return
    lake.reach([namespace(("a",)), namespace(("b",)), table(("a", "t"), COLUMNS)])
    data = lake.outsider.data_of(("a", "t"))
    lake.reach(
        [namespace(("a",), state="absent"), namespace(("b",)), table(("b", "u"), COLUMNS, renamedFrom=["a", "t"])]
    )
    assert set(lake.outsider.state().namespaces) == {("b",)}
    assert lake.outsider.data_of(("b", "u")) == data
