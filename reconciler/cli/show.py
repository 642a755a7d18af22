"""`reconciler show`: a saved plan, a report or a journal."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler import app, app_files
from reconciler.cli.exits import OK
from reconciler.cli.formats import journal_as, plan_as, report_as
from reconciler.cli.output import Output


def run(args: argparse.Namespace, out: Output) -> int:
    file = Path(args.file)
    journal = app_files.saved_journal(file)
    if journal is not None:
        out.result(journal_as(journal, args.format, out.width))
        return OK
    value = app_files.read_json(file)
    if app_files.is_report(value):
        out.result(report_as(value, args.format, file, who=True, width=out.width))
    elif not isinstance(value, dict) or "steps" not in value:
        raise app.Failure(
            f"{file} is neither a plan, nor a report, nor a journal: give a file that `reconciler plan -o FILE`, "
            "`reconciler apply --report FILE` or the journal of `apply` wrote"
        )
    else:
        out.result(plan_as(app_files.saved_plan(file), args.format, out), exact=args.format == "json")
    return OK
