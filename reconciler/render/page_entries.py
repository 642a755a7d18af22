"""The entries of a plan's page: steps, findings of the policy and everything else a plan tells, what matters first.

Every text is safe to show when it leaves here (`printable`, bounded), and the page shows it as text only.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from reconciler.model.diagnostic import OF_OTHERS, Diagnostic, Source
from reconciler.model.finding import Finding
from reconciler.model.ident import ObjectKey, dotted
from reconciler.model.plan import Json, Plan, Step
from reconciler.render.page_plain import Entry
from reconciler.render.plan_graph import style_of
from reconciler.render.safe_text import LONGEST_TYPE, bounded, printable
from reconciler.render.step_diff import Line, Section, sections
from reconciler.render.text import STALE, coverage_text, symbol_of

_LONGEST_VALUE = 2000
ORPHANED = "Ours, but in no manifest; untouched without --prune"
UNOWNED = "As declared, but without our mark"
LEFT_OUT = "Declared, but not compared: this run was asked for others"


def entries(plan: Plan, warnings: Sequence[Diagnostic] = ()) -> list[Entry]:
    """What others may not do, refusing findings, incomplete listings, what is held back, what destroys, what rewrites;
    the rest in the order of the plan; then what is only told. `order` is the place without that preference."""
    found = [*_found(plan), *((-1 if w.code in OF_OTHERS else 6, diagnostic_entry(w)) for w in warnings)]
    for order, (_, entry) in enumerate(found):
        entry["order"] = order
    return [entry for _, entry in sorted(found, key=lambda ranked: ranked[0])]


def _found(plan: Plan) -> Iterator[tuple[int, Entry]]:
    policies = _policies(plan.findings)
    for finding in plan.findings:
        yield 0 if finding.refuses else 6, _finding(finding)
    for name, catalog in sorted(plan.catalogs.items()):
        for problem in catalog.problems:
            yield 1, _told("problem", name, "", f"incomplete: {problem.message}")
    for step in plan.steps:
        yield _rank(step), _step(step, policies)
    for name, catalog in sorted(plan.catalogs.items()):
        for c in catalog.coverage:
            yield 1 if c.over else 7, _told("coverage", name, dotted(c.ident), coverage_text(c), "table")
    stale = tuple(ObjectKey(n, i, "Table") for n, c in sorted(plan.catalogs.items()) for i in c.projection_stale)
    for kind, keys, reason in (
        ("stale", stale, STALE),
        ("orphaned", plan.orphans, ORPHANED),
        ("unowned", plan.unowned, UNOWNED),
        ("left out", plan.left_out, LEFT_OUT),
    ):
        for k in keys:
            owner = plan.owners.get(k) if kind == "unowned" else None
            why = (
                reason
                if owner is None
                else f"as declared, and owned by {owner}: --take-over {shlex.quote(owner)} takes it"
            )
            yield 7, _told(kind, k.catalog, dotted(k.ident), why, k.kind)

    for note in plan.notes:
        yield 7, _told("note", note.key.catalog, dotted(note.key.ident), note.message, note.key.kind)


def diagnostic_entry(one: Diagnostic) -> Entry:
    error = one.severity == "error"
    return {
        "kind": "diagnostic",
        "code": one.code,
        "symbol": "!" if error else "i",
        "style": "blocked" if error else "told",
        "catalog": "",
        "name": _text(str(one.source)),
        "type": one.severity,
        "severity": one.severity,
        "reason": _text(f"{one.message}; {one.hint}" if one.hint else one.message),
    }


def _rank(step: Step) -> int:
    if step.verdict != "allowed":
        return 2
    return 3 if step.deletes else {"destructive": 3, "rewrite": 4}.get(step.risk, 5)


def _policies(findings: Sequence[Finding]) -> Mapping[ObjectKey, list[Finding]]:
    found: dict[ObjectKey, list[Finding]] = {}
    for finding in findings:
        if finding.key is not None:
            found.setdefault(finding.key, []).append(finding)
    return found


def _step(step: Step, policies: Mapping[ObjectKey, list[Finding]]) -> Entry:
    out: Entry = {
        "kind": "step",
        "id": printable(step.id),
        "symbol": symbol_of(step),
        "style": style_of(step),
        "catalog": _text(step.catalog),
        "name": _text(dotted(step.change.ident)),
        "type": step.change.kind.lower(),
        "action": step.action,
        "plane": step.plane,
        "risk": printable(step.risk),
        "verdict": printable(step.verdict),
        "reason": _text(step.told_reason),
    }
    rest: Entry = {
        "blocked_by": None if step.blocked_by is None else _text(step.blocked_by),
        "needs": [printable(need) for need in step.needs],
        "source": _source(step.source),
        "diff": [_section(s) for s in sections(step)],
        "policy": [_policy(f) for f in policies.get(step.key, ())],
    }
    return out | {k: v for k, v in rest.items() if v}


def _section(section: Section) -> Json:
    types = section.title.startswith("Columns")
    return [_text(section.title), [_line(x, LONGEST_TYPE if types and not x.note else _LONGEST_VALUE)
                                   for x in section.lines]]  # fmt: skip


def _line(line: Line, longest: int) -> Json:
    return [_text(line.name), _value(line.before, longest), _value(line.after, longest)]


def _policy(finding: Finding) -> str:
    """A word of the policy filter, and the code."""
    word = "waived" if finding.waiver is not None else "refusing" if finding.refuses else "warning"
    return f"{word} {_text(finding.code)}"


def _finding(finding: Finding) -> Entry:
    key = finding.key
    out: Entry = {
        "kind": "finding",
        "symbol": "!" if finding.refuses else "i",
        "style": "blocked" if finding.refuses else "told",
        "catalog": "" if key is None else _text(key.catalog),
        "name": "the whole plan" if key is None else _text(dotted(key.ident)),
        "type": "" if key is None else key.kind.lower(),
        "code": _text(finding.code),
        "severity": printable(finding.severity),
        "reason": _text(finding.message),
        "policy": [_policy(finding)],
    }
    waiver = finding.waiver
    rest: Entry = {
        "hint": _text(finding.hint),
        "source": _source(finding.source),
        "waiver": None if waiver is None else f"{_text(waiver.reason)} (until {_text(waiver.until)})",
    }
    return out | {k: v for k, v in rest.items() if v}


def _told(kind: str, catalog: str, name: str, reason: str, type_: str = "") -> Entry:
    problem = kind == "problem"
    return {
        "kind": kind,
        "symbol": "!" if problem else "i",
        "style": "blocked" if problem else "told",
        "catalog": _text(catalog),
        "name": _text(name),
        "type": type_.lower(),
        "reason": _text(reason),
    }


def _source(source: Source | None) -> str:
    return "" if source is None else f"{_text(source.file)}:{source.line}"


def _value(text: str | None, longest: int) -> str | None:
    return None if text is None else printable(bounded(text, longest))


def _text(text: str) -> str:
    return printable(bounded(text))
