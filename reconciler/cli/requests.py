"""What the flags ask for, as the use cases take it."""

from __future__ import annotations

import argparse

from reconciler import app
from reconciler.cli.output import Output
from reconciler.model.plan import Plan
from reconciler.model.spark import RUNNERS, Runner


def reading(args: argparse.Namespace) -> app.Reading:
    """`--no-resolve` is a flag of `validate` alone."""
    return app.Reading(
        dict(args.var),
        environment=args.env or "",
        changed_since=getattr(args, "changed_since", None) or "",
        catalogs_from=tuple(args.catalogs_from),
        env_allow=tuple(args.env_allow),
        file_root=tuple(args.file_root),
        sql_code=args.allow_sql_code,
        strict=args.strict,
        resolve=not getattr(args, "no_resolve", False),
    )


def spark(args: argparse.Namespace) -> app.SparkOptions:
    return app.SparkOptions(args.master, args.remote, tuple(args.conf), args.allow_sql_code)


def _runner(args: argparse.Namespace) -> Runner | None:
    """`auto`, and a command without the flag: whichever fits."""
    given = getattr(args, "runner", "auto")
    return None if given == "auto" else RUNNERS[RUNNERS.index(given)]


def request(args: argparse.Namespace) -> app.Request:
    options = app.PlanOptions(
        prune=getattr(args, "prune", False),
        adopt=getattr(args, "adopt", False),
        take_over=frozenset(getattr(args, "take_over", ())),
        allow=frozenset(getattr(args, "allow", ())),
        targets=tuple(args.target),
        runner=_runner(args),
        max_unindexed=getattr(args, "max_unindexed", None),
    )
    return app.Request(tuple(args.paths), reading(args), tuple(args.catalog), options, spark(args))


def planned(args: argparse.Namespace, out: Output) -> Plan:
    made, warnings = app.plan(request(args), out.session)
    out.diagnostics(warnings)
    return made
