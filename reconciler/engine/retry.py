"""When to try again, and after how long.

A client that counts its own sendings (`CatalogError.spent`) is never asked again: `max_retries: n` means at most n + 1
sendings of one call, and two loops around it would send it (n + 1)^2 times."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from reconciler.model.errors import CatalogError

T = TypeVar("T")

BASE = 0.2
LONGEST = 20.0
LONGEST_ASKED = 300.0
"""A server that asks for more than this is not waited for longer: the time-out of the run would be of no use."""


@dataclass
class Retry:
    """Exponential back-off with full jitter: clients that failed together do not come back together.

    `sleep` returns early when the run is to stop; `stopped` says so, and then nothing is tried again.
    """

    max_retries: int
    sleep: Callable[[float], object]
    stopped: Callable[[], bool] = lambda: False
    jitter: Callable[[float, float], float] = field(default=random.uniform)

    def wait(self, attempt: int, error: CatalogError) -> bool:
        """Waits after failed attempt number `attempt` (from 1). False when there is to be no further attempt."""
        if error.spent or attempt > self.max_retries or self.stopped():
            return False
        delay = self.jitter(0.0, min(LONGEST, BASE * 2.0 ** (attempt - 1)))
        if error.retry_after is not None:
            delay = max(delay, min(error.retry_after, LONGEST_ASKED))
        self.sleep(delay)
        return not self.stopped()

    def call(self, action: Callable[[], T]) -> T:
        """For reads: tried again while the error is one that passes. Raises CatalogError."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return action()
            except CatalogError as error:
                if not (error.retryable or error.unknown_outcome) or not self.wait(attempt, error):
                    raise
