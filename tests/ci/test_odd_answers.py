"""What stands between us and GitHub answers in its place. A comment that cannot be written is a warning, whatever came;
a reviewed plan that cannot be had is none."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from action_runs import ACTION
from github_stand_in import BOT, MERGED, REPOSITORY, TOKEN, WORKFLOW, Fault, StandIn

sys.path.insert(0, str(ACTION))

import comment
import github_api
import reviewed_plan

ODD = {
    "a page": b"<html><title>Maintenance</title></html>",
    "nothing": b"",
    "no text": b"\xff\xfe\x00",
    "half of it": b'[{"id": 1',
    "deep": b"[" * 100_000,
    "a word": b'"ok"',
    "null": b"null",
    "a number": b"7",
    "an object": b"{}",
    "numbers": b"[7]",
    "nulls": b"[null]",
    "lists": b"[[]]",
    "another user": b'[{"user": "github-actions[bot]", "body": "x"}]',
    "another body": b'[{"user": {"login": "github-actions[bot]"}, "body": ["x"]}]',
    "no id": b'[{"user": {"login": "github-actions[bot]"}, "body": "<!-- reconciler:plan -->"}]',
    "an endless id": b'[{"user": {"login": "github-actions[bot]"}, "body": "<!-- reconciler:plan -->", "id": 1e999}]',
}
WRITTEN = ("a page", "nothing", "deep", "null", "a number", "an object", "numbers")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (comment, reviewed_plan):
        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: None))


def commented(github: StandIn, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    (folder / "plan.md").write_text("the plan\n")
    for name, value in {
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": REPOSITORY,
        "R_TOKEN": TOKEN,
        "R_MARKDOWN": str(folder / "plan.md"),
        "R_PULL_REQUEST": "7",
        "R_NAME": "plan",
        "R_COMMENT_AUTHOR": BOT,
    }.items():
        monkeypatch.setenv(name, value)
    return comment.main()


@pytest.mark.parametrize(
    ("method", "name"), [*(("GET", n) for n in ODD), *(("POST", n) for n in WRITTEN), *(("PATCH", n) for n in WRITTEN)]
)
def test_no_comment_is_a_warning(
    github: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    method: str, name: str,
) -> None:  # fmt: skip
    if method == "PATCH":
        github.comment("<!-- reconciler:plan -->\nold")
    github.faults = [Fault(method, 200, times=99, content=ODD[name])]
    assert commented(github, tmp_path, monkeypatch) == 0
    said = capsys.readouterr().out
    assert said.startswith("::warning title=reconciler::the plan is not in a comment but in the summary of this job: ")
    assert "an answer that is not " in said
    assert said.count("\n") == 1


def test_a_page_that_passes_leaves_one_comment(
    github: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer that cannot be read may be that of a proxy to a comment that was made."""
    page = ODD["a page"]
    github.faults = [Fault("GET", 200, content=page), Fault("POST", 200, content=page, lands=True)]
    assert commented(github, tmp_path, monkeypatch) == 0
    assert capsys.readouterr().out == ""
    assert [c["body"].splitlines()[1] for c in github.comments] == ["the plan"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("GET", 200, times=99, hangs=1),
        Fault("POST", 201, times=99, hangs=1),
        Fault("GET", 302, {"Location": "http://[/"}, times=99),
        Fault("GET", 503, {"Retry-After": "²"}, times=99),
        Fault("GET", 500, times=99, content=b"[" * 100_000),
        Fault("GET", 403, {"Content-Length": "99"}, times=99),
    ],
    ids=["silence", "silence to a write", "an odd redirect", "an odd wait", "an odd failure", "half a failure"],
)
def test_no_answer_is_a_warning(
    github: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: Fault
) -> None:
    monkeypatch.setattr(github_api, "TIMEOUT", 0.1)
    github.faults = [fault]
    assert commented(github, tmp_path, monkeypatch) == 0
    assert capsys.readouterr().out.startswith("::warning title=reconciler::the plan is not in a comment")


def test_a_token_that_cannot_be_sent_is_not_told(
    github: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commented(github, tmp_path, monkeypatch) == 0
    monkeypatch.setenv("R_TOKEN", "ghs_Secret\nX: y")
    assert comment.main() == 0
    said = capsys.readouterr().out
    assert "::warning" in said
    assert "Secret" not in said


@pytest.mark.parametrize("content", [*list(ODD.values())[:12], b'[{"merged_at": 1}]', b'[{"merged_at": 1, "base": 2}]'])
def test_a_reviewed_plan_that_cannot_be_had(github: StandIn, tmp_path: Path, content: bytes) -> None:
    asked = github_api.GitHub(github.url, REPOSITORY, TOKEN)
    merged = reviewed_plan.Merged(MERGED, "main", WORKFLOW)
    github.keep("wanted", b"{}")
    reviewed_plan.fetch(asked, "wanted", merged, tmp_path / "plan.json")
    (tmp_path / "plan.json").unlink()
    github.faults = [Fault("GET", 200, times=99, content=content)]
    with pytest.raises(github_api.ApiError, match="an answer that is not"):
        reviewed_plan.fetch(asked, "wanted", merged, tmp_path / "plan.json")
    assert not (tmp_path / "plan.json").exists()
