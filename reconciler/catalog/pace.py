"""How many requests are under way at once: a ceiling that halves when the server says 429 and grows back slowly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconciler.catalog import deadline

_GROW_AFTER = 20
_PAUSE = 0.5


class Pace:
    def __init__(self, ceiling: int, sleep: Callable[[float], object] = time.sleep) -> None:
        self._ceiling = max(1, ceiling)
        self._limit = self._ceiling
        self._busy = 0
        self._well = 0
        self._not_before = 0.0
        self._sleep = sleep
        self._free = threading.Condition()

    @property
    def limit(self) -> int:
        return self._limit

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Waits for its turn, and for the pause that the server asked for."""
        with self._free:
            self._free.wait_for(lambda: self._busy < self._limit)
            self._busy += 1
            pause = self._not_before - time.monotonic()
        try:
            if pause > 0:
                self._sleep(deadline.allowed(pause))
            yield
        finally:
            with self._free:
                self._busy -= 1
                self._free.notify()

    def slow_down(self, retry_after: float | None) -> None:
        with self._free:
            self._limit = max(1, self._limit // 2)
            self._well = 0
            pause = min(retry_after if retry_after is not None else _PAUSE, 60.0)
            self._not_before = max(self._not_before, time.monotonic() + pause)

    def went_well(self) -> None:
        if self._limit == self._ceiling:
            return
        with self._free:
            self._well += 1
            if self._well >= _GROW_AFTER:
                self._well = 0
                self._limit = min(self._ceiling, self._limit + 1)
                self._free.notify()
