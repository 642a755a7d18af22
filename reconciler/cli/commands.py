"""One function per command: use case -> renderer -> exit code; no logic."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from reconciler import app
from reconciler.cli.output import Output
from reconciler.cli.report_file import ReportFile
from reconciler.model.diagnostic import has_errors
from reconciler.model.plan import Plan
from reconciler.model.report import EXIT_CODES, Outcome, Report
from reconciler.render import as_json, text

OK, ERROR, CHANGES, PARTLY, INTERRUPTED = 0, 1, 2, 5, 130


def validate(args: argparse.Namespace, out: Output) -> int:
    loaded = app.validate(args.paths, dict(args.var))
    if args.format == "json":
        out.result(as_json.diagnostics_json(loaded.diagnostics, loaded.documents))
    else:
        errors = sum(1 for d in loaded.diagnostics if d.severity == "error")
        warnings = len(loaded.diagnostics) - errors
        out.result(text.diagnostics_text(loaded.diagnostics))
        out.result(
            f"{_count(loaded.documents, 'document')}, {_count(errors, 'error')}, {_count(warnings, 'warning')}\n"
        )
    return ERROR if has_errors(loaded.diagnostics) else OK


def plan(args: argparse.Namespace, out: Output) -> int:
    made = _planned(args, out)
    if args.output is not None:
        app.write_file(Path(args.output), as_json.plan_json(made))
        app.warn_of_literals(out.session, args.output)
    out.result(_plan_as(made, args.format, out))
    return CHANGES if args.detailed_exitcode and made.has_changes else OK


def drift(args: argparse.Namespace, out: Output) -> int:
    made = _planned(args, out)
    out.result(_plan_as(made, args.format, out, text.DRIFT))
    seen = all(catalog.complete for catalog in made.catalogs.values())
    return OK if seen and not made.has_changes and not made.orphans else CHANGES


def import_(args: argparse.Namespace, out: Output) -> int:
    for path in app.import_catalogs(args.paths, dict(args.var), Path(args.output), out.session):
        out.result(f"wrote {path}\n")
    return OK


def show(args: argparse.Namespace, out: Output) -> int:
    file = Path(args.file)
    value = app.read_json(file)
    if app.is_report(value):
        out.result(_report_as(value, args.format, file))
    elif not isinstance(value, dict) or "steps" not in value:
        raise app.Failure(
            f"{file} is neither a plan nor a report: give a file that `reconciler plan -o FILE` or "
            "`reconciler apply --report FILE` wrote"
        )
    else:
        out.result(_plan_as(app.saved_plan(file), args.format, out))
    return OK


def pipeline(args: argparse.Namespace, out: Output) -> int:
    from reconciler.cli import pipeline as verbs

    return int(getattr(verbs, args.verb)(args, out))


def apply(args: argparse.Namespace, out: Output) -> int:
    """The report is given whatever happens, also when there is no plan to report on."""
    file = ReportFile(args.report, out.say)
    try:
        file.claim(args.paths if args.plan is None else [args.plan])
        _check_apply_flags(args)
        report = _applied(args, out, file)
    except app.Failure as error:
        _no_plan(args, file, error.outcome, error.summary, out)
        raise
    except KeyboardInterrupt:
        _no_plan(args, file, "interrupted", "interrupted before the first write", out)
        raise
    except Exception as error:
        outcome: Outcome = "partial" if out.session.writing else "failed"
        _no_plan(args, file, outcome, f"internal error: {type(error).__name__}: {error}", out)
        raise
    try:
        if args.format == "json" or report.outcome != "no_changes":  # As text, the plan has said that already.
            out.result(_report_as(report.to_json(), args.format, Path()))
    except app.Failure as error:
        out.say(f"warning: {error.message}; the run ended with outcome {report.outcome}")
    except KeyboardInterrupt:
        out.say(f"interrupted while the report was printed; the run ended with outcome {report.outcome}")
        return INTERRUPTED
    return _exit_code(report, file.lost)


def _exit_code(report: Report, lost: bool) -> int:
    """A run whose report was asked for and lost is no success: whoever reads the file finds `interrupted` there. To
    apply again is the remedy, as for any 5; 1 promises that nothing was written."""
    code = EXIT_CODES[report.outcome]
    if code != OK or not lost:
        return code
    return PARTLY if report.count("done") else ERROR


def _no_plan(args: argparse.Namespace, file: ReportFile, outcome: Outcome, message: str, out: Output) -> None:
    """As text, what went wrong is on stderr already."""
    report = Report("", outcome, (), out.redactor.text(message))
    file.write(report)
    if args.format == "json":
        out.result(as_json.report_json(report))


def _applied(args: argparse.Namespace, out: Output, file: ReportFile) -> Report:
    made = app.saved_plan(Path(args.plan)) if args.plan is not None else _planned(args, out)
    if args.format == "text":
        out.result(text.plan_text(made, out.color))
    if not args.yes and made.has_changes and made.refused is None:
        _confirm(made, args, out)
    if args.plan is not None and made.refused is None:
        app.connect_for(made, Path(args.plan), out.session)
    options = app.RunOptions(args.parallelism, args.timeout, Path(args.journal) if args.journal else None, _spark(args))
    return app.apply(made, options, out.session, file.write)


def _planned(args: argparse.Namespace, out: Output) -> Plan:
    options = app.PlanOptions(
        prune=getattr(args, "prune", False),
        adopt=getattr(args, "adopt", False),
        take_over=frozenset(getattr(args, "take_over", ())),
        allow=frozenset(getattr(args, "allow", ())),
        targets=tuple(args.target),
    )
    request = app.Request(tuple(args.paths), dict(args.var), tuple(args.catalog), options, _spark(args))
    made, warnings = app.plan(request, out.session)
    out.diagnostics(warnings)
    return made


def _spark(args: argparse.Namespace) -> app.SparkOptions:
    return app.SparkOptions(args.master, args.remote, tuple(args.conf))


def _check_apply_flags(args: argparse.Namespace) -> None:
    planning = {
        "PATH": args.paths, "--prune": args.prune, "--adopt": args.adopt, "--take-over": args.take_over,
        "--allow": args.allow, "--target": args.target, "--catalog": args.catalog, "--var": args.var,
    }  # fmt: skip
    if args.plan is None and not args.paths:
        raise app.Failure("give manifests (PATH...) or a saved plan (--plan FILE)")
    if args.plan is not None and any(planning.values()):
        extra = ", ".join(name for name, given in planning.items() if given)
        raise app.Failure(f"--plan FILE applies exactly that plan: it does not go together with {extra}")
    if not args.yes and not _terminal():
        raise app.Failure("there is no terminal to ask on: pass --yes to apply without a question")


def _terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _confirm(made: Plan, args: argparse.Namespace, out: Output) -> None:
    if args.format != "text":
        out.say(text.plan_text(made).rstrip("\n"))
    sys.stderr.write("Apply this plan? Only yes is taken for a yes: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != "yes":
        raise app.Failure("not applied: nothing was written")


def _plan_as(made: Plan, how: str, out: Output, title: str = text.NO_CHANGES) -> str:
    return as_json.plan_json(made) if how == "json" else text.plan_text(made, out.color, title)


def _report_as(report: Any, how: str, source: Path) -> str:
    """A saved report that cannot be shown as text is none, so it is not passed on as JSON either."""
    try:
        shown = text.report_text(report)
    except (KeyError, TypeError, AttributeError) as error:
        raise app.Failure(f"{source} is not a report of this program: it is malformed") from error
    return as_json.dumped(report) if how == "json" else shown


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
