"""`validate --no-resolve` is what a stranger's pull request gets: no link takes it out of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.manifest.limits import limits_of
from reconciler.manifest.load import Loaded, load
from reconciler.model.reading import Reading

from .support import CATALOG, codes, table

QUOTED = {
    "M110": "a: *CANARY\n",
    "M112": "a: !CANARY x\n",
    "M201": "apiVersion: CANARY\nkind: Table\n",
    "M211": CATALOG + "---\n" + table("t", "schema: [{name: a, type: CANARY}]"),
    "M403": CATALOG + "---\n" + table("t").replace("[t]", "[CANARY, t]"),
}
"""What a message about a file shows of it."""


def strange(*paths: str, environment: str = "") -> Loaded:
    return load(paths, limits=limits_of(Reading(resolve=False)), environment=environment)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a clone, with credentials beside it."""
    made = tmp_path / "checkout"
    (made / "m").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    (made / "m" / "lake.yaml").write_text(CATALOG)
    monkeypatch.chdir(made)
    return made


@pytest.mark.parametrize("code", QUOTED)
@pytest.mark.parametrize("how", ["file", "folder", "path", "overlay"])
def test_nothing_outside_of_the_checkout_is_quoted(checkout: Path, code: str, how: str) -> None:
    outside = checkout.parent / "secret"
    (outside / "x.yaml").write_text(QUOTED[code])
    assert "CANARY" in str(load([str(outside)]).diagnostics), "the message quotes it when it is read"
    given = "m"
    if how == "file":
        (checkout / "m" / "x.yaml").symlink_to(outside / "x.yaml")
    elif how == "folder":
        (checkout / "m" / "sub").symlink_to(outside)
    elif how == "overlay":
        (checkout / "m" / "overlays").mkdir()
        (checkout / "m" / "overlays" / "prod").symlink_to(outside)
    else:
        given = "elsewhere"
        (checkout / given).symlink_to(outside)
    found = strange(given, environment="prod" if how == "overlay" else "")
    assert "M314" in codes(found)
    assert code not in codes(found)
    assert "CANARY" not in str(found.diagnostics)


def test_nor_the_environment_of_the_process(checkout: Path) -> None:
    (checkout / "m" / "x.yaml").symlink_to("/proc/self/environ")
    assert codes(strange("m")) == ["M314"]


@pytest.mark.parametrize("given", ["m", "{cwd}/m", "../m", "."])
def test_links_inside_of_one_repository_are_followed_from_everywhere(
    checkout: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "shared").mkdir()
    (checkout / "shared" / "t.yaml").write_text(table("t"))
    (checkout / "m" / "t.yaml").symlink_to("../shared/t.yaml")
    (checkout / "m" / "more").symlink_to("../shared")
    if given in (".", "../m"):
        (checkout / "m" / "deep").mkdir()
        monkeypatch.chdir(checkout / "m" / ("" if given == "." else "deep"))
        given = "." if given == "." else ".."
    found = strange(given.format(cwd=os.getcwd()))
    assert found.diagnostics == []
    assert list(found.desired.tables["lake"]) == [("t",)]


def test_without_a_repository_the_working_directory_is_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive that was unpacked."""
    for name in ("unpacked/m", "unpacked/shared", "beside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "unpacked/m/lake.yaml").write_text(CATALOG)
    (tmp_path / "unpacked/shared/t.yaml").write_text(table("t"))
    (tmp_path / "beside/t.yaml").write_text(table("u"))
    (tmp_path / "unpacked/m/t.yaml").symlink_to("../shared/t.yaml")
    monkeypatch.chdir(tmp_path / "unpacked")
    assert codes(strange("m")) == []
    (tmp_path / "unpacked/m/u.yaml").symlink_to("../../beside/t.yaml")
    assert codes(strange("m")) == ["M314"]


@pytest.mark.parametrize("folder", [False, True])
def test_what_git_keeps_for_itself_is_not_of_the_repository(checkout: Path, folder: bool) -> None:
    """A checkout in CI has its token there."""
    (checkout / ".git" / "t.yaml").write_text("apiVersion: CANARY\nkind: Table\n")
    (checkout / "m" / "x.yaml").symlink_to("../.git" if folder else "../.git/t.yaml")
    found = strange("m")
    assert codes(found) == ["M314"]
    assert "CANARY" not in str(found.diagnostics)


def test_a_file_root_does_not_reach_into_it_either(checkout: Path) -> None:
    (checkout / "m" / "t.yaml").write_text(table("t", "properties: {k: '${file:.git/HEAD}'}"))
    assert codes(load(["m"], limits=limits_of(Reading(file_root=(".",))))) == ["M311"]


def test_what_the_caller_points_at_is_read(checkout: Path) -> None:
    """`reconciler validate /dev/stdin --no-resolve`: the link is the system's."""
    (checkout.parent / "secret" / "lake.yaml").write_text(CATALOG)
    words = [sys.executable, "-m", "reconciler", "validate", "/dev/stdin", "--no-resolve"]
    with open(checkout.parent / "secret" / "lake.yaml") as given:
        done = subprocess.run(words, stdin=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
