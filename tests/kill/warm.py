"""Forks one real process per command from a parent that has imported everything: a kill then costs no start-up time.

Nothing of lance is used before the fork, only imported. Reads one JSON command per line and answers with the exit
code (-9 when killed), one line each:

    folder, arguments    where and what to run
    stop_at              the child stops itself right after that line of its journal; then it is killed
    journal, lines, delay  killed that many seconds after the journal was seen to have that many lines
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any, NoReturn

LONGEST = 120
"""Seconds after which a child that hangs ends by SIGALRM, so that its test fails instead of waiting."""


def warm_up() -> None:
    import reconciler

    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # It has no threads of its own before its first use, which is in the child.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    for library in ("lance", "pyarrow", "jsonschema_rs"):
        importlib.import_module(library)
    gc.collect()
    gc.freeze()  # Memory that no child touches is never copied.


class StopAfter:
    """Stands in for `os` in the journal's module, in the child only. Lines are written one by one, also those that
    were handed over together. After the last one the whole process stands still, inside the journal's lock: nothing of
    the program runs between that line and the kill."""

    def __init__(self, lines: int) -> None:
        self.left = lines

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, file: int, data: bytes) -> int:
        line = data[: data.index(b"\n") + 1]
        assert os.write(file, line) == len(line)
        self.left -= 1
        if self.left == 0:
            # To this thread, which therefore does not get past this call; a signal to the process might come later.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return len(line)


def child(command: dict[str, Any]) -> NoReturn:
    from reconciler.cli import run
    from reconciler.engine import journal

    signal.alarm(LONGEST)
    os.chdir(command["folder"])
    out = os.open("out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(out, stream)
    if "stop_at" in command:
        journal.os = StopAfter(command["stop_at"])  # type: ignore[assignment]
    code = run(command["arguments"])
    sys.stdout.flush()
    os._exit(code)


def lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def has_ended(pid: int) -> bool:
    """Without reaping it: the number stays taken, so a kill cannot hit another process."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def run(command: dict[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        child(command)
    if "lines" in command:
        journal = Path(command["folder"]) / command["journal"]
        while lines(journal) < command["lines"] and not has_ended(pid):
            time.sleep(0.0005)
        time.sleep(command["delay"])
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    warm_up()
    for request in sys.stdin:
        print(run(json.loads(request)), flush=True)
