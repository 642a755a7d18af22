"""Moves tables, each in a process of its own that is killed on the way: `migrate_killed.py FOLDER WHERE ...`. Prints
how they ended. The processes are forked, before lance has any thread: starting Python costs more than all they do."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from pipeline import in_process
from pipeline.migrate_lake import opened

from reconciler.pipeline import migrate


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def half(source: str, target: str) -> None:
    data = Path(source).read_bytes()
    Path(target).write_bytes(data[: len(data) // 2])
    if Path(source).suffix == ".arrow":
        die()
    Path(target).write_bytes(data)


def main(folder: Path, where: str) -> None:
    if where == "in a file":
        shutil.copyfile = half  # type: ignore[assignment]
    elif where == "while it is compared":
        migrate.read_tables = die  # type: ignore[assignment]
    elif where == "before the marks":
        migrate._mark = die  # type: ignore[assignment]
    else:
        real = migrate._commit

        def then_die(*args: Any) -> None:
            real(*args)
            die()

        migrate._commit = then_die
    opened(folder, in_process.running()).apply()


def forked(folder: Path, where: str) -> int:
    child = os.fork()
    if child == 0:
        main(folder, where)
        os._exit(0)
    return os.waitpid(child, 0)[1]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print([forked(Path(folder), where) for folder, where in zip(sys.argv[1::2], sys.argv[2::2], strict=True)])
