"""Renames: declared, never guessed; names move, data does not."""

from __future__ import annotations

from contract.lake import Lake, held_back, namespace, steps, table
from contract.sample import FOREIGN, FOREIGN_ROWS
from reconciler.model.change import RenameTable

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
        assert len(held_back(plan)) == len(steps(plan))
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
    old, new = lake.ns("old"), lake.ns("new")
    if not lake.has_namespaces:
        assert set(lake.refusals([namespace(new, renamedFrom=[*old])])) == {"M408"}
        return
    deep = ("in",) if lake.nests else ()
    inner = [(*old, *deep), (*new, *deep)]
    lake.reach(
        [
            namespace(old, properties={"a": "b"}),
            *(namespace(i) for i in inner[:1] if deep),
            table((*inner[0], "t"), COLUMNS),
        ]
    )
    lake.outsider.append((*inner[0], "t"), FOREIGN_ROWS)
    before, data = lake.outsider.state(), lake.outsider.data_of((*inner[0], "t"))
    docs = [
        namespace(new, properties={"a": "b"}, renamedFrom=[*old]),
        *(namespace(i) for i in inner[1:] if deep),
        table((*inner[1], "t"), COLUMNS),
    ]
    plan = lake.plan(docs)
    assert steps(plan)[0] == ("rename_namespace", new)
    if not lake.renames_namespaces:
        assert {h[2] for h in held_back(plan)} <= {"unsupported", "blocked"}
        assert held_back(plan)[0] == ("rename_namespace", new, "unsupported", None)
        assert len(held_back(plan)) == len(steps(plan))
        lake.unchanged_by(lambda: lake.apply(plan))
        return
    assert len(steps(plan)) == 1
    lake.reach(docs)
    after = lake.outsider.state()
    assert after.namespaces == {(*new, *i[len(old) :]): p for i, p in before.namespaces.items()}
    assert set(after.tables) == {(*inner[1], "t")}
    assert after.tables[*inner[1], "t"].comparable() == before.tables[*inner[0], "t"].comparable()
    assert lake.outsider.data_of((*inner[1], "t")) == data


def test_a_namespace_with_something_of_others_is_not_renamed(lake: Lake) -> None:
    old, new = lake.ns("old"), lake.ns("new")
    if not lake.has_namespaces:
        assert set(lake.refusals([namespace(new, renamedFrom=[*old])])) == {"M408"}
        return
    lake.reach([namespace(old), table((*old, "t"), COLUMNS)])
    lake.outsider.create_table((*old, "theirs"), FOREIGN, FOREIGN_ROWS)
    plan = lake.plan([namespace(new, renamedFrom=[*old]), table((*new, "t"), COLUMNS)], prune=True)
    assert held_back(plan)[0] == ("rename_namespace", new, "blocked", "not_owned")
    assert len(held_back(plan)) == len(steps(plan))
    lake.unchanged_by(lambda: lake.apply(plan))


def test_a_table_moves_to_another_namespace(lake: Lake) -> None:
    a, b = lake.ns("a"), lake.ns("b")
    if not lake.has_namespaces:
        assert set(lake.refusals([namespace(a)])) == {"M408"}
        return
    lake.reach([namespace(a), namespace(b), table((*a, "t"), COLUMNS)])
    data = lake.outsider.data_of((*a, "t"))
    docs = [namespace(a, state="absent"), namespace(b), table((*b, "u"), COLUMNS, renamedFrom=[*a, "t"])]
    if not lake.can(RenameTable((*b, "u"), (*a, "t"))):
        plan = lake.plan(docs)
        assert ("rename_table", (*b, "u"), "unsupported", None) in held_back(plan)
        lake.unchanged_by(lambda: lake.apply(plan))
        return
    lake.reach(docs)
    assert set(lake.outsider.state().namespaces) == {b}
    assert lake.outsider.data_of((*b, "u")) == data
