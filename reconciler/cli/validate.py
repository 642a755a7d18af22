"""`reconciler validate`."""

from __future__ import annotations

import argparse

from reconciler import app
from reconciler.cli.exits import ERROR, OK, REFUSED
from reconciler.cli.formats import diagnostics_as, files_of
from reconciler.cli.output import Output
from reconciler.cli.requests import reading
from reconciler.model.diagnostic import has_errors, tidy


def run(args: argparse.Namespace, out: Output) -> int:
    loaded = app.validate(args.paths, reading(args))
    wrong = has_errors(loaded.diagnostics)
    judged = [] if wrong else app.against_policy(loaded, reading(args))
    against = [told for told, waiver in judged if waiver is None]
    waived = [(told, waiver) for told, waiver in judged if waiver is not None]
    found = tidy([*loaded.diagnostics, *against])
    out.result(diagnostics_as(found, loaded.documents, args.format, files_of(loaded.desired), out.width, waived))
    return ERROR if wrong else REFUSED if has_errors(against) else OK
