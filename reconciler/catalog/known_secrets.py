"""What this process knows to be secret, for code that has no session at hand.

A text is freed of secrets before it is cleaned and cut, because half a secret is past knowing; and a catalog learns
secrets while it runs (a token that it was given), which nobody could have told the session before.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Protocol


class Knows(Protocol):
    def add(self, secrets: Iterable[str]) -> None: ...

    def text(self, text: str) -> str:
        """Without what it knows."""


_lock = threading.Lock()
_all: weakref.WeakSet[Knows] = weakref.WeakSet()
"""Every redactor that is in use: one, unless a test or a program runs several sessions."""


def listen(one: Knows) -> None:
    with _lock:
        _all.add(one)


def forget(one: Knows) -> None:
    """At the end of a session: its secrets are no business of the next one."""
    with _lock:
        _all.discard(one)


def learned(secrets: Iterable[str]) -> None:
    """Called before the secret is used for the first time, so that no answer to it comes too early."""
    found = tuple(secrets)
    for one in _listening():
        one.add(found)


def without_secrets(text: str) -> str:
    for one in _listening():
        text = one.text(text)
    return text


def _listening() -> list[Knows]:
    with _lock:
        return list(_all)
