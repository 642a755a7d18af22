"""`reconciler import`."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler.app_import import Imported, ImportRequest, import_catalogs
from reconciler.cli.exits import OK, PARTLY
from reconciler.cli.output import Output
from reconciler.cli.requests import reading
from reconciler.render.file_changes import changes_diff, changes_text
from reconciler.render.missed import missed_lines, unlisted_lines


def run(args: argparse.Namespace, out: Output) -> int:
    request = ImportRequest(
        tuple(args.paths),
        Path(args.output),
        reading(args),
        tuple(args.catalog),
        tuple(args.target),
        args.split == "table",
        args.only_unmanaged,
        args.dry_run,
    )
    done = import_catalogs(request, out.session)
    changes = done.changes
    out.result(changes_diff(changes) if args.dry_run else changes_text(changes))
    if not changes:
        out.say(_nothing(args, done))
    for line in unlisted_lines(done.missed):
        out.say(line)
    for line in missed_lines(done.missed, args.output, args.dry_run):
        out.say(line)
    return PARTLY if done.missed else OK


def _nothing(args: argparse.Namespace, done: Imported) -> str:
    """Only what was looked at."""
    if done.left:
        return f"nothing was written to {args.output}: what differs from live is told above and stays as it is"
    if done.missed:
        return f"nothing was written to {args.output}: what could be read is as the files say"
    asked = " (of what was asked for)" if args.target or args.catalog else ""
    if args.only_unmanaged:
        return f"nothing to do: all that is live{asked} has an owner or is declared; what is declared was not compared"
    known = ", as far as it can be read" if done.unread else ""
    return f"nothing to do: the files in {args.output} say what is live{asked}{known}"
