"""`reconciler pipeline VERB`: one function per verb."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler import app
from reconciler.cli.output import Output
from reconciler.model.verification import Verification
from reconciler.render import as_json
from reconciler.render.maintained import maintained_text
from reconciler.render.verification import verification_junit, verification_text
from reconciler.verbs import maintain as maintaining
from reconciler.verbs import verify as verifying

OK, ERROR, DIFFERS, PARTLY, INTERRUPTED = 0, 1, 2, 5, 130


def verify(args: argparse.Namespace, out: Output) -> int:
    _need_folder(args)
    request = verifying.VerifyRequest(_what(args), _spark(args), args.against, args.dry_run)
    found, warnings = verifying.verify(request, out.session)
    out.diagnostics(warnings)
    _give(_as(found, args.format), args, out)
    if found.nothing_read:
        return ERROR
    return DIFFERS if found.count(False) else OK


def maintain(args: argparse.Namespace, out: Output) -> int:
    _need_folder(args)
    found, warnings = maintaining.maintain(
        maintaining.MaintainRequest(_what(args), _spark(args), args.dry_run), out.session
    )
    out.diagnostics(warnings)
    text = as_json.dumped(found.to_json()) if args.format == "json" else maintained_text(found)
    try:
        _give(text, args, out)
    except app.Failure as error:
        if not found.changed:
            raise
        out.say(f"warning: {error.message}; the result goes to stdout")
        out.result(text)
        return PARTLY
    if found.interrupted:
        return INTERRUPTED
    return (PARTLY if found.changed else ERROR) if found.failed else OK


def _need_folder(args: argparse.Namespace) -> None:
    """Before the work, not after it."""
    if args.output is not None and not Path(args.output).parent.is_dir():
        raise app.Failure(f"cannot write {args.output}: create the folder {Path(args.output).parent} first")


def _give(text: str, args: argparse.Namespace, out: Output) -> None:
    if args.output is None:
        out.result(text)
    else:
        app.write_file(Path(args.output), text)


def _what(args: argparse.Namespace) -> app.Request:
    options = app.PlanOptions(targets=tuple(args.target))
    return app.Request(tuple(args.paths), dict(args.var), tuple(args.catalog), options)


def _spark(args: argparse.Namespace) -> verifying.SparkOptions:
    return verifying.SparkOptions(args.master, args.remote, tuple(args.conf))


def _as(found: Verification, how: str) -> str:
    if how == "json":
        return as_json.dumped(found.to_json())
    return verification_junit(found) if how == "junit" else verification_text(found)
