"""`unlock`: who holds the leases of catalogs, and to take one away from a run that is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler import app
from reconciler.app_lease import places_of
from reconciler.engine.lease import LeaseLog, RecordGone, Seen, taken_away
from reconciler.engine.lease_holder import liveness
from reconciler.model.diagnostic import has_errors
from reconciler.model.errors import CatalogError, ReadError
from reconciler.model.lease import HeldLease

if TYPE_CHECKING:
    from reconciler.model.desired import Desired
    from reconciler.model.ident import Ident
    from reconciler.session import Session


@dataclass(frozen=True)
class Locked:
    """A lease as it was shown: only that one is taken away."""

    shown: HeldLease
    log: LeaseLog
    seen: Seen


def held_leases(paths: Sequence[str], reading: app.Reading, catalogs: Sequence[str], at: Session) -> list[Locked]:
    """Of the selected catalogs, sorted. Reads nothing else of them. Raises Failure."""
    loaded = app.validate(paths, reading)
    if has_errors(loaded.diagnostics):
        raise app.Failure("the manifests have errors", loaded.diagnostics)
    found: dict[tuple[str, str], Locked] = {}
    names = app.selected(loaded.desired, catalogs)
    at.connect_all([loaded.desired.catalogs[name] for name in names])
    for name in names:
        for records in places_of(name, _declared(loaded.desired, name), at) or ():
            locked = _look(name, LeaseLog(records), at)
            if locked is not None:
                found.setdefault((locked.shown.place, locked.shown.lease.run), locked)
    return list(found.values())


def _declared(desired: Desired, name: str) -> list[Ident]:
    return [*desired.namespaces.get(name, {}), *desired.tables.get(name, {})]


def _look(name: str, log: LeaseLog, at: Session) -> Locked | None:
    try:
        seen = log.read()
    except CatalogError as error:
        why = ReadError(error.code, at.redactor.text(error.message))
        raise app.Failure(f"the lease of catalog {name} cannot be read: {why.text}", error=why) from error
    held = seen.held
    if held is None:
        return None
    return Locked(HeldLease(name, log.place, seen.number, held, liveness(held.holder)), log, seen)


def take_away(locked: Locked) -> bool:
    """False when it is no longer the one that was shown. Raises Failure."""
    assert locked.seen.lease is not None
    try:
        return locked.log.swap(locked.seen, taken_away(locked.seen.lease)) is not None
    except RecordGone:
        return False
    except CatalogError as error:
        why = ReadError(error.code, error.message)
        message = f"the lease of catalog {locked.shown.catalog} was not removed: {why.text}"
        raise app.Failure(message, error=why) from error
