"""Links that a stranger may have put among the files: what is reached by one must not be anywhere else.

A path of the command line is trusted as a text, and not for where a link takes it: below the working directory, where a
checkout lies, it stays there; elsewhere it stays in the folder that it is in.
"""

from __future__ import annotations

import os


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
    return any(below(real, folder) for folder in folders)


def below(path: str, folder: str) -> bool:
    """By their texts; both are absolute."""
    try:
        return os.path.commonpath((path, folder)) == folder
    except ValueError:
        return False
