"""`reconciler import`."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler.app_import import ImportRequest, import_catalogs
from reconciler.cli.exits import OK
from reconciler.cli.output import Output
from reconciler.cli.requests import reading
from reconciler.render.file_changes import changes_diff, changes_text


def run(args: argparse.Namespace, out: Output) -> int:
    request = ImportRequest(
        tuple(args.paths),
        Path(args.output),
        reading(args),
        tuple(args.catalog),
        tuple(args.target),
        args.split == "table",
        args.only_unmanaged,
        args.dry_run,
    )
    done = import_catalogs(request, out.session)
    changes = done.changes
    out.result(out.redactor.text(changes_diff(changes)) if args.dry_run else changes_text(changes))
    if not changes and done.left:
        out.say(f"nothing was written to {args.output}: what differs from live is told above and stays as it is")
    elif not changes:
        out.say(f"nothing to do: the files in {args.output} say what is live")
    return OK
