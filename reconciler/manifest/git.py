"""What git knows about the manifests: which files differ from a revision, and what was in them.

The `git` command is asked (`git_process`), through its plumbing, which knows no diff drivers. Names go after `--` and
are taken literally, revisions are resolved first.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from reconciler.git_process import Done, NoRepository, NotAsked, WorkTree, said, work_tree
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import ManifestError

_RAW = ("--raw", "--no-renames", "--ignore-submodules=dirty", "--abbrev=64", "-z")
_SUBMODULE = "160000"
_LINK = "120000"
SPARSE = "S"
"""How `ls-files -v` marks a file with the flag skip-worktree. In lower case the file has the flag assume-unchanged."""
_HISTORY = "fetch more of the history: `git fetch --unshallow`, or `fetch-depth: 0` in the checkout step of a workflow"
_PARTIAL = "this clone lacks earlier contents, and nothing is fetched here: clone without --filter"


class GitError(ManifestError):
    """What to tell instead of an answer."""


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    """Relative to the top of the repository, with `/`."""
    blob: str | None
    """What it was; None when it was not there."""
    was_link: bool = False
    """A symbolic link: the blob is where it led to."""
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class Tracked:
    links: Mapping[str, bool]
    """All files, and whether each is a symbolic link."""
    flags: Mapping[str, str]
    """Files at which git does not look, with the mark of `ls-files -v`."""
    submodules: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Repository:
    tree: WorkTree

    @property
    def top(self) -> str:
        return self.tree.top

    def base(self, revision: str) -> str:
        """The commit from which this branch and the revision went apart, as `git diff REVISION...` takes it."""
        commit = self._commit(revision)
        done = self._run("merge-base", commit, "HEAD")
        if done.returncode == 0:
            return _text(done.stdout)
        if self._shallow():
            raise GitError("M533", f"this clone does not reach back to where it left {revision}", _HISTORY)
        raise GitError("M533", f"{revision} and HEAD have no commit in common", said(done))

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

    def tracked(self, paths: Sequence[str]) -> Tracked:
        """The files below these paths that git looks after."""
        listed = [os.fsdecode(entry).split(" ", 1) for entry in _fields(self._asked("ls-files", "-vsz", "--", *paths))]
        submodules = [entry.partition("\t")[2] for _, entry in listed if entry.startswith(_SUBMODULE)]
        links = dict(_modes(entry for _, entry in listed if not entry.startswith(_SUBMODULE)))
        flags = {entry.partition("\t")[2]: flag for flag, entry in listed if flag.islower() or flag == SPARSE}
        return Tracked(links, flags, submodules)

    def unwatched(self, commit: str, paths: Sequence[str], flags: Mapping[str, str]) -> Iterator[Difference]:
        """Of the files that git was told not to look at (`update-index --assume-unchanged`, `--skip-worktree`), those
        that may have changed. A sparse checkout has flagged what it leaves out: that is not gone."""
        there = {name: os.path.join(self.top, name) for name in flags}
        names = {n for n, flag in flags.items() if os.path.lexists(there[n]) or flag.upper() != SPARSE}
        if not names:
            return
        before = dict[str, tuple[str, str]]()
        for entry in _fields(self._asked("ls-tree", "-rz", commit, "--", *paths)):
            about, _, name = os.fsdecode(entry).partition("\t")
            if name in names:
                before[name] = (about.split(" ")[0], about.split(" ")[2])
        for name in sorted(names):
            mode, blob = before.get(name, ("", None))
            yield Difference(name, blob, mode == _LINK, os.path.islink(there[name]))

    def links(self, commit: str, names: Collection[str]) -> list[str]:
        """Which of these names were symbolic links."""
        if not names:
            return []
        listed = _fields(self._asked("ls-tree", "-t", "-z", commit, "--", *sorted(names)))
        found = _modes(os.fsdecode(entry) for entry in listed)
        return [name for name, is_link in found if is_link and name in names]  # It lists what is beside them too.

    def differences(self, commit: str, paths: Sequence[str]) -> Iterator[Difference]:
        """Files of which the working tree may have another content than the commit. Raises GitError for a submodule
        that was there then: what it declared is gone, and no blob of this repository says what that was."""
        fields = iter(_fields(self._asked("diff-index", *_RAW, commit, "--", *paths)))
        for entry in fields:
            old, new, before, *_ = _text(entry).lstrip(":").split(" ")
            name, links = os.fsdecode(next(fields)), (old == _LINK, new == _LINK)
            if old == _SUBMODULE:
                raise was_not_told_of(name)
            yield Difference(name, before if before.strip("0") else None, *links)

    def contents(self, blobs: Sequence[str]) -> dict[str, bytes]:
        """All in one process."""
        done = self._run("cat-file", "--batch", input_="".join(f"{b}\n" for b in blobs).encode())
        out: dict[str, bytes] = {}
        at = 0
        for blob in blobs:
            end = done.stdout.find(b"\n", at)
            header = _text(done.stdout[at:end]).split(" ")
            if end < 0 or len(header) != 3 or header[1] != "blob":
                hint = _PARTIAL if "promisor" in said(done) else said(done) or "`git fsck` may say why"
                raise GitError("M530", f"git cannot give the content of {blob}", hint)
            out[blob] = done.stdout[end + 1 : end + 1 + int(header[2])]
            at = end + 2 + int(header[2])
        return out

    def _run(self, *arguments: str, input_: bytes = b"") -> Done:
        with _told():
            return self.tree.run(*arguments, input_=input_)

    def _asked(self, *arguments: str) -> bytes:
        done = self._run(*arguments)
        if done.returncode != 0:
            raise GitError("M530", f"`git {arguments[0]}` failed", said(done))
        return done.stdout


def repository(path: str) -> Repository:
    """The one that the path is in."""
    with _told():
        try:
            return Repository(work_tree(path))
        except NoRepository as error:
            hint = "--changed-since compares with an earlier commit: run it in a clone of the repository"
            raise GitError("M531", f"{path} is in no git repository", hint) from error
        except NotAsked as error:
            raise GitError("M530", f"git cannot be asked about {path}", str(error)) from error


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise GitError("M530", "the program git is not there", "install git: --changed-since asks it") from error
    except (OSError, ValueError) as error:
        raise GitError("M530", f"git cannot be run: {error}") from error


def _modes(listed: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Names, and whether each is a symbolic link. Raises GitError for a submodule."""
    for entry in listed:
        mode, _, name = entry.partition("\t")
        if mode.startswith(_SUBMODULE):
            raise not_told_of(name)
        yield name, mode.startswith(_LINK)


def not_told_of(submodule: str) -> GitError:
    message = f"{submodule} is a submodule: what changed in it cannot be told"
    return GitError("M534", message, "run inside the submodule, or without --changed-since")


def was_not_told_of(submodule: str) -> GitError:
    message = f"{submodule} was a submodule at that revision: what changed with it cannot be told"
    return GitError("M534", message, "run without --changed-since until it is the same on both sides")


def _fields(data: bytes) -> list[bytes]:
    return data.split(b"\0")[:-1]


def _text(data: bytes) -> str:
    return os.fsdecode(data).strip()
