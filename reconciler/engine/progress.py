"""How far a run is, on stderr: one updating line on a terminal, a quiet line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TextIO

EVERY = 5.0
LIVELY = 0.1
Line = Callable[[float], str]
"""From the seconds since the start."""


class Progress(Protocol):
    def update(self, done: int, total: int, running: Sequence[str]) -> None:
        """Called often; `running` names the objects being worked on."""

    def show(self, line: Line) -> None:
        """The same with a text of one's own."""

    def close(self) -> None: ...


class Silent:
    def update(self, done: int, total: int, running: Sequence[str]) -> None:
        pass

    def show(self, line: Line) -> None:
        pass

    def close(self) -> None:
        pass


class Lines:
    """For logs: nothing at all when the run takes less than the interval."""

    def __init__(
        self, stream: TextIO, clean: Callable[[str], str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._clean = clean
        self._clock = clock
        self._started = self._last = clock()

    def update(self, done: int, total: int, running: Sequence[str]) -> None:
        self.show(lambda seconds: status_line(done, total, running, seconds))

    def show(self, line: Line) -> None:
        now = self._clock()
        if now - self._last >= EVERY:
            self._last = now
            _put(self._stream, self._clean(line(now - self._started)) + "\n")

    def close(self) -> None:
        pass


class Terminal:
    """Rewrites its line in place and leaves nothing behind."""

    def __init__(
        self, stream: TextIO, clean: Callable[[str], str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._clean = clean
        self._clock = clock
        self._started = clock()
        self._last = 0.0
        self._shown = False

    def update(self, done: int, total: int, running: Sequence[str]) -> None:
        self.show(lambda seconds: status_line(done, total, running, seconds))

    def show(self, line: Line) -> None:
        now = self._clock()
        if now - self._last < LIVELY:
            return
        self._last = now
        self._shown = True
        text = self._clean(line(now - self._started))
        width = max(20, shutil.get_terminal_size().columns - 1)
        _put(self._stream, "\r\x1b[2K" + text[:width])

    def close(self) -> None:
        if self._shown:
            _put(self._stream, "\r\x1b[2K")


def _put(stream: TextIO, text: str) -> None:
    """A reader of stderr that went away must not stop a run."""
    with contextlib.suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()


def status_line(done: int, total: int, running: Sequence[str], seconds: float) -> str:
    now = ", ".join(running[:3]) + (f" and {len(running) - 3} more" if len(running) > 3 else "")
    return f"{done}/{total} steps, {seconds:.0f} s" + (f": {now}" if now else "")


def progress_on(stream: TextIO | None, clean: Callable[[str], str]) -> Progress:
    """`stream` is None when stderr was closed."""
    if stream is None:
        return Silent()
    return Terminal(stream, clean) if stream.isatty() else Lines(stream, clean)
