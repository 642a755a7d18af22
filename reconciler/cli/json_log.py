"""--log-format json: every line of stderr is one JSON object, whoever wrote it."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TextIO

from reconciler.model.log_commands import in_json
from reconciler.model.plan import Json as JsonValue

FLAG, JSON = "--log-format", "json"
LEVELS = {"error": "error", "internal error": "error", "warning": "warning", "note": "info"}
"""What a message to a person begins with, and what that is in a log."""
_SAID = re.compile(rf"(reconciler[a-z ]*: )?(?P<word>{'|'.join(LEVELS)}): (?P<rest>.*)", re.DOTALL)

PATIENCE = 1.0
"""Seconds. Whoever is still at its line then does not get on with it: two lines in one are better than no end."""


class JsonLog:
    """Keeps no buffer and waits for nobody for long: a signal handler may call it in the middle of another line."""

    def __init__(self, stream: TextIO | None) -> None:
        """A handle of its own, never closed: stderr is somebody else's while a JVM starts, and a library may log after
        everything else has ended."""
        self._stream, self._number = stream, _handle(stream)
        self._turn = threading.RLock()
        self.clean: Callable[[JsonValue], JsonValue] = lambda value: value
        """Takes secrets out; replaced as soon as a run has any."""
        self.context: dict[str, object] = {"run_id": uuid.uuid4().hex[:16]}
        """Fields of every line from now on."""

    def tell(self, level: str, event: str, message: str, fields: Mapping[str, object] | None = None) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        said = {"event": event, "message": message, **self.context, **(fields or {})}
        clean = self.clean(json.loads(json.dumps(said, default=str)))
        assert isinstance(clean, dict)
        self._put(in_json(json.dumps({"time": now, "level": level, **clean})) + "\n")

    def _put(self, line: str) -> None:
        """A reader of stderr that went away must not stop a run."""
        if self._stream is None:
            return
        mine = self._turn.acquire(timeout=PATIENCE)
        try:
            self._write(self._stream, line)
        except (OSError, ValueError):
            pass
        finally:
            if mine:
                self._turn.release()

    def _write(self, stream: TextIO, line: str) -> None:
        if self._number is None:
            stream.write(line)
            return
        data = line.encode()
        while data:
            data = data[os.write(self._number, data) :]


def _handle(stream: TextIO | None) -> int | None:
    """None for a stream that is no file."""
    try:
        return None if stream is None else os.dup(stream.fileno())
    except (OSError, ValueError):
        return None


class Lines(io.TextIOBase):
    """In the place of sys.stderr: what argparse, a traceback or a library writes there, line by line."""

    def __init__(self, log: JsonLog, stream: TextIO) -> None:
        self._log, self._stream = log, stream
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._tell(line)
        return len(text)

    def flush(self) -> None:
        """Who flushes in the middle of a line wants it read now: a prompt."""
        begun, self._begun = self._begun, ""
        self._tell(begun)

    def _tell(self, line: str) -> None:
        if line.strip():
            self._log.tell(*said(line.rstrip("\r"), "stderr"))

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def said(text: str, event: str = "message") -> tuple[str, str, str]:
    """(level, event, message) of a text that begins with its level, or with none."""
    found = _SAID.fullmatch(text)
    return (LEVELS[found["word"]], event, found["rest"]) if found else ("info", event, text)


class Handler(logging.Handler):
    """All loggers, those of libraries included; tracebacks in a field of their own."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):
            fields: dict[str, object] = {"logger": record.name}
            if record.exc_info:
                fields["traceback"] = logging.Formatter().formatException(record.exc_info)
            self._log.tell(record.levelname.lower(), "log", record.getMessage(), fields)


def asked(argv: Sequence[str]) -> bool:
    """Before the command line is understood: what is wrong with it is a line of the log too."""
    last = ""
    for word, after in zip(argv, [*argv[1:], ""], strict=True):
        if word == "--":
            break
        if word == FLAG or word.startswith(FLAG + "="):
            last = after if word == FLAG else word.partition("=")[2]
    return last == JSON


@contextlib.contextmanager
def stderr_as_json(argv: Sequence[str]) -> Iterator[JsonLog | None]:
    """None when it was not asked for."""
    if not asked(argv):
        yield None
        return
    before = sys.stderr
    log = JsonLog(before)
    if before is not None:
        sys.stderr = Lines(log, before)
    try:
        yield log
    finally:
        if isinstance(sys.stderr, Lines):
            sys.stderr.flush()
        sys.stderr = before
