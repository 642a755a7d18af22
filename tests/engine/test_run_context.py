"""Which run it is: git, CI and user, and nothing secret."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.fingerprint import fingerprint
from reconciler.engine.run_context import run_context
from reconciler.model.codec import marks_json
from reconciler.model.observed import Present
from reconciler.model.run_context import LONGEST, AppliedBy, RunContext, load_applied_by
from reconciler.model.state import DatasetState, Marks, TableState

GITHUB = {
    "GITHUB_ACTOR": "ada",
    "GITHUB_SERVER_URL": "https://git.example",
    "GITHUB_REPOSITORY": "org/lake",
    "GITHUB_RUN_ID": "77",
}


def git(folder: Path, *words: str) -> str:
    names = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    return subprocess.run(
        ["git", *names, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.yaml").write_text("a: 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    return tmp_path


def test_the_commit_of_the_manifests(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    for path in ("m", "m/a.yaml"):
        found = run_context([str(repository / path)])
        assert (found.commit, found.dirty) == (head, False)


def test_only_the_manifests_make_it_dirty(repository: Path) -> None:
    (repository / "notes.txt").write_text("x")
    assert run_context([str(repository / "m")]).dirty is False
    (repository / "m" / "new.yaml").write_text("x")
    assert run_context([str(repository / "m")]).dirty is True
    assert run_context([str(repository / "m" / "a.yaml")]).dirty is False
    (repository / "m" / "a.yaml").write_text("a: 2\n")
    assert run_context([str(repository / "m" / "a.yaml")]).dirty is True


def test_many_files_are_asked_about_by_their_folder(repository: Path) -> None:
    files = [repository / "m" / f"{n}.yaml" for n in range(600)]
    for file in files:
        file.write_text("x")
    assert run_context([*map(str, files)]).dirty is True


def test_without_git_there_is_no_commit(tmp_path: Path) -> None:
    for paths in ([], [str(tmp_path)], [str(tmp_path / "nowhere.yaml")]):
        found = run_context(paths)
        assert (found.commit, found.dirty) == (None, None)


def test_a_repository_starts_no_program_of_its_own(repository: Path) -> None:
    trace = repository / "ran"
    hook = repository / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {trace}\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(hook))
    assert run_context([str(repository / "m")]).dirty is False
    assert not trace.exists()


@pytest.mark.parametrize(
    ("env", "by", "url"),
    [
        (GITHUB, "ada", "https://git.example/org/lake/actions/runs/77"),
        (
            {"GITLAB_USER_LOGIN": "bob", "CI_JOB_URL": "https://gl.example:8443/j/1"},
            "bob",
            "https://gl.example:8443/j/1",
        ),
        ({"CI_PIPELINE_URL": "https://gl.example/p/1"}, None, "https://gl.example/p/1"),
        ({**GITHUB, "RECONCILER_RUN_URL": "https://ci.example/9"}, "ada", "https://ci.example/9"),
        ({"RECONCILER_RUN_URL": "https://me:s3cret@ci.example/9?token=s3cret#s3cret"}, None, "https://ci.example/9"),
        ({"RECONCILER_RUN_URL": "javascript:alert(1)"}, None, None),
        ({"RECONCILER_RUN_URL": "https://[bad"}, None, None),
        ({}, None, None),
    ],
)
def test_who_and_where(env: dict[str, str], by: str | None, url: str | None) -> None:
    found = run_context([], env)
    assert found.url == url
    assert found.by == by if by else "@" in found.by
    assert "s3cret" not in json.dumps(found.to_json())


@pytest.mark.slow
@given(st.text(max_size=400), st.one_of(st.none(), st.text(max_size=400)), st.booleans())
def test_what_is_noted_fits_everywhere_and_is_read_back(by: str, url: str | None, dirty: bool) -> None:
    text = RunContext("2026-01-01T00:00:00Z", by, "1", "a" * 40, dirty, url).applied_by()
    assert len(text) <= LONGEST
    found = load_applied_by(text)
    assert found is not None
    assert by.startswith(found.by)
    assert (found.at, found.commit) == ("2026-01-01T00:00:00Z", "a" * 12 + ("+" if dirty else ""))
    assert found.run in (None, url)


@pytest.mark.parametrize("text", [None, "", "x", "[]", "{}", '{"at": 1}', "[" * 5000])
def test_what_others_write_there_is_nothing(text: str | None) -> None:
    assert load_applied_by(text) is None
    assert load_applied_by('{"at": "1", "by": 2, "more": []}') == AppliedBy("1", "")


def test_no_plan_and_no_fingerprint_has_it() -> None:
    def table(run: str | None) -> TableState:
        return TableState("s3://b/t", {}, Marks("us", applied_by=run), DatasetState((), applied_by=run))

    assert table("one") == table("two") == table(None)
    assert fingerprint(Present(table("one"))) == fingerprint(Present(table(None)))
    assert marks_json(Marks("us", applied_by="one")) == {"owner": "us"}


def test_the_commit_that_the_ci_or_git_sync_tells(tmp_path: Path) -> None:
    """An image has no git, and a checkout of another user is none that git speaks about."""
    sha = "0123456789abcdef0123456789abcdef01234567"
    (tmp_path / sha / "manifests").mkdir(parents=True)
    (tmp_path / "current").symlink_to(sha)
    assert run_context([str(tmp_path / "current" / "manifests")], {}).commit == sha
    assert run_context([str(tmp_path)], {"GITHUB_SHA": sha}).commit == sha
    assert run_context([str(tmp_path)], {"GITHUB_SHA": "not one\n"}).commit is None
    assert run_context([str(tmp_path)], {"CI_COMMIT_SHA": sha}).dirty is None
