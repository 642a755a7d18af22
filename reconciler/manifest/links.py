"""Links that a stranger may have put among the files: what is reached by one must not be anywhere else.

A path of the command line is trusted as a text, and not for where a link takes it: below the working directory, where a
checkout lies, it stays there; elsewhere it stays in the folder that it is in. Links that are found in it stay in the
folders that were given. What git keeps for itself is never in a folder: a checkout has tokens there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

_OF_GIT = ".git"
_DEVICES = "/dev"
"""Nobody who writes manifests puts links there: `/dev/stdin` leads to wherever the caller has pointed it."""


def bounds(paths: Iterable[str], whole_repository: bool) -> tuple[str, ...]:
    """The folders that links may lead to: the given ones. `whole_repository`: all of the git repository that a path is
    in, so that links inside of one work from wherever the program is started. Not for a pull request that is planned
    with credentials: beside its folders are the base branch and what earlier steps of the job left."""
    if not whole_repository:
        return tuple(sorted(_own_folder(path) for path in paths))
    return tuple(sorted({_repository(folder) or folder for folder in map(bound, paths)}))


def _own_folder(path: str) -> str:
    """The folder that a given path is, or is in. Of one that a link takes out of its bound, the bound: it is not in
    there, and refused."""
    found = root(path)
    if found is None or not os.path.exists(found):
        return bound(path)
    return found if os.path.isdir(found) else os.path.realpath(os.path.dirname(os.path.abspath(path)))


def _repository(folder: str) -> str | None:
    from reconciler.git_process import top_of

    return top_of(folder)


def leads_out(path: str, folders: tuple[str, ...]) -> bool:
    """A given path that a link takes elsewhere."""
    given = os.path.abspath(path)
    return not below(given, _DEVICES) and os.path.exists(path) and not is_in(path, folders)


def bound(path: str) -> str:
    """The folder that everything found under a given path has to be in."""
    here = os.path.realpath(os.curdir)
    if below(os.path.abspath(path), os.path.abspath(os.curdir)):
        return here
    given = os.path.normpath(path)
    return os.path.realpath(os.path.dirname(os.path.abspath(given)) if os.path.islink(given) else given)


def root(path: str) -> str | None:
    """The folder that a given path is; None when a link takes it out of its bound."""
    try:
        real = os.path.realpath(path)
        return real if below(real, bound(path)) else None
    except (OSError, ValueError):
        return None


def is_in(path: str, folders: tuple[str, ...]) -> bool:
    """After links and `..` are followed. What cannot be followed is not."""
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):
        return False
    return any(below(real, folder) and not _of_git(real, folder) for folder in folders)


def _of_git(path: str, folder: str) -> bool:
    return _OF_GIT in os.path.relpath(path, folder).split(os.sep)


def below(path: str, folder: str) -> bool:
    """By their texts; both are absolute."""
    try:
        return os.path.commonpath((path, folder)) == folder
    except ValueError:
        return False
