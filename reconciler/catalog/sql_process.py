"""SQL of manifests is compiled in a process of its own, with limits of time and memory.

What compiles it recurses without a bound and computes constants of any size: a long chain of operators, deep casts or a
list type of two billion items end the process or take all memory. Here that ends the child, and is told of the
expression that did it. Nothing is refused by its looks. One compiler serves all tables of a command, and all their SQL
together has a budget of time: a file with a hundred slow expressions must not keep a pipeline for an hour.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.model.arrow import Field
from reconciler.model.codec import field_from, field_json

SECONDS = 30.0
"""For one expression. Those that end take milliseconds."""
BUDGET = 60.0
"""Seconds for all expressions of a command, beyond what is usual for each, and for what has to be started again."""
_USUAL = 0.1
"""Seconds of an expression that are free: there may be thousands of plain ones."""
MEMORY = 2 << 30
"""Bytes, on top of what the child has once it has loaded pylance."""
_TO_START = 120.0
_LONGEST = 2_000
"""Characters of an answer."""
_MAIN = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from reconciler.catalog.sql_process import serve
serve()
"""
_TOO_MUCH = "is it nested too deeply, a very long chain, or a constant of a huge size? Make it shorter"


class SqlCompiler:
    """Asked about one table after the other. The child is started when it is first needed, and again after it died."""

    def __init__(self, seconds: float = SECONDS, budget: float = BUDGET) -> None:
        self._seconds = seconds
        self._budget = self._left = budget
        self._slowest = (0.0, "")
        self._child: subprocess.Popen[bytes] | None = None
        self._read = b""
        self._ended_by: str | None = None

    def __enter__(self) -> SqlCompiler:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def __call__(self, fields: Sequence[Field], filters: Sequence[str], columns: Sequence[str]) -> list[str | None]:
        """For each filter, then for each expression of a new column: what pylance has against it, in one line, or None.
        Also None when such a table cannot be had: then nothing is known about its SQL."""
        asked = [*(("filter", sql) for sql in filters), *(("column", sql) for sql in columns)]
        told: list[str | None] = []
        while len(told) < len(asked):
            if self._left <= 0:
                return told + [self._spent()] * (len(asked) - len(told))
            answers = self._ask({"fields": [field_json(f) for f in fields], "asked": asked[len(told) :]})
            if next(answers, None) is not True:
                self._stop()
                return told + [None] * (len(asked) - len(told))
            told += answers
        return told

    def _ask(self, request: Mapping[str, Any]) -> Iterator[Any]:
        """Is there such a table, then an answer for each expression, up to the one that ends the child."""
        begun, again = time.monotonic(), self._ended_by if self._child is None else None
        if not self._started():
            return
        with contextlib.suppress(OSError):
            assert self._child is not None
            assert self._child.stdin is not None
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()
        line = self._line(_TO_START)
        if again is not None:
            self._charge(time.monotonic() - begun, again)
        yield line is not None and json.loads(line)
        for _, sql in request["asked"]:
            begun = time.monotonic()
            line = self._line(min(self._seconds, max(0.0, self._left) + _USUAL))
            self._charge(time.monotonic() - begun - _USUAL, sql)
            if line is None:
                self._ended_by = sql
                yield self._why_ended()
                return
            yield json.loads(line)
            if self._left <= 0:
                self._stop()
                return

    def _charge(self, seconds: float, sql: str) -> None:
        self._left -= max(0.0, seconds)
        self._slowest = max(self._slowest, (seconds, sql))

    def _spent(self) -> str:
        seconds, sql = self._slowest
        spent = f"and they are spent, {seconds:.0f} of them on {sql[:60]!r}"
        return f"all SQL together has {self._budget:g} seconds to be compiled, {spent}: {_TOO_MUCH}"

    def _started(self) -> bool:
        if self._child is None:
            command = [sys.executable, "-I", "-c", _MAIN, json.dumps(sys.path)]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._child, self._read = subprocess.Popen(command, **pipes), b""
            return self._line(_TO_START) == b"true"
        return True

    def _line(self, seconds: float) -> bytes | None:
        """None when there is none in time, or the child has ended."""
        assert self._child is not None
        assert self._child.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self._read:
            ready = select.select([self._child.stdout], [], [], max(0.0, end - time.monotonic()))[0]
            more = os.read(self._child.stdout.fileno(), 1 << 16) if ready else b""
            if not more:
                return None
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line

    def _why_ended(self) -> str:
        assert self._child is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._child.wait(1.0)
            self._stop()
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return f"it ends the process that compiles it ({name}): {_TOO_MUCH}"
        self._stop()
        if self._left <= 0:
            return self._spent()
        return f"it is not compiled within {self._seconds:g} seconds: {_TOO_MUCH}"

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()


def serve() -> None:
    """The child: requests and answers are lines of JSON."""
    from reconciler.catalog.lance_sql import compiled

    _write(True)
    _limit_memory()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        answers = compiled(tuple(field_from(f) for f in request["fields"]), request["asked"])
        for answer in answers:
            _write(answer[:_LONGEST] if isinstance(answer, str) else answer)


def _write(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _limit_memory() -> None:
    """Of private memory that can be written: address space alone is taken in large parts by every thread. No core file:
    it would be of this size. Whoever started this may be gone, so processor time is limited too."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (3600, 3600))
