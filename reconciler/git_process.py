"""The one way git is run here. Manifests may be a stranger's, and a repository's configuration names programs: so a
folder of manifests never decides which repository is asked, and nothing that the asked one configures is started.

- The repository is that of the nearest `.git`, which git lets no commit contain. A folder that looks like a bare
  repository, which any commit can contain, is none.
- Git is told that repository and its work tree, after it has said that it trusts whom they belong to.
- No filter, hook, monitor, pager or prompt; nothing is fetched, no lock is taken.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Done = subprocess.CompletedProcess[bytes]

_OFF = (
    "--no-pager",
    "--literal-pathspecs",
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "protocol.allow=never"),
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
)
_KEPT = "GIT_CONFIG_"
"""Whom git trusts is said with these. The other variables make it look elsewhere, or run something."""
_QUIET = {
    "GIT_ALLOW_PROTOCOL": "",  # Before any `protocol.NAME.allow` that is configured.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",  # A commit is what it was when it was reviewed.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_PROGRAMS = r"^filter\..*\.(clean|smudge|process|required)$"


class NoRepository(Exception):
    """The path is in none."""


class NotAsked(Exception):
    """Git does not answer about this repository; the text is what it said."""


@dataclass(frozen=True, slots=True)
class WorkTree:
    top: str
    filters: tuple[str, ...] = ()
    """Settings of programs that convert the content of files. They are emptied: git would run them where it cannot tell
    by its time whether a file changed."""
    timeout: float | None = None

    def run(self, *words: str, input_: bytes = b"") -> Done:
        """Paths are relative to the top. Raises OSError, ValueError and subprocess.TimeoutExpired."""
        here = (f"--git-dir={os.path.join(self.top, '.git')}", f"--work-tree={self.top}")
        return _run(self.top, *here, *words, input_=input_, emptied=self.filters, timeout=self.timeout)


def work_tree(path: str, timeout: float | None = None) -> WorkTree:
    """The one that the path is in. Raises NoRepository, NotAsked, and what `run` raises."""
    top = top_of(path)
    if top is None:
        raise NoRepository(path)
    trusted = _run(top, "rev-parse", "--git-dir", timeout=timeout)
    if trusted.returncode != 0:
        raise NotAsked(said(trusted))
    found = WorkTree(top, timeout=timeout).run("config", "--name-only", "-z", "--get-regexp", _PROGRAMS)
    return WorkTree(top, tuple(sorted({os.fsdecode(name) for name in found.stdout.split(b"\0")[:-1]})), timeout)


def said(done: Done) -> str:
    """The first line that git wrote about what went wrong."""
    lines = [n for n in os.fsdecode(done.stderr).splitlines() if n.startswith(("fatal:", "error:"))]
    return lines[0].strip() if lines else ""


def top_of(path: str) -> str | None:
    """Where the work tree begins that the path is in. A `.git` is a folder, or the file that a submodule or a further
    work tree has."""
    at = os.path.realpath(path if os.path.isdir(path) else os.path.dirname(path))
    ceilings = {os.path.realpath(c) for c in os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep) if c}
    while not (os.path.isfile(git := os.path.join(at, ".git")) or os.path.lexists(os.path.join(git, "HEAD"))):
        above = os.path.dirname(at)
        if above == at or above in ceilings:
            return None
        at = above
    return at


def _run(top: str, *words: str, input_: bytes = b"", emptied: Sequence[str] = (), timeout: float | None = None) -> Done:
    command = ["git", *_OFF, "-C", top, *words]
    environment = _environment(os.environ, emptied) | {"GIT_CEILING_DIRECTORIES": os.path.dirname(top)}
    return subprocess.run(command, input=input_, capture_output=True, env=environment, timeout=timeout)


def _environment(given: Mapping[str, str], emptied: Sequence[str]) -> dict[str, str]:
    kept = {k: v for k, v in given.items() if not k.startswith("GIT_") or k.startswith(_KEPT)}
    first = int(kept.get("GIT_CONFIG_COUNT", "")) if kept.get("GIT_CONFIG_COUNT", "").isdigit() else 0
    for number, name in enumerate(emptied, first):
        kept |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": ""}
        kept["GIT_CONFIG_COUNT"] = str(number + 1)
    return kept | _QUIET
