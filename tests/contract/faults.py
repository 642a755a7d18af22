"""A catalog with bad luck: the real one behind a wrapper that fails when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.catalog.base import Catalog, WriteContext, Written
from reconciler.model.change import Change
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ROOT, Ident, Kind
from reconciler.model.observed import Gap, Observation, RootSeen, Scope

Once = Callable[[Change, int], CatalogError | None]
"""The error for this change on this attempt (from 1), or None."""


@dataclass
class Unlucky:
    """`before` fails instead of the write, `after` fails although it landed."""

    catalog: Catalog
    before: Once = lambda change, attempt: None
    after: Once = lambda change, attempt: None
    gaps: tuple[Gap, ...] = ()
    attempts: dict[str, int] = field(default_factory=dict)
    writes: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    @property
    def capabilities(self) -> Any:
        return self.catalog.capabilities

    def scan(self, scope: Scope) -> Iterator[Observation | Gap]:
        """Below a gap nothing is seen, as when the listing of that place failed."""
        yield from self.gaps
        for found in self.catalog.scan(scope):
            if isinstance(found, (Gap, RootSeen)) or not any(found.ident[: len(g.ident)] == g.ident for g in self.gaps):
                yield found

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        return self.catalog.read(keys, scope)

    def children(self, ident: Ident) -> Sequence[str]:
        return self.catalog.children(ident)

    def apply(self, change: Change, context: WriteContext) -> Written:
        with self._lock:
            attempt = self.attempts[context.step_id] = self.attempts.get(context.step_id, 0) + 1
        if error := self.before(change, attempt):
            raise error
        written = self.catalog.apply(change, context)
        self.writes += 1
        if error := self.after(change, attempt):
            raise error
        return written

    def close(self) -> None:
        self.catalog.close()


def lost_answer(change: Change, attempt: int) -> CatalogError | None:
    """Of every step, the first answer never arrives."""
    if attempt > 1:
        return None
    return CatalogError(Code.SERVICE_UNAVAILABLE, "the connection was cut", unknown_outcome=True)


def busy(change: Change, attempt: int) -> CatalogError | None:
    """Every step is turned away twice before it is let in."""
    return CatalogError(Code.THROTTLING, "slow down") if attempt < 3 else None


def refusing(action: str) -> Once:
    def once(change: Change, attempt: int) -> CatalogError | None:
        return CatalogError(Code.PERMISSION_DENIED, "not today") if change.action == action else None

    return once


def blind(ident: Ident = ROOT) -> Gap:
    return Gap(ident, Code.SERVICE_UNAVAILABLE, "the listing stopped half way")
