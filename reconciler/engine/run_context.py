"""Finds out which run this is, from git, the environment of a CI and the operating system. Never fails: what cannot be
known is left out."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from reconciler import __version__
from reconciler.engine.run_origin import run_origin
from reconciler.model.run_context import RunContext

_PATIENCE = 10.0
"""Seconds for git: a slow disk must not hold up an apply for longer."""
_MOST = 500
"""Paths on a command line; of more, the folder that holds them is asked about."""
_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""A repository's own configuration can name programs for git to run: not for us."""


def run_context(paths: Sequence[str], environ: Mapping[str, str] | None = None) -> RunContext:
    """`paths`: the manifests."""
    origin = run_origin(environ)
    commit, dirty = _commit(paths)
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return RunContext(now, origin.by, __version__, commit, dirty, origin.url)


def _commit(paths: Sequence[str]) -> tuple[str | None, bool | None]:
    """That of the first path. Dirty: any of the manifests differs from it, or is not in it."""
    given = [os.path.abspath(path) for path in paths if os.path.exists(path)]
    if not given:
        return None, None
    first = Path(given[0])
    folder = first if first.is_dir() else first.parent
    head = _git(folder, "rev-parse", "--verify", "HEAD")
    if head is None or not head.strip():
        return None, None
    with contextlib.suppress(ValueError):  # No folder is common to files on two drives.
        given = given if len(given) <= _MOST else [os.path.commonpath(given)]
    changed = _git(folder, "status", "--porcelain", "--untracked-files=normal", "--", *given)
    return head.strip(), None if changed is None else bool(changed)


def _git(folder: Path, *words: str) -> str | None:
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        done = subprocess.run(
            ["git", *_NO_PROGRAMS, "--literal-pathspecs", "-C", str(folder), *words],
            capture_output=True,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace")
    return None
