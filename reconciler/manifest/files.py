"""Paths as given on the command line -> the files to read, each once, in a stable order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from reconciler.manifest.links import is_in, leads_out
from reconciler.manifest.nearest import nearest
from reconciler.manifest.suffixes import almost_manifest, is_manifest
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.regular_files import read_given

MAX_MANIFEST = 256 << 20
"""Bytes of one file. Files of a generator have some megabytes."""
ALMOST = "M119"
"""The code of a file that was skipped and may have been meant for a manifest."""
SKIPPED_FOLDERS = frozenset({"overlays"})
_ALMOST = 0.7
"""How alike a name has to be to have been meant."""


def find(
    paths: Sequence[str],
    diagnostics: list[Diagnostic],
    skipped: list[str] | None = None,
    kept_in: tuple[str, ...] | None = None,
) -> Iterator[str]:
    """A file is read whatever its suffix; a folder recursively. Symbolic links are followed, each real folder once;
    one that leads out of the folders `kept_in` is an error: an error in what it leads to would show parts of it.
    `skipped` gets the folders that are not looked into, but for hidden ones."""
    skipped = [] if skipped is None else skipped
    seen_files: set[tuple[int, int]] = set()
    for path in paths:
        if kept_in is not None and leads_out(path, kept_in):
            diagnostics.append(_led_out(path))
            continue
        for file in _expand(path, diagnostics, skipped, kept_in):
            try:
                status = os.stat(file)
            except OSError as error:
                diagnostics.append(_unreadable(file, error))
                continue
            if (status.st_dev, status.st_ino) in seen_files:
                continue
            seen_files.add((status.st_dev, status.st_ino))
            if not stat.S_ISREG(status.st_mode) and file != path:
                diagnostics.append(Diagnostic(Source(file), "M117", "error", f"{file} is not a regular file"))
                continue
            yield file


def read(file: str, diagnostics: list[Diagnostic]) -> bytes | None:
    try:
        return read_given(file, MAX_MANIFEST)
    except OSError as error:
        diagnostics.append(_unreadable(file, error))
        return None


def _expand(
    path: str, diagnostics: list[Diagnostic], skipped: list[str], kept_in: tuple[str, ...] | None
) -> Iterable[str]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        near = _beside(path)
        check = "check the path" if os.path.isabs(path) else "check the path; it is relative to the working directory"
        hint = f"did you mean {near}?" if near else check
        diagnostics.append(Diagnostic(Source(path), "M100", "error", f"{path} does not exist", hint))
        return []
    except (OSError, ValueError) as error:
        diagnostics.append(_unreadable(path, error))
        return []
    if not stat.S_ISDIR(status.st_mode):
        return [path]
    return _walk(path, {(status.st_dev, status.st_ino)}, diagnostics, skipped, kept_in)


def _beside(path: str) -> str | None:
    """What is in the same folder and is called nearly so."""
    folder, name = os.path.split(path.rstrip(os.sep))
    with suppress(OSError, ValueError):
        near = nearest(name, [n for n in os.listdir(folder or ".") if not n.startswith(".")], _ALMOST)
        return os.path.join(folder, near) if near is not None else None
    return None


def _walk(
    folder: str,
    seen: set[tuple[int, int]],
    diagnostics: list[Diagnostic],
    skipped: list[str],
    kept_in: tuple[str, ...] | None,
) -> Iterator[str]:
    """`seen` ends symbolic link loops. No link out of `kept_in` is followed, so that not even names are told."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        diagnostics.append(_unreadable(folder, error))
        return
    for name in names:
        path = os.path.join(folder, name)
        if name.startswith("."):
            continue
        try:
            status = os.stat(path)
        except OSError as error:
            if is_manifest(name):
                diagnostics.append(_unreadable(path, error))
            continue
        is_folder = stat.S_ISDIR(status.st_mode)
        if kept_in is not None and os.path.islink(path) and not is_in(path, kept_in):
            if is_folder or is_manifest(name):
                diagnostics.append(_led_out(path))
        elif is_folder:
            if name in SKIPPED_FOLDERS:
                skipped.append(path)
            elif (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield from _walk(path, seen, diagnostics, skipped, kept_in)
        elif is_manifest(name):
            yield path
        elif stat.S_ISREG(status.st_mode) and almost_manifest(name, names):
            diagnostics.append(_almost(path))


def _led_out(path: str) -> Diagnostic:
    message = f"{path} is reached by a link that leads out of the manifests"
    return Diagnostic(Source(path), "M314", "error", message, "put the file itself there")


def _almost(path: str) -> Diagnostic:
    message = f"{path} is not read: its name is almost, and not quite, that of a manifest"
    hint = "end its name in .yaml or .yml; move it out of the folder, or end its name in .bak, if it is none"
    return Diagnostic(Source(path), ALMOST, "warning", message, hint)


def _unreadable(path: str, error: OSError | ValueError) -> Diagnostic:
    reason = getattr(error, "strerror", None) or str(error)
    return Diagnostic(
        Source(path), "M101", "error", f"{path} cannot be read: {reason}", "check the path and its permissions"
    )
