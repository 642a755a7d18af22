"""`reconciler graph`: the steps of a saved plan, or manifests, as a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler import app, app_files
from reconciler.cli.exits import OK
from reconciler.cli.output import Output
from reconciler.cli.requests import reading
from reconciler.model.diagnostic import has_errors
from reconciler.render.graph import Graph
from reconciler.render.graph_scope import Nothing, of_manifests, of_plan
from reconciler.render.graph_svg import svg
from reconciler.render.graph_text import dot, mermaid

_FORMATS = {"dot": dot, "mermaid": mermaid, "svg": svg}


def run(args: argparse.Namespace, out: Output) -> int:
    if bool(args.paths) == (args.plan is not None):
        raise app.Failure("give manifests (PATH...) or a saved plan (--plan FILE), one of both")
    try:
        graph = _graph(args, out)
    except Nothing as error:
        raise app.Failure(str(error)) from error
    out.result(_FORMATS[args.format](graph))
    return OK


def _graph(args: argparse.Namespace, out: Output) -> Graph:
    """Offline: nothing is read but the files."""
    if args.plan is not None:
        return of_plan(app_files.saved_plan(Path(args.plan)), args.target, args.catalog)
    loaded = app.validate(args.paths, reading(args))
    if has_errors(loaded.diagnostics):
        raise app.Failure("the manifests have errors", loaded.diagnostics)
    out.diagnostics(loaded.diagnostics)
    return of_manifests(loaded.desired, args.target, args.catalog)
