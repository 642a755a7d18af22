"""The fence before writes: whoever runs a step says what is to be asked right before anything leaves this process that
changes a catalog. A step is several writes, and between two of them the run may have lost its turn.

What is asked belongs to the thread that runs the step. Where nobody said anything (a lease is itself written, a test
prepares a catalog) nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from reconciler.model.errors import CatalogError, Code

Asked = Callable[[], str | None]
"""Why nothing may be written any more, or None."""


@dataclass
class _Fence:
    asked: Asked
    passed: bool = False
    """Something was let through."""


_FENCE: ContextVar[_Fence | None] = ContextVar("fence", default=None)


@contextmanager
def fenced(asked: Asked) -> Iterator[None]:
    token = _FENCE.set(_Fence(asked))
    try:
        yield
    finally:
        _FENCE.reset(token)


def may_write() -> None:
    """To be called last before each write, also before one that undoes another: whose turn it is now may build on what
    is there. Raises CatalogError."""
    fence = _FENCE.get()
    if fence is None:
        return
    with fenced(lambda: None):  # The answer may take a write of its own: to renew the lease.
        lost = fence.asked()
    if lost is not None:
        raise CatalogError(Code.INTERNAL, f"it was not written any further: {lost}", landed=fence.passed, gave_up=True)
    fence.passed = True
