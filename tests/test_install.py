"""What the Dockerfile's first stage does, in a temporary folder: its COPY and RUN lines as they are written there.

Two things differ, for time and without losing the proof. pip installs the wheel alone, and the libraries that it asks
for are linked from this environment: those and no others, so that a missing dependency shows. The second stage only
copies the result and adds a user, which needs Docker; what it must not have is read from its lines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import reconciler

ROOT = Path(__file__).resolve().parent.parent
UNWRITABLE = "/proc"
"""As home and working folder: there even root cannot make a file."""
pytestmark = pytest.mark.slow


def stages() -> list[list[tuple[str, str]]]:
    """Their instructions, as (word, rest)."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    lines = [line.partition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    starts = [i for i, (word, _, _) in enumerate(lines) if word == "FROM"]
    return [[(w, rest) for w, _, rest in lines[a:b]] for a, b in zip(starts, [*starts[1:], None], strict=True)]


@dataclass(frozen=True)
class Image:
    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "opt" / "reconciler"

    @property
    def wheel(self) -> Path:
        (wheel,) = (self.folder / "dist").glob("*.whl")
        return wheel

    def copy(self, sources: list[str], target: str) -> None:
        """Only what .dockerignore lets through, and links as links, as Docker does."""
        let_through = (ROOT / ".dockerignore").read_text().split()
        for source in sources:
            assert f"!{source}" in let_through
            to = self.folder / "src" / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, to, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, to)

    def execute(self, command: str) -> None:
        """With the absolute folders of the image below ours. `python` and `pip` are those of this environment."""
        command = re.sub(r"(?<=\s)(?=/(opt|dist)\b)", str(self.folder), f" {command}")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        bash, folder = ["bash", "-c", command], self.folder / "src"
        done = subprocess.run(bash, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """The installed program, with an environment that knows nothing of this checkout."""
        environment = {"HOME": UNWRITABLE, "PATH": f"{self.home}/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        command = ["reconciler", *map(str, arguments)]
        return subprocess.run(command, cwd=UNWRITABLE, env=environment, capture_output=True, text=True, check=False)


def needed(name: str, extras: frozenset[str] = frozenset(), seen: frozenset[str] = frozenset()) -> frozenset[str]:
    """The distribution and everything that it asks for, by way of what is installed here."""
    seen |= {name}
    for text in metadata.requires(name) or ():
        wanted = Requirement(text)
        marker = wanted.marker
        asked = marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""}))
        if asked and wanted.name not in seen:
            seen = needed(wanted.name, frozenset(wanted.extras), seen)
    return seen


def link_libraries(image: Image) -> None:
    """The dependencies that the wheel itself names."""
    site = next(image.home.glob("lib/python*/site-packages"))
    (info,) = site.glob("lance_reconciler-*.dist-info")
    asked = [Requirement(r) for r in metadata.Distribution.at(info).requires or ()]
    names: frozenset[str] = frozenset()
    for wanted in asked:
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            names = needed(wanted.name, frozenset(wanted.extras), names)
    assert {"pylance", "pyarrow", "pyyaml"} <= {n.lower() for n in names}
    for name in names:
        files = metadata.distribution(name).files or ()
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            target = site / top
            if not target.exists():
                target.symlink_to(Path(str(metadata.distribution(name).locate_file(top))))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    made = Image(tmp_path_factory.mktemp("image"))
    (made.folder / "src").mkdir()
    for word, rest in stages()[0]:
        if word == "COPY":
            *sources, target = rest.split()
            made.copy(sources, target)
        elif word == "RUN":
            made.execute(rest)
    link_libraries(made)
    yield made
    shutil.rmtree(made.folder)


def test_the_program_is_what_the_image_starts(image: Image) -> None:
    (start,) = re.findall(r"^ENTRYPOINT (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert [(image.home / "bin" / word).exists() for word in json.loads(start)] == [True]
    done = image.run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert reconciler.__version__ in done.stdout


def test_it_comes_compiled_and_without_pip(image: Image) -> None:
    """Where nothing can be written, every start would compile everything again."""
    package = next(image.home.glob("lib/python*/site-packages/reconciler"))
    sources = {p.relative_to(package) for p in package.rglob("*.py")}
    compiled = {p.parent.parent.relative_to(package) / f"{p.name.split('.')[0]}.py" for p in package.rglob("*.pyc")}
    assert compiled == sources
    assert not list(image.home.glob("bin/pip*"))
    assert not list(image.home.glob("lib/python*/site-packages/pip*"))


def test_the_last_stage_is_small_and_nobody_special() -> None:
    build, last = stages()
    assert build[0][1].removesuffix(" AS build") == last[0][1], "one base: what was compiled on it runs on it"
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", last[0][1])
    words = dict(last)
    assert words["USER"] == "10001"
    assert words["COPY"] == "--from=build /opt/reconciler /opt/reconciler", "owned by root: no run changes it"
    (run,) = [rest for word, rest in last if word == "RUN"]
    assert "pip uninstall" in run
    assert not re.search(r"apt|gcc|build-essential|pip install", run)


def test_the_wheel_holds_the_schemas_and_none_of_the_tests(image: Image) -> None:
    """`reconciler/schemas` is a link to `schemas/`; in the wheel there are files."""
    with ZipFile(image.wheel) as wheel:
        names = set(wheel.namelist())
        for schema in (ROOT / "schemas").iterdir():
            assert wheel.read(f"reconciler/schemas/{schema.name}") == schema.read_bytes()
    modules = {str(p.relative_to(ROOT)) for p in (ROOT / "reconciler").rglob("*.py")}
    assert {n for n in names if n.endswith(".py")} == modules
    assert "reconciler/py.typed" in names
    pages = {str(p.relative_to(ROOT)) for p in (ROOT / "reconciler" / "render" / "page").iterdir()}
    assert pages <= names
    assert any(n.endswith("/LICENSE") for n in names)
    assert {n.split("/")[0] for n in names if ".dist-info" not in n} == {"reconciler"}


def test_it_works_where_nothing_but_the_lake_can_be_written(image: Image, tmp_path: Path) -> None:
    """As in `docker run --read-only` with a volume for the lake."""
    example, lake = ROOT / "manifests-example", f"lake={tmp_path / 'lake'}"
    done = image.run("validate", example)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 errors, 0 warnings" in done.stdout
    assert image.run("plan", example, "--var", lake, "--detailed-exitcode").returncode == 2
    done = image.run("apply", example, "--var", lake, "--yes")
    assert done.returncode == 0, done.stderr
    done = image.run("plan", example, "--var", lake, "--detailed-exitcode")
    assert done.returncode == 0, done.stdout + done.stderr
