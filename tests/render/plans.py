"""Plans to be shown: those of the golden cases, one of any size, and one whose every text means harm."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from reconciler.core.planner import with_id
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import (
    AddColumns,
    Change,
    CreateDataset,
    CreateNamespace,
    DeclareTable,
    DropColumns,
    UpdateTable,
)
from reconciler.model.diagnostic import Source
from reconciler.model.errors import Code, ReadError
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import CatalogSummary, Expect, Json, Plan, Risk, Step, Verdict
from reconciler.model.plan_json import change_to_json, plan_from_json
from reconciler.model.plan_rules import summarize
from reconciler.model.state import Marks

CASES = Path(__file__).parent.parent / "golden" / "cases"
GOLDEN = sorted(p.parent.name for p in CASES.glob("*/plan.json"))
OURS = Marks("team", False, ())
TRAPS = (
    "</script><script>document.title='pwned'</script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "javascript:document.title='pwned'",
    '" onmouseover="document.title=\'pwned\'" x="',
    "' autofocus onfocus=document.title='pwned' '",
    "<!--<script>",
    "]]></style><style>*{background:url(http://127.0.0.1:9/x)}</style>",
    "\u202egnp.exe\u2066 \u2028\u2029\x00\x1b[31m",
    '&lt;b&gt; &amp; #quot; `a` \\N \\" %%{init: {}}%% [x](javascript:1) @all',
)


@lru_cache
def golden(name: str) -> Plan:
    return plan_from_json(json.loads((CASES / name / "plan.json").read_text()))


def step(
    number: int,
    change: Change,
    needs: tuple[str, ...] = (),
    *,
    catalog: str = "lake",
    risk: Risk = "safe",
    verdict: Verdict = "allowed",
    blocked_by: str | None = None,
    reason: str = "it is declared and not there",
    before: Json = None,
    source: Source | None = None,
) -> Step:
    absent = Expect("absent")
    after = change_to_json(change)
    told = (risk, reason, verdict, blocked_by, needs)
    return Step(f"s{number}", catalog, change, *told, absent, absent, (), before, after, source)


def plan(steps: tuple[Step, ...], **more: object) -> Plan:
    catalogs = {name: CatalogSummary("dir", True, 3, 12, {}) for name in sorted({s.catalog for s in steps} or {"lake"})}
    made = Plan("", "test", "sha256:0", catalogs, steps, (), (), summarize(steps))
    return with_id(replace(made, **more))  # type: ignore[arg-type]


def big(count: int) -> Plan:
    """Tables in namespaces of a hundred: made, changed, some held back, some with columns to drop."""
    steps: list[Step] = []
    parent = ""
    for i in range(count):
        number, group = i + 1, i // 200
        source = Source(f"manifests/team{group}/tables.yaml", 7 + i % 200 * 6)
        if i % 200 == 0:
            parent = f"s{number}"
            steps.append(step(number, CreateNamespace((f"ns{group}",), {"team": "vision"}, OURS), source=source))
            continue
        ident = (f"ns{group}", f"table_{i // 2}")
        steps.append(_one(number, i, ident, parent, source))
    findings = tuple(
        Finding("P201", "error" if i % 3 else "warning", s.key, f"{s.key} has no owner", "set `owner`", s.source)
        for i, s in enumerate(steps[5::997])
    )
    return plan(tuple(steps), findings=findings)


def _one(number: int, i: int, ident: tuple[str, ...], parent: str, source: Source) -> Step:
    columns = (Field("id", parse_type("int64"), False), Field("embedding", parse_type("fixed_size_list<float32>[768]")))
    if i % 50 == 7:
        gone: Json = {"columns": [{"name": "legacy", "type": "string"}]}
        return step(number, DropColumns(ident, ("legacy",)), (parent,), risk="destructive", verdict="blocked",
                    blocked_by="allow:drop_column", reason="the column legacy is not declared", before=gone,
                    source=source)  # fmt: skip
    if i % 50 == 11:
        return step(number, DropColumns(ident, ("legacy",)), (parent,), risk="destructive", source=source)
    if i % 7 == 3:
        old: Json = {"properties": {"pii": "true", "tier": None}, "marks": {"owner": "team"}}
        change = UpdateTable(ident, {"pii": "false", "tier": "gold"}, (), OURS)
        return step(number, change, (parent,), risk="metadata", before=old, source=source)
    if i % 2:
        return step(number, DeclareTable(ident, {"tier": "gold"}, OURS), (parent,), source=source)
    return step(number, CreateDataset(ident, columns, {}, {}, "team", ()), (parent,), source=source)


def hostile() -> Plan:
    """Every text that others can write holds every trap."""
    steps: list[Step] = []
    for i, trap in enumerate(TRAPS):
        source = Source(f"m/{trap}.yaml", 3)
        ident, properties = (trap, f"t.{trap}"), {trap: trap}
        steps.append(step(3 * i + 1, CreateNamespace((trap,), properties, Marks(trap)), catalog=trap, reason=trap,
                          source=source))  # fmt: skip
        old: Json = {"properties": {trap: f"was {trap}"}, "marks": {"owner": trap}}
        steps.append(step(3 * i + 2, UpdateTable(ident, properties, (), Marks(trap)), (f"s{3 * i + 1}",), catalog=trap,
                          reason=trap, verdict="blocked", blocked_by=trap, before=old, source=source))  # fmt: skip
        column = Field(trap, parse_type("int64"), True, trap, {trap: trap}, None, trap)
        steps.append(
            step(3 * i + 3, AddColumns(ident, (column,)), (f"s{3 * i + 2}", trap), catalog=trap, source=source)
        )
    keys = tuple(ObjectKey(trap, (trap,), "Table") for trap in TRAPS)
    waivers = [None if i % 2 else Waiver(t, t) for i, t in enumerate(TRAPS)]
    findings = tuple(Finding(t, "error", k, t, t, Source(t), w) for t, k, w in zip(TRAPS, keys, waivers, strict=True))
    catalogs = {t: CatalogSummary(t, False, 1, 1, {}, (ReadError(Code.INTERNAL, t),), ((t,),)) for t in TRAPS}
    owners = dict(zip(keys, TRAPS, strict=True))
    lists = {"orphans": keys, "unowned": keys, "left_out": keys, "owners": owners}
    return plan(tuple(steps), findings=findings, catalogs=catalogs, **lists)
