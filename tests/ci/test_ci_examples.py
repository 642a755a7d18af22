"""What users copy: the example workflow, the GitLab file and the pre-commit hook. Read by linters, and the hook run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from action_runs import ACTION, ROOT
from cli.cli_runs import catalog, namespace, reconciler, write
from servers.cache import fetch, once

EXAMPLE = "deploy/github/plan-apply.yml"
GITLAB = "docs/gitlab-ci.yml"
OWN = sorted(str(p.relative_to(ROOT)) for p in (ROOT / ".github" / "workflows").iterdir())
PATHS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/local/go/bin"])
ACTIONLINT = "v1.7.12"

LINTERS = {
    "shape of the action": ["check-jsonschema", "--builtin-schema", "vendor.github-actions", f"{ACTION}/action.yml"],
    "shape of the workflow": ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", EXAMPLE],
    "shape of the GitLab file": ["check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", GITLAB],
    "safety": ["zizmor", "--offline", "--quiet", "--color=never", EXAMPLE, f"{ACTION}/action.yml"],
    "shape of the hook": ["pre-commit", "validate-manifest", ".pre-commit-hooks.yaml"],
}


def found(program: str) -> str:
    path = shutil.which(program, path=PATHS)
    if path is None:
        pytest.skip(f"{program} is missing: it comes with the extra `dev`")
    return path


def run(*command: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", LINTERS)
def test_the_linters_find_nothing(name: str) -> None:
    program, *arguments = LINTERS[name]
    done = run(found(program), *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def actionlint() -> str:
    """Built once by Go, outside of the repository."""
    ready = shutil.which("actionlint")
    if ready is not None:
        return ready
    go = shutil.which("go", path=PATHS)
    if go is None:
        pytest.skip("actionlint is missing, and so is `go`, which builds it: https://go.dev/dl")

    def fill(folder: Path) -> None:
        package = f"github.com/rhysd/actionlint/cmd/actionlint@{ACTIONLINT}"
        fetch(["env", f"GOBIN={folder}", go, "install", package], "actionlint")

    return str(once(f"actionlint-{ACTIONLINT}", fill) / "actionlint")


@pytest.mark.slow
def test_actionlint_finds_nothing(actionlint: str) -> None:
    """Ours use the action from this checkout, so its inputs are checked there."""
    done = run(actionlint, "-no-color", *OWN, EXAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_actionlint_knows_the_inputs_of_the_action(actionlint: str, tmp_path: Path) -> None:
    """The example names the action of another repository, which is not looked at: here it is that of this one."""
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    (tmp_path / ".git").mkdir()
    local = re.sub(r"your-org/reconciler/(\S+)@0+", r"./\1", (ROOT / EXAMPLE).read_text())
    target = tmp_path / ".github" / "workflows" / "lake.yml"
    target.write_text(local)
    done = run(actionlint, "-no-color", str(target), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    target.write_text(local.replace("catalogs-from:", "catalog-from:"))
    assert run(actionlint, "-no-color", str(target), cwd=tmp_path).returncode == 1


def jobs() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / EXAMPLE).read_text())["jobs"]
    return found


def test_only_what_may_write_gets_secrets_that_write() -> None:
    """Strangers get no secret; pull requests have the catalogs of the base branch; nobody keeps credentials of git."""
    assert "secrets." not in str(jobs()["validate"])
    assert "environment" not in jobs()["validate"]
    assert jobs()["plan"]["environment"] != jobs()["apply"]["environment"]
    assert jobs()["plan"]["steps"][-1]["with"]["catalogs-from"].startswith(".base/")
    for job in jobs().values():
        for step in job["steps"]:
            if step["uses"].startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
    assert "pull_request_target" not in (ROOT / EXAMPLE).read_text()


def test_the_example_does_not_run_here() -> None:
    assert [Path(p).name for p in OWN] == ["ci.yml"]


@pytest.mark.slow
def test_the_gitlab_commands_exist(tmp_path: Path) -> None:
    """Each is run on a small lake, in the order of the file."""
    for folder in (tmp_path / ".base" / "manifests", tmp_path / "manifests"):
        folder.mkdir(parents=True)
        write(folder, catalog(), namespace("a"))
    written = yaml.safe_load((ROOT / GITLAB).read_text())
    lines = [line for job in written.values() if isinstance(job, dict) for line in job.get("script", ())]
    calls = [line.split(">")[0].split()[1:] for line in lines if line.startswith("reconciler ")]
    assert [c[0] for c in calls] == ["validate", "plan", "plan", "apply"]
    for call in calls:
        done = reconciler(tmp_path, *call)
        assert done.code == 0, (call, done.err)
    assert (tmp_path / "lake").exists()


@pytest.mark.slow
def test_the_hook_runs_under_pre_commit(tmp_path: Path) -> None:
    """With this program in place of one that pre-commit would install: that takes the libraries from an index."""
    program = found("pre-commit")
    hooks, user = tmp_path / "hooks", tmp_path / "user"
    for folder in (hooks, user / "manifests"):
        folder.mkdir(parents=True)
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert "language: python\n" in text
    (hooks / ".pre-commit-hooks.yaml").write_text(text.replace("language: python\n", "language: system\n"))
    write(user / "manifests", catalog(storage__token="${env:NOT_SET}"), namespace("a"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "reconciler").symlink_to(Path(sys.executable).parent / "reconciler")
    env = {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    for folder in (hooks, user):
        for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "one")):
            assert run("git", *words, cwd=folder, **env).returncode == 0
    hook = (program, "try-repo", str(hooks), "reconciler-validate", "--verbose")
    write(user / "manifests", namespace("a", "b"), name="b.yaml")
    run("git", "add", ".", cwd=user, **env)
    good = run(*hook, cwd=user, **env)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "3 documents, 0 errors" in good.stdout, "all of them, not the changed one only"
    write(user / "manifests", namespace("a", "b", spec="{protct: true}"), name="b.yaml")
    run("git", "add", ".", cwd=user, **env)
    bad = run(*hook, cwd=user, **env)
    assert bad.returncode == 1
    assert "manifests/b.yaml:5:8: error[M203]" in bad.stdout


def test_the_page_has_every_input_and_output() -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    written = yaml.safe_load((ACTION / "action.yml").read_text())
    for name in (*written["inputs"], *written["outputs"]):
        assert f"`{name}`" in page, name
