"""Rules for catalogs that cannot do everything, one by one; the golden cases show whole plans of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from reconciler.catalog.memory import MemoryCapabilities
from reconciler.core import planner
from reconciler.core.errors import InternalError
from reconciler.core.fingerprint import fingerprint
from reconciler.core.options import PlanOptions
from reconciler.core.plan_catalog import CatalogPlan, plan_catalog
from reconciler.core.uris import canonical_location, contains, folders_above, store_endpoints
from reconciler.manifest.emit import export
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import (
    AdoptNamespace,
    AdoptTable,
    Change,
    DeclareTable,
    ReplaceTable,
    SyncColumns,
    UpdateTable,
)
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import Code, ReadError
from reconciler.model.ident import Ident
from reconciler.model.observed import Detached, Gap, Present, Snapshot, Unreadable
from reconciler.model.plan import Plan
from reconciler.model.state import Column, DatasetState, Marks, NamespaceState, TableState

HERE = Source("here.yaml")
US = Marks("us")
ID = (Field("id", parse_type("int64")),)
TWO = (*ID, Field("n", parse_type("string")))
CASED = (Field("id", parse_type("int64")), Field("ID", parse_type("int64")))
GLUE = MemoryCapabilities(chooses_location=True, root="s3://lake", shows_columns=True, folds_names=True)
UNITY = replace(GLUE, replaces_tables=True, folds_names=False)
T: Ident = ("a", "t")
SPACE = Present(NamespaceState({}, US))


def table(fields: tuple[Field, ...] | None = ID, **more: object) -> DesiredTable:
    return DesiredTable("lake", T, HERE, fields=fields, **more)  # type: ignore[arg-type]


def live(fields: tuple[Field, ...], columns: tuple[Column, ...] | None, owner: str | None = "us") -> Present:
    marks = Marks(owner) if owner else Marks()
    return Present(TableState("s3://lake/a/t", {}, marks, DatasetState(fields, owner=owner), columns))


def plan(
    kind: MemoryCapabilities,
    want: DesiredTable,
    found: Present | Detached | None,
    options: PlanOptions = PlanOptions(),  # noqa: B008
) -> Plan:
    spaces = {("a",): DesiredNamespace("lake", ("a",), HERE)}
    spec = CatalogSpec("lake", "memory", {}, Management("us"), HERE)
    desired = Desired({"lake": spec}, {"lake": spaces}, {"lake": {T: want}})
    snapshot = Snapshot({("a",): SPACE}, {T: found} if found is not None else {})
    return planner.make_plan(desired, {"lake": snapshot}, {"lake": kind}, options)


def kinds(the_plan: Plan, verdict: str = "allowed") -> list[type[Change]]:
    return [type(s.change) for s in the_plan.steps if s.verdict == verdict]


def stale(the_plan: Plan) -> tuple[Ident, ...]:
    return the_plan.catalogs["lake"].projection_stale


def test_no_columns_are_compared_where_the_catalog_gives_none() -> None:
    assert plan(GLUE, table(), live(ID, None)).steps == ()
    assert plan(UNITY, table(), live(ID, None)).steps == ()


def test_the_order_of_columns_is_not_compared() -> None:
    columns = GLUE.columns_of(TWO)
    assert columns is not None
    assert plan(GLUE, table(TWO), live(TWO, columns[::-1])).steps == ()
    one, other = (Present(TableState("x", columns=c)) for c in (columns, columns[::-1]))
    assert fingerprint(one) == fingerprint(other) != fingerprint(Present(TableState("x")))


def test_columns_follow_what_was_done_and_not_what_was_held_back() -> None:
    """`n` may not be dropped: it is still in the data, so the catalog goes on showing it."""
    found = plan(GLUE, table(ID), live(TWO, GLUE.columns_of(ID)))
    (sync,) = (s.change for s in found.steps if isinstance(s.change, SyncColumns))
    assert [c.name for c in sync.columns] == ["id", "n"]


def test_a_table_without_a_schema_is_declared_with_no_columns_and_shows_them_later() -> None:
    declared = plan(GLUE, table(None), None).steps[-1].change
    assert isinstance(declared, DeclareTable)
    assert declared.columns == ()
    assert kinds(plan(GLUE, table(None), live(ID, ()))) == [SyncColumns]


def test_a_schema_that_the_catalog_cannot_show_is_unsupported_and_harms_nothing() -> None:
    the_plan = plan(GLUE, table(None), live(CASED, ()))
    assert kinds(the_plan) == []
    assert kinds(the_plan, "unsupported") == [SyncColumns]
    assert "differ only in case" in the_plan.steps[0].reason


def test_data_that_the_catalog_cannot_show_is_attached_without_columns() -> None:
    found = Detached("s3://lake/a/t", DatasetState(CASED, owner="us"))
    the_plan = plan(GLUE, table(None), found)
    declared = the_plan.steps[0].change
    assert isinstance(declared, DeclareTable)
    assert declared.columns == ()
    assert kinds(the_plan, "unsupported") == [SyncColumns]


@pytest.mark.parametrize("word", ["manifest", "command line"])
def test_the_word_that_allows_a_replacement_comes_from_either_side(word: str) -> None:
    want = table(TWO, allow=("replace_table",) if word == "manifest" else ())
    options = PlanOptions(allow=frozenset({"replace_table"} if word == "command line" else ()))
    the_plan = plan(UNITY, want, live(TWO, UNITY.columns_of(ID)), options)
    assert kinds(the_plan) == [ReplaceTable]
    assert stale(the_plan) == ()


def test_a_stale_projection_is_listed_and_is_no_step() -> None:
    the_plan = plan(UNITY, table(TWO), live(TWO, UNITY.columns_of(ID)))
    assert the_plan.steps == ()
    assert not the_plan.has_changes
    assert stale(the_plan) == (T,)


def test_the_projection_of_an_unowned_table_is_never_stale() -> None:
    the_plan = plan(UNITY, table(TWO), live(TWO, (), owner=None))
    assert (the_plan.steps, stale(the_plan)) == ((), ())


def test_marks_alone_replace_nothing() -> None:
    the_plan = plan(UNITY, table(protect=True), live(ID, UNITY.columns_of(ID)))
    (step,) = the_plan.steps
    assert isinstance(step.change, UpdateTable)
    assert (step.change.set, step.change.unset) == ({}, ())


def test_a_replacement_keeps_what_others_set() -> None:
    found = live(ID, UNITY.columns_of(ID))
    assert isinstance(found.state, TableState)
    found = Present(replace(found.state, properties={"theirs": "1", "ours": "1"}, marks=Marks("us", False, ("ours",))))
    the_plan = plan(UNITY, table(properties={"new": "1"}, allow=("replace_table",)), found)
    (change,) = (s.change for s in the_plan.steps)
    assert isinstance(change, ReplaceTable)
    assert (change.set, change.unset) == ({"new": "1"}, ("ours",))
    assert change.columns == UNITY.columns_of(ID), "all of them: the new entry has to show them too"


@dataclass(frozen=True)
class NoAdoption(MemoryCapabilities):
    def refuses(self, change: Change) -> str | None:
        return "no marks here" if isinstance(change, (AdoptTable, AdoptNamespace)) else None


def test_what_cannot_be_taken_over_is_not_changed() -> None:
    the_plan = plan(NoAdoption(), table(TWO, properties={"k": "v"}), live(ID, None, None), PlanOptions(adopt=True))
    assert kinds(the_plan) == []
    assert {s.verdict for s in the_plan.steps} == {"unsupported"}


def test_two_new_tables_do_not_share_a_place() -> None:
    spec = CatalogSpec("lake", "memory", {}, Management("us"), HERE)
    tables = {i: DesiredTable("lake", i, HERE, fields=ID, location=at) for i, at in (
        (("t",), "s3a://lake/x/"), (("u",), "s3://lake/x"),
    )}  # fmt: skip
    with pytest.raises(planner.PlanError, match="is table t already"):
        planner.make_plan(
            Desired({"lake": spec}, {}, {"lake": tables}), {"lake": Snapshot({}, {})}, {"lake": GLUE}, PlanOptions()
        )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3a://lake/t/", "s3://lake/t"),
        ("s3n://lake/t", "s3://lake/t"),
        ("S3N://lake/t/", "s3a://lake/t"),
        ("file:///lake/a%20b", "/lake/a b"),
        ("file:/lake/x/../t", "/lake/t"),
        ("/lake/t/", "/lake/t"),
        ("/lake//x/.././t/.", "/lake/t"),
        ("FILE://localhost/lake/t", "/lake/t"),
        ("file:////lake/t", "/lake/t"),
        ("file:///lake/%2e%2e/t", "/t"),
        ("/../lake/t", "/lake/t"),
        ("S3://Lake/x//../t", "s3://lake/t"),
        ("s3://lake/../t", "s3://lake/t"),
        ("s3://lake/a%20b", "s3://lake/a b"),
        ("gcs://lake/t", "gs://lake/t"),
        ("azure://lake/t", "az://lake/t"),
        ("wasb://c@a/t", "wasbs://c@a/t"),
        ("abfs://c@a/t", "abfss://c@a/t"),
        ("s3://lake/", "s3://lake"),
        ("s3://lake/t?v=1", "s3://lake/t"),
        ("s3://lake/t/?v=1#x", "s3://lake/t"),
        ("s3://lake/t#/x", "s3://lake/t"),
        ("s3://lake:443/t", "s3://lake/t"),
        (" s3://lake/t\t\n", "s3://lake/t"),
        ("s3://lake/x\t/../t", "s3://lake/t"),
        ("s3+ddb://lake/t?ddbTableName=x", "s3://lake/t"),
        ("file-object-store:///lake/t", "/lake/t"),
        ("FILE+uring:///lake/x/../t", "/lake/t"),
        ("/", "/"),
    ],
)
def test_one_place_has_one_text(one: str, other: str) -> None:
    assert canonical_location(one) == canonical_location(other)


def test_places_that_differ_have_different_texts() -> None:
    texts = ["s3://lake/t", "s3://lake/T", "gs://lake/t", "/lake/t", "lake/t", "./lake/t", "../lake/t", "s3://lake"]
    texts += ["s3://lake/t2", "s3://t/lake", "/lake/a%20b", "/lake/a b", "s3://lake/a%2520b", "s3://lake/a%20b"]
    texts += [
        "s3://lake/t%3Fv",
        "s3://lake/t%23v",
        "/lake/t?v",
        "/lake/t#v",
        "/lake/t ",
        "file:///lake/t%3f",
        "filer:///t",
    ]
    assert len({canonical_location(t) for t in texts}) == len(texts)


def test_one_endpoint_has_one_text() -> None:
    texts = ("http://Minio:9000", "http://minio:9000/")
    one, other = (store_endpoints({"storage.endpoint": text, "storage.region": "x"}) for text in texts)
    assert one == other == ("http://minio:9000",)


@pytest.mark.parametrize(
    ("location", "above"),
    [
        ("/a/b/c", ["/a/b", "/a", "/"]),
        ("/", []),
        ("s3://b/x/y", ["s3://b/x", "s3://b"]),
        ("s3://b", []),
    ],
)
def test_the_folders_above(location: str, above: list[str]) -> None:
    assert list(folders_above(location)) == above
    assert all(contains(folder, location) for folder in above)
    assert not contains(location, location)
    assert not contains(location, f"{location.rstrip('/')}2/x") or location == "/"


def test_a_container_is_a_parent_and_nothing_else() -> None:
    """Even with our mark on it: it is not counted, not an orphan, not pruned, and not imported."""
    spec = CatalogSpec("lake", "memory", {}, Management("us"), HERE)
    snapshot = Snapshot({("wh",): SPACE, ("wh", "a"): SPACE}, {})
    kind = MemoryCapabilities(container_depth=1)
    want = {("wh", "b", "t"): DesiredTable("lake", ("wh", "b", "t"), HERE, fields=ID)}
    spaces = {("wh", "b"): DesiredNamespace("lake", ("wh", "b"), HERE)}
    desired = Desired({"lake": spec}, {"lake": spaces}, {"lake": want})
    reported = planner.make_plan(desired, {"lake": snapshot}, {"lake": kind}, PlanOptions())
    assert [k.ident for k in reported.orphans] == [("wh", "a")]
    assert reported.catalogs["lake"].namespaces == 1
    pruned = planner.make_plan(desired, {"lake": snapshot}, {"lake": kind}, PlanOptions(prune=True))
    assert [s.change.ident for s in pruned.steps if s.deletes] == [("wh", "a")]
    emitted = export(spec, snapshot, kind.type_problem, kind.ident_problem)
    assert "id: [wh, a]" in emitted.text
    assert "[wh]" not in emitted.text
    assert emitted.warnings == ()


SABOTAGED = {"the columns are not synced": (GLUE, SyncColumns), "the entry is not replaced": (UNITY, ReplaceTable)}


@pytest.mark.parametrize("name", SABOTAGED)
@pytest.mark.parametrize("always", [False, True])
def test_the_self_check_misses_the_columns(monkeypatch: pytest.MonkeyPatch, name: str, always: bool) -> None:
    kind, change = SABOTAGED[name]
    calls = 0

    def broken(*args: object) -> CatalogPlan:
        nonlocal calls
        calls += 1
        the_plan = plan_catalog(*args)  # type: ignore[arg-type]
        if always or calls == 1:
            the_plan.drafts[:] = [d for d in the_plan.drafts if not isinstance(d.change, change)]
        return the_plan

    monkeypatch.setattr(planner, "plan_catalog", broken)
    want = table(TWO, allow=("replace_table",))
    with pytest.raises(InternalError, match=r"columns|needed"):
        plan(kind, want, live(ID, kind.columns_of(ID)))


HOLDER: Ident = ("b", "u")
LOST = Detached("s3://lake/a/t", DatasetState(ID, owner="us"))


def attach(**seen: object) -> Plan:
    """`t` is declared with one column more, is not in the catalog, and there is data of ours at its place."""
    spaces = {("a",): DesiredNamespace("lake", ("a",), HERE)}
    spec = CatalogSpec("lake", "memory", {}, Management("us"), HERE)
    desired = Desired({"lake": spec}, {"lake": spaces}, {"lake": {T: table(TWO)}})
    there = {"namespaces": {("a",): SPACE, ("b",): SPACE}, "tables": {T: LOST}} | seen
    return planner.make_plan(desired, {"lake": Snapshot(**there)}, {"lake": GLUE}, PlanOptions())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        ({"gaps": (Gap(("b",), Code.SERVICE_UNAVAILABLE, "no"),)}, "incomplete_listing"),
        ({"tables": {T: LOST, HOLDER: Unreadable(Code.INTERNAL, "no")}}, "unreadable"),
        ({"namespaces": {("a",): SPACE, ("b",): Unreadable(Code.PERMISSION_DENIED, "no")}}, "unreadable"),
        ({"hidden": frozenset({HOLDER}), "hidden_unread": frozenset({HOLDER})}, "incomplete_listing"),
    ],
)
def test_data_is_not_attached_while_a_table_that_may_have_it_is_not_seen(seen: dict[str, object], word: str) -> None:
    the_plan = attach(**seen)
    assert kinds(the_plan) == []
    assert the_plan.steps[0].blocked_by == word
    assert "b" in the_plan.steps[0].reason
    assert "may have this data already" in the_plan.steps[0].reason


def test_data_is_attached_beside_what_is_no_lance_table() -> None:
    view = Unreadable(Code.INVALID_INPUT, "b.u is a view, not a table", foreign=True)
    assert kinds(attach(tables={T: LOST, HOLDER: view}))[0] is DeclareTable
    assert kinds(attach(hidden=frozenset({HOLDER}), hidden_places={HOLDER: "s3://lake/b/u"}))[0] is DeclareTable


def test_data_is_not_attached_beside_what_no_answer_told_about() -> None:
    """A 400 is an error like any other: it says nothing about what is there."""
    held = attach(tables={T: LOST, HOLDER: Unreadable(Code.INVALID_INPUT, "GET b/u answered 400")})
    assert kinds(held) == []
    assert "b.u cannot be read (GET b/u answered 400), and it may have this data already" in held.steps[0].reason


def test_what_cannot_be_read_is_told_though_nobody_declares_it() -> None:
    """It may be ours, and then it is an orphan; a view is none of our business."""
    one = attach(tables={T: LOST, HOLDER: Unreadable(Code.SERVICE_UNAVAILABLE, "answered 503")}).catalogs["lake"]
    assert (one.complete, one.problems) == (
        False,
        (ReadError(Code.SERVICE_UNAVAILABLE, "b.u cannot be read: answered 503"),),
    )
    other = attach(tables={T: LOST, HOLDER: Unreadable(Code.INVALID_INPUT, "a view", foreign=True)}).catalogs["lake"]
    assert (other.complete, other.problems) == (True, ())


def test_the_data_of_an_ignored_table_is_that_tables() -> None:
    with pytest.raises(planner.PlanError) as error:
        attach(hidden=frozenset({HOLDER}), hidden_places={HOLDER: "s3a://lake/a/t/"})
    assert [d.code for d in error.value.diagnostics] == ["P104"]
    assert "b.u already" in error.value.diagnostics[0].message


def test_a_table_whose_data_is_somebody_elses_is_theirs() -> None:
    """Where the marks are kept under a root, those with another root do not see them."""
    found = Present(TableState("s3://lake/a/t", {}, Marks(), DatasetState(ID, owner="them"), UNITY.columns_of(ID)))
    held = plan(UNITY, table(TWO), found, PlanOptions(adopt=True))
    assert kinds(held) == []
    assert {s.blocked_by for s in held.steps} == {"foreign_owner"}
    taken = plan(UNITY, table(TWO), found, PlanOptions(take_over=frozenset({"them"})))
    assert kinds(taken)[0] is AdoptTable
    assert taken.steps[0].reason == "taken from them"


def test_our_entry_of_somebody_elses_data_is_ours_to_change() -> None:
    """One dataset in two catalogs: the columns are theirs, what our catalog says of them is ours."""
    found = Present(TableState("s3://lake/a/t", {}, US, DatasetState(ID, owner="them"), ()))
    mixed = plan(GLUE, table(TWO, properties={"p": "1"}), found)
    steps = [(s.change.__class__.__name__, s.verdict, s.blocked_by) for s in mixed.steps]
    assert steps == [
        ("UpdateTable", "allowed", None), ("AddColumns", "blocked", "foreign_owner"), ("SyncColumns", "allowed", None),
    ]  # fmt: skip
    shown = mixed.steps[2].change
    assert isinstance(shown, SyncColumns)
    assert shown.columns == GLUE.columns_of(ID), "those that are there"


def test_our_entry_does_not_show_columns_of_data_that_nobody_marked() -> None:
    """Somebody pointed it elsewhere: what it shows waits for --adopt as the data does."""
    found = Present(TableState("s3://lake/a/t", {}, US, DatasetState(TWO), GLUE.columns_of(ID)))
    held = plan(GLUE, table(TWO), found)
    assert [s.change.__class__.__name__ for s in held.steps if s.verdict == "allowed"] == []
    adopted = plan(GLUE, table(TWO), found, PlanOptions(adopt=True))
    assert SyncColumns in kinds(adopted)


def test_our_mark_in_the_data_alone_does_not_make_a_table_ours() -> None:
    found = Present(TableState("s3://lake/a/t", {}, Marks(), DatasetState(ID, owner="us"), GLUE.columns_of(ID)))
    assert {s.blocked_by for s in plan(GLUE, table(TWO), found).steps} == {"adopt"}
    assert kinds(plan(GLUE, table(TWO), found, PlanOptions(adopt=True)))[0] is AdoptTable
