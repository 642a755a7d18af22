"""Diagnostics, plans, reports and journals as JUnit XML.

A plan: a case for each object. What is held back, cannot be done or breaks the policy is a failure; a change that waits
to be applied is none, except for `drift`, which asks whether there is any. What could not be read is an error. There is
always a case, since readers take a file without one for a broken run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.diagnostic import Diagnostic
from reconciler.model.finding import Finding
from reconciler.model.ident import ObjectKey, dotted
from reconciler.model.plan import THRESHOLD, Plan, Step, reasons_of
from reconciler.render.junit_xml import Case, Suite, Verdict, junit_xml
from reconciler.render.ran import FINE, Ran, Run
from reconciler.render.safe_text import bounded, safe
from reconciler.render.step_details import details
from reconciler.render.text import NOT_APPLIED, coverage_text, diagnostics_text

_ORPHANED = "ours, but in no manifest"


def diagnostics_junit(
    found: Sequence[Diagnostic], files: Iterable[str] = (), message: str = "", command: str = "validate"
) -> str:
    """A case for each file that was read. `message`: why there is no more to tell than this, as a case of its own;
    `command`: what ran."""
    cases = _files(found, files)
    if message:
        cases.append(Case("run", "error", message))
    return junit_xml(f"reconciler {command}", [Suite("manifests", cases or [Case("no manifest")])])


def _files(found: Iterable[Diagnostic], files: Iterable[str] = ()) -> list[Case]:
    by_file: dict[str, list[Diagnostic]] = {name: [] for name in files}
    for d in found:
        by_file.setdefault(d.source.file, []).append(d)
    return [_file(name, by_file[name]) for name in sorted(by_file)]


def _file(name: str, found: Sequence[Diagnostic]) -> Case:
    errors = [d for d in found if d.severity == "error"]
    text = diagnostics_text(found)
    if not errors:
        return Case(name, text=text)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    first = errors[0]
    return Case(name, "failure", f"line {first.source.line}: {first.code}: {bounded(first.message)}{more}", text)


def plan_junit(plan: Plan, drift: bool = False, warnings: Sequence[Diagnostic] = ()) -> str:
    """A file that has warnings is a case of its own, which passes."""
    names = sorted({*plan.catalogs, *(s.catalog for s in plan.steps), *(k.catalog for k in plan.left_out)})
    suites = [Suite(name, _catalog(plan, name, drift)) for name in names]
    general = [_finding(f, f.code) for f in plan.findings if f.key is None or f.key.catalog not in names]
    if plan.refused is not None:
        by = "thresholds" if any(s.blocked_by == THRESHOLD for s in plan.steps) else "policy"
        general.append(Case(by, "failure", plan.refused, NOT_APPLIED))
    suites += [Suite("plan", general)] if general else []
    suites += [Suite("manifests", _files(warnings))] if warnings else []
    return junit_xml("reconciler drift" if drift else "reconciler plan", suites or [Suite("plan", [Case("plan")])])


def _catalog(plan: Plan, name: str, drift: bool) -> list[Case]:
    summary = plan.catalogs.get(name)
    problems = "; ".join(p.message for p in summary.problems) if summary is not None else ""
    seen = summary is None or summary.complete
    cases = [Case("listing") if seen else Case("listing", "error", problems or "the listing is incomplete")]
    steps: dict[ObjectKey, list[Step]] = {}
    for step in plan.steps:
        if step.catalog == name:
            steps.setdefault(step.key, []).append(step)
    findings: dict[ObjectKey, list[Finding]] = {}
    for finding in plan.findings:
        if finding.key is not None and finding.key.catalog == name:
            findings.setdefault(finding.key, []).append(finding)
    keys = dict.fromkeys((*steps, *findings))
    cases += [_object(key, steps.get(key, []), findings.get(key, []), drift) for key in keys]
    orphan: Verdict = "failure" if drift else "passed"
    cases += [Case(_name(k), orphan, _ORPHANED, _ORPHANED) for k in plan.orphans if k.catalog == name]
    for found in summary.coverage if summary is not None else ():
        word: Verdict = "failure" if found.over else "passed"
        what = f"table {dotted(found.ident)} index {found.index}"
        cases.append(Case(what, word, coverage_text(found) if found.over else "", coverage_text(found)))
    left = "left out: the run was asked for others"
    return cases + [Case(_name(k), "skipped", left) for k in plan.left_out if k.catalog == name]


def _object(key: ObjectKey, steps: Sequence[Step], findings: Sequence[Finding], drift: bool) -> Case:
    held = _blocked(steps)
    refused = [f"{f.code}: {f.message}" for f in findings if f.refuses]
    wrong = [*refused, *held] or ([f"{s.action}: {s.told_reason}" for s in steps] if drift else [])
    why = {s.id: (s.purpose or s.reason) if held else s.reason for s in steps}
    lines = [
        line for s in steps for line in (f"{s.action} ({s.verdict}): {why[s.id]}", *(f"  {d}" for d in details(s)))
    ]
    lines += [f"{f.code} ({'waived' if f.waiver else f.severity}): {f.message}" for f in findings]
    verdict: Verdict = "failure" if wrong else "passed"
    return Case(_name(key), verdict, "; ".join(dict.fromkeys(wrong)), "\n".join(map(safe, lines)))


def _blocked(steps: Sequence[Step]) -> list[str]:
    """Each reason once, with the steps that it blocks."""
    groups: dict[tuple[str, str], list[Step]] = {}
    for s in steps:
        if s.verdict != "allowed":
            groups.setdefault((s.verdict, s.blocking_reason), []).append(s)
    return [f"{', '.join(s.action for s in g)} {v}: {'; '.join(reasons_of(g))}" for (v, _), g in groups.items()]


def _finding(finding: Finding, name: str) -> Case:
    verdict: Verdict = "failure" if finding.refuses else "passed"
    return Case(name, verdict, finding.message, safe(finding.message))


def _name(key: ObjectKey) -> str:
    return f"{key.kind.lower()} {dotted(key.ident)}"


_VERDICTS: dict[str, Verdict] = {
    "done": "passed",
    "skipped": "passed",
    "failed": "failure",
    "unknown": "error",
    "never_ended": "error",
    "not_run": "skipped",
}
"""A step that was skipped held already: nothing is wrong with it. One that did not run is not to be told as run."""


def run_junit(runs: Sequence[Run]) -> str:
    """A case for each step, and one for the outcome: it fails whenever the exit code is not 0."""
    return junit_xml("reconciler apply", [Suite(_title(run), _cases(run)) for run in runs])


def _title(run: Run) -> str:
    return " ".join(part for part in ("apply", run.plan_id.removeprefix("sha256:")[:12], run.begun) if part)


def _cases(run: Run) -> list[Case]:
    told = run.told or run.counted
    fine = run.outcome in FINE
    outcome = Case("outcome", text=safe(told)) if fine else Case("outcome", "failure", f"{run.title}: {told}")
    found = [_finding(f, f"policy {f.code}{f' {f.key}' if f.key is not None else ''}") for f in run.findings]
    return [*(_step(s) for s in run.steps), *found, outcome]


def _step(step: Ran) -> Case:
    name = " ".join(part for part in (step.id, step.action, str(step.key or "")) if part)
    verdict = _VERDICTS[step.status]
    message = step.problem if verdict != "skipped" else step.problem or step.word
    return Case(name, verdict, message, safe(step.note), step.seconds)
