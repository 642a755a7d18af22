"""SARIF 2.1.0: diagnostics, findings of the policy, and steps that are held back, at file and line.

A result has a place in a file: GitHub refuses a whole upload for one that has none. What has no place (an object whose
manifest is gone, a run that failed) is a notification of the run. Waived findings are results that are suppressed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from reconciler import __version__
from reconciler.model.diagnostic import OF_OTHERS, Diagnostic, Severity, Source
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import ObjectKey, dotted
from reconciler.model.plan import THRESHOLD, Plan, Step
from reconciler.render.as_json import dumped
from reconciler.render.ran import FINE, Run
from reconciler.render.safe_text import bounded, printable
from reconciler.render.sarif_rules import BLOCKED, Explained, help_of
from reconciler.render.text import NOT_APPLIED, coverage_text

MOST_RESULTS = 5000
"""GitHub takes 25,000 and shows 5,000."""
_MOST_NOTES = 1000
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class _Told:
    rule: str
    level: Severity
    message: str
    source: Source | None
    key: ObjectKey | None = None
    waiver: Waiver | None = None


def diagnostics_sarif(
    found: Sequence[Diagnostic],
    explained: Explained,
    message: str = "",
    command: str = "validate",
    waived: Sequence[tuple[Diagnostic, Waiver]] = (),
) -> str:
    """`message`: why the run ended with nothing else to tell; `command`: what ran."""
    failed = [_note(message, "error")] if message else []
    told = [*map(_diagnostic, found), *(replace(_diagnostic(d), waiver=waiver) for d, waiver in waived)]
    return _log(command, told, explained, failed, done=not message)


def plan_sarif(plan: Plan, explained: Explained, warnings: Sequence[Diagnostic] = (), drift: bool = False) -> str:
    told = [*map(_finding, plan.findings), *_held_back(plan.steps), *map(_diagnostic, warnings)]
    notes = [_note(f"refused: {plan.refused}. {NOT_APPLIED}", "error")] if plan.refused is not None else []
    notes += [
        _note(f"the listing of {name} is incomplete: {problem.message}", "error")
        for name, catalog in sorted(plan.catalogs.items())
        for problem in catalog.problems
    ]
    notes += [
        _note(f"{name}:{dotted(c.ident)}: {coverage_text(c)}", "warning" if c.over else "note")
        for name, catalog in sorted(plan.catalogs.items())
        for c in catalog.coverage
    ]
    return _log("drift" if drift else "plan", told, explained, notes)


def run_sarif(runs: Sequence[Run], explained: Explained) -> str:
    """What the policy said has places. What ran has none in a report or a journal: it is in notes for people."""
    notes = []
    told = [_finding(f) for run in runs for f in run.findings]
    for run in runs:
        notes += [
            _note(f"{s.id} {s.action} {s.key or ''}: {s.problem}", "warning" if s.status == "not_run" else "error")
            for s in run.by_urgency
            if s.problem
        ]
        notes.append(_note(f"{run.title}: {run.message or run.counted}", "note" if run.outcome in FINE else "error"))
    return _log("apply", told, explained, notes, done=all(run.outcome in FINE for run in runs))


def _diagnostic(d: Diagnostic) -> _Told:
    return _Told(d.code, d.severity, _sentence(d.message, d.hint), d.source)


def _finding(f: Finding) -> _Told:
    return _Told(f.code, f.severity, _sentence(f.message, f.hint), f.source, f.key, f.waiver)


def _held_back(steps: Iterable[Step]) -> Iterator[_Told]:
    """Warnings: the rest of the plan can be applied; but a threshold stops all of it."""
    for step in steps:
        if step.verdict == "allowed":
            continue
        rule = f"{BLOCKED}{step.blocked_by or 'blocked'}" if step.verdict == "blocked" else "unsupported"
        level: Severity = "error" if step.blocked_by == THRESHOLD else "warning"
        yield _Told(rule, level, f"{step.action} of {step.key}: {step.told_reason}", step.source, step.key)


def _sentence(message: str, hint: str) -> str:
    return f"{message} ({hint})" if hint else message


def _log(what: str, told: Sequence[_Told], explained: Explained, notes: list[dict[str, Any]], done: bool = True) -> str:
    placed = sorted((t for t in told if t.source is not None), key=_order)
    notes += [_note(t.message, t.level, t.rule) for t in told if t.source is None]
    if len(placed) > MOST_RESULTS:
        cut = f"{len(placed) - MOST_RESULTS} of {len(placed)} results are left out: the file holds {MOST_RESULTS}"
        notes.insert(0, _note(cut, "warning"))
    if len(notes) > _MOST_NOTES:
        cut = f"{len(notes) - _MOST_NOTES} of {len(notes)} notes are left out"
        notes = [*notes[:_MOST_NOTES], _note(cut, "warning")]
    rules = {rule: number for number, rule in enumerate(sorted({t.rule for t in placed[:MOST_RESULTS]}))}
    driver = {
        "name": "reconciler",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(rule, explained) for rule in rules],
    }
    invocation: dict[str, Any] = {"executionSuccessful": done}
    if notes:
        invocation["toolExecutionNotifications"] = notes
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"reconciler/{what}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(t, rules) for t in placed[:MOST_RESULTS]],
    }
    return dumped({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _order(told: _Told) -> tuple[bool, bool, bool]:
    """What others may not do is the last to be left out."""
    return told.rule not in OF_OTHERS, told.level != "error", told.waiver is not None


def _rule(rule: str, explained: Explained) -> dict[str, Any]:
    title, text = help_of(rule, explained)
    return {"id": _text(rule), "shortDescription": {"text": title}, "help": {"text": text}}


def _result(told: _Told, rules: Mapping[str, int]) -> dict[str, Any]:
    assert told.source is not None
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": uri(told.source.file)},
            "region": {"startLine": max(1, told.source.line), "startColumn": max(1, told.source.column)},
        }
    }
    if told.key is not None:
        place["logicalLocations"] = [{"fullyQualifiedName": _text(str(told.key)), "kind": told.key.kind.lower()}]
    text = _text(told.message)
    identity = "\0".join((told.rule, told.source.file, str(told.key or ""), text))
    out: dict[str, Any] = {
        "ruleId": _text(told.rule),
        "ruleIndex": rules[told.rule],
        "level": told.level,
        "message": {"text": text},
        "locations": [place],
        "partialFingerprints": {"reconciler/v1": sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]},
    }
    if told.waiver is not None:
        why = _text(f"{told.waiver.reason} (until {told.waiver.until})")
        out["suppressions"] = [{"kind": "inSource", "status": "accepted", "justification": why}]
    return out


def _note(message: str, level: str, rule: str = "") -> dict[str, Any]:
    about: dict[str, Any] = {"associatedRule": {"id": _text(rule)}} if rule else {}
    return {"level": level, "message": {"text": _text(message)}, **about}


def _text(text: str) -> str:
    """One line. `](` would make a link of what stands around it, for SARIF has links in plain text too."""
    return printable(bounded(text)).replace("](", "] (") or "(empty)"


def uri(file: str) -> str:
    """Relative to where the program ran, which in CI is the root of the repository; percent-encoded."""
    try:
        raw = file.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = file.encode("utf-8", "backslashreplace")
    if file.startswith("/"):
        return f"file://{quote(raw)}"
    return quote(posixpath.normpath(raw))
