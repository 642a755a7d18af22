"""`reconciler pipeline VERB`: one function per verb."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler import app, app_files
from reconciler.cli.exits import CHANGES, ERROR, INTERRUPTED, OK, PARTLY
from reconciler.cli.formats import plan_as
from reconciler.cli.output import Output
from reconciler.cli.report_file import ReportFile
from reconciler.cli.requests import request, spark
from reconciler.cli.written_files import refuse_clashes
from reconciler.model.report import Report
from reconciler.model.verification import Verification
from reconciler.render import as_json, text
from reconciler.render.columns import fitted
from reconciler.render.inventory import inventory_json, inventory_text
from reconciler.render.inventory_page import inventory_page
from reconciler.render.maintained import maintained_text
from reconciler.render.verification import verification_junit, verification_text
from reconciler.verbs import inventory as taking
from reconciler.verbs import maintain as maintaining
from reconciler.verbs import verify as verifying
from reconciler.verbs.data_steps import DataRequest, plan_data_steps


def run(args: argparse.Namespace, out: Output) -> int:
    verbs = {
        "verify": verify, "maintain": maintain, "inventory": inventory,
        "materialize": _data_steps, "evolve": _data_steps, "migrate": _data_steps,
    }  # fmt: skip
    refuse_clashes(args)
    return verbs[args.verb](args, out)


def verify(args: argparse.Namespace, out: Output) -> int:
    _need_folder(args.output)
    asked = verifying.VerifyRequest(request(args), spark(args), args.against, args.dry_run)
    found, warnings = verifying.verify(asked, out.session)
    out.diagnostics(warnings)
    _give(_as(found, args.format), args, out)
    if found.nothing_read:
        return ERROR
    return CHANGES if found.count(False) else OK


def maintain(args: argparse.Namespace, out: Output) -> int:
    _need_folder(args.output)
    found, warnings = maintaining.maintain(
        maintaining.MaintainRequest(request(args), spark(args), args.dry_run, args.lock_timeout), out.session
    )
    out.diagnostics(warnings)
    shown = as_json.dumped(found.to_json()) if args.format == "json" else maintained_text(found)
    try:
        _give(shown, args, out)
    except app.Failure as error:
        if not found.changed:
            raise
        out.say(f"warning: {error.message}; the result goes to stdout")
        out.result(shown)
        return PARTLY
    if found.interrupted:
        return INTERRUPTED
    return (PARTLY if found.changed else ERROR) if found.failed else OK


def _need_folder(*files: str | None) -> None:
    """Before the work, not after it."""
    for file in files:
        if file is not None and not Path(file).parent.is_dir():
            raise app.Failure(f"cannot write {file}: create the folder {Path(file).parent} first")


def _give(shown: str, args: argparse.Namespace, out: Output) -> None:
    if args.output is None:
        out.result(shown)
    else:
        app_files.write_file(Path(args.output), out.masked(shown))


def _data_steps(args: argparse.Namespace, out: Output) -> int:
    """As `apply` does it: the plan, then the report, with its exit codes."""
    file = ReportFile(args.report, out.say, out.ending.reported)
    if not args.dry_run:
        file.claim()
        app.identify(out.session, args.paths)
    try:
        report = _ran_data_steps(args, out, file)
    except app.Failure as error:
        file.write(app.unapplied(out.ending.plan, error.outcome, error.summary, out.session, error.error))
        raise
    if report is None:
        return OK
    shown = report.to_json()
    if args.format == "json":
        out.result(as_json.dumped(shown))
    elif report.outcome != "no_changes":
        out.result(fitted(text.report_text(shown), out.width))
    code = report.exit_code
    return PARTLY if code == OK and file.lost and report.count("done") else code


def _ran_data_steps(args: argparse.Namespace, out: Output, file: ReportFile) -> Report | None:
    """None when they were only to be shown."""
    made, warnings = plan_data_steps(DataRequest(request(args), args.verb), out.session)
    out.made(made)
    out.diagnostics(warnings)
    if args.format == "text" or args.dry_run:
        out.result(plan_as(made, args.format, out), exact=args.format == "json")
    if args.dry_run:
        return None
    options = app.RunOptions(spark=spark(args), lock_timeout=args.lock_timeout)
    return app.apply(made, options, out.session, file.write, file.began)


def inventory(args: argparse.Namespace, out: Output) -> int:
    _need_folder(args.output, args.report)
    options = dict(args.history_option)
    asked = taking.InventoryRequest(
        request(args), spark(args), args.history, options, args.diff, args.report is not None, args.dry_run
    )
    done = taking.inventory(asked, out.session)
    out.diagnostics(done.warnings)
    found = done.found
    if found.uncompared is not None:
        out.diagnostics(found.uncompared.diagnostics)
        out.say(f"error: {found.uncompared.message}")
    if done.page is not None:
        app_files.write_file(Path(args.report), out.masked(inventory_page(done.page)))
    _give(inventory_json(found) if args.format == "json" else inventory_text(found, out.color), args, out)
    if found.nothing_read:
        return ERROR
    differs = found.diff is not None and (found.diff.has_changes or bool(found.diff.orphans))
    return CHANGES if differs or found.unread else OK


def _as(found: Verification, how: str) -> str:
    if how == "json":
        return as_json.dumped(found.to_json())
    return verification_junit(found) if how == "junit" else verification_text(found)
