"""Which files of a run may not be what they were at a git revision."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.text import plural
from reconciler.manifest import git
from reconciler.manifest.repository_places import Found, Layer, Places, tracked_in
from reconciler.manifest.sparse import not_checked_out


@dataclass(frozen=True, slots=True)
class Candidate:
    layer: Layer
    file: str | None
    """As it was found; None when it is gone."""
    blob: str | None
    """What it was; None when it was not there."""


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    repository: git.Repository
    candidates: Sequence[Candidate]

    def earlier(self) -> Mapping[str, bytes]:
        """By blob. Raises GitError."""
        return self.repository.contents(sorted({c.blob for c in self.candidates if c.blob is not None}))


def changed_files(revision: str, found: Found) -> ChangedFiles:
    """Since this branch left the revision; what is not committed, and files that git does not know, count too. Raises
    GitError."""
    repository = git.repository(found.paths[0])
    places = Places(repository.top, found)
    commit = repository.base(revision)
    tracked = tracked_in(repository, places)
    for name in tracked.submodules:
        raise git.not_told_of(name)
    differences = list(repository.differences(commit, places.asked))
    differences += repository.unwatched(commit, places.asked, tracked.flags)
    changed_links = sorted({*_changed_links(repository, places, commit, differences, tracked.links)})
    if changed_links:
        raise _not_told(changed_links, revision)
    hidden = {*not_checked_out(repository, places, tracked)} & {d.path for d in differences}
    if hidden:
        raise _not_seen(sorted(hidden), revision)
    before: dict[str, str | None] = {d.path: d.blob for d in differences if not d.was_link}
    before |= {name: None for name in places.files if name not in tracked.links and name not in before}
    layers = {name: layer for name in before if (layer := places.layer(name)) is not None}
    return ChangedFiles(repository, [Candidate(layer, places.files.get(n), before[n]) for n, layer in layers.items()])


def _changed_links(
    repository: git.Repository,
    places: Places,
    commit: str,
    differences: Sequence[git.Difference],
    tracked: Collection[str],
) -> Iterator[str]:
    """Those through which manifests are read, or were."""
    known = {d.path for d in differences} | {*tracked}
    yield from (name for name in places.links if name not in known)
    yield from repository.links(commit, places.folders_above)
    links = [d for d in differences if d.was_link or d.is_link]
    targets = repository.contents(sorted({d.blob for d in links if d.was_link and d.blob is not None}))
    for link in links:
        counts = link.path in places.links or (link.was_link and places.led(link.path))
        # Git lists one that is the same too, when its time is not the one that git remembers.
        if counts and targets.get(link.blob or "") != _target(os.path.join(repository.top, link.path)):
            yield link.path


def _target(path: str) -> bytes:
    try:
        return os.readlink(os.fsencode(path))
    except OSError:
        return b""


def _not_told(links: Sequence[str], revision: str) -> git.GitError:
    """What was read through a link would have to be looked for in the past, by the rules that the run has for today."""
    more = f" (and {plural(len(links) - 1, 'more link')})" if len(links) > 1 else ""
    what = f"{links[0]} is a link that is not what it was at {revision}{more}"
    hint = "run without --changed-since until the link is the same on both sides"
    return git.GitError("M534", f"{what}: what changed through it cannot be told", hint)


def _not_seen(names: Sequence[str], revision: str) -> git.GitError:
    """It is not gone: a plan would say so, or say nothing of it."""
    more = f" (and {plural(len(names) - 1, 'more file')})" if len(names) > 1 else ""
    what = f"{names[0]} changed since {revision}, and is not checked out (sparse checkout){more}"
    hint = "check it out: `git sparse-checkout add FOLDER`, or `git sparse-checkout disable`"
    return git.GitError("M534", what, hint)
