"""Reads files that somebody else may have put there: regular files within a bound, and nothing that could block.

Opening a named pipe waits for a writer, a device may never end, and a huge file fills memory. None of them is what a
record, a manifest or a saved plan can be, so each is an error that says what the file is.
"""

from __future__ import annotations

import errno
import os
import stat

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)
_PIECE = 1 << 20
_HANDED_OVER = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


class NotRegular(OSError):
    """`strerror` says what is wrong, as the system's own errors do."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(errno.EINVAL, why, path)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def kind_of(mode: int) -> str | None:
    """What a file is by its mode, in words; None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    return next((name for test, name in _KINDS if test(mode)), "no regular file")


def check_regular(path: str, status: os.stat_result, most: int) -> None:
    """Raises OSError: IsADirectoryError for a folder, as `open` does, NotRegular for the rest."""
    kind = kind_of(status.st_mode)
    if kind == "a folder":
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if kind is not None:
        raise NotRegular(path, f"it is {kind}, not a regular file")
    if status.st_size > most:
        raise NotRegular(path, f"it has {status.st_size} bytes, and more than {most} are not read")


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """Raises OSError, FileNotFoundError included. Looks before it opens, since opening alone can act on a device, and
    again afterwards, since the file may have been exchanged."""
    name = os.fspath(path)
    check_regular(name, os.stat(name), most)
    return _read(name, os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, most, check=True)


def read_given(path: str | os.PathLike[str], most: int) -> bytes:
    """The same for a path of the command line, which may also be what the caller hands over: `/dev/stdin`, `<(cmd)`.
    Whoever starts the program decides how long that takes."""
    name = os.fspath(path)
    handed_over = name.startswith(_HANDED_OVER) and not stat.S_ISDIR(os.stat(name).st_mode)
    return _read(name, os.O_CLOEXEC, most, check=False) if handed_over else read_regular(name, most)


def _read(name: str, flags: int, most: int, check: bool) -> bytes:
    handle = os.open(name, os.O_RDONLY | flags)
    try:
        if check:
            check_regular(name, os.fstat(handle), most)
        data = bytearray()
        while piece := os.read(handle, _PIECE):  # Piece by piece: a signal is heard in between.
            data += piece
            if len(data) > most:
                raise NotRegular(name, f"more than {most} bytes are not read")
    finally:
        os.close(handle)
    return bytes(data)
