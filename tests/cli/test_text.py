"""Plans and reports for people: every step has a line, and nothing in a name can steer a terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reconciler.core.fingerprint import expect_of
from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.errors import Code, ReadError
from reconciler.model.ident import ObjectKey
from reconciler.model.observed import Absent
from reconciler.model.plan import CatalogSummary, Json, Plan, Step, Summary, Verdict
from reconciler.model.state import Column, Index, Marks
from reconciler.render.text import DRIFT, diagnostics_text, plan_text, report_text

EVIL = "x\x1b[2J\u202e\n\r\x07\x00"
FIELD = Field("n", parse_type("int64"), False)
MARKS = Marks("us")
FILLED = Field("n", parse_type("int8"), default="1 + 1")
CHANGES: list[tuple[c.Change, Json, str]] = [
    (c.CreateNamespace(("a",), {"k": "v"}, MARKS), None, '+ k = "v"'),
    (c.UpdateNamespace(("a",), {"k": "v"}, ("z",), MARKS), {"properties": {"k": "u", "z": "1"}}, '~ k = "u" -> "v"'),
    (c.AdoptNamespace(("a",), MARKS), {"marks": {"owner": "them"}}, '~ owner = "them" -> "us"'),
    (c.RenameNamespace(("a",), ("b",)), None, "~ b -> a"),
    (c.DropNamespace(("a",)), None, "drop_namespace"),
    (c.DeclareTable(("a", "t"), {}, MARKS, "s3://x"), None, '+ location = "s3://x"'),
    (c.UpdateTable(("a", "t"), {}, ("z",), Marks("us", True)), {"properties": {"z": "1"}}, '- z = "1"'),
    (
        c.UpdateDataset(("a", "t"), {"k": None}, {"m": "2"}, {"n": {"comment": "new"}}, "us", ()),
        {"config": {"k": "1"}, "fields": {"n": {"comment": "old"}}},
        '~ column n comment = "old" -> "new"',
    ),
    (c.SyncColumns(("a", "t"), (Column("n", "bigint"),)), {"columns": []}, "+ shown column n: bigint"),
    (c.ReplaceTable(("a", "t"), {"k": "v"}, (), MARKS), {"properties": {"k": "u"}}, '~ k = "u" -> "v"'),
    (c.AdoptTable(("a", "t"), MARKS), None, '+ owner = "us"'),
    (c.RenameTable(("a", "t"), ("a", "s")), None, "~ a.s -> a.t"),
    (c.DeregisterTable(("a", "t")), None, "- table a.t"),
    (c.CreateDataset(("a", "t"), (FIELD,), {}, {"k": "v"}, "us", ()), None, "+ column n: int64 not null"),
    (c.AddColumns(("a", "t"), (FIELD,)), None, "+ column n: int64 not null"),
    (
        c.AlterColumns(("a", "t"), (c.ColumnAlteration("n", "m", parse_type("int64"), False),)),
        {"columns": {"n": "int32"}},
        "~ column n: renamed to m, int32 -> int64, not null",
    ),
    (c.DropColumns(("a", "t"), ("n",)), None, "- column n"),
    (c.CreateIndex(("a", "t"), Index("i", "n", "btree", {"p": 1})), None, "+ index i: btree on n (p=1)"),
    (
        c.ReplaceIndex(("a", "t"), Index("i", "n", "ivf_pq", {"num_partitions": 4})),
        {"name": "i", "column": "n", "type": "ivf_pq", "params": {"num_partitions": 2}, "rows": 9999},
        "~ index i: num_partitions 2 -> 4",
    ),
    (c.DropIndex(("a", "t"), "i"), None, "- index i"),
    (
        c.RefreshIndex(("a", "t"), Index("i", "n", "btree"), "20%", 100),
        {"rows": 4000, "indexed_rows": 0},
        "~ index i: covers 0 of 4,000 rows -> all of them",
    ),
    (
        c.BackfillColumns(("a", "t"), (Field("n", parse_type("int8"), default="1 + 1"),)),
        None,
        "+ column n: int8 = 1 + 1",
    ),
    (c.RewriteColumns(("a", "t"), (FIELD,)), None, "~ column n: int64 not null"),
    (
        c.MigrateTable(("a", "t"), "old", ("b", "t"), True, (FIELD,), {}, {}, (), "us", ()),
        None,
        "+ rows and indexes of old b.t",
    ),
    (
        c.MaterializeTable(("a", "t"), {"format": "csv", "path": ["x", "y"]}, True, "sha256:0", {}, (FIELD,), {}),
        None,
        "~ rows from csv x, y",
    ),
]


def step(change: c.Change, before: Json = None, verdict: Verdict = "allowed", reason: str = "why") -> Step:
    state = expect_of(Absent())
    word = "adopt" if verdict == "blocked" else None
    return Step("s1", "lake", change, "safe", reason, verdict, word, (), state, state, (), before, {}, None)


def plan(*steps: Step, **more: object) -> Plan:
    summary = CatalogSummary("dir", True, 1, 2, {})
    values = {"orphans": (), "unowned": (), "summary": Summary(), **more}
    return Plan("sha256:0", "0", "", {"lake": summary}, steps, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(("change", "before", "wanted"), CHANGES, ids=lambda v: type(v).__name__)
def test_every_change_has_a_line_that_says_what_changes(change: c.Change, before: Json, wanted: str) -> None:
    shown = re.sub(r"(?<=\S) +", " ", plan_text(plan(step(change, before))))  # Apart from how it is aligned.
    assert wanted in shown


def test_every_kind_of_change_is_in_the_list_above() -> None:
    assert {type(change) for change, _, _ in CHANGES} == set(c.Change.__args__)  # type: ignore[attr-defined]


def test_blocked_and_unsupported_have_their_own_signs() -> None:
    drop = c.DropNamespace(("a",))
    shown = plan_text(plan(step(drop, verdict="blocked", reason="pass --x"), step(drop, verdict="unsupported")))
    assert "  ! namespace a\n" in shown
    assert "      ! drop_namespace blocked: pass --x\n" in shown
    assert "      ? drop_namespace unsupported: why\n" in shown


def test_steps_are_told_by_object() -> None:
    """A new table is one block; what could lose something says why."""
    made = [
        step(c.DeclareTable(("t",), {"a": "1"}, MARKS)),
        step(c.CreateDataset(("t",), (FIELD,), {}, {}, "us", ())),
        step(c.CreateIndex(("t",), Index("i", "n", "btree"))),
    ]
    new = '  + table t\n      + a = "1"\n      + column n: int64 not null\n      + index i: btree on n\n'
    assert new in plan_text(plan(*made))
    risky = replace(step(c.DropColumns(("t",), ("n",)), reason="not declared"), risk="destructive")
    assert "  ~ table t\n      - drop_columns: not declared\n      - column n\n" in plan_text(plan(risky))


def test_an_empty_plan_says_so_and_lists_what_is_left() -> None:
    assert plan_text(plan()) == "No changes. The live catalogs match the manifests.\n"
    orphans = (ObjectKey("lake", ("o",), "Table"), ObjectKey("lake", ("p",), "Namespace"))
    unowned = (ObjectKey("lake", ("u",), "Table"),)
    listed = plan_text(plan(orphans=orphans, unowned=unowned))
    assert "    table o\n" in listed
    assert "    table u\n" in listed
    both = " There is nothing to apply, but 2 objects are orphaned, and 1 object is unowned.\n"
    assert listed.endswith(f"\nNo changes.{both}")
    assert plan_text(plan(orphans=orphans, unowned=unowned), title=DRIFT).endswith(f"\nDrift.{both}")
    one = plan_text(plan(unowned=unowned), title=DRIFT)
    assert one.endswith("\nNo changes. There is nothing to apply, but 1 object is unowned.\n"), "not a drift"


def test_an_incomplete_listing_is_no_match() -> None:
    half = CatalogSummary("dir", False, 1, 1, {}, (ReadError(Code.INTERNAL, "a cannot be listed"),))
    shown = plan_text(replace(plan(), catalogs={"lake": half}))
    assert "  incomplete: a cannot be listed\n" in shown
    assert shown.endswith("\nNo changes. There is nothing to apply, but the listing of lake is incomplete.\n")


@pytest.mark.parametrize("change", [change for change, _, _ in CHANGES], ids=lambda v: type(v).__name__)
def test_nothing_in_a_name_or_value_steers_the_terminal(change: c.Change) -> None:
    columns: Json = {EVIL: EVIL}
    if isinstance(change, (c.SyncColumns, c.ReplaceTable)):
        columns = [{"name": EVIL, "type": EVIL, "nullable": True, "comment": EVIL}]
    evil = step(change, {"properties": {EVIL: EVIL}, "columns": columns}, reason=EVIL)
    nasty = [
        evil,
        step(c.CreateNamespace((EVIL,), {EVIL: EVIL}, Marks(EVIL))),
        step(c.AddColumns((EVIL,), (Field(EVIL, parse_type(f'struct<"{EVIL}": int8>'), default=EVIL),))),
    ]
    shown = plan_text(plan(*nasty, orphans=(ObjectKey("lake", (EVIL,), "Table"),)))
    assert all(ch == "\n" or ch.isprintable() for ch in shown)
    assert "\\x1b[2J\\u202e\\x0a" in shown


def test_reports_and_diagnostics_are_safe_too() -> None:
    error = {"code": 18, "name": EVIL, "message": EVIL}
    place = {"id": EVIL, "action": EVIL, "catalog": EVIL, "object": {"kind": "Table", "id": [EVIL]}}
    result = {**place, "status": "failed", "error": error, "tag": EVIL}
    shown = report_text({"steps": [result], "outcome": "partial", "message": EVIL})
    shown += diagnostics_text([Diagnostic(Source(EVIL, 1, 2), "M204", "error", EVIL, EVIL)])
    assert all(ch == "\n" or ch.isprintable() for ch in shown)


def test_diagnostics_look_as_editors_expect() -> None:
    found = Diagnostic(Source("m.yaml", 3, 7), "M204", "error", "unknown key", "did you mean name?")
    assert diagnostics_text([found]) == "m.yaml:3:7: error[M204]: unknown key\n  hint: did you mean name?\n"


def test_colour_only_when_asked_for() -> None:
    made = plan(step(c.DropNamespace(("a",))))
    assert "\x1b" not in plan_text(made)
    assert "\x1b[31m  - namespace a" in plan_text(made, color=True)
