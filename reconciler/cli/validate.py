"""`reconciler validate`."""

from __future__ import annotations

import argparse

from reconciler import app
from reconciler.cli.exits import ERROR, OK
from reconciler.cli.formats import diagnostics_as, files_of
from reconciler.cli.output import Output
from reconciler.cli.requests import reading
from reconciler.model.diagnostic import has_errors


def run(args: argparse.Namespace, out: Output) -> int:
    loaded = app.validate(args.paths, reading(args))
    out.result(diagnostics_as(loaded.diagnostics, loaded.documents, args.format, files_of(loaded.desired)))
    return ERROR if has_errors(loaded.diagnostics) else OK
