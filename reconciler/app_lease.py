"""A run's turn to write: the leases of the catalogs that it is going to change."""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.catalog import deadline
from reconciler.catalog.base import Leased, LeaseRecords
from reconciler.engine.journal import Journal, JournalError
from reconciler.engine.lease import Me, Times, asleep
from reconciler.engine.lease_holder import this_process
from reconciler.engine.lease_keeper import Guarded, Keeper, LeaseRefused, LeaseUnavailable, Note
from reconciler.engine.outcome import nothing_ran
from reconciler.model.ident import Ident
from reconciler.model.lease import DEFAULT_TTL, LONGEST, SHORTEST
from reconciler.session import Failure, Session

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.model.report import Report

TTL_VARIABLE = "RECONCILER_LEASE_TTL"
PATIENCE = 15.0
"""Seconds over the time to live that are waited by default: enough to see that a holder no longer renews."""


def time_to_live() -> float:
    """Raises Failure."""
    text = os.environ.get(TTL_VARIABLE, "")
    try:
        ttl = float(text) if text else DEFAULT_TTL
    except ValueError:
        ttl = 0.0
    if not SHORTEST <= ttl <= LONGEST:
        raise Failure(f"{TTL_VARIABLE} is {text!r}: it takes seconds, from {SHORTEST:g} to {LONGEST:g}")
    return ttl


def written_to(plan: Plan) -> dict[str, list[Ident]]:
    """What the plan changes, by catalog. Nothing when it is refused as a whole."""
    idents: dict[str, list[Ident]] = {}
    for step in plan.steps if plan.refused is None else ():
        if step.verdict == "allowed":
            idents.setdefault(step.catalog, []).append(step.change.ident)
    return idents


def places_of(name: str, idents: Sequence[Ident], at: Session) -> Sequence[LeaseRecords] | None:
    """Where the leases of these objects are kept; None where a catalog has none."""
    catalog = at.catalogs[name]
    return catalog.lease_records(idents) if isinstance(catalog, Leased) else None


@contextmanager
def turn_to_write(
    what: Mapping[str, Sequence[Ident]],
    timeout: float | None,
    at: Session,
    *,
    plan_id: str = "",
    stop: threading.Event | None = None,
    note: Note = lambda event: None,
) -> Iterator[Keeper]:
    """Held while the block runs. `timeout`: seconds to wait, None for the default. Raises LeaseRefused and
    LeaseUnavailable before the block, and Failure."""
    ttl = time_to_live()
    guarded = [Guarded(name, records) for name in sorted(what) for records in _places(name, what[name], at)]
    times = Times(ttl, pause=stop.wait if stop is not None else asleep)
    me = this_process(plan_id, at.command)
    clean = at.redactor.text
    me = replace(me, user=clean(me.user), command=clean(me.command), url=clean(me.url))
    keeper = Keeper(Me(uuid.uuid4().hex, me), times, at.say, note)
    if guarded:
        wait = ttl + PATIENCE if timeout is None else timeout
        left = deadline.left()
        keeper.take_all(guarded, wait if left is None else max(0.0, min(wait, left)))
    try:
        yield keeper
    finally:
        keeper.release()


def _places(name: str, idents: Sequence[Ident], at: Session) -> Sequence[LeaseRecords]:
    places = places_of(name, idents, at)
    if places is None:
        kind = at.catalogs[name].capabilities.type
        logging.getLogger("reconciler").info(
            "catalog %s: the catalog type %s has no lease: nothing keeps two runs from writing at a time", name, kind
        )
    return places or ()


def refusal(refused: LeaseRefused) -> str:
    """For a person: who has it, and how to go on."""
    use = refused.use
    waited = f"waited {use.waited:.1f} s for it" if use.waited >= 0.1 else "it was not waited for"
    return (
        f"nothing was written: {refused}; {waited}. Apply again when that run has ended, or wait longer with "
        f"--lock-timeout; if it is gone for good: reconciler unlock PATH --catalog {use.catalog}"
    )


def without_turn(plan: Plan, error: LeaseRefused | LeaseUnavailable, journal: Journal) -> Report:
    """The report of a run that was not allowed to begin."""
    if isinstance(error, LeaseUnavailable):
        report = replace(nothing_ran(plan, "failed", f"nothing was written: {error}"), error=error.error)
    elif error.stopped:
        report = nothing_ran(plan, "interrupted", f"interrupted while it waited; nothing was written: {error}")
    else:
        report = replace(nothing_ran(plan, "refused", refusal(error)), leases=(error.use,))
    with suppress(JournalError):
        journal.finish(report.outcome)
    return report
