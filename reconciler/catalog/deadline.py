"""Until when this run waits for answers (`--timeout`).

One value for the process, because the calls are made by threads of many pools. Before the first write a call ends at
the deadline: nothing is lost by that. Once steps run, each call still gets a few seconds: what was sent has to be
re-read, and an answer that is on its way is worth more than an unknown outcome.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
GRACE = 10.0
"""Seconds that a call of a running step has at least."""
_SLACK = 2.0
"""Seconds after the deadline for the calls that end by it: they say themselves which one was not answered."""
_TICK = 0.25


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


def answers(action: Callable[[T], R], items: Collection[T], threads: int, late: Callable[[T], R], name: str) -> list[R]:
    """Side by side, in the order of the items; `late` is asked for what is not there when the time is over. Libraries
    for object stores have time-outs of their own, and cannot be told of ours: their threads are left behind. So every
    part of planning that reads is one of these. Raises what an action raised."""
    pool = ThreadPoolExecutor(max(1, min(threads, len(items))), thread_name_prefix=name)
    seconds = left()
    end = None if seconds is None else time.monotonic() + max(0.0, seconds) + _SLACK
    try:
        running = [(item, pool.submit(action, item)) for item in items]
        return [_answer(item, future, end, late) for item, future in running]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _answer(item: T, running: Future[R], end: float | None, late: Callable[[T], R]) -> R:
    """Waits in pieces: where a system gives a signal to a thread of a library, this one is not woken by it, and its
    handler runs here only once the wait is over."""
    while True:
        seconds = _TICK if end is None else min(_TICK, end - time.monotonic())
        try:
            return running.result(max(0.0, seconds))
        except FutureTimeout:
            if running.done():
                return running.result()
            if end is not None and time.monotonic() >= end:
                abandon(str(item))
                return late(item)
