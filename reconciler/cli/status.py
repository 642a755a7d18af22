"""`reconciler status`."""

from __future__ import annotations

import argparse

from reconciler.cli.exits import OK
from reconciler.cli.output import Output
from reconciler.cli.requests import request
from reconciler.render import as_json
from reconciler.render.columns import fitted
from reconciler.render.masked import masked
from reconciler.render.status import status_markdown, status_text
from reconciler.render.step_diff import fields_of
from reconciler.verbs.status import status


def run(args: argparse.Namespace, out: Output) -> int:
    found, warnings = status(request(args), out.session, fields_of)
    out.diagnostics(warnings)
    found = masked(found, out.redactor.content)
    if args.format == "json":
        shown = as_json.dumped(found.to_json())
    else:
        shown = status_markdown(found) if args.format == "markdown" else fitted(status_text(found), out.width)
    out.result(shown)
    return OK
