"""What `reconciler explain` shows of a command line is what happens: its examples are run, as they are printed.

In an example `$ cat FILE` shows a file that is there; every other line after `$ ` is run, and what follows is what it
prints. What a command cannot show (a plug-in that is broken, a clone without its history) is prepared here.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from cli.cli_runs import reconciler
from docs.walkthrough import Command, commands_of

from reconciler.catalog.registry import backend_of
from reconciler.explain.catalogue import explanations
from reconciler.manifest.load import load
from reconciler.manifest.scopes import scope_problems
from reconciler.model.explanation import Example, Explanation

LAKE = """\
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: ./lake}
"""
PLUG_IN = """\
from reconciler.catalog.registry import Backend
from reconciler.model.capabilities import Capabilities
backend = Backend(lambda options: Capabilities(), lambda options: None, {"properties": {"file": {}, "root": {}}})
"""


def commands(example: Example | None) -> list[Command]:
    return commands_of(example) if isinstance(example, str) else []


def runs(example: Example | None) -> bool:
    return any(c.line.startswith("reconciler ") for c in commands(example))


SHOWN = [e for e in explanations() if not e.not_run and runs(e.bad)]


def git(folder: Path, *words: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")


def no_git(folder: Path, which: str) -> Mapping[str, str]:
    repository(folder)
    return {"PATH": str(folder)} if which == "bad" else {}


def outside(folder: Path, which: str) -> Mapping[str, str]:
    if which == "good":
        repository(folder)
    return {"GIT_CEILING_DIRECTORIES": str(folder.parent)}


def inside(folder: Path, which: str) -> Mapping[str, str]:
    repository(folder)
    return {}


def shallow(folder: Path, which: str) -> Mapping[str, str]:
    """As CI makes it: the branch and origin/main, each with one commit."""
    origin = folder.parent / "origin"
    os.rename(folder, origin)
    repository(origin)
    git(origin, "checkout", "-q", "-b", "work")
    git(origin, "commit", "-q", "--allow-empty", "-m", "second")
    git(folder.parent, "clone", "-q", "--depth", "1", "--no-single-branch", f"file://{origin}", folder.name)
    return {}


def beside(folder: Path, which: str) -> Mapping[str, str]:
    repository(folder)
    git(folder.parent / "shared", "init", "-q")
    (folder.parent / "shared" / "namespaces.yaml").write_text(
        "apiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: lake, id: [n]}\n"
    )
    return {}


def plug_in(folder: Path, which: str) -> Mapping[str, str]:
    """As pip leaves it: what names the type is there, the module only in the version that works."""
    site = folder / "site"
    info = site / "reconciler_jsonfile-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: reconciler-jsonfile\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[reconciler.catalogs]\njsonfile = reconciler_jsonfile:backend\n")
    if which == "good":
        (site / "reconciler_jsonfile.py").write_text(PLUG_IN)
    sys.path.insert(0, str(site))
    return {}


def a_lake(folder: Path, which: str) -> Mapping[str, str]:
    """With the table that the example declares."""
    lake, images = (folder / name for name in ("lake.yaml", "images.yaml"))
    (folder / "all.yaml").write_text(lake.read_text().replace("prdo", "prod") + "---\n" + images.read_text())
    assert reconciler(folder, "apply", "all.yaml", "--yes").code == 0
    return {}


PREPARED: Mapping[str, Callable[[Path, str], Mapping[str, str]]] = {
    "M440": plug_in,
    "M444": a_lake,
    "M530": no_git,
    "M531": outside,
    "M532": inside,
    "M533": shallow,
    "M534": beside,
}


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No plug-in of another test, and no settings of the user's git."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.com")
    backend_of.cache_clear()
    yield
    backend_of.cache_clear()
    sys.modules.pop("reconciler_jsonfile", None)


def printed(command: Command, folder: Path, env: Mapping[str, str]) -> str:
    words = shlex.split(command.line)
    if words[0] == "reconciler":
        done = reconciler(folder, *words[1:], env=env)
        return (done.err + done.out).replace(str(folder), "/home/ada/lake")
    made = subprocess.run(["bash", "-c", command.line], cwd=folder, capture_output=True, text=True, check=False)
    return made.stdout + made.stderr


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("which", ["bad", "good"])
@pytest.mark.parametrize("entry", SHOWN, ids=lambda e: e.code)
def test_a_command_prints_what_is_shown(entry: Explanation, which: str, tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    (folder / "manifests").mkdir(parents=True)
    (folder / "manifests" / "lake.yaml").write_text(LAKE)
    example = entry.bad if which == "bad" else entry.good
    files = {c.line.removeprefix("cat "): c.shown for c in commands(example) if c.line.startswith("cat ")}
    for name, text in files.items():
        (folder / name).write_text(text)
    env = PREPARED.get(entry.code, lambda folder, which: {})(folder, which)
    for command in commands(example):
        assert printed(command, folder, env) == command.shown, command.line
    assert isinstance(example, str)
    assert (f"[{entry.code}]: " in example) == (which == "bad")
    if not runs(example):
        loaded = load([str(folder / name) for name in files], environ={})
        assert loaded.diagnostics == scope_problems(loaded.desired, [*loaded.desired.catalogs]) == []


def test_the_codes_that_no_manifest_can_show() -> None:
    assert {e.code for e in SHOWN} == {
        "M101",
        "M117",
        "M440",
        "M441",
        "M443",
        "M444",
        "M521",
        *(f"M53{n}" for n in range(5)),
    }
