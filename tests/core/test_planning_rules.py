"""Rules of the planner that are easy to lose: each test is a mistake that was made once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from reconciler.catalog.memory import MemoryCapabilities, MemoryCatalog, place
from reconciler.core.errors import InternalError, PlanError
from reconciler.core.fields import rename_path
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan, scope_of
from reconciler.core.world import World
from reconciler.engine.observe import observe
from reconciler.model.arrow import Field, Struct, parse_type
from reconciler.model.change import (
    AddColumns,
    AlterColumns,
    BackfillColumns,
    Change,
    CreateIndex,
    DeclareTable,
    RenameNamespace,
    RenameTable,
    RewriteColumns,
)
from reconciler.model.desired import ALLOW_WORDS, CatalogSpec, Desired, DesiredNamespace, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident
from reconciler.model.observed import Detached, Gap, LeftOut, Present, Snapshot, Unreadable, Unsupported
from reconciler.model.plan import LOCATION_CONFLICT, PARENT_BLOCKED, TWO_APPLIES, Plan, Step
from reconciler.model.state import UNKNOWN, DatasetState, Index, Marks, NamespaceState, TableState
from reconciler.model.values import ValueCheck, ValueFinding

US = Marks("us")
HERE = Source("here.yaml")


def columns(**types: str) -> tuple[Field, ...]:
    return tuple(Field(name, parse_type(text)) for name, text in types.items())


ID = columns(id="int64")


def ns(*ident: str, **more: object) -> DesiredNamespace:
    return DesiredNamespace("lake", ident, HERE, **more)  # type: ignore[arg-type]


def table(*ident: str, fields: tuple[Field, ...] = ID, **more: object) -> DesiredTable:
    return DesiredTable("lake", ident, HERE, fields=fields, **more)  # type: ignore[arg-type]


def live_table(*ident: str, fields: tuple[Field, ...] = ID, owner: str | None = "us", **more: object) -> Present:
    dataset = DatasetState(fields, owner=owner, **{"empty": False, **more})  # type: ignore[arg-type]
    return Present(TableState(place(ident), {}, Marks(owner), dataset))


def plan(
    wanted: Iterable[DesiredNamespace | DesiredTable],
    live: dict[Ident, Present | Unreadable],
    options: PlanOptions = PlanOptions(),  # noqa: B008
    gaps: tuple[Gap, ...] = (),
    ignore: tuple[str, ...] = (),
    values: Mapping[tuple[Ident, ValueCheck], ValueFinding] = MappingProxyType({}),
) -> Plan:
    things = list(wanted)
    desired = Desired(
        {"lake": CatalogSpec("lake", "memory", {}, Management("us", ignore=ignore), HERE)},
        {"lake": {o.ident: o for o in things if isinstance(o, DesiredNamespace)}},
        {"lake": {o.ident: o for o in things if isinstance(o, DesiredTable)}},
    )
    tables = {i: f for i, f in live.items() if isinstance(f, Present) and isinstance(f.state, TableState)}
    spaces = {i: f for i, f in live.items() if i not in tables}
    catalog = MemoryCatalog(World(Snapshot(spaces, tables), place), gaps=gaps)
    snapshot = replace(observe(catalog, scope_of(desired, "lake")), values=values)
    return make_plan(desired, {"lake": snapshot}, {"lake": MemoryCapabilities()}, options)


SPACE = Present(NamespaceState({}, US))
T: dict[Ident, Present | Unreadable] = {("a", "t"): live_table("a", "t")}
PRUNE = PlanOptions(prune=True)


def steps(the_plan: Plan, *verdicts: str) -> list[tuple[str, Ident]]:
    return [(s.action, s.change.ident) for s in the_plan.steps if s.verdict in (verdicts or ("allowed",))]


def only(the_plan: Plan, kind: type[Change]) -> Step:
    (step,) = (s for s in the_plan.steps if isinstance(s.change, kind))
    return step


def test_an_old_name_that_a_gap_may_hide_is_not_created_anew() -> None:
    gap = Gap(("a",), Code.SERVICE_UNAVAILABLE, "page 2 failed")
    live = {("a",): SPACE, ("b",): SPACE, ("a", "t"): live_table("a", "t")}
    result = plan([table("b", "t", renamed_from=("a", "t"))], live, gaps=(gap,))
    assert steps(result) == []
    assert {s.blocked_by for s in result.steps} == {"incomplete_listing"}
    assert "its old name a.t may be there" in result.steps[0].reason


@pytest.mark.parametrize("where", [(), ("a",), ("a", "x")])
def test_nothing_is_deleted_beside_a_gap(where: Ident) -> None:
    """Neither what the first page still showed, nor the namespaces around it, which only look empty."""
    gap = Gap(where, Code.SERVICE_UNAVAILABLE, "page 2 failed")
    seen = Snapshot({("a",): SPACE, ("a", "x"): SPACE}, {("a", "x", "t"): live_table("a", "x", "t")}, (gap,))
    spec = CatalogSpec("lake", "memory", {}, Management("us"), HERE)
    for wanted in ({}, {("a",): ns("a", absent=True), ("a", "x"): ns("a", "x", absent=True)}):
        desired = Desired({"lake": spec}, {"lake": wanted}, {})
        result = make_plan(desired, {"lake": seen}, {"lake": MemoryCapabilities()}, PRUNE)
        assert steps(result) == []
        assert {s.blocked_by for s in result.steps} == {"incomplete_listing"}
        assert not result.catalogs["lake"].complete


def test_no_word_lets_a_namespace_go_with_its_content() -> None:
    options = PlanOptions(prune=True, adopt=True, allow=frozenset(ALLOW_WORDS))
    for child in (live_table("a", "t", owner=None), SPACE):
        result = plan([ns("a", absent=True)], {("a",): SPACE, ("a", "t"): child}, options, ignore=("a.t",))
        assert steps(result) == []
        assert {s.blocked_by for s in result.steps} == {"not_empty"}


def deletes(owned: int, gone: int, targets: tuple[str, ...] = (), seen: int | None = None) -> list[str | None]:
    """What holds back each delete when `gone` of the tables that we own are declared no more. `seen`: how many of them
    a fleet's snapshot shows; the others are counted only."""
    live = {("a", f"t{n:03}"): live_table("a", f"t{n:03}") for n in range(owned)}
    wanted = [table(*ident) for ident in list(live)[gone:]]
    desired = Desired(
        {"lake": CatalogSpec("lake", "memory", {}, Management("us"), HERE)}, {}, {"lake": {t.ident: t for t in wanted}}
    )
    shown = Snapshot({("a",): Present(NamespaceState())}, dict(list(live.items())[: owned if seen is None else seen]))
    left = owned - len(shown.tables)
    if left:
        kept = {i: t for i, t in desired.tables["lake"].items() if i in shown.tables}
        desired = replace(desired, tables={"lake": kept})
        shown = replace(shown, left_out=LeftOut(left, left))
    options = PlanOptions(prune=True, targets=targets)
    return [s.blocked_by for s in make_plan(desired, {"lake": shown}, {"lake": MemoryCapabilities()}, options).steps]


GOES, HELD = None, "threshold"


@pytest.mark.parametrize(
    ("owned", "gone", "said"),
    [(10, 2, GOES), (10, 3, HELD), (9, 3, GOES), (9, 9, GOES), (14, 3, HELD), (15, 3, GOES), (50, 10, GOES),
     (55, 11, HELD), (1000, 10, GOES), (1000, 11, HELD)],
)  # fmt: skip
def test_the_thresholds_at_their_limits(owned: int, gone: int, said: str | None) -> None:
    """Ten objects and 20 % are allowed, more is not; shares count from ten owned objects on."""
    assert deletes(owned, gone) == [said] * gone


@pytest.mark.parametrize(("owned", "gone", "said"), [(15, 3, GOES), (14, 3, HELD), (9, 5, GOES), (60, 11, HELD)])
def test_a_target_changes_nothing_about_the_share_of_all_that_we_own(owned: int, gone: int, said: str | None) -> None:
    one_by_one = tuple(f"a.t{n:03}" for n in range(gone))
    assert deletes(owned, gone, one_by_one) == [said] * gone


@pytest.mark.parametrize(("owned", "gone", "said"), [(15, 3, GOES), (14, 3, HELD), (10, 2, GOES), (10, 3, HELD)])
def test_what_a_fleet_leaves_out_counts_as_ours(owned: int, gone: int, said: str | None) -> None:
    assert deletes(owned, gone, seen=gone) == [said] * gone


def test_a_live_table_without_its_namespace_is_planned_like_any_other() -> None:
    live = {("zz", "orphan"): live_table("zz", "orphan")}
    assert plan([table("zz", "orphan")], live).steps == ()
    result = plan([table("zz", "orphan", fields=(*ID, *columns(new="int8")))], live)
    assert steps(result) == [("add_columns", ("zz", "orphan"))]
    with pytest.raises(PlanError, match="neither declared nor live"):
        plan([table("zz", "other")], live)


ODD = "struct<a.b: int8, a: struct<b: int32, c: int8>>"


@pytest.mark.parametrize(
    ("wanted", "at_least"),
    [
        (columns(id="int64", x="struct<a: struct<b: int32, c: int8>>"), False),
        (columns(id="int64", x="struct<a: struct<b: int64, c: int8>>"), True),
        (columns(id="int64", x="struct<a: struct<b: int32, c: int8, d: int8>>"), True),
        (
            (*ID, Field("x", Struct((Field("a", Struct((Field("b", parse_type("int32"), comment="this one"),))),)))),
            True,
        ),
    ],
    ids=["drop", "cast", "rewrite", "comment"],
)
def test_nothing_is_changed_in_a_column_with_a_name_that_no_path_can_hold(
    wanted: tuple[Field, ...], at_least: bool
) -> None:
    """Others may have made it. The path `x.a.b` would mean another field of it."""
    live = {("t",): live_table("t", fields=columns(id="int64", x=ODD))}
    options = PlanOptions(allow=frozenset({"drop_column", "narrow_type"}))
    more = (*wanted, *columns(new="int8"))
    result = plan([table("t", fields=more, at_least=at_least, allow=("drop_column",))], live, options)
    (held,) = (s for s in result.steps if s.verdict != "allowed")
    assert held.verdict == "unsupported"
    assert "column x" in held.reason
    assert "'a.b'" in held.reason
    assert steps(result) == [("add_columns", ("t",))]


def test_a_column_goes_whatever_names_are_in_it() -> None:
    live = {("t",): live_table("t", fields=columns(id="int64", x=ODD))}
    result = plan([table("t", fields=ID)], live, PlanOptions(allow=frozenset({"drop_column"})))
    assert steps(result) == [("drop_columns", ("t",))]


def test_what_waits_for_its_rename_is_no_orphan_even_outside_the_target() -> None:
    live = {("a",): SPACE, ("a", "t"): live_table("a", "t")}
    wanted = [ns("a"), ns("b"), table("b", "t", renamed_from=("a", "t"))]
    assert steps(plan(wanted, live, replace(PRUNE, targets=("a.**",)))) == []


def test_tables_below_a_namespace_whose_rename_is_held_back_are_no_orphans() -> None:
    live = {
        ("a",): Present(NamespaceState({}, Marks("them"))),
        ("a", "t"): live_table("a", "t"),
    }
    result = plan([ns("b", renamed_from=("a",)), table("b", "t")], live, PRUNE)
    assert steps(result) == []
    assert result.orphans == ()


def test_a_table_is_found_under_either_name_of_its_namespace() -> None:
    """Before the namespace moved, and after a run that was killed right then."""
    wanted = [ns("new", renamed_from=("old",)), table("new", "u", renamed_from=("old", "t"))]
    before = plan(wanted, {("old",): SPACE, ("old", "t"): live_table("old", "t")})
    assert steps(before) == [("rename_namespace", ("new",)), ("rename_table", ("new", "u"))]
    assert only(before, RenameTable).change == RenameTable(("new", "u"), ("new", "t"))
    between = plan(wanted, {("new",): SPACE, ("new", "t"): live_table("new", "t")})
    assert steps(between) == [("rename_table", ("new", "u"))]


def test_a_namespace_that_has_not_moved_lends_its_name_to_nobody() -> None:
    """Both namespaces are there, so new.t is another table than old.t was."""
    wanted = [ns("new", renamed_from=("old",)), table("new", "u", renamed_from=("old", "t"))]
    live = {("new",): SPACE, ("old",): SPACE, ("new", "t"): live_table("new", "t", owner="them")}
    result = plan(wanted, {**live, ("old", "t"): live_table("old", "t")})
    assert only(result, RenameTable).change == RenameTable(("new", "u"), ("old", "t"))
    after = plan(wanted, {**live, ("new", "u"): live_table("new", "u")})
    assert steps(after, "allowed", "blocked") == [("rename_namespace", ("new",))]


@pytest.mark.parametrize(
    ("inside", "word"),
    [
        (live_table("a", "x", owner="them"), "not_owned"),
        (live_table("a", "x", owner=None), "not_owned"),
        (Unreadable(Code.INTERNAL, "corrupt"), "not_owned"),
    ],
)
def test_a_namespace_does_not_take_along_what_is_not_ours(inside: Present | Unreadable, word: str) -> None:
    result = plan([ns("b", renamed_from=("a",))], {("a",): SPACE, ("a", "x"): inside})
    assert only(result, RenameNamespace).blocked_by == word
    assert steps(result) == []


def test_an_unowned_table_moves_along_when_it_is_adopted_in_the_same_plan() -> None:
    live = {("a",): SPACE, ("a", "t"): live_table("a", "t", owner=None)}
    result = plan([ns("b", renamed_from=("a",)), table("b", "t")], live, PlanOptions(adopt=True))
    assert steps(result)[:2] == [("rename_namespace", ("b",)), ("adopt", ("b", "t"))]


def test_a_namespace_does_not_take_along_what_is_ignored_or_still_declared() -> None:
    live = {("a",): SPACE, ("a", "t"): live_table("a", "t")}
    hidden = plan([ns("b", renamed_from=("a",))], live, ignore=("a.t",))
    assert only(hidden, RenameNamespace).blocked_by == "not_owned"
    declared = plan([ns("b", renamed_from=("a",)), table("a", "t")], live)
    assert only(declared, RenameNamespace).blocked_by == "rename_conflict"


def test_what_takes_the_old_name_of_a_namespace_needs_the_rename() -> None:
    result = plan([ns("a"), ns("b", renamed_from=("a", "x")), table("a", "x")], {("a",): SPACE, ("a", "x"): SPACE})
    rename, declare = only(result, RenameNamespace), only(result, DeclareTable)
    assert declare.needs == (rename.id,)


def test_an_index_needs_new_columns_only_if_it_is_on_one_of_them() -> None:
    """A backfill waits for casts, which can fail: an index of another column does not."""
    new = replace(columns(new="int64")[0], default="0")
    indexes = (Index("id_idx", "id", "btree"), Index("new_idx", "new", "btree"))
    wanted = [ns("a"), table("a", "t", fields=(*ID, new), indexes=indexes)]
    result = plan(wanted, {("a",): SPACE, **T}, PlanOptions(data_plane=None))
    backfill = only(result, BackfillColumns)
    needs = {s.change.index.column: s.needs for s in result.steps if isinstance(s.change, CreateIndex)}
    assert backfill.id in needs["new"]
    assert backfill.id not in needs["id"]


def test_data_that_cannot_be_taken_over_is_not_changed() -> None:
    """The entry is ours, the data is not: without the adopt there is no other step."""
    live = live_table("a", "t", owner=None)
    live = replace(live, state=replace(live.state, marks=US))
    the_catalog = MemoryCatalog(World(Snapshot({("a",): SPACE}, {("a", "t"): live}), place))
    desired = Desired(
        {"lake": CatalogSpec("lake", "memory", {}, Management("us"), HERE)},
        {"lake": {("a",): ns("a")}},
        {"lake": {("a", "t"): table("a", "t", fields=(*ID, *columns(more="int64")))}},
    )
    snapshot = replace(
        observe(the_catalog, scope_of(desired, "lake")), unsupported=(Unsupported((), "AdoptTable", "not here"),)
    )
    result = make_plan(desired, {"lake": snapshot}, {"lake": MemoryCapabilities()}, PlanOptions(adopt=True))
    assert {s.verdict for s in result.steps} == {"unsupported"}


@pytest.mark.parametrize("owner", [None, "us"])
def test_data_inside_another_table_is_not_taken_over(owner: str | None) -> None:
    """Whoever the entry belongs to: cleaning up the outer table would delete what is inside it."""
    inner = live_table("a", "t", owner=None)
    inner = Present(replace(inner.state, location=f"{place(('a', 'u'))}/data/inner", marks=Marks(owner)))
    live = {("a",): SPACE, ("a", "t"): inner, ("a", "u"): live_table("a", "u", owner="them")}
    result = plan([ns("a"), table("a", "t", fields=columns(id="int64", more="int64"))], live, PlanOptions(adopt=True))
    assert steps(result) == []
    assert {s.blocked_by for s in result.steps} == {LOCATION_CONFLICT}
    assert "is inside table a.u" in result.steps[0].reason


@pytest.mark.parametrize("inside", [("a", "t", "u"), ("z",)])
def test_the_data_of_a_table_that_goes_keeps_others_from_being_made_around_it(inside: Ident) -> None:
    """Its entry goes in this plan and its data stays: the table waits, now and in the next plan."""
    there = live_table(*inside)
    assert isinstance(there.state, TableState)
    there = Present(replace(there.state, location="s3://lake/a/t/u", dataset=UNKNOWN))
    desired = Desired(
        {"lake": CatalogSpec("lake", "memory", {}, Management("us"), HERE)},
        {"lake": {("a",): ns("a")}},
        {"lake": {("a", "t"): table("a", "t")}},
    )
    snapshot = Snapshot({("a",): SPACE}, {inside: there})
    chooses = MemoryCapabilities(chooses_location=True, root="s3://lake")
    result = make_plan(desired, {"lake": snapshot}, {"lake": chooses}, PRUNE)
    assert steps(result) == [("deregister_table", inside)]
    assert {s.blocked_by for s in result.steps if s.verdict == "blocked"} == {LOCATION_CONFLICT}


def test_a_namespace_is_not_moved_into_itself() -> None:
    result = plan([ns("a", "b", renamed_from=("a",))], {("a",): SPACE})
    assert only(result, RenameNamespace).blocked_by == "rename_conflict"


@pytest.mark.parametrize("source", [("a", "x"), ("b",)])
@pytest.mark.parametrize("marks", [Marks(), Marks("them"), Marks("us", protect=True), US], ids=str)
def test_a_namespace_is_not_moved_to_where_something_is_live(source: Ident, marks: Marks) -> None:
    """`a.t` is there although `a` is not. What moves there would take its name, and `--prune` the table."""
    found = live_table("a", "t", owner=marks.owner)
    assert isinstance(found.state, TableState)
    there = Present(replace(found.state, marks=marks))
    live = {source: SPACE, (*source, "t"): live_table(*source, "t"), ("a", "t"): there}
    result = plan([ns("a", renamed_from=source)], live, PRUNE)
    rename = only(result, RenameNamespace)
    assert (rename.blocked_by, "live without its namespace" in rename.reason) == (TWO_APPLIES, True)
    assert steps(result) == ([("deregister_table", ("a", "t"))] if marks == US else [])
    world = World(Snapshot({source: SPACE}, {i: f for i, f in live.items() if i[-1] == "t"}), place)
    with pytest.raises(CatalogError, match="is live below the new name"):
        world.apply(RenameNamespace(("a",), source))
    assert world.tables[("a", "t")] == there


def test_a_namespace_is_moved_below_one_that_is_made_first() -> None:
    """One thing after the other, and the rest of the plan at once."""
    live = {("a",): SPACE, ("a", "sub"): SPACE, ("a", "sub", "u"): live_table("a", "sub", "u")}
    wanted = [ns("a"), ns("c"), ns("c", "sub", renamed_from=("a", "sub"))]
    first = plan(wanted, live, PRUNE)
    assert steps(first) == [("create_namespace", ("c",))]
    rename = only(first, RenameNamespace)
    assert (rename.blocked_by, "namespace c has to be there first" in rename.reason) == (TWO_APPLIES, True)
    assert ("rename_namespace", ("c", "sub")) in steps(plan(wanted, {**live, ("c",): SPACE}, PRUNE))


def test_a_namespace_is_not_said_to_move_next_below_one_that_cannot_be_made_yet() -> None:
    """A table has the name of the parent: the parent takes two applies, and the move comes after it."""
    live = {("a",): SPACE, ("a", "sub"): SPACE, ("c",): live_table("c")}
    wanted = [ns("a"), ns("c"), ns("c", "sub", renamed_from=("a", "sub"))]
    rename = only(plan(wanted, live, PRUNE), RenameNamespace)
    assert (rename.blocked_by, rename.reason) == (
        PARENT_BLOCKED,
        "needs namespace c, which is blocked; renamed from a.sub",
    )
    second = only(plan(wanted, {("a",): SPACE, ("a", "sub"): SPACE}, PRUNE), RenameNamespace)
    assert second.blocked_by == TWO_APPLIES


def test_an_unreadable_namespace_is_not_renamed() -> None:
    live: dict[Ident, Present | Unreadable] = {("a",): Unreadable(Code.PERMISSION_DENIED, "no")}
    result = plan([ns("b", renamed_from=("a",))], live, PlanOptions(adopt=True))
    assert only(result, RenameNamespace).blocked_by == "unreadable"


def test_an_old_name_is_not_deleted_while_its_rename_is_held_back() -> None:
    live = {("a",): SPACE, ("a", "x"): live_table("a", "x", owner="them")}
    wanted = [ns("a", absent=True), ns("b", renamed_from=("a",))]
    assert steps(plan(wanted, live)) == []


def test_an_ignored_namespace_is_a_parent_like_any_other() -> None:
    result = plan([table("a", "t")], {("a",): SPACE}, ignore=("a",))
    assert steps(result) == [("declare_table", ("a", "t")), ("create_dataset", ("a", "t"))]
    with pytest.raises(PlanError):
        plan([table("b", "t")], {("a",): SPACE}, ignore=("a",))


def test_a_name_changes_its_kind_in_two_applies() -> None:
    wanted = [ns("a"), ns("a", "x", absent=True), table("a", "x")]
    first = plan(wanted, {("a",): SPACE, ("a", "x"): SPACE})
    assert steps(first) == [("drop_namespace", ("a", "x"))]
    assert steps(first, "blocked") == [("declare_table", ("a", "x")), ("create_dataset", ("a", "x"))]
    assert steps(plan(wanted, {("a",): SPACE})) == [("declare_table", ("a", "x")), ("create_dataset", ("a", "x"))]


def test_a_namespace_whose_content_waits_for_a_name_is_dropped_in_the_next_apply() -> None:
    """The table `a.x` gives its name to the namespace `b.x.p` one apply later, and only then is `b.x` empty."""
    live = {("a",): SPACE, ("b",): SPACE, ("b", "x"): SPACE, ("b", "x", "p"): SPACE, ("a", "x"): live_table("a", "x")}
    wanted = [ns("a"), ns("b"), ns("a", "x", renamed_from=("b", "x", "p"))]
    first = plan(wanted, live, PlanOptions(prune=True))
    assert steps(first) == [("deregister_table", ("a", "x"))]
    assert ("drop_namespace", ("b", "x")) in steps(first, "blocked")


def test_a_namespace_moves_once_a_table_of_others_has_left_it() -> None:
    live = {("a",): SPACE, ("a", "t"): live_table("a", "t", owner="them")}
    wanted = [ns("b", renamed_from=("a",)), ns("c"), table("c", "t", renamed_from=("a", "t"))]
    first = plan(wanted, live, PlanOptions(take_over=frozenset({"them"})))
    assert ("rename_table", ("c", "t")) in steps(first)
    assert [s.blocked_by for s in first.steps if s.action == "rename_namespace"] == [TWO_APPLIES]


# -- columns ----------------------------------------------------------------------------------------------------------

RUNS = PlanOptions(data_plane=None)


def on_table(want: DesiredTable, live: Present, options: PlanOptions = RUNS) -> Plan:
    return plan([ns("a"), want], {("a",): SPACE, ("a", "t"): live}, options)


def test_a_rewrite_leaves_out_nothing_that_nobody_allowed_to_drop() -> None:
    want = table("a", "t", fields=columns(s="struct<x: int64, new: string>"))
    result = on_table(want, live_table("a", "t", fields=columns(s="struct<x: string, keep: int32>")))
    change = only(result, RewriteColumns).change
    assert isinstance(change, RewriteColumns)
    assert str(change.fields[0].type) == "struct<x: int64, new: string, keep: int32>"
    assert steps(result, "blocked") == [("drop_columns", ("a", "t"))]


def test_a_rewrite_does_not_narrow_or_forbid_nulls_by_the_way() -> None:
    want = table("a", "t", fields=columns(s="struct<x: int64, n: int8 not null>"))
    result = on_table(want, live_table("a", "t", fields=columns(s="struct<x: string, n: int32>")))
    change = only(result, RewriteColumns).change
    assert isinstance(change, RewriteColumns)
    assert str(change.fields[0].type) == "struct<x: int64, n: int32>"
    assert [s.blocked_by for s in result.steps if s.verdict == "blocked"] == ["allow:narrow_type", "allow:set_not_null"]


def test_the_last_field_of_a_declared_struct_is_not_dropped() -> None:
    """Lance would drop the column with it."""
    want = table("a", "t", fields=columns(id="int64", s="struct<x: int64>"), allow=("drop_column",))
    live = live_table("a", "t", fields=columns(id="int64", s="struct<old: int64>"))
    result = on_table(want, live, PlanOptions())
    assert steps(result) == []
    assert steps(result, "blocked") == [("rewrite_columns", ("a", "t")), ("drop_columns", ("a", "t"))]


def test_a_cast_that_cannot_be_done_does_not_cost_us_our_index() -> None:
    mine, theirs = Index("mine", "id", "btree"), Index("theirs", "id", "bitmap")
    want = table("a", "t", indexes=(mine,))
    live = live_table("a", "t", fields=columns(id="int32"), indexes=(mine, theirs), applied=("index:mine",))
    result = on_table(want, live)
    assert steps(result) == []
    allowed = on_table(replace(want, allow=("drop_index",)), live)
    assert [a for a, _ in steps(allowed)] == ["alter_columns", "create_index"]
    cast = allowed.steps[0]
    assert isinstance(cast.change, AlterColumns)
    assert (cast.change.loses, cast.risk) == (("mine", "theirs"), "destructive")


def test_a_table_whose_data_is_gone_has_no_data_of_another_one() -> None:
    """Its entry says where it was: data that is elsewhere is attached in the plan that makes it again."""
    there = TableState("s3://lake/b", {}, US, None, gone=True)
    gone = Unreadable(Code.INVALID_TABLE_STATE, "the data of b is gone", owner="us", gone=there)
    left = DatasetState(ID, owner="us", empty=False)
    wanted = {("a", "t"): table("a", "t"), ("a", "b"): table("a", "b", allow=("recreate",))}
    desired = Desired(
        {"lake": CatalogSpec("lake", "memory", {}, Management("us"), HERE)},
        {"lake": {("a",): ns("a")}},
        {"lake": wanted},
    )
    snapshot = Snapshot({("a",): SPACE}, {("a", "t"): Detached("s3://lake/x", left), ("a", "b"): gone})
    made = make_plan(desired, {"lake": snapshot}, {"lake": MemoryCapabilities()}, PlanOptions())
    assert steps(made) == [("create_dataset", ("a", "b")), ("declare_table", ("a", "t"))]


def test_a_cast_that_fails_holds_up_no_index_of_another_column() -> None:
    """Both columns allow nulls from now on. That is one step, unless one of them is cast first."""
    want = table("a", "t", fields=columns(id="int64", x="int32"), indexes=(Index("mine", "id", "btree"),))
    fields = tuple(replace(f, nullable=False) for f in columns(id="int64", x="string"))
    live = live_table("a", "t", fields=fields, empty=True)
    result = on_table(want, live)
    cast = next(s for s in result.steps if isinstance(s.change, AlterColumns) and s.change.columns[0].type)
    waiting = {cast.id}
    for step in result.steps:
        waiting |= {step.id} if waiting.intersection(step.needs) else set()
    freed = [s for s in result.steps if isinstance(s.change, AlterColumns) and s.change.columns[0].nullable]
    assert [tuple(c.path for c in s.change.columns) for s in freed] == [("id",), ("x",)]  # type: ignore[union-attr]
    assert [s.id in waiting for s in (*freed, only(result, CreateIndex))] == [False, True, False]


def test_an_index_goes_after_the_one_that_comes_for_its_column() -> None:
    """Whatever their names and types: the column is not without one, and keeps it when the new one cannot be built."""
    fields = columns(id="int64", other="int64")
    indexes = (Index("old", "id", "btree"), Index("unused", "other", "btree"))
    live = live_table("a", "t", fields=fields, indexes=indexes, applied=("index:old", "index:unused"))
    want = table("a", "t", fields=fields, indexes=(Index("new", "id", "bitmap"),), allow=("drop_index",))
    result = on_table(want, live)
    assert [(s.action, getattr(s.change, "name", "")) for s in result.steps] == [
        ("drop_index", "unused"),
        ("update_table", ""),
        ("create_index", ""),
        ("drop_index", "old"),
        ("update_table", ""),
    ]
    _, first, create, drop, last = result.steps
    assert create.id in drop.needs
    assert (first.change.applied, last.change.applied) == (("index:new", "index:old"), ("index:new",))  # type: ignore[union-attr]
    assert [s.action for s in on_table(replace(want, allow=()), live).steps if s.verdict == "allowed"] == [
        "update_table",
        "create_index",
    ]


def test_an_index_moves_to_another_column_after_the_one_that_comes_for_its_own() -> None:
    fields = columns(id="int64", other="int64")
    live = live_table("a", "t", fields=fields, indexes=(Index("i", "id", "btree"),), applied=("index:i",))
    want = table("a", "t", fields=fields, indexes=(Index("i", "other", "btree"), Index("n", "id", "btree")))
    assert [s.action for s in on_table(want, live).steps] == ["update_table", "create_index", "replace_index"]


def test_an_index_whose_drop_is_held_back_is_still_ours_afterwards() -> None:
    index = Index("mine", "id", "btree")
    live = live_table("a", "t", indexes=(index,), applied=("config:old", "index:mine"), config={"old": "1"})
    result = on_table(table("a", "t"), live)
    (update,) = [s for s in result.steps if s.verdict == "allowed"]
    assert update.change.applied == ("index:mine",)  # type: ignore[union-attr]


def test_a_column_rename_that_was_done_but_not_noted_keeps_what_was_ours() -> None:
    """The run was killed in between: the comment that we set under the old name is still ours to remove."""
    want = table("a", "t", fields=(Field("new", ID[0].type, renamed_from="old"),))
    live = live_table("a", "t", fields=(Field("new", ID[0].type, comment="ours"),), applied=("field:old:comment",))
    (update,) = on_table(want, live).steps
    assert update.change.fields == {"new": {"comment": None}}  # type: ignore[union-attr]


def test_nested_renames_are_followed_from_the_outside_in() -> None:
    assert rename_path("a.x.deep", {"a": "b", "b.x": "y"}) == "b.y.deep"


@pytest.mark.parametrize("where", ["table", "namespace"])
def test_the_description_can_be_left_to_others(where: str) -> None:
    properties = {"description": "ours", "k": "1"}
    more = {"properties": properties, "ignore_differences": ("description",)}
    wanted = ns("a", **more) if where == "namespace" else table("t", **more)
    theirs = {"description": "theirs", "k": "1"}
    state = NamespaceState(theirs, Marks("us", False, ("k",)))
    found = live_table("t")
    assert isinstance(found.state, TableState)
    live = replace(found.state, properties=theirs, marks=Marks("us", False, ("k",)))
    seen: dict[Ident, Present | Unreadable] = (
        {("a",): Present(state)} if where == "namespace" else {("t",): Present(live)}
    )
    assert plan([wanted], seen).steps == ()


@pytest.mark.parametrize(("left", "key"), [("properties.gone", "gone"), ("properties", "gone"), ("description",) * 2])
@pytest.mark.parametrize("there", [False, True])
def test_what_is_gone_and_left_to_others_is_noted_only_when_it_comes_back(left: str, key: str, there: bool) -> None:
    """On a namespace and on a table."""
    marks, properties = Marks("us", False, (key,)), {key: "theirs"} if there else {}
    found = live_table("t")
    assert isinstance(found.state, TableState)
    seen: dict[Ident, Present | Unreadable] = {
        ("a",): Present(NamespaceState(properties, marks)),
        ("t",): Present(replace(found.state, properties=properties, marks=marks)),
    }
    wanted = [ns("a", ignore_differences=(left,)), table("t", ignore_differences=(left,))]
    result = plan(wanted, seen)
    assert steps(result) == ([("update_namespace", ("a",)), ("update_table", ("t",))] if there else [])
    for step in result.steps:
        assert step.change.unset == ()  # type: ignore[union-attr]
    assert steps(plan([ns("a"), table("t")], seen)) == [("update_namespace", ("a",)), ("update_table", ("t",))]


@pytest.mark.parametrize("key", ["comment", "type", "unit.comment", "plain", "metadata"])
def test_a_key_of_a_column_that_is_gone_and_left_to_others(key: str) -> None:
    """The column may be gone with it. When it is back it is theirs, and so is what they say about it."""
    left = "schema.x.comment" if key == "comment" else f"schema.x.metadata.{key}"
    want = table("a", "t", fields=ID, at_least=True, ignore_differences=(left,))
    noted = (f"field:x:{key}",)
    for there in (ID, (*ID, replace(ID[0], name="x"))):
        assert on_table(want, live_table("a", "t", fields=there, applied=noted)).steps == ()
    said = {"comment": "theirs"} if key == "comment" else {"metadata": {key: "theirs"}}
    back = replace(ID[0], name="x", **said)  # type: ignore[arg-type]
    (step,) = on_table(want, live_table("a", "t", fields=(*ID, back), applied=noted)).steps
    assert (step.change.fields, step.change.applied) == ({}, ())  # type: ignore[union-attr]


def test_a_new_column_has_nothing_that_is_left_to_others() -> None:
    new = Field("x", ID[0].type, comment="c", metadata={"k": "1", "l": "2"})
    want = table("a", "t", fields=(*ID, new), ignore_differences=("schema.x.comment", "schema.x.metadata.k"))
    change = only(on_table(want, live_table("a", "t")), AddColumns).change
    assert change.fields == (Field("x", ID[0].type, metadata={"l": "2"}),)  # type: ignore[union-attr]
    inner = Struct((Field("i", ID[0].type, comment="c"), Field("j", ID[0].type, comment="d")))
    want = table("a", "t", fields=(*ID, Field("s", inner)), ignore_differences=("schema.s.i.comment",))
    change = only(on_table(want, live_table("a", "t")), AddColumns).change
    assert [f.comment for f in change.fields[0].type.fields] == [None, "d"]  # type: ignore[union-attr]


@pytest.mark.parametrize("allow", [(), ("drop_index",)])
def test_an_index_of_others_under_a_name_that_is_left_to_them(allow: tuple[str, ...]) -> None:
    """We made one of that name once, and our record says so. It is not theirs that goes."""
    want = table("a", "t", ignore_differences=("indexes.i",), allow=allow)
    assert on_table(want, live_table("a", "t", applied=("index:i",))).steps == ()
    (step,) = on_table(want, live_table("a", "t", indexes=(Index("i", "id", "bitmap"),), applied=("index:i",))).steps
    assert (step.action, step.change.applied) == ("update_table", ())  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "live", [columns(id="int64"), columns(id="int64", x="string"), columns(id="int64", old="int8")]
)
def test_an_ignored_column_is_neither_added_nor_changed_nor_renamed(live: tuple[Field, ...]) -> None:
    x = Field("x", parse_type("int8"), comment="ours", renamed_from="old")
    want = table("a", "t", fields=(*ID, x), ignore_differences=("schema.x",), at_least=True)
    assert on_table(want, live_table("a", "t", fields=live)).steps == ()


# -- the self-check ---------------------------------------------------------------------------------------------------


def test_a_plan_that_does_not_do_what_it_says_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated catalog loses properties: what a step yields there is not what the step says."""
    monkeypatch.setattr("reconciler.core.world.edited", lambda old, changes, unset: dict(old))
    with pytest.raises(InternalError, match="update_namespace a"):
        plan([ns("a", properties={"k": "1"})], {("a",): SPACE})


@pytest.mark.parametrize("allow", [(), ("drop_column",)])
def test_a_column_that_holds_values_stays(allow: tuple[str, ...]) -> None:
    """New columns have no data files: rows without any other column could not be read again. With the word given
    later the drop would come alone, so the addition does not go ahead either."""
    result = on_table(table("a", "t", fields=columns(z="string"), allow=allow), live_table("a", "t"))
    assert steps(result) == []
    assert steps(result, "unsupported") == [("add_columns", ("a", "t")), ("drop_columns", ("a", "t"))]
    assert all("no column that is there now would stay" in s.reason for s in result.steps)


def test_one_old_column_is_enough() -> None:
    want = table("a", "t", fields=columns(id="int64", z="string"), allow=("drop_column",))
    result = on_table(want, live_table("a", "t", fields=columns(id="int64", n="int64")))
    assert [a for a, _ in steps(result)] == ["add_columns", "drop_columns"]
    renamed = table("a", "t", fields=(Field("z", parse_type("int64"), renamed_from="id"),), allow=("drop_column",))
    result = on_table(renamed, live_table("a", "t", fields=columns(id="int64", n="int64")))
    assert [a for a, _ in steps(result)] == ["alter_columns", "drop_columns"]


def test_what_is_as_declared_says_whose_it_is_by_its_data_too() -> None:
    """Where the entry has no mark, that in the data counts: `--adopt` would not take it."""
    marked = Present(TableState(place(("a", "t")), {}, Marks(), DatasetState(ID, owner="them")))
    ours = Present(TableState(place(("a", "u")), {}, Marks(), DatasetState(ID, owner="us")))
    live = {("a",): SPACE, ("a", "t"): marked, ("a", "u"): ours}
    result = plan([ns("a"), table("a", "t"), table("a", "u")], live)
    assert [key.ident for key in result.unowned] == [("a", "t"), ("a", "u")]
    assert {key.ident: owner for key, owner in result.owners.items()} == {("a", "t"): "them"}
    wider = table("a", "t", fields=(*ID, *columns(new="int8")))
    assert {s.blocked_by for s in plan([ns("a"), wider], live, PlanOptions(adopt=True)).steps} == {"foreign_owner"}
