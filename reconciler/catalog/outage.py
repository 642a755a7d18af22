"""What a client learns from calls that failed for good, shared by all its threads.

A read that was sent `max_retries` + 1 times is not sent again at once: a step that could not read its object and the
engine, which then wants to know what became of it, ask the same question. And a service that answers nobody is said to
be unreachable, so that a run stops instead of finding that out anew for every step."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable

from reconciler.model.errors import CatalogError

_MOMENT = 0.5
"""Seconds for which the failure of a read also answers the same question asked again."""
_REMEMBERED = 256


class Outage:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers = 0
        self._failed: dict[Hashable, tuple[float, CatalogError]] = {}
        self._unanswered: set[Hashable] = set()

    def need_hope(self, call: Hashable) -> None:
        """Raises the failure of this read when it failed for good a moment ago."""
        with self._lock:
            when, failure = self._failed.get(call, (0.0, None))
        if failure is not None and time.monotonic() - when < _MOMENT:
            raise failure.reworded(failure.message)

    def begin(self) -> int:
        """Before a call is sent: the number of answers that the service has given so far."""
        return self._answers

    def answered(self) -> None:
        with self._lock:
            self._answers += 1
            self._unanswered.clear()

    def spent(self, call: Hashable, failure: CatalogError, sendings: int, since: int, *, silent: bool) -> CatalogError:
        """The call failed for good. `since`: from `begin`, before it was sent last. `silent`: not even a gateway
        answered. Where a gateway did, it takes a second call to tell a dead service from one damaged object."""
        failure.sendings, failure.spent = sendings, True
        with self._lock:
            if len(self._failed) >= _REMEMBERED:
                self._failed.clear()
            self._failed[call] = (time.monotonic(), failure)
            if self._answers == since:
                self._unanswered.add(call)
                failure.unreachable = silent or len(self._unanswered) > 1
        return failure
