"""`reconciler unlock`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from reconciler import app
from reconciler.cli.exits import ERROR, OK
from reconciler.cli.output import Output
from reconciler.cli.requests import reading
from reconciler.model.lease import HeldLease
from reconciler.render.as_json import dumped
from reconciler.render.leases import leases_text, leases_value
from reconciler.verbs.unlock import Locked, held_leases, take_away


def run(args: argparse.Namespace, out: Output) -> int:
    """Shows first, removes what was shown and nothing else."""
    found = held_leases(args.paths, reading(args), args.catalog, out.session)
    held = [locked.shown for locked in found]
    if args.format == "text":
        out.result(out.redactor.text(leases_text(held)))
    elif found and not args.yes:
        out.say(leases_text(held).rstrip("\n"))
    removed: list[Locked] = []
    if found:
        _confirm(args, held)
        removed = [locked for locked in found if _removed(locked, out)]
    if args.format == "json":
        out.result(out.redactor.text(dumped(leases_value(held, [locked.shown for locked in removed]))))
    return OK if len(removed) == len(found) else ERROR


def _removed(locked: Locked, out: Output) -> bool:
    done = take_away(locked)
    name = locked.shown.catalog
    out.say(
        f"the lease of catalog {name} was removed"
        if done
        else f"the lease of catalog {name} was not removed: it is no longer the one that was shown; look again"
    )
    return done


def _confirm(args: argparse.Namespace, held: Sequence[HeldLease]) -> None:
    if args.yes:
        return
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        raise app.Failure("there is no terminal to ask on: pass --yes to remove it without a question")
    what = "this lease" if len(held) == 1 else f"these {len(held)} leases"
    renewal = max(one.lease.ttl for one in held) / 3
    warning = f"A run that is still alive goes on writing until it would renew it, for up to {renewal:.0f} s."
    sys.stderr.write(f"{warning} Remove {what}? Only yes is taken for a yes: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != "yes":
        raise app.Failure("not removed")
