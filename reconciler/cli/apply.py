"""`reconciler apply`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from reconciler import app, app_saved, app_trust
from reconciler.catalog import deadline
from reconciler.cli.confirm import confirm, terminal
from reconciler.cli.exits import ERROR, INTERRUPTED, OK, PARTLY
from reconciler.cli.formats import report_as
from reconciler.cli.output import Output
from reconciler.cli.report_file import ReportFile
from reconciler.cli.requests import planned, reading, request, spark
from reconciler.cli.written_files import refuse_clashes
from reconciler.model.errors import ReadError
from reconciler.model.plan import Plan
from reconciler.model.report import STALE_ADVICE, Outcome, Report
from reconciler.render import text
from reconciler.render.masked import masked_plan

_TIMES_ANEW = 2


def run(args: argparse.Namespace, out: Output) -> int:
    """The report is given whatever happens, also when no step was begun, or there is no plan to report on."""
    refuse_clashes(args)
    file = ReportFile(args.report, out.say, out.ending.reported)
    app.identify(out.session, args.paths)
    try:
        try:
            file.claim()
        finally:
            out.ending.claim(args)
        _check_apply_flags(args)
        report = _applied(args, out, file)
    except app.Failure as error:
        _not_applied(args, file, error.outcome, error.summary, out, error.error)
        raise
    except KeyboardInterrupt:
        _not_applied(args, file, "interrupted", "interrupted before the first write", out)
        raise
    except Exception as error:
        outcome: Outcome = "partial" if out.session.writing else "failed"
        _not_applied(args, file, outcome, f"internal error: {type(error).__name__}: {error}", out)
        raise
    if report.exit_code != OK and (args.format != "text" or args.log_format == "json"):  # Otherwise stdout says why.
        out.say(f"error: {report.summary}")
    try:
        if args.format != "text" or report.outcome != "no_changes":  # As text, the plan has said that already.
            shown = out.ending.plan if args.format == "text" else None
            out.result(report_as(report.to_json(), args.format, Path(), width=out.width, made=shown))
    except app.Failure as error:
        out.say(f"warning: {error.message}; the run ended with outcome {report.outcome}")
    except KeyboardInterrupt:
        out.say(f"interrupted while the report was printed; the run ended with outcome {report.outcome}")
        return INTERRUPTED
    return _exit_code(report, file.lost)


def _exit_code(report: Report, lost: bool) -> int:
    """A run whose report was asked for and lost is no success: whoever reads the file finds `interrupted` there. To
    apply again is the remedy, as for any 5; 1 promises that nothing was written."""
    code = report.exit_code
    if code != OK or not lost:
        return code
    return PARTLY if report.count("done") else ERROR


def _not_applied(
    args: argparse.Namespace,
    file: ReportFile,
    outcome: Outcome,
    message: str,
    out: Output,
    error: ReadError | None = None,
) -> None:
    """As text, what went wrong is on stderr already."""
    report = app.unapplied(out.ending.plan, outcome, message, out.session, error)
    file.write(report)
    if args.format != "text":
        out.result(report_as(report.to_json(), args.format, Path()))


def _applied(args: argparse.Namespace, out: Output, file: ReportFile) -> Report:
    saved = app_saved.plan_to_apply(Path(args.plan)) if args.plan is not None else None
    if not args.yes and not terminal():
        raise app.Failure("there is no terminal to ask on: pass --yes to apply without a question")
    made = saved if saved is not None else planned(args, out)
    out.made(made)
    trusted = app_trust.catalogs_for(made, Path(args.plan), reading(args)) if args.plan and args.catalogs_from else None
    if args.plan is not None:  # Not before the file is trusted: it names the folders that git is asked about.
        app.identify(out.session, the_plan=made)
        app_saved.learn_secrets(made, Path(args.plan), out.session, trusted)
    shown = masked_plan(made, out.redactor.content)
    if args.format == "text":
        out.result(text.plan_text(shown, out.color, width=out.width))
    if args.reviewed is not None:
        app_trust.check_reviewed(made, Path(args.reviewed))
    if not args.yes and made.refused is None and any(s.verdict == "allowed" for s in made.steps):
        if args.format != "text":
            out.say_lines(text.plan_text(shown).rstrip("\n").split("\n"))
        confirm(shown, out, summary=args.format == "text" and out.width is None)
        deadline.restart()
    if args.plan is not None and made.refused is None:
        app_saved.connect_for(made, Path(args.plan), out.session, trusted)
    journal = Path(args.journal) if args.journal else None
    options = app.RunOptions(
        args.parallelism, deadline.left(), journal, spark(args), args.lock_timeout, saved is not None
    )
    report = app.apply(made, options, out.session, file.write, file.began)
    for _ in range(_TIMES_ANEW if args.yes and args.plan is None and args.reviewed is None else 0):
        if report.outcome != "stale" or deadline.is_over():
            break
        again = _planned_anew(args, out, report)
        report = app.apply(again, replace(options, timeout=deadline.left()), out.session, file.write, file.began)
    return report


def _planned_anew(args: argparse.Namespace, out: Output, stale: Report) -> Plan:
    """Somebody was faster, as a rule the run that this one waited for. Nobody looked at the plan that no longer fits,
    so what another `apply` would do is done now; a plan that somebody agreed to is never exchanged for another."""
    out.say(f"note: planned anew: {stale.message.removesuffix(STALE_ADVICE).rstrip()}")
    app.identify(out.session, args.paths)
    made, _ = app.plan(request(args), out.session)
    out.made(made)
    if args.format == "text":
        out.result(text.plan_text(masked_plan(made, out.redactor.content), out.color, width=out.width))
    return made


def _check_apply_flags(args: argparse.Namespace) -> None:
    planning = {
        "PATH": args.paths, "--prune": args.prune, "--adopt": args.adopt, "--take-over": args.take_over,
        "--allow": args.allow, "--target": args.target, "--catalog": args.catalog, "--env-allow": args.env_allow,
        "--file-root": args.file_root, "--var": args.var and not args.catalogs_from,
        "--env": args.env and not args.catalogs_from, "--changed-since": args.changed_since,
        "--runner": args.runner != "auto",
        "--strict": args.strict,
    }  # fmt: skip
    if args.plan is None and not args.paths:
        raise app.Failure("give manifests (PATH...) or a saved plan (--plan FILE)")
    if args.plan is not None and any(planning.values()):
        extra = ", ".join(name for name, given in planning.items() if given)
        raise app.Failure(f"--plan FILE applies exactly that plan: it does not go together with {extra}")
