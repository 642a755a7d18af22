"""Tells a lake without tables from the mount point of a disk that is not there. Local disks only.

A root that was applied always holds folders (`__manifest`, `__reconciler`), and the first apply makes the root of a new
lake. What is left is a root without a folder in it, or no root in a folder that is empty. If a file system is mounted
there, it is a new disk; otherwise somebody made the folder, or a disk was unmounted, and nobody can tell which. A few
objects may be made in it, with a warning; a whole lake only after somebody put our own folder there, empty.
"""

from __future__ import annotations

import logging
import os
import shlex
import tempfile
from contextlib import suppress

from reconciler.model.errors import CatalogError, Code
from reconciler.regular_files import read_regular

FEW = 10
"""Objects, as in the thresholds of deletes."""
OWN = "__reconciler"
LOST_AND_FOUND = "lost+found"
"""What ext file systems have from the start: a root with nothing else in it is empty."""
_log = logging.getLogger(__name__)
MOUNTS, TABLE = "/proc/self/mountinfo", "/etc/fstab"
_MOST = 16 << 20


def refuse_mount_point(root: str, wanted: int) -> None:
    """Of a root that holds no folder, in which so many objects are looked for. Raises CatalogError when they are many,
    unless a file system is mounted there."""
    if _is_mounted(root):
        return
    refuse_unmounted(root)
    problem = f"{root} holds no table, and may be the mount point of a disk that is not mounted"
    if wanted > FEW:
        raise _not_made(problem, wanted, root)
    _log.warning("%s; if a disk belongs there, mount it before you apply", problem)


def refuse_missing(root: str, wanted: int, written: str) -> None:
    """Of a root that does not exist, in which so many objects are looked for: is the folder above it such a mount
    point? Not where people try things out: among temporary files, or where the path, as it is written, leads below the
    folder that this program runs in. A full path says nothing of that folder, which in a container may be `/`."""
    refuse_unmounted(root)
    above = os.path.realpath(os.path.dirname(root))
    if wanted <= FEW or _below(above, tempfile.gettempdir()) or (_in_checkout(written) and _below(above, os.curdir)):
        return
    if _below(os.curdir, above) or _is_mounted(above):
        return
    with os.scandir(above) as entries:
        if next(entries, None) is None:
            problem = (
                f"{root} does not exist, and {above}, which is empty, may be the mount point of a disk that is not"
            )
            raise _not_made(f"{problem} mounted", wanted, root)


def doubt_of(folder: str) -> str | None:
    """Of a folder that is missing or empty: why what it held may be on a disk that is away. What proves that it is not
    is a file system that is mounted there, or something beside it. Raises OSError when that cannot be read."""
    try:
        refuse_unmounted(folder)
    except CatalogError as error:
        return error.message
    at = os.path.realpath(folder)
    while not os.path.lexists(at):
        at = os.path.dirname(at)
    with os.scandir(at) as entries:
        if next(entries, None) is not None or _is_mounted(at):
            return None
    return f"{at} is empty, and may be the mount point of a disk that is not mounted: mount it, or remove that folder"


def _in_checkout(written: str) -> bool:
    """No checkout is `/`."""
    return not os.path.isabs(written) and os.path.realpath(os.curdir) != os.sep


def _not_made(problem: str, wanted: int, root: str) -> CatalogError:
    return CatalogError(
        Code.INVALID_INPUT,
        f"{problem}: {wanted} objects are not created anew there. Mount the disk; if this is a new lake, say so with "
        f"`mkdir -p {shlex.quote(f'{root}/{OWN}')}`",
    )


def _below(path: str, folder: str) -> bool:
    real = os.path.realpath(folder)
    return os.path.commonpath((os.path.realpath(path), real)) == real


def _is_mounted(folder: str) -> bool:
    real = os.path.realpath(folder)
    return os.path.ismount(real) or real in _mounted()


def refuse_unmounted(root: str) -> None:
    """Of a root that does not exist or holds no folder. Raises CatalogError when it is below a mount point of the
    system's table that nothing is mounted on."""
    real = os.path.realpath(root)
    missing = _listed() - _mounted()
    for point in missing:
        if real == point or real.startswith(f"{point.rstrip('/')}/"):
            raise CatalogError(
                Code.INVALID_INPUT, f"{root} has no content: {TABLE} has {point}, which is not mounted: mount the disk"
            )


def _mounted() -> frozenset[str]:
    return frozenset(line[4] for line in _lines(MOUNTS) if len(line) > 4)


def _listed() -> frozenset[str]:
    points = (line[1] for line in _lines(TABLE) if len(line) > 1 and not line[0].startswith("#"))
    return frozenset(os.path.realpath(point) for point in points if point.startswith("/") and point != "/")


def _lines(path: str) -> list[list[str]]:
    """Words of the lines; spaces in paths are escaped there. Nothing where the system has no such file."""
    with suppress(OSError):
        text = read_regular(path, _MOST).decode("utf-8", "surrogateescape")
        return [[_plain(word) for word in line.split()] for line in text.split("\n")]
    return []


def _plain(word: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        word = word.replace(code, char)
    return word
