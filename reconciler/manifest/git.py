"""What git knows about the manifests: which files differ from a revision, and what was in them.

The `git` command is asked, through its plumbing: nothing that a repository can configure is run for it, no diff driver,
no filter, no hook, no monitor. Names go after `--` and are taken literally, revisions are resolved first.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import ManifestError

_OFF = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "--no-pager", "--literal-pathspecs")
_KEPT = ("GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM")
"""Whom git trusts and how far it looks is said with these. The others make it look elsewhere, or run something."""
_SUBMODULE = b"160000"
_HISTORY = "fetch more of the history: `git fetch --unshallow`, or `fetch-depth: 0` in the checkout step of a workflow"


class GitError(ManifestError):
    """What to tell instead of an answer."""


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    """Relative to the top of the repository, with `/`."""
    blob: str | None
    """What it was; None when it was not there."""


@dataclass(frozen=True, slots=True)
class Repository:
    top: str
    filters: tuple[str, ...] = ()
    """Settings of programs that convert the content of files. They are emptied: git would run them where it cannot tell
    by its time whether a file changed."""

    def base(self, revision: str) -> str:
        """The commit from which this branch and the revision went apart, as `git diff REVISION...` takes it."""
        commit = self._commit(revision)
        done = self._run("merge-base", commit, "HEAD")
        if done.returncode == 0:
            return _text(done.stdout)
        if self._shallow():
            raise GitError("M533", f"this clone does not reach back to where it left {revision}", _HISTORY)
        raise GitError("M533", f"{revision} and HEAD have no commit in common", _said(done))

    def _commit(self, revision: str) -> str:
        if not revision or revision.startswith("-") or any(ord(c) < 32 for c in revision):
            raise GitError("M532", f"{revision!r} is not a revision", "give a branch, a tag or a commit")
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
        if done.returncode == 0:
            return _text(done.stdout)
        if self._shallow():
            raise GitError("M532", f"{revision} is not in this clone, which has only part of the history", _HISTORY)
        known = _text(self._run("for-each-ref", "--format=%(refname:short)").stdout).split("\n")
        near = nearest(revision, [name for name in known if name])
        hint = f"did you mean {near}?" if near else "`git fetch` brings the branches of a remote: origin/NAME"
        raise GitError("M532", f"this repository has no revision {revision}", hint)

    def _shallow(self) -> bool:
        return _text(self._run("rev-parse", "--is-shallow-repository").stdout) == "true"

    def tracked(self, paths: Sequence[str]) -> set[str]:
        """The files below these paths that git looks after."""
        out: set[str] = set()
        for entry in _fields(self._asked("ls-files", "--stage", "-z", "--", *paths)):
            mode, _, name = entry.partition(b"\t")
            if mode.startswith(_SUBMODULE):
                message = f"{os.fsdecode(name)} is a submodule: what changed in it cannot be told"
                raise GitError("M534", message, "run inside the submodule, or without --changed-since")
            out.add(os.fsdecode(name))
        return out

    def differences(self, commit: str, paths: Sequence[str]) -> Iterator[Difference]:
        """Files of which the working tree may have another content than the commit."""
        fields = iter(
            _fields(self._asked("diff-index", "--raw", "--no-renames", "--abbrev=64", "-z", commit, "--", *paths))
        )
        for entry in fields:
            _, _, before, *_ = _text(entry).split(" ")
            yield Difference(os.fsdecode(next(fields)), before if before.strip("0") else None)

    def contents(self, blobs: Sequence[str]) -> dict[str, bytes]:
        """All in one process."""
        done = self._run("cat-file", "--batch", input_="".join(f"{b}\n" for b in blobs).encode())
        out: dict[str, bytes] = {}
        at = 0
        for blob in blobs:
            end = done.stdout.find(b"\n", at)
            header = _text(done.stdout[at:end]).split(" ")
            if end < 0 or len(header) != 3 or header[1] != "blob":
                raise GitError(
                    "M530", f"git cannot give the content of {blob}", _said(done) or "`git fsck` may say why"
                )
            out[blob] = done.stdout[end + 1 : end + 1 + int(header[2])]
            at = end + 2 + int(header[2])
        return out

    def _run(self, *arguments: str, input_: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return _run(self.top, *arguments, input_=input_, emptied=self.filters)

    def _asked(self, *arguments: str) -> bytes:
        done = self._run(*arguments)
        if done.returncode != 0:
            raise GitError("M530", f"`git {arguments[0]}` failed", _said(done))
        return done.stdout


def repository(path: str) -> Repository:
    """The one that the path is in."""
    near = path if os.path.isdir(path) else os.path.dirname(path) or "."
    done = _run(near, "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        said = _said(done)
        hint = "--changed-since compares with an earlier commit: run it in a clone of the repository"
        if "not a git repository" not in said:
            raise GitError("M530", f"git cannot be asked about {path}", said)
        raise GitError("M531", f"{path} is in no git repository", hint)
    top = os.path.realpath(os.fsdecode(done.stdout.removesuffix(b"\n")))
    found = _run(top, "config", "--name-only", "-z", "--get-regexp", r"^filter\..*\.(clean|process|required)$")
    return Repository(top, tuple(sorted({os.fsdecode(name) for name in _fields(found.stdout)})))


def _run(
    folder: str, *arguments: str, input_: bytes = b"", emptied: Sequence[str] = ()
) -> subprocess.CompletedProcess[bytes]:
    command = ["git", *_OFF, "-C", folder, *arguments]
    try:
        return subprocess.run(command, input=input_, capture_output=True, env=_environment(os.environ, emptied))
    except FileNotFoundError as error:
        raise GitError("M530", "the program git is not there", "install git: --changed-since asks it") from error
    except (OSError, ValueError) as error:
        raise GitError("M530", f"git cannot be run: {error}") from error


def _environment(given: Mapping[str, str], emptied: Sequence[str]) -> dict[str, str]:
    kept = {k: v for k, v in given.items() if not k.startswith("GIT_") or k.startswith(_KEPT)}
    first = int(kept.get("GIT_CONFIG_COUNT", "")) if kept.get("GIT_CONFIG_COUNT", "").isdigit() else 0
    for number, name in enumerate(emptied, first):
        kept |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": ""}
        kept["GIT_CONFIG_COUNT"] = str(number + 1)
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _fields(data: bytes) -> list[bytes]:
    return data.split(b"\0")[:-1]


def _text(data: bytes) -> str:
    return os.fsdecode(data).strip()


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    """The last line that git wrote about it."""
    lines = [line for line in _text(done.stderr).splitlines() if line.startswith(("fatal:", "error:"))]
    return lines[0] if lines else ""
