"""`reconciler pipeline VERB`: one function per verb."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler import app
from reconciler.cli.output import Output
from reconciler.model.verification import Verification
from reconciler.render import as_json
from reconciler.render.verification import verification_junit, verification_text
from reconciler.verbs import verify as verifying

OK, ERROR, DIFFERS = 0, 1, 2


def verify(args: argparse.Namespace, out: Output) -> int:
    if args.output is not None and not Path(args.output).parent.is_dir():
        raise app.Failure(f"cannot write {args.output}: create the folder {Path(args.output).parent} first")
    request = verifying.VerifyRequest(_what(args), _spark(args), args.against, args.dry_run)
    found, warnings = verifying.verify(request, out.session)
    out.diagnostics(warnings)
    text = _as(found, args.format)
    if args.output is None:
        out.result(text)
    else:
        app.write_file(Path(args.output), text)
    if found.nothing_read:
        return ERROR
    return DIFFERS if found.count(False) else OK


def _what(args: argparse.Namespace) -> app.Request:
    options = app.PlanOptions(targets=tuple(args.target))
    return app.Request(tuple(args.paths), dict(args.var), tuple(args.catalog), options)


def _spark(args: argparse.Namespace) -> app.SparkOptions:
    return app.SparkOptions(args.master, args.remote, tuple(args.conf))


def _as(found: Verification, how: str) -> str:
    if how == "json":
        return as_json.dumped(found.to_json())
    return verification_junit(found) if how == "junit" else verification_text(found)
