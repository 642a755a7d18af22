"""Manifests that are in git and were not checked out: a sparse checkout leaves some out, a clone all that are in
submodules unless it is told otherwise. They are not gone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from reconciler.git_process import top_of
from reconciler.manifest import git
from reconciler.manifest.files import find
from reconciler.manifest.repository_places import Found, Places, tracked_in

_IS_SPARSE = re.compile(r"^\s*sparsecheckout\s*=\s*true\s*$", re.IGNORECASE | re.MULTILINE)


def not_checked_out(repository: git.Repository, places: Places, tracked: git.Tracked) -> list[str]:
    """Files that a run would read if they were there."""
    names = [name for name, flag in tracked.flags.items() if flag.upper() == git.SPARSE]
    return [n for n in names if places.layer(n) and not os.path.lexists(os.path.join(repository.top, n))]


def why_not_to_prune(paths: Sequence[str], environment: str) -> str | None:
    """What such files declare would look like an orphan. Outside of a repository there are none; where git has no
    answer, that counts only if the checkout is known to be a sparse one."""
    roots: dict[str, list[str]] = {}
    for top, root in _roots(paths):
        roots.setdefault(top, []).append(root)
    for top, some in roots.items():
        try:
            repository = git.repository(some[0])
            places = Places(repository.top, Found(some, [], [], environment))
            told = _told(repository, places, tracked_in(repository, places))
        except git.GitError as error:
            told = _unanswered(top, error) if _is_sparse(top) else None
        if told is not None:
            return told
    return None


def _roots(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Work trees, and the outermost path in each from which manifests are read: one of those given, or where the way
    from there to a manifest enters the work tree."""
    seen: set[str] = set()
    for path in paths:
        if (top := top_of(path)) is not None:
            yield top, path
        for file in find([path], []):
            folder = os.path.dirname(file)
            if folder in seen and not os.path.islink(file):
                continue
            seen.add(folder)
            within = top_of(os.path.realpath(file))
            if within is not None and within != top:
                yield within, _entrance(path, file, within)


def _entrance(path: str, file: str, top: str) -> str:
    at = path
    for part in os.path.relpath(file, path).split(os.sep):
        at = os.path.join(at, part)
        if os.path.join(os.path.realpath(at), "").startswith(os.path.join(top, "")):
            return at
    return file


def _told(repository: git.Repository, places: Places, tracked: git.Tracked) -> str | None:
    taken = "and what it declares would be taken for an orphan"
    if hidden := not_checked_out(repository, places, tracked):
        more = f" and {len(hidden) - 1} more" if len(hidden) > 1 else ""
        way = "`git sparse-checkout disable`, or give paths that are checked out as a whole"
        return f"{hidden[0]}{more} is in git and not checked out (sparse checkout), {taken}: {way}"
    for name in tracked.submodules:
        if places.leads(name) and not os.path.lexists(os.path.join(repository.top, name, ".git")):
            return f"{name} is a submodule that is not checked out, {taken}: `git submodule update --init`"
    return None


def _unanswered(top: str, error: git.GitError) -> str:
    way = f"run it where git is installed and trusts the folder (`git config --global --add safe.directory {top}`)"
    return f"{top} is a sparse checkout, and git cannot say which manifests it lacks ({error.message}): {way}"


def _is_sparse(top: str) -> bool:
    """By git's own settings. A further work tree says where its own are. What leads nowhere tells nothing."""
    place = os.path.join(top, ".git")
    settings = ""
    try:
        if os.path.isfile(place):
            with open(place, encoding="utf-8", errors="surrogateescape") as file:
                place = os.path.join(top, file.read(4096).partition("gitdir:")[2].strip())
        for name in ("config.worktree", "config", os.path.join("..", "..", "config")):
            if os.path.isfile(setting := os.path.join(place, name)):
                with open(setting, encoding="utf-8", errors="replace") as file:
                    settings += file.read(1_000_000) + "\n"
    except (OSError, ValueError):
        return False
    return _IS_SPARSE.search(settings) is not None
