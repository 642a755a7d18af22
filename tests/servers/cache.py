"""What servers are made of is fetched once and kept outside the repository: jars by Maven, packages by npm."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

POMS = Path(__file__).with_name("poms")
_FETCH_SECONDS = 600


def cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "lance-reconciler"


def needs(tool: str, why: str) -> str:
    """The path of a program; without it the test is skipped (in CI: fails)."""
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{why} needs `{tool}` on the PATH")
    return found


def once(name: str, fill: Callable[[Path], None]) -> Path:
    """A folder of the cache, filled by the first that asks; workers of one run wait for each other."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    folder = cache_folder() / name
    with (cache_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
                target = Path(work) / "made"
                target.mkdir()
                fill(target)
                target.rename(folder)
    return folder


def jars(pom: str) -> Path:
    """The folder with everything that `poms/<pom>.xml` names."""
    file = POMS / f"{pom}.xml"
    mvn = needs("mvn", pom)

    def fill(folder: Path) -> None:
        # -U: Maven remembers for a day that something could not be had.
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        fetch([mvn, "-q", "-B", "-U", "-f", str(file), *goal], pom)

    return once(f"{pom}-{digest(file.read_bytes())}", fill)


def fetch(command: list[str], what: str, cwd: Path | None = None) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False, cwd=cwd, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        pytest.skip(f"{what} cannot be fetched: {(done.stdout + done.stderr).strip()[-300:]}")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
