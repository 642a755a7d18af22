"""Forks one real process per command from a parent that has imported everything: a kill then costs no start-up time.

Nothing of lance is used before the fork, only imported. Reads one JSON command per line: `folder`, `arguments`,
`journal` (watched) and `lines` (null: never kill); answers with the exit code (-9 when killed), one line each.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NoReturn


def warm_up() -> None:
    import reconciler

    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # It has no threads of its own before its first use, which is in the child.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    for library in ("lance", "pyarrow", "jsonschema_rs"):
        importlib.import_module(library)


def child(command: dict[str, Any]) -> NoReturn:
    from reconciler.cli import run

    os.chdir(command["folder"])
    out = os.open("out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(out, stream)
    code = run(command["arguments"])
    sys.stdout.flush()
    os._exit(code)


def lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def run_until(command: dict[str, Any]) -> int:
    """The exit code. The child is reaped here only, so the kill cannot hit another process."""
    pid = os.fork()
    if pid == 0:
        child(command)
    journal, goal = Path(command["folder"]) / command["journal"], command["lines"]
    while goal is not None and lines(journal) < goal:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    if goal is not None:
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    warm_up()
    for request in sys.stdin:
        print(run_until(json.loads(request)), flush=True)
