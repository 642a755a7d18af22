"""Finds out which run this is, from git, the environment of a CI and the operating system. Never fails: what cannot be
known is left out."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from reconciler import __version__
from reconciler.engine.run_origin import run_origin
from reconciler.git_process import NoRepository, NotAsked, WorkTree, work_tree
from reconciler.model.run_context import RunContext

_PATIENCE = 10.0
"""Seconds for git: a slow disk must not hold up an apply for longer."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST = 500
"""Paths on a command line; of more, the folder that holds them is asked about."""
_STATUS = ("--porcelain", "--untracked-files=normal", "--no-renames", "--ignore-submodules=dirty")
"""Without what would start git in a submodule, or want contents that a partial clone lacks."""


def run_context(paths: Sequence[str], environ: Mapping[str, str] | None = None) -> RunContext:
    """`paths`: the manifests."""
    origin = run_origin(environ)
    commit, dirty = _commit(paths)
    commit = commit or _told_commit(paths, os.environ if environ is None else environ)
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return RunContext(now, origin.by, __version__, commit, dirty, origin.url)


def _commit(paths: Sequence[str]) -> tuple[str | None, bool | None]:
    """That of the first path. Dirty: any of the manifests differs from it, or is not in it."""
    given = [_place(path) for path in paths if os.path.exists(path)]
    if not given:
        return None, None
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError, NoRepository, NotAsked):
        tree = work_tree(given[0], _PATIENCE)
        head = tree.run("rev-parse", "--verify", "HEAD")
        if head.returncode == 0:
            return os.fsdecode(head.stdout).strip(), _dirty(tree, given)
    return None, None


def _told_commit(paths: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Where git is not there or has nothing to say, as in a container: what the CI says, or git-sync, which checks a
    commit out into a folder of its name."""
    told = [env.get(name, "") for name in ("RECONCILER_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA")]
    told += (part for path in paths for part in reversed(os.path.realpath(path).split(os.sep)))
    return next((word for word in told if _COMMIT.fullmatch(word)), None)


def _place(path: str) -> str:
    """Git looks behind no link but those that lead to its work tree. A file that is a link is in git as that."""
    folder, name = os.path.split(path)
    return os.path.realpath(path) if os.path.isdir(path) else os.path.join(os.path.realpath(folder), name)


def _dirty(tree: WorkTree, given: Sequence[str]) -> bool | None:
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        asked = given if len(given) <= _MOST else [os.path.commonpath(given)]
        done = tree.run("status", *_STATUS, "--", *asked)
        return None if done.returncode != 0 else bool(done.stdout)
    return None
