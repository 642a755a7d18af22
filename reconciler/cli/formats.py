"""--format: plans, reports, journals and diagnostics as what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reconciler import app
from reconciler.cli.arguments import DOCUMENTS, PLAN_DOCUMENTS
from reconciler.cli.output import Output
from reconciler.model.desired import Desired
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.finding import Waiver
from reconciler.model.plan import Plan
from reconciler.model.run_record import JournalRecord
from reconciler.render import as_json, text
from reconciler.render.columns import fitted
from reconciler.render.masked import masked_plan, secret_warning
from reconciler.render.policy_text import policy_lines
from reconciler.render.safe_text import safe


def plan_as(made: Plan, how: str, out: Output, title: str = text.NO_CHANGES) -> str:
    drift = title == text.DRIFT
    if how == "json":
        exactly(made, "the plan as JSON", out)
        return as_json.drift_json(made) if drift else as_json.plan_json(made)
    made = masked_plan(made, out.redactor.content)
    match how:
        case "markdown":
            from reconciler.render.markdown import plan_markdown

            return plan_markdown(made, title, out.told, said=out.warned)
        case "sarif":
            from reconciler.render.sarif import plan_sarif

            return plan_sarif(made, _explained(), out.told, drift)
        case "junit":
            from reconciler.render.junit import plan_junit

            return plan_junit(made, drift, out.told)
        case "html":
            from reconciler.render.plan_page import plan_page

            return plan_page(made, title, out.told)
    return text.plan_text(made, out.color, title, out.width)


def exactly(made: Plan, where: str, out: Output) -> None:
    """What is written there cannot be masked, or it would be another plan: whoever keeps it is told."""
    if warning := secret_warning(made, where, out.redactor.content):
        out.say(warning)


def report_as(
    report: Any, how: str, source: Path, who: bool = False, width: int | None = None, made: Plan | None = None
) -> str:
    """`who`: as text, say who ran it and what the policy said; the one who reads the output of `apply` knows. `width`:
    of the terminal. `made`: the plan, when it stands right above the report.

    A saved report that cannot be shown as text is none, so it is not passed on as JSON either."""
    from reconciler.render.ran import run_of_report

    try:
        shown = text.report_text(report, made is not None, made.refused if made is not None else None)
        run = run_of_report(report)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise app.Failure(f"{source} is not a report of this program: it is malformed") from error
    match how:
        case "json":
            return as_json.dumped(report)
        case "html":
            from reconciler.render.run_page import run_page

            return run_page("Report", [run])
        case "markdown":
            from reconciler.render.markdown_run import report_markdown

            return report_markdown(run)
        case "sarif":
            from reconciler.render.sarif import run_sarif

            return run_sarif([run], _explained())
        case "junit":
            from reconciler.render.junit import run_junit

            return run_junit([run])
    if not who:
        return fitted(shown, width)
    policy = "".join(f"{line}\n" for line in policy_lines(run.findings))
    return fitted(f"{safe(run.who)}\n{policy}{shown}" if run.who else policy + shown, width)


def journal_as(journal: JournalRecord, how: str, width: int | None = None) -> str:
    from reconciler.render.ran import runs_of_journal

    runs = runs_of_journal(journal)
    match how:
        case "json":
            return as_json.dumped(journal.to_json())
        case "html":
            from reconciler.render.run_page import run_page

            return run_page("Journal", runs)
        case "markdown":
            from reconciler.render.markdown_run import journal_markdown

            return journal_markdown(runs, journal.unreadable)
        case "sarif":
            from reconciler.render.sarif import run_sarif

            return run_sarif(runs, _explained())
        case "junit":
            from reconciler.render.junit import run_junit

            return run_junit(runs)
    from reconciler.render.ran_text import journal_text

    return fitted(journal_text(runs, journal.unreadable), width)


def diagnostics_as(
    found: Sequence[Diagnostic],
    documents: int,
    how: str,
    files: Iterable[str] = (),
    width: int | None = None,
    waived: Sequence[tuple[Diagnostic, Waiver]] = (),
) -> str:
    """`waived`: findings that count for nothing; a format that has a place for them tells them."""
    if how == "json":
        return as_json.diagnostics_json(found, documents)
    if how == "sarif":
        from reconciler.render.sarif import diagnostics_sarif

        return diagnostics_sarif(found, _explained(), waived=waived)
    if how in DOCUMENTS:
        return _document(found, how, documents, files)
    errors = sum(1 for d in found if d.severity == "error")
    counts = (_count(documents, "document"), _count(errors, "error"), _count(len(found) - errors, "warning"))
    return fitted(text.diagnostics_text(found), width) + f"{', '.join(counts)}\n"


@contextmanager
def documented(how: str, out: Output, command: str) -> Iterator[None]:
    """A plan that could not be made leaves a document too, with the diagnostics: CI uploads it either way."""
    try:
        yield
    except app.Failure as error:
        if how in PLAN_DOCUMENTS:
            found = [out.cleaned(d) for d in error.diagnostics]
            out.result(_document(found, how, message=out.redactor.text(error.message), command=command))
        raise


def _document(
    found: Sequence[Diagnostic],
    how: str,
    documents: int | None = None,
    files: Iterable[str] = (),
    message: str = "",
    command: str = "validate",
) -> str:
    """`message`: why there is no plan."""
    if how == "markdown":
        from reconciler.render.markdown_parts import diagnostics_markdown

        return diagnostics_markdown(found, documents, message)
    if how == "html":
        from reconciler.render.diagnostics_page import diagnostics_page

        return diagnostics_page(found, message)
    if how == "sarif":
        from reconciler.render.sarif import diagnostics_sarif

        return diagnostics_sarif(found, _explained(), message, command)
    from reconciler.render.junit import diagnostics_junit

    return diagnostics_junit(found, files, message, command)


def _explained() -> Mapping[str, tuple[str, str]]:
    """The rules of SARIF say what `explain` says."""
    from reconciler.explain.catalogue import explanations

    told = (e for e in explanations() if e.kind in ("diagnostic", "policy"))
    return {e.code: (e.title, f"{e.means} Fix: {e.fix}") for e in told}


def files_of(desired: Desired) -> set[str]:
    """Those that declare something."""
    found = {spec.source.file for spec in desired.catalogs.values()}
    found |= {n.source.file for by_id in desired.namespaces.values() for n in by_id.values()}
    return found | {t.source.file for by_id in desired.tables.values() for t in by_id.values()}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
