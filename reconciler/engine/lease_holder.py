"""Who holds a lease: this process, described so that a person finds it and so that another process of this machine can
ask whether it still runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from reconciler.catalog.known_secrets import without_secrets
from reconciler.engine.run_origin import run_origin
from reconciler.model.lease import Holder, Liveness

PROC = Path("/proc")
_MAX_COMMAND = 300


def this_process(plan_id: str = "", command: str = "", environ: Mapping[str, str] | None = None) -> Holder:
    """`command`: as others may see it. `boot`, `pids` and `started` are empty where the system does not tell them: then
    nobody concludes anything."""
    pid, origin = os.getpid(), run_origin(environ)
    return Holder(
        origin.user,
        origin.host,
        pid,
        without_secrets(command)[:_MAX_COMMAND],
        origin.url or "",
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
    that one was started at another time. The name of the machine counts too: one that was copied while it ran is the
    same to all the rest, and its processes go on in both."""
    here = (_text(PROC / "sys/kernel/random/boot_id"), _pid_space(), run_origin().host)
    if not all(here) or not holder.started or here != (holder.boot, holder.pids, holder.host):
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
