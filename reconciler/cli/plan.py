"""`reconciler plan`."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler import app, app_files
from reconciler.cli.exits import CHANGES, OK, REFUSED
from reconciler.cli.formats import documented, exactly, plan_as
from reconciler.cli.output import Output
from reconciler.cli.requests import planned
from reconciler.cli.written_files import refuse_clashes
from reconciler.render import as_json


def run(args: argparse.Namespace, out: Output) -> int:
    with documented(args.format, out, args.command):
        refuse_clashes(args)
        made = planned(args, out)
        out.made(made)
        if args.output is not None:
            app_files.write_file(Path(args.output), as_json.plan_json(made))
            app.warn_of_literals(out.session, args.output)
            exactly(made, args.output, out)
    out.result(plan_as(made, args.format, out), exact=args.format == "json")
    if made.refused_by_policy is not None:
        if args.format != "text":  # Which may be in a file that nobody has, and the exit code alone says little.
            out.say(f"error: refused by {made.refused_by_policy}")
        return REFUSED
    return CHANGES if args.detailed_exitcode and made.has_changes else OK
