"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from reconciler.regular_files import read_regular

LARGEST = 64 << 20
"""Bytes of a file that is replaced and read before that: metrics, which have some kilobytes."""
ROOM = 64 * 1024
"""Bytes that a file may grow by from one run to the next."""


def write_atomically(path: Path, text: str) -> None:
    """Replaces the file in one step, synced: a reader never sees half of it. Raises OSError.

    What is not a regular file (a pipe, /dev/stdout) cannot be replaced and is written to directly."""
    if path.exists() and not path.is_file():
        _write_directly(path, text)
        return
    target = path.resolve()  # Through a symbolic link, so that the link stays one.
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _write_directly(path: Path, text: str) -> None:
    """A pipe that nobody reads is an error (ENXIO), not something to wait for."""
    handle = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOCTTY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


def create_atomically(path: Path, text: str) -> None:
    """A file that is not there yet, whole or not at all. Raises OSError. It is not synced, as it can be made again."""
    if path.exists() or path.is_symlink():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def claim(path: Path, text: str) -> None:
    """Finds out whether the file can be written, and puts `text` in the place of what an earlier run left there. Raises
    OSError. A device is asked and gets nothing; a pipe is not opened, its reader would see an end."""
    if _is_replaced(path):
        write_atomically(path, text)


def text_to_replace(path: Path) -> str:
    """What the file holds, empty if there is none. Raises OSError when `write_atomically` could not replace it; room is
    tried too: as much as is there, and some more, is written beside it and given back. Changes nothing: until there is
    something new to say, what is there stays true."""
    if not _is_replaced(path):
        return ""
    found = read_regular(path, LARGEST) if path.exists() else b""
    with tempfile.TemporaryFile(dir=path.resolve().parent) as probe:
        probe.write(bytes(len(found) + ROOM))
        probe.flush()
        os.fsync(probe.fileno())  # Some file systems find out only now.
    return found.decode("utf-8", "replace")


def _is_replaced(path: Path) -> bool:
    """False for what is written to directly, after it was asked whether that can be. Raises OSError."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.exists() or path.is_file():
        return True
    if path.is_char_device():
        device = os.open(path, os.O_WRONLY | os.O_NOCTTY)
        try:
            os.write(device, b"")  # /dev/full refuses even this.
        finally:
            os.close(device)
    elif not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
