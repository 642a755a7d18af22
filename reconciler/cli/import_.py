"""`reconciler import`."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler import app
from reconciler.cli.exits import OK
from reconciler.cli.output import Output
from reconciler.cli.requests import reading


def run(args: argparse.Namespace, out: Output) -> int:
    for path in app.import_catalogs(args.paths, reading(args), Path(args.output), out.session):
        out.result(f"wrote {path}\n")
    return OK
