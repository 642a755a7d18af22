"""Finds out which run this is, from git, the environment of a CI and the operating system. Never fails: what cannot be
known is left out."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

from reconciler import __version__
from reconciler.git_process import NoRepository, NotAsked, WorkTree, work_tree
from reconciler.model.run_context import RunContext

_PATIENCE = 10.0
"""Seconds for git: a slow disk must not hold up an apply for longer."""
_MOST = 500
"""Paths on a command line; of more, the folder that holds them is asked about."""
_STATUS = ("--porcelain", "--untracked-files=normal", "--no-renames", "--ignore-submodules=dirty")
"""Without what would start git in a submodule, or want contents that a partial clone lacks."""


def run_context(paths: Sequence[str], environ: Mapping[str, str] | None = None) -> RunContext:
    """`paths`: the manifests."""
    env = os.environ if environ is None else environ
    commit, dirty = _commit(paths)
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return RunContext(now, _user(env), __version__, commit, dirty, _url(env))


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


def _user(env: Mapping[str, str]) -> str:
    actor = env.get("GITHUB_ACTOR") or env.get("GITLAB_USER_LOGIN")
    if actor:
        return actor
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # No entry for this user id, as in many containers.
        name = f"uid-{os.getuid()}" if hasattr(os, "getuid") else "unknown"
    return f"{name}@{socket.gethostname()}"


def _url(env: Mapping[str, str]) -> str | None:
    if given := env.get("RECONCILER_RUN_URL"):
        return _public(given)
    if env.get("GITHUB_RUN_ID") and env.get("GITHUB_REPOSITORY"):
        server = env.get("GITHUB_SERVER_URL", "https://github.com")
        return _public(f"{server}/{env['GITHUB_REPOSITORY']}/actions/runs/{env['GITHUB_RUN_ID']}")
    return _public(env.get("CI_JOB_URL") or env.get("CI_PIPELINE_URL") or "")


def _public(url: str) -> str | None:
    """Without user, password, query and fragment, where tokens are; None for what is no web address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    at = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{at}{f':{port}' if port is not None else ''}{parts.path}"
