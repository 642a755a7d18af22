"""`reconciler validate`."""

from __future__ import annotations

import argparse

from reconciler import app
from reconciler.cli.exits import ERROR, OK, REFUSED
from reconciler.cli.formats import diagnostics_as
from reconciler.cli.output import Output
from reconciler.cli.requests import reading
from reconciler.model.diagnostic import has_errors, tidy


def run(args: argparse.Namespace, out: Output) -> int:
    loaded = app.validate(args.paths, reading(args))
    wrong = has_errors(loaded.diagnostics)
    against = [] if wrong else app.against_policy(loaded, reading(args))
    out.result(diagnostics_as(tidy([*loaded.diagnostics, *against]), loaded.documents, args.format))
    return ERROR if wrong else REFUSED if has_errors(against) else OK
