"""SIGINT and SIGTERM: the first asks a run to end well, the second ends it at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130


@contextmanager
def stop_on_signals(say: Callable[[str], None]) -> Iterator[threading.Event]:
    """The event is set by the first signal. Handlers can be set in the main thread only; elsewhere nothing is set."""
    stop = threading.Event()

    def handle(number: int, _frame: object) -> None:
        if stop.is_set():
            os._exit(EXIT_INTERRUPTED)
        stop.set()
        say(f"{signal.Signals(number).name}: finishing the running steps, starting no other. Once more ends at once.")

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
