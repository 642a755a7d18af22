"""A rename takes along what is inside. Where that was not seen in full, or not at all, nothing is moved, and nothing is
made under the new name as if the old one were not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from test_planning_rules import HERE, PRUNE, SPACE, live_table, ns, only, steps, table

from reconciler.catalog.memory import MemoryCapabilities
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan
from reconciler.model.change import RenameNamespace, RenameTable
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable, Management
from reconciler.model.errors import Code
from reconciler.model.ident import Ident
from reconciler.model.observed import Gap, Present, Snapshot, Unreadable
from reconciler.model.plan import INCOMPLETE, NOT_OWNED, UNREADABLE, Plan
from reconciler.model.state import DatasetState, Marks, TableState

Live = dict[Ident, Present | Unreadable]
LIVE: Live = {("a",): SPACE, ("a", "x"): SPACE, ("a", "x", "t"): live_table("a", "x", "t"), ("c",): SPACE}
NOT_READ = Unreadable(Code.PERMISSION_DENIED, "not for you")
MOVED = [ns("b", renamed_from=("a",)), ns("b", "x"), table("b", "x", "t"), ns("c")]
"""All that is in `a`, below its new name."""


def planned(
    wanted: Iterable[DesiredNamespace | DesiredTable],
    live: Live,
    gap: Ident | None = None,
    options: PlanOptions = PlanOptions(),  # noqa: B008
) -> Plan:
    """What is live was seen, also beside the gap: the first page showed it."""
    things = list(wanted)
    desired = Desired(
        {"lake": CatalogSpec("lake", "memory", {}, Management("us"), HERE)},
        {"lake": {o.ident: o for o in things if isinstance(o, DesiredNamespace)}},
        {"lake": {o.ident: o for o in things if isinstance(o, DesiredTable)}},
    )
    tables = {i: f for i, f in live.items() if i[-1] == "t"}
    spaces = {i: f for i, f in live.items() if i not in tables}
    gaps = () if gap is None else (Gap(gap, Code.SERVICE_UNAVAILABLE, "page 2 failed"),)
    seen = Snapshot(spaces, tables, gaps)
    return make_plan(desired, {"lake": seen}, {"lake": MemoryCapabilities()}, options)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ((), "it may be there"),
        (("a",), "its old name a may be there"),
        (("a", "x"), "the listing of a is incomplete: what is inside would move too"),
        (("a", "y"), "the listing of a is incomplete: what is inside would move too"),
        (("b",), "it may be there"),
        (("b", "x"), "the listing of b is incomplete: something may be there already"),
        (("b", "y"), "the listing of b is incomplete: something may be there already"),
    ],
)
@pytest.mark.parametrize("options", [PlanOptions(adopt=True), PRUNE], ids=["adopt", "prune"])
def test_a_namespace_is_not_moved_while_its_listing_is_incomplete(where: Ident, why: str, options: PlanOptions) -> None:
    result = planned(MOVED, LIVE, where, options)
    step = only(result, RenameNamespace)
    assert (step.verdict, step.blocked_by) == ("blocked", INCOMPLETE)
    assert why in step.reason
    assert steps(result) == [], "what is declared below the new name waits too"


@pytest.mark.parametrize("where", [("c",), ("c", "x"), ("ab",)])
def test_a_gap_elsewhere_holds_no_rename_back(where: Ident) -> None:
    result = planned(MOVED, LIVE, where)
    assert steps(result) == [("rename_namespace", ("b",))]
    assert not result.catalogs["lake"].complete


@pytest.mark.parametrize("where", [(), ("a",), ("a", "x"), ("a", "x", "t"), ("c",)])
def test_a_table_is_not_renamed_into_or_out_of_a_gap(where: Ident) -> None:
    wanted = [table("c", "t", renamed_from=("a", "x", "t"))]
    result = planned(wanted, LIVE, where, PRUNE)
    assert only(result, RenameTable).blocked_by == INCOMPLETE
    assert steps(result) == []
    elsewhere = planned(wanted, LIVE, ("a", "y"))
    assert steps(elsewhere) == [("rename_table", ("c", "t"))]


@pytest.mark.parametrize("where", [("a",), ("a", "x")])
def test_an_old_name_that_was_not_seen_is_not_taken_for_gone(where: Ident) -> None:
    """Only the new name's place is known: the table may well be in the part that is missing."""
    seen: Live = {("a",): SPACE, ("a", "x"): SPACE, ("c",): SPACE}
    result = planned([table("c", "t", renamed_from=("a", "x", "t"))], seen, where, PRUNE)
    assert steps(result) == []
    assert {s.blocked_by for s in result.steps} == {INCOMPLETE}
    assert "its old name a.x.t may be there" in result.steps[0].reason
    gone = planned([ns("c"), table("c", "t", renamed_from=("a", "x", "t"))], seen)
    assert steps(gone) == [("declare_table", ("c", "t")), ("create_dataset", ("c", "t"))], "all was seen: it is gone"


@pytest.mark.parametrize("options", [PlanOptions(), PlanOptions(adopt=True), PRUNE], ids=["plain", "adopt", "prune"])
def test_what_cannot_be_read_is_not_renamed(options: PlanOptions) -> None:
    live: Live = {("a",): NOT_READ, ("c",): SPACE, ("c", "t"): NOT_READ}
    wanted = [ns("b", renamed_from=("a",)), table("b", "t"), ns("c"), ns("d"), table("d", "t", renamed_from=("c", "t"))]
    result = planned(wanted, live, options=options)
    held = [s for s in result.steps if s.change.ident in (("b",), ("d", "t"))]
    assert [(s.verdict, s.blocked_by, "not for you" in s.reason) for s in held] == [("blocked", UNREADABLE, True)] * 2
    assert steps(result) == [("create_namespace", ("d",))], "what is next to them is made"


def test_a_table_whose_data_is_anothers_is_not_moved_along() -> None:
    """Its entry has no mark, and `--adopt` would not take it: it keeps its name."""
    inside = live_table("a", "x", "t")
    assert isinstance(inside.state, TableState)
    assert isinstance(inside.state.dataset, DatasetState)
    theirs = replace(inside.state, marks=Marks(), dataset=replace(inside.state.dataset, owner="them"))
    nobodys = replace(theirs, dataset=replace(theirs.dataset, owner=None))
    for state, blocked_by in ((theirs, NOT_OWNED), (nobodys, None)):
        live = {**LIVE, ("a", "x", "t"): Present(state)}
        plan = planned(MOVED, live, options=PlanOptions(adopt=True))
        assert [s.blocked_by for s in plan.steps if isinstance(s.change, RenameNamespace)] == [blocked_by]
