"""`reconciler drift`."""

from __future__ import annotations

import argparse

from reconciler.cli.exits import CHANGES, OK
from reconciler.cli.formats import documented, plan_as
from reconciler.cli.output import Output
from reconciler.cli.requests import planned
from reconciler.cli.written_files import refuse_clashes
from reconciler.render import text


def run(args: argparse.Namespace, out: Output) -> int:
    refuse_clashes(args)
    out.ending.claim(args)
    with documented(args.format, out, args.command):
        made = planned(args, out)
    out.made(made)
    out.result(plan_as(made, args.format, out, text.DRIFT), exact=args.format == "json")
    seen = all(catalog.complete for catalog in made.catalogs.values())
    covered = not any(found.over for catalog in made.catalogs.values() for found in catalog.coverage)
    return OK if seen and covered and not made.has_changes and not made.orphans else CHANGES
