"""Files that a command writes must not be what it reads, nor each other: nothing is lost to a slip of the hand."""

from __future__ import annotations

import argparse
from pathlib import Path

from reconciler import app

_OUTPUTS = {"output": "-o", "journal": "--journal", "report": "--report", "metrics_file": "--metrics-file"}
_INPUTS = ("plan", "reviewed")


def refuse_clashes(args: argparse.Namespace) -> None:
    """Raises Failure before anything is opened."""
    inputs = [*args.paths, *(v for name in _INPUTS if (v := getattr(args, name, None)))]
    written: list[tuple[str, Path]] = []
    for name, flag in _OUTPUTS.items():
        value = getattr(args, name, None)
        if not value:
            continue
        path = Path(value)
        for source in inputs:
            if _is_read(path, Path(source)):
                raise app.Failure(f"{flag} {path} would overwrite what is read from {source}: choose another file")
        for other, earlier in written:
            if path.resolve() == earlier.resolve() and not _stream(path):
                raise app.Failure(f"{other} and {flag} both name {path}: choose another file for one of them")
        written.append((flag, path))


def _stream(path: Path) -> bool:
    """A pipe or a device takes what several write, one after the other."""
    return path.exists() and not path.is_file()


def _is_read(path: Path, source: Path) -> bool:
    """The same file, or a manifest in a folder of manifests."""
    try:
        target, read = path.resolve(), source.resolve()
        return target == read or (path.suffix.lower() in (".yaml", ".yml") and read.is_dir() and read in target.parents)
    except (OSError, RuntimeError):
        return False
