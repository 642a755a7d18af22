"""Manifests of others are asked about with git: no repository that they bring is, and nothing is started for them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.engine.run_context import run_context

from .layer_files import IMAGES, LAKE, VISION, documents
from .test_changed_since import LABELS, Repo, told


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "r")
    made.write("m/all.yaml", documents(LAKE, VISION, IMAGES))
    made.commit()
    made.git("checkout", "-q", "-b", "work")
    made.write("m/labels.yaml", documents(LABELS))
    made.commit()
    return made


def program(folder: Path) -> Path:
    """That leaves a trace when it is started."""
    script = folder / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
    script.chmod(0o755)
    return script


def plant(repo: Repo, tmp_path: Path) -> Path:
    """A bare repository among the manifests, as any commit can have one. It names programs for the contents that it
    lacks and for the files that may have changed. Gives what a started program leaves."""
    script = program(tmp_path)
    bare = Repo(tmp_path / "bare")
    bare.write("all.yaml", documents(LAKE))
    bare.commit()
    lacking = bare.git("rev-parse", "HEAD:all.yaml").strip()
    bare.git("checkout", "-q", "-b", "work")
    bare.write("all.yaml", documents(LAKE, VISION))
    bare.commit()
    (bare.folder / ".git" / "objects" / lacking[:2] / lacking[2:]).unlink()
    for key, value in {
        "core.worktree": ".",
        "core.repositoryFormatVersion": "1",
        "core.sshCommand": str(script),
        "extensions.partialClone": "origin",
        "remote.origin.url": "ssh://nowhere.invalid/r",
        "remote.origin.promisor": "true",
        "protocol.ssh.allow": "always",
        "filter.evil.clean": str(script),
    }.items():
        bare.git("config", key, value)
    shutil.copytree(bare.folder / ".git", repo.folder / "m", dirs_exist_ok=True)
    repo.write("m/.gitattributes", "*.yaml filter=evil\n")
    repo.commit()
    return tmp_path / "ran"


def test_a_repository_among_the_manifests_is_not_asked(repo: Repo, tmp_path: Path) -> None:
    ran = plant(repo, tmp_path)
    assert repo.changed() == ["vision.labels"]
    assert not ran.exists()


def test_nor_about_which_run_it_is(repo: Repo, tmp_path: Path) -> None:
    ran = plant(repo, tmp_path)
    head = repo.git("rev-parse", "HEAD").strip()
    for path in ("m", "m/all.yaml"):
        found = run_context([str(repo.folder / path)])
        assert (found.commit, found.dirty) == (head, False)
    assert not ran.exists()


def test_one_that_lies_in_no_other_is_none(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = plant(repo, tmp_path)
    (tmp_path / "unpacked").mkdir()
    (repo.folder / "m").rename(tmp_path / "unpacked" / "m")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    away = Repo.__new__(Repo)
    away.folder = tmp_path / "unpacked"
    assert [code for code, _ in told(away.load())] == ["M531"]
    assert run_context([str(away.folder / "m")]).commit is None
    assert not ran.exists()


def test_which_run_it_is_starts_no_filter(repo: Repo, tmp_path: Path) -> None:
    """Not one that the machine has either: what it is given to convert, and how, a pull request can say."""
    repo.git("config", "filter.evil.clean", str(program(tmp_path)))
    repo.git("config", "filter.evil.required", "true")
    repo.write("m/.gitattributes", "*.yaml filter=evil\n")
    os.utime(repo.folder / "m" / "all.yaml", (1000, 1000))
    found = run_context([str(repo.folder / "m" / "all.yaml")])
    assert found.dirty is False
    assert not (tmp_path / "ran").exists()


def test_nothing_is_fetched(repo: Repo, tmp_path: Path) -> None:
    """Nor from where a clone is of: reading manifests makes no connection. What is lacking is said."""
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.write("m/all.yaml", documents(LAKE, VISION, IMAGES.replace("team: vision", "team: x")))
    repo.commit()
    repo.git("clone", "-q", "--filter=blob:none", f"file://{repo.folder}", str(tmp_path / "clone"))
    clone = Repo.__new__(Repo)
    clone.folder = tmp_path / "clone"
    ((code, hint),) = told(clone.load("origin/main"))
    assert (code, "clone without --filter" in hint) == ("M530", True)


def test_further_work_trees_and_submodules(repo: Repo, tmp_path: Path) -> None:
    """Their `.git` is a file that says where the repository is."""
    repo.git("worktree", "add", "-q", str(tmp_path / "second"), "-b", "second", "work")
    outer = Repo(tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "-b", "work", str(repo.folder), "sub")
    outer.commit()
    head = repo.git("rev-parse", "work").strip()
    for folder, base in ((tmp_path / "second", "main"), (outer.folder / "sub", "origin/main")):
        found = Repo.__new__(Repo)
        found.folder = folder
        assert (folder / ".git").is_file()
        assert found.changed(base) == ["vision.labels"]
        run = run_context([str(folder / "m")])
        assert (run.commit, run.dirty) == (head, False)
        (folder / "m" / "all.yaml").write_text(documents(LAKE, VISION))
        assert run_context([str(folder / "m")]).dirty is True


def test_a_folder_that_is_a_link_to_the_work_tree(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(repo.folder)
    found = run_context([str(tmp_path / "current" / "m")])
    assert (found.commit, found.dirty) == (repo.git("rev-parse", "HEAD").strip(), False)


@pytest.fixture
def given_away(repo: Repo) -> Iterator[None]:
    """The work tree belongs to another user."""
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    paths = [str(repo.folder), str(repo.folder / ".git")]
    try:
        subprocess.run([*as_root, "chown", "4242:4242", *paths], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a file is given to somebody else by root only: run as root, or have sudo without a password")
    yield
    subprocess.run([*as_root, "chown", f"{os.geteuid()}:{os.getegid()}", *paths], check=True)


@pytest.mark.usefixtures("given_away")
def test_a_repository_of_another_user_is_not_asked(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("SUDO_UID", raising=False)
    ((code, hint),) = told(repo.load())
    assert (code, "dubious ownership" in hint) == ("M530", True)
    assert run_context([str(repo.folder / "m")]).commit is None
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(repo.folder))
    assert repo.changed() == ["vision.labels"], "unless git was told to trust it"


def test_no_commit_stands_for_another(repo: Repo) -> None:
    """`git replace` lets one: compared with itself, nothing would have changed."""
    repo.git("replace", "main", "work")
    assert repo.git("diff", "--name-only", "main", "work") == "", "git itself is taken in"
    assert repo.changed() == ["vision.labels"]
