"""Where imported manifests go: what is read together with them must stay valid.

A folder is read as a whole, so a file that is written into it stands beside all documents that are there already.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from reconciler.manifest.files import SKIPPED_FOLDERS, find
from reconciler.model.desired import CatalogSpec


def read_together(paths: Sequence[str], folder: Path) -> list[str]:
    """The folders among `paths` that `folder` is read with, and the folder itself."""
    found = [path for path in paths if os.path.isdir(path) and _reads(path, folder)]
    return found if found or not folder.is_dir() else [str(folder)]


def shared_by_environments(together: Sequence[str]) -> bool:
    """Overlays are read with the folder: what is outside them is what all environments have."""
    overlays: list[str] = []
    for _ in find(together, [], overlays):
        pass
    return bool(overlays)


def _reads(outer: str, inner: Path) -> bool:
    below = os.path.relpath(os.path.realpath(inner), os.path.realpath(outer))
    parts = [] if below == "." else below.split(os.sep)
    return not any(part.startswith(".") or part in SKIPPED_FOLDERS for part in parts)


def same_file(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def side_by_side(specs: Sequence[CatalogSpec], folder: Path) -> Iterator[CatalogSpec]:
    """Catalogs that would be declared twice by whoever reads the folder that holds both their file and the new one."""
    for spec in specs:
        if _reads(os.path.dirname(spec.source.file) or ".", folder):
            yield spec
