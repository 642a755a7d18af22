"""The fence before writes: whoever runs a step says what is to be asked right before anything leaves this process that
changes a catalog. A step is several writes, and between two of them the run may have lost its turn.

The fence also counts how often each call of the step was sent. A step that was interrupted is run again from its start
and finds what it has done already, so `max_retries` must count per call and not per run of the step.

What is asked belongs to the thread that runs the step. Where nobody said anything (a lease is itself written, a test
prepares a catalog) nothing is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from reconciler.model.errors import CatalogError, Code

Asked = Callable[[], str | None]
"""Why nothing may be written any more, or None."""


@dataclass
class Fence:
    asked: Asked
    sent: Counter[Hashable] = field(default_factory=Counter)
    passed: bool = False
    """Something was let through."""


_FENCE: ContextVar[Fence | None] = ContextVar("fence", default=None)


@contextmanager
def fenced(asked: Asked, sent: Counter[Hashable] | None = None) -> Iterator[Fence]:
    """`sent`: the sendings of each call so far, of a step that is run again."""
    fence = Fence(asked, Counter() if sent is None else sent)
    token = _FENCE.set(fence)
    try:
        yield fence
    finally:
        _FENCE.reset(token)


@contextmanager
def counting() -> Iterator[None]:
    """Calls that are repeated in this block count together, as they do in a step."""
    if _FENCE.get() is not None:
        yield
        return
    with fenced(lambda: None):
        yield


def may_write(call: Hashable = None) -> int:
    """To be called last before each write, also before one that undoes another: whose turn it is now may build on what
    is there. Returns the number of this sending of `call`, from 1; 0 where nobody counts. Raises CatalogError."""
    fence = _FENCE.get()
    if fence is None:
        return 0
    with fenced(lambda: None):  # The answer may take a write of its own: to renew the lease.
        lost = fence.asked()
    if lost is not None:
        raise CatalogError(Code.INTERNAL, f"it was not written any further: {lost}", landed=fence.passed, gave_up=True)
    fence.passed = True
    if call is None:
        return 0
    fence.sent[call] += 1
    return fence.sent[call]


def answered(call: Hashable) -> None:
    """The service has answered: the same call is another one from now on."""
    if (fence := _FENCE.get()) is not None:
        fence.sent.pop(call, None)
