"""Manifests that are in git and were not checked out: a sparse checkout leaves them out. They are not gone."""

from __future__ import annotations

import os
from collections.abc import Sequence

from reconciler.git_process import top_of
from reconciler.manifest import git
from reconciler.manifest.repository_places import Found, Places, tracked_in


def not_checked_out(repository: git.Repository, places: Places, tracked: git.Tracked) -> list[str]:
    """Files that a run would read if they were there."""
    names = [name for name, flag in tracked.flags.items() if flag.upper() == git.SPARSE]
    return [n for n in names if places.layer(n) and not os.path.lexists(os.path.join(repository.top, n))]


def why_not_to_prune(paths: Sequence[str], environment: str) -> str | None:
    """What such files declare would look like an orphan. Outside of a repository there are none; where git has no
    answer, that counts only if the checkout has been a sparse one."""
    for path in paths:
        top = top_of(path)
        if top is None:
            continue
        try:
            repository = git.repository(path)
            places = Places(repository.top, Found([path], [], [], environment))
            hidden = not_checked_out(repository, places, tracked_in(repository, places))
        except git.GitError as error:
            if _was_sparse(top):
                return f"this is a sparse checkout, and git cannot tell which manifests it lacks: {error}"
            continue
        if hidden:
            more = f" and {len(hidden) - 1} more" if len(hidden) > 1 else ""
            return (
                f"{hidden[0]}{more} is in git and not checked out (sparse checkout), and what it declares would be "
                "taken for an orphan: `git sparse-checkout disable`, or give paths that are checked out as a whole"
            )
    return None


def _was_sparse(top: str) -> bool:
    """By the file that has the patterns. A further work tree says where its own are."""
    place = os.path.join(top, ".git")
    try:
        if os.path.isfile(place):
            with open(place) as file:
                place = os.path.join(top, file.read(4096).partition("gitdir:")[2].strip())
    except (OSError, ValueError):
        return False
    return os.path.lexists(os.path.join(place, "info", "sparse-checkout"))
