"""Files by paths: a file, a folder with all that is below it, or a pattern with `*` (within a name) and `**` (any
folders). A pattern may name folders too. Names that start with `.` or `_` are skipped below what is named. Matching is
linear in pattern times path: a pattern from a manifest must not be able to hang a run."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.catalog.known_secrets import without_secrets
from reconciler.core.globs import ANY_DEPTH, matches_items
from reconciler.core.uris import with_store_scheme
from reconciler.pipeline.file_reader import is_local, local_path, stamp_of
from reconciler.pipeline.listed_object import object_stamp

MOST_LINKED = 10_000
"""Folders that are reached through links: a few links beside each other multiply to any number of them."""


_OF_GIT = ".git"


class SourceError(Exception):
    """The source cannot be listed. The message says why and never holds a storage option."""


def first_words(error: BaseException) -> str:
    """Of what a library says. Cut last: half a secret is past knowing."""
    return next(iter(without_secrets(str(error)).splitlines()), type(error).__name__)[:300]


@dataclass(frozen=True, slots=True)
class Found:
    uri: str
    name: str
    """Its path below the folder that is named, or below what comes before the first wildcard."""
    size: int
    stamp: str
    inode: int | None = None
    """On a disk: another file that was put in its place has another one, whatever its time."""
    real: str | None = None
    """On a disk: where links on the way to it lead; None when there are none."""


def listed(path: str, store_of: Callable[[str], Any], untrusted: bool = False) -> list[Found]:
    """By URI; empty when a folder is, or nothing matches. `store_of` connects to the root of a bucket. `untrusted`:
    links in the folders may be a stranger's (see `home_of`). Raises SourceError, and what `store_of` raises."""
    if is_local(path):
        base, pattern = _split(os.path.abspath(local_path(path)))
        found = _on_disk(path, base, pattern, home_of(base) if untrusted else None)
    else:
        scheme, _, rest = with_store_scheme(path).partition("://")
        bucket, _, key = rest.partition("/")
        base, pattern = _split(key)
        url = f"{scheme}://{bucket}"
        found = _in_bucket(path, url, store_of(url), base.strip("/"), pattern)
    return sorted(found, key=lambda f: f.uri)


Pattern = tuple[str, ...]


def _split(path: str) -> tuple[str, Pattern | None]:
    """The folder before the first part with a wildcard, and the rest as a pattern. A pattern matches a file, or a
    folder above it."""
    parts = path.split("/")
    first = next((n for n, part in enumerate(parts) if "*" in part), None)
    if first is None:
        return path, None
    return "/".join(parts[:first]) or "/", (*parts[first:], ANY_DEPTH)


def _wanted(name: str, pattern: Pattern | None) -> bool:
    parts = name.split("/")
    if any(part.startswith((".", "_")) for part in parts):
        return False
    return pattern is None or matches_items(pattern, parts, ANY_DEPTH, _named)


def _named(pattern: str, name: str) -> bool:
    return matches_items(pattern, name, "*", lambda p, c: p == c)


def home_of(path: str) -> str:
    """The folder that links on the way to a path and below it may not lead out of: the checkout that it is in, whatever
    the working directory is. A link in a checkout may be a stranger's, so where it leads there is no other one. Outside
    of every checkout: the working directory where the path is below it, otherwise what the path itself leads to."""
    home: str | None = None
    at = "/"
    for part in path.split("/"):
        below = os.path.join(at, part)
        if home is not None and os.path.islink(below):
            break
        at = os.path.realpath(below)
        if os.path.lexists(os.path.join(at, _OF_GIT)):
            home = at
    if home is not None:
        return home
    here = os.path.abspath(os.curdir)
    return os.path.realpath(here if _below(path, here) else path)


def need_own(path: str) -> None:
    """Raises SourceError for a path on a disk that links lead out of its home, or that has such a link below it."""
    if not is_local(path):
        return
    base = os.path.abspath(local_path(path))
    home = home_of(base)
    _need_inside(base, home)
    seen: set[str] = set()
    for folder, folders, files in os.walk(base, followlinks=True):
        for found in (os.path.join(folder, name) for name in (*folders, *files)):
            if os.path.islink(found):
                _need_inside(found, home)
        inside = [os.path.realpath(os.path.join(folder, name)) for name in folders]
        folders[:] = [name for name, real in zip(folders, inside, strict=True) if real not in seen]
        seen.update(inside)


def _need_inside(path: str, home: str | None) -> None:
    """Nor is what git keeps for itself in it: a checkout has tokens there."""
    if home is None:
        return
    real = os.path.realpath(path)
    if not _below(real, home) or _OF_GIT in os.path.relpath(real, home).split("/"):
        raise SourceError(
            f"{path}: a link leads out of {home}; with --catalogs-from it is not followed: put the file itself there"
        )


def _below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _on_disk(path: str, base: str, pattern: Pattern | None, home: str | None) -> Iterator[Found]:
    real, through_links = os.path.realpath(base), 0
    try:
        _need_inside(base, home)
        if pattern is None and not os.path.isdir(base):
            yield _file(base, os.path.basename(base), os.path.realpath(os.path.dirname(base)))
            return
        for folder, folders, files in os.walk(base, onerror=_raise, followlinks=True):
            folders[:] = [name for name in folders if not _loops(folder, name)]
            through_links += _linked(folder, base, real)
            if through_links > MOST_LINKED:
                raise SourceError(f"{path}: more than {MOST_LINKED} folders are found through links: name the folders")
            real_folder = os.path.realpath(folder)
            for name in folders:
                _need_inside(os.path.join(folder, name), home)
            for file in (os.path.join(folder, name) for name in files):
                name = os.path.relpath(file, base)
                if _wanted(name, pattern):
                    _need_inside(file, home)
                    yield _file(file, name, real_folder)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}: {error.filename or base}") from error


def _linked(folder: str, base: str, real: str) -> bool:
    """There is a link on the way from the base, which is really at `real`."""
    return os.path.realpath(folder) != os.path.normpath(os.path.join(real, os.path.relpath(folder, base)))


def _file(path: str, name: str, real_folder: str) -> Found:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(f"{path}: it is no regular file")
    real = os.path.realpath(path) if os.path.islink(path) else os.path.join(real_folder, os.path.basename(path))
    return Found(path, name, status.st_size, stamp_of(status), status.st_ino, real if real != path else None)


def _raise(error: OSError) -> None:
    raise error


def _loops(folder: str, name: str) -> bool:
    """A link to a folder that it is in: what it leads to is listed already."""
    path = os.path.join(folder, name)
    if not os.path.islink(path):
        return False
    inside, to = os.path.realpath(folder), os.path.realpath(path)
    return f"{inside}/".startswith(f"{to.rstrip('/')}/")


def _in_bucket(path: str, url: str, store: Any, base: str, pattern: Pattern | None) -> Iterator[Found]:
    import obstore
    from obstore.exceptions import BaseError

    try:
        one = _head(store, base) if base and pattern is None else None
        every = [found for page in obstore.list(store, base or None) for found in page]
    except (BaseError, OSError) as error:
        raise SourceError(f"{path}: it cannot be listed: {first_words(error)}") from error
    if one is not None and (one["size"] or not every):
        yield _object(url, one, one["path"].rpartition("/")[2])
        return
    folders = {above for found in every for above in _above(found["path"])}
    for found in every:
        name = found["path"][len(base) + 1 if base else 0 :]
        stands_for_a_folder = not found["size"] and found["path"] in folders
        if _wanted(name, pattern) and not stands_for_a_folder:
            yield _object(url, found, name)


def _head(store: Any, key: str) -> Any:
    """None when the store says that there is no such object; a missing bucket is an error."""
    import obstore

    try:
        return obstore.head(store, key)
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise
        return None


def _above(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)))


def _object(url: str, meta: Any, name: str) -> Found:
    return Found(f"{url}/{meta['path']}", name, meta["size"], object_stamp(meta))
