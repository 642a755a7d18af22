"""Counts what a catalog asked of its storage, so that tests can hold a read path to its promise."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Stats:
    manifest_scans: int = 0
    listings: int = 0
    opens: int = 0
    writes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def count(self, what: str, by: int = 1) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + by)

    def reset(self) -> None:
        with self._lock:
            self.manifest_scans = self.listings = self.opens = self.writes = 0
