"""Until when this run waits for answers (`--timeout`).

One value for the process, because the calls are made by threads of many pools. Before the first write a call ends at
the deadline: nothing is lost by that. Once steps run, each call still gets a few seconds: what was sent has to be
re-read, and an answer that is on its way is worth more than an unknown outcome.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

GRACE = 10.0
"""Seconds that a call of a running step has at least."""


@dataclass
class _Deadline:
    end: float
    seconds: float
    grace: float = 0.0


_CURRENT: list[_Deadline] = []
_ABANDONED: list[str] = []


def abandon(what: str) -> None:
    """A library still waits for an answer, in a thread that nobody waits for any more."""
    _ABANDONED.append(what)


def abandoned() -> bool:
    return bool(_ABANDONED)


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Everything in the block has to be answered within these seconds; None: no deadline."""
    if seconds is None:
        yield
        return
    made = _Deadline(time.monotonic() + seconds, seconds)
    _CURRENT.append(made)
    try:
        yield
    finally:
        _CURRENT.remove(made)


@contextmanager
def writing() -> Iterator[None]:
    """Steps run: their calls have GRACE seconds even after the deadline."""
    before = [(one, one.grace) for one in _CURRENT]
    for one in _CURRENT:
        one.grace = GRACE
    try:
        yield
    finally:
        for one, grace in before:
            one.grace = grace


def restart() -> None:
    """The time that a person took to answer does not count."""
    for one in _CURRENT:
        one.end = time.monotonic() + one.seconds


def allowed(seconds: float) -> float:
    """Of the seconds that a call wants, those that the run has; 0: none."""
    now = time.monotonic()
    return max(0.0, min([seconds, *(max(one.end - now, one.grace) for one in _CURRENT)]))


def is_over() -> bool:
    return any(time.monotonic() >= one.end for one in _CURRENT)


def left() -> float | None:
    """Seconds until the deadline; None without one."""
    now = time.monotonic()
    return min((one.end - now for one in _CURRENT), default=None)


def why() -> str:
    """For the message of a call that was cut off by it."""
    return f"the --timeout of {min(one.seconds for one in _CURRENT):g} s is over" if _CURRENT else ""
