"""`reconciler unlock`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from reconciler.cli.confirm import terminal, typed
from reconciler.cli.exits import ERROR, OK
from reconciler.cli.output import Output
from reconciler.cli.requests import reading
from reconciler.model.lease import HeldLease
from reconciler.model.report import LEASE_HELD
from reconciler.render.as_json import dumped
from reconciler.render.leases import leases_text, leases_value
from reconciler.verbs.unlock import Locked, held_leases, take_away

ALIVE = "A run that is still alive stops at its next write, within about a second, also in the middle of a step."


def run(args: argparse.Namespace, out: Output) -> int:
    """Shows first, removes what was shown and nothing else. Where nobody can be asked and --yes was not given it only
    shows: 6 when something is held."""
    found = held_leases(args.paths, reading(args), args.catalog, out.session)
    held = [locked.shown for locked in found]
    asks = bool(found) and not args.yes and terminal()
    if args.format == "text":
        out.result(leases_text(held))
    elif asks:
        out.say_lines(leases_text(held).rstrip("\n").split("\n"))
    wanted = args.yes or (asks and _confirmed(held))
    removed = [locked for locked in found if _removed(locked, out)] if wanted else []
    if args.format == "json":
        out.result(dumped(leases_value(held, [locked.shown for locked in removed])))
    if found and not wanted:
        out.say("not removed" if asks else "nothing was removed: --yes removes what is shown")
        return LEASE_HELD
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


def _confirmed(held: Sequence[HeldLease]) -> bool:
    what = "this lease" if len(held) == 1 else f"these {len(held)} leases"
    return typed(f"{ALIVE} Remove {what}? Type yes to remove, anything else to stop: ") == "yes"
