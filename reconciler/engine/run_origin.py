"""Who started this run, on which machine, and where a CI shows it: for the lease and for what a run notes about itself,
which say the same. Never fails."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.public_url import public_url


@dataclass(frozen=True, slots=True)
class Origin:
    """`actor`: the person, where a CI tells it: the user of its machine says nothing then."""

    actor: str | None
    login: str
    host: str
    url: str | None

    @property
    def user(self) -> str:
        return self.actor or self.login

    @property
    def by(self) -> str:
        return self.actor or f"{self.login}@{self.host}"


def run_origin(environ: Mapping[str, str] | None = None) -> Origin:
    env = os.environ if environ is None else environ
    actor = env.get("GITHUB_ACTOR") or env.get("GITLAB_USER_LOGIN") or None
    return Origin(actor, _login(), socket.gethostname() or "unknown", _url(env))


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # No entry for this user id, as in many containers.
        return f"uid-{os.getuid()}" if hasattr(os, "getuid") else "unknown"


def _url(env: Mapping[str, str]) -> str | None:
    """What was told, or where GitHub, GitLab or Jenkins show this run. Only a web address."""
    github = ""
    if env.get("GITHUB_RUN_ID") and env.get("GITHUB_REPOSITORY"):
        server = env.get("GITHUB_SERVER_URL") or "https://github.com"
        github = f"{server}/{env['GITHUB_REPOSITORY']}/actions/runs/{env['GITHUB_RUN_ID']}"
    found = env.get("RECONCILER_RUN_URL") or github
    found = found or env.get("CI_JOB_URL") or env.get("CI_PIPELINE_URL") or env.get("BUILD_URL") or ""
    return public_url(found) if found.startswith(("http://", "https://")) else None
