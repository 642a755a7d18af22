"""Idempotency keys: one for each logical write, the same when that write is sent again."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
import uuid
from typing import Any


def uuid7() -> str:
    """Time first, then random, as the protocol asks for."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80 | 7 << 76 | secrets.randbits(12) << 64
    return str(uuid.UUID(int=value | 2 << 62 | secrets.randbits(62)))


class WriteKeys:
    """A write whose outcome is not known keeps its key, so that the server can tell the second try from a second
    write. Once it was answered, the same request is a new write and gets a new key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[str, float]] = {}

    def key(self, method: str, path: str, body: Any, lifetime: float) -> str:
        name = _digest(method, path, body)
        with self._lock:
            key, since = self._open.get(name, ("", 0.0))
            if not key or time.monotonic() - since >= lifetime:
                key, since = uuid7(), time.monotonic()
                self._open[name] = (key, since)
            return key

    def settled(self, method: str, path: str, body: Any) -> None:
        with self._lock:
            self._open.pop(_digest(method, path, body), None)


def _digest(method: str, path: str, body: Any) -> str:
    text = json.dumps([method, path, body], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
