"""Plans for renderers: by hand, because what a renderer must survive no planner would make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.model import change as c
from reconciler.model.arrow import Field
from reconciler.model.arrow import parse_type as arrow
from reconciler.model.diagnostic import Source
from reconciler.model.errors import Code, ReadError
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import CatalogSummary, Expect, Plan, Step, Summary
from reconciler.model.state import Marks

MARKS = Marks(owner="team", protect=False, applied=())


def step(number: int, change: c.Change, catalog: str = "lake", **more: object) -> Step:
    made = Step(
        f"s{number}", catalog, change, "safe", "not in the catalog yet", "allowed", None, (), Expect("absent"),
        Expect("present", "f"), (), None, None, Source("manifests/lake.yaml", number + 1),
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def create(number: int, name: str, **more: object) -> Step:
    return step(number, c.CreateNamespace(("n", name), {"team": "vision"}, MARKS), **more)


def delete(number: int, name: str) -> Step:
    return step(number, c.DeregisterTable(("n", name)), risk="destructive", reason="its manifest is gone", source=None)


def blocked(number: int, name: str, why: str = "adopt") -> Step:
    return create(number, name, verdict="blocked", blocked_by=why, reason="nobody owns it; pass --adopt")


def plan(steps: Sequence[Step] = (), **more: object) -> Plan:
    names = sorted({"lake", *(s.catalog for s in steps)})
    catalogs = {name: CatalogSummary("dir", True, 1, 2, {"type": "dir"}) for name in names}
    made = Plan(
        "sha256:0", "0", "sha256:1", catalogs, tuple(steps), (), (),
        Summary(create=sum(1 for s in steps if s.verdict == "allowed" and not s.deletes),
                delete=sum(1 for s in steps if s.deletes),
                blocked=sum(1 for s in steps if s.verdict == "blocked")),
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def hostile(text: str) -> Plan:
    """The text wherever a name, a value or a message of others can be; with a row after it that nothing may harm."""
    source = Source(text, 7)
    key = ObjectKey("lake", (text, text), "Table")
    fields = (Field(text, arrow("int64"), False, comment=text, metadata={text: text}, default=text),)
    declared = c.DeclareTable((text, text), {text: text}, Marks(text, True, ()), text)
    steps = (
        step(1, declared, catalog=text, source=source, verdict="blocked", blocked_by=text, reason=text),
        step(2, c.AddColumns(("n", "t"), fields), reason=text, source=source, risk="rewrite"),
        step(3, c.UpdateTable(("n", "t"), {text: text}, (text,), Marks(text, False, ())), reason=text, source=source,
             before={"properties": {text: text + "old"}}),
        create(4, "last"),
    )  # fmt: skip
    catalogs = {
        name: CatalogSummary(text, False, 1, 1, {}, (ReadError(Code.INTERNAL, text),), ((text,),))
        for name in {text, "lake"}
    }
    findings = (
        Finding(text, "error", key, text, text, source),
        Finding("L2", "error", None, text, "", None, Waiver(text, text)),
    )
    lists = {"orphans": (key,), "unowned": (key,), "left_out": (key,), "owners": {key: text}}
    return replace(plan(steps), catalogs=catalogs, findings=findings, **lists)  # type: ignore[arg-type]
