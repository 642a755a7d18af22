"""The last words of a container: what `kubectl describe pod` shows of a run. Short; the log has the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reconciler.model.ident import ObjectKey
from reconciler.model.plan import Plan, Step, reasons_of
from reconciler.model.report import Report, why_blocked
from reconciler.model.run import Run
from reconciler.render.safe_text import bounded, safe_line
from reconciler.render.text import DRIFT, NO_CHANGES, plan_summary
from reconciler.render.what_to_do import what_to_do

LONGEST = 4096
"""Bytes: Kubernetes keeps no more."""
LINE = 600


def termination_text(run: Run, clean: Callable[[str], str] = str) -> str:
    """`clean` takes secrets out, before anything is cut: half a secret would be past knowing."""
    text = "\n".join(bounded(safe_line(clean(line)), LINE) for line in _lines(run)) + "\n"
    return cut(text, LONGEST)


def _lines(run: Run) -> Iterator[str]:
    yield f"{run.command}: {run.outcome}, exit code {run.exit_code}, {run.seconds:.0f} s"
    if to_do := what_to_do(run):
        yield f"to do: {to_do}"
    if run.plan is not None:
        yield f"plan: {run.plan.plan_id}"
    if run.report is not None and run.report.plan_id:
        yield _message(run.report, run.plan)
    elif run.plan is not None:
        yield plan_summary(run.plan, DRIFT if run.command == "drift" else NO_CHANGES)
        if run.plan.refused is not None:
            yield run.plan.refused
    yield from (problem for problem in run.problems if not _told(run.report, problem))
    if run.report is not None:
        yield from _failed(run.report)
    if run.plan is not None:
        yield from _kept_back(run.plan)


def _message(report: Report, plan: Plan | None) -> str:
    """What is blocked has lines of its own below, when there is a plan."""
    held = why_blocked(report.steps)
    return report.message.removesuffix(f"; {held}") if plan is not None and held else report.message


def _told(report: Report | None, problem: str) -> bool:
    """The message of a report is said on stderr too, by itself or after the outcome."""
    told = (report.message, report.summary) if report is not None and report.plan_id else ()
    return problem in told


def _failed(report: Report) -> Iterator[str]:
    for result in report.steps:
        if result.error is not None:
            said = f"{result.error.name} ({result.error.code}): {result.error.message}"
            yield f"{result.status} {result.step.id} {result.step.action} {result.step.key}: {said}"


def _kept_back(plan: Plan) -> Iterator[str]:
    for name, catalog in sorted(plan.catalogs.items()):
        for problem in catalog.problems:
            yield f"incomplete {name}: {problem.message}"
    groups: dict[tuple[ObjectKey, str], list[Step]] = {}
    for step in plan.steps:
        if step.verdict != "allowed":
            groups.setdefault((step.key, step.blocking_reason), []).append(step)
    for (key, _), steps in groups.items():
        first = steps[0]
        more = f" (and {len(steps) - 1} more)" if len(steps) > 1 else ""
        yield f"{first.verdict} {first.id} {first.action}{more} {key}: {'; '.join(reasons_of(steps))}"


def cut(text: str, longest: int) -> str:
    """At most so many bytes, never within a character."""
    data = text.encode("utf-8", "replace")
    if len(data) <= longest:
        return data.decode()
    end = "…\n".encode()
    return data[: longest - len(end)].decode("utf-8", "ignore") + end.decode()
