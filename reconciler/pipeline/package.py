"""This program for executors that do not have it: one file, added to the session before the first job that needs it.

Catalog classes are too much to travel with each task by value. The file comes first on the executors' path, so that
another version that is installed there is not used by accident.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import reconciler
from reconciler.pipeline.session import SparkError, first_line

_EPOCH = (1980, 1, 1, 0, 0, 0)


def add_package(spark: Any, folder: Path) -> None:
    """`folder` has to last as long as the session: Spark fetches the file from there. Raises SparkError."""
    try:
        spark.addArtifacts(str(_zipped(folder)), pyfile=True)
    except Exception as error:
        if "was already registered" in str(error):
            return  # The name says the content: the executors of this session have it.
        raise SparkError(
            f"the executors cannot be given this program: {first_line(error)}. Install lance-reconciler in their Python"
        ) from error


def _zipped(folder: Path) -> Path:
    """The code alone, and the same bytes each time: Spark refuses a second file of one name and another content."""
    root = Path(reconciler.__file__).parent
    made = folder / "package.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(root.rglob("*.py")):
            entry = zipfile.ZipInfo(path.relative_to(root.parent).as_posix(), _EPOCH)
            file.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return made.rename(folder / f"reconciler-{hashlib.sha256(made.read_bytes()).hexdigest()[:16]}.zip")
