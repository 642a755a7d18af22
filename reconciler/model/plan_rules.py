"""What holds for the steps of every plan, besides their order: a file of which it does not hold was not written by
`plan`, and what it says to a reader is not what it would do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import get_args

from reconciler.model import change as c
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import Plan, Risk, Step, Summary, Verdict
from reconciler.model.plan_order import problem_of_order

_ID = re.compile(r"[A-Za-z0-9_-]+")
"""It is a part of names: of tags, of files."""
RISKS: tuple[Risk, ...] = get_args(Risk)
"""From the least on."""
_LEAST: dict[type, Risk] = {
    c.DropColumns: "destructive",
    c.DropIndex: "destructive",
    c.DropNamespace: "destructive",
    c.ReplaceTable: "destructive",
    c.BackfillColumns: "rewrite",
    c.RewriteColumns: "rewrite",
    c.AlterColumns: "metadata",
    c.DeregisterTable: "metadata",
}


def problem_of(plan: Plan) -> str | None:
    """The first thing that is wrong, or None."""
    return problem_of_order(plan.steps) or next(_problems(plan), None)


def _problems(plan: Plan) -> Iterator[str]:
    held = {s.id for s in plan.steps if s.verdict != "allowed"}
    for step in plan.steps:
        if _ID.fullmatch(step.id) is None:
            yield f"{step.id!r} is no id of a step"
        if not step.change.ident or not all(step.change.ident):
            yield f"step {step.id} is on an object without a name"
        if step.verdict not in get_args(Verdict):
            yield f"step {step.id} has the verdict {step.verdict!r}, which is none"
        if step.risk not in RISKS:
            yield f"step {step.id} has the risk {step.risk!r}, which is none"
        if RISKS.index(step.risk) < RISKS.index(least := _least(step)):
            yield f"step {step.id} ({step.action}) has the risk {step.risk}, and is {least} at the least"
        if step.verdict == "allowed" and step.blocked_by is not None:
            yield f"step {step.id} is allowed, and blocked by {step.blocked_by}"
        if step.verdict == "blocked" and not step.blocked_by:
            yield f"step {step.id} is blocked, and nothing says by what"
        if step.verdict == "allowed" and (needed := next((n for n in step.needs if n in held), None)):
            yield f"step {step.id} is allowed, and needs {needed}, which will not run"
        if step.catalog not in plan.catalogs:
            yield f"step {step.id} is of catalog {step.catalog}, which it does not describe"
    if plan.summary != summarize(plan.steps):
        yield "its summary counts other steps than it has"


def _least(step: Step) -> Risk:
    change = step.change
    if isinstance(change, c.MaterializeTable) and change.purges is not None:
        return "destructive"
    return _LEAST.get(type(change), "safe")


def summarize(steps: Sequence[Step]) -> Summary:
    """Each object counts once under create, update or delete, by its allowed steps."""
    kinds: dict[ObjectKey, str] = {}
    blocked: set[ObjectKey] = set()
    unsupported: set[ObjectKey] = set()
    for s in steps:
        if s.verdict == "blocked":
            blocked.add(s.key)
        elif s.verdict == "unsupported":
            unsupported.add(s.key)
        elif s.deletes:
            kinds[s.key] = "delete"
        elif s.action in ("create_namespace", "declare_table", "create_dataset", "migrate_table"):
            kinds[s.key] = "create"
        else:
            kinds.setdefault(s.key, "update")
    counts = {kind: sum(1 for k in kinds.values() if k == kind) for kind in ("create", "update", "delete")}
    return Summary(**counts, blocked=len(blocked), unsupported=len(unsupported))
