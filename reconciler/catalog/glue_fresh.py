"""What this process has just made. Glue may deny for a moment that a new object exists, and a new object that is not
found right after its creation is asked for again a few times before that is believed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from reconciler.model.ident import Ident, Kind

_FRESH_SECONDS = 30.0
_PAUSES = (0.2, 0.4, 0.8, 1.6)
T = TypeVar("T")


class Fresh:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[Kind, Ident], float] = {}

    def made(self, kind: Kind, ident: Ident) -> None:
        with self._lock:
            self._made[kind, ident] = time.monotonic()

    def gone(self, kind: Kind, ident: Ident) -> None:
        with self._lock:
            self._made.pop((kind, ident), None)

    def read(self, kind: Kind, ident: Ident, ask: Callable[[], T], sleep: Callable[[float], object]) -> T:
        """Asks once, and only for what is fresh again while the answer is None."""
        found = ask()
        for pause in _PAUSES if found is None and self._is_fresh(kind, ident) else ():
            sleep(pause)
            if (found := ask()) is not None:
                break
        return found

    def _is_fresh(self, kind: Kind, ident: Ident) -> bool:
        with self._lock:
            since = self._made.get((kind, ident))
        return since is not None and time.monotonic() - since < _FRESH_SECONDS
