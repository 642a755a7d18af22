"""`reconciler pipeline VERB`: one function per verb."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler import app
from reconciler.cli.output import Output
from reconciler.model.verification import Verification
from reconciler.render import as_json
from reconciler.render.inventory import inventory_json, inventory_text
from reconciler.render.inventory_page import inventory_page
from reconciler.render.verification import verification_junit, verification_text
from reconciler.verbs import inventory as taking
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


def inventory(args: argparse.Namespace, out: Output) -> int:
    for file in (args.output, args.report):
        if file is not None and not Path(file).parent.is_dir():
            raise app.Failure(f"cannot write {file}: create the folder {Path(file).parent} first")
    options = dict(args.history_option)
    request = taking.InventoryRequest(
        _what(args), _spark(args), args.history, options, args.diff, args.report is not None, args.dry_run
    )
    done = taking.inventory(request, out.session)
    out.diagnostics(done.warnings)
    found = done.found
    if done.page is not None:
        app.write_file(Path(args.report), inventory_page(done.page))
    text = inventory_json(found) if args.format == "json" else inventory_text(found, out.color)
    if args.output is None:
        out.result(text)
    else:
        app.write_file(Path(args.output), text)
    if found.nothing_read:
        return ERROR
    differs = found.diff is not None and (found.diff.has_changes or bool(found.diff.orphans))
    return DIFFERS if differs or found.unread else OK


def _what(args: argparse.Namespace) -> app.Request:
    options = app.PlanOptions(targets=tuple(args.target))
    return app.Request(tuple(args.paths), dict(args.var), tuple(args.catalog), options)


def _spark(args: argparse.Namespace) -> verifying.SparkOptions:
    return verifying.SparkOptions(args.master, args.remote, tuple(args.conf))


def _as(found: Verification, how: str) -> str:
    if how == "json":
        return as_json.dumped(found.to_json())
    return verification_junit(found) if how == "junit" else verification_text(found)
