"""SIGINT and SIGTERM: the first asks a run to end well, the second ends it once the report is written, a third does not
wait for that either."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130


@contextmanager
def stop_on_signals(
    say: Callable[[str], None], last_words: Callable[[], None] = lambda: None
) -> Iterator[threading.Event]:
    """The event is set by the first signal; `last_words` is called by the second, right before the end: it runs in the
    middle of anything and must wait for no lock. Handlers can be set in the main thread only; elsewhere nothing is set.
    """
    stop = threading.Event()
    count = 0

    def handle(number: int, _frame: object) -> None:
        nonlocal count
        count += 1
        if count > 1:
            with contextlib.suppress(Exception):
                if count == 2:
                    last_words()
            os._exit(EXIT_INTERRUPTED)
        stop.set()
        with contextlib.suppress(Exception):  # A message that cannot be shown must not break off what is running.
            name = signal.Signals(number).name
            say(f"{name}: finishing the running steps, starting no other. Once more ends at once.")

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
