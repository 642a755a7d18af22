"""Who holds a lease: this process, described so that a person finds it and so that another process of this machine can
ask whether it still runs."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from reconciler.catalog.known_secrets import without_secrets
from reconciler.model.lease import Holder, Liveness

PROC = Path("/proc")
_MAX_COMMAND = 300


def this_process(plan_id: str = "", command: str | None = None, environ: Mapping[str, str] | None = None) -> Holder:
    """`boot`, `pids` and `started` are empty where the system does not tell them: then nobody concludes anything."""
    pid = os.getpid()
    return Holder(
        _user(),
        socket.gethostname() or "unknown",
        pid,
        (_command() if command is None else without_secrets(command))[:_MAX_COMMAND],
        _run_url(os.environ if environ is None else environ),
        plan_id,
        _text(PROC / "sys/kernel/random/boot_id"),
        _pid_space(),
        _started(pid)[0],
    )


def has_ended(holder: Holder) -> bool:
    """True only when it was a process of this machine, seen from where this one sees processes, and it is gone."""
    return liveness(holder) == "ended"


def liveness(holder: Holder) -> Liveness:
    """A process that is dead and not yet collected by its parent is gone. A number may have gone to another process:
    that one was started at another time."""
    here = (_text(PROC / "sys/kernel/random/boot_id"), _pid_space())
    if not all(here) or not holder.started or here != (holder.boot, holder.pids):
        return "unknown"
    started, state = _started(holder.pid)
    if not started:
        return "ended" if _no_such(holder.pid) else "unknown"
    return "running" if started == holder.started and state not in ("Z", "X") else "ended"


def _no_such(pid: int) -> bool:
    """Asked of the kernel: /proc may be mounted so that it hides the processes of others."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _started(pid: int) -> tuple[str, str]:
    """When the process was started, in the kernel's own count since its boot, and what state it is in."""
    stat = _text(PROC / str(pid) / "stat")
    fields = stat.rpartition(")")[2].split()
    return (fields[19], fields[0]) if len(fields) > 19 else ("", "")


def _pid_space() -> str:
    """Containers count their processes apart, also those of one machine with one name."""
    try:
        return os.readlink(PROC / "self/ns/pid")
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())  # A container's user often has no name.


def _command() -> str:
    """Without the values of variables: they may be secret, and are nobody's business."""
    words: list[str] = []
    for word in sys.argv[1:]:
        before = words[-1] if words else ""
        hidden = before in ("--var", "--conf", "--history-option") or word.startswith(("--var=", "--conf="))
        words.append(word.partition("=")[0] + "=..." if hidden else without_secrets(word))
    return shlex.join(["reconciler", *words])


def _run_url(environ: Mapping[str, str]) -> str:
    """Where GitHub, GitLab or Jenkins show this run."""
    server, repository, run = (environ.get(f"GITHUB_{k}") for k in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    if server and repository and run:
        return f"{server}/{repository}/actions/runs/{run}"
    return environ.get("CI_JOB_URL") or environ.get("BUILD_URL") or ""
