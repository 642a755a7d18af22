"""The steps of the action, run: the plan as one comment that is updated, and a comment that cannot be written."""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
from pathlib import Path

import pytest
import yaml
from action_runs import BASE, ROOT, SECRET, Job
from cli.cli_runs import catalog, namespace, table, write
from github_stand_in import BOT, TOKEN, Fault, StandIn

pytestmark = pytest.mark.slow

MARKER = "<!-- reconciler:plan -->"
PLAN = {"command": "plan", "version": "none", "catalogs_from": f"{BASE}/manifests"}


def test_the_plan_is_one_comment_that_is_updated(job: Job, github: StandIn, workspace: Path) -> None:
    others = [github.comment("words", "somebody") for _ in range(120)]
    forged = github.comment(f"{MARKER}\nnot the bot's", "mallory")
    quoted = github.comment(f"> {MARKER}\nan answer", BOT)
    assert job.use(**PLAN) == 0, job.log
    (made,) = [c for c in github.comments if c not in [*others, forged, quoted]]
    assert made["body"].startswith(f"{MARKER}\n")
    assert "a.t" in made["body"]
    assert "5f0c6a2d9b1e" in made["body"], "which commit it is for"

    write(workspace / "manifests", namespace("a"), table("a", "other"), name="tables.yaml")
    assert job.use(**PLAN) == 0, job.log
    assert github.writes() == ["POST", "PATCH"]
    assert "a.other" in made["body"]
    assert "a.t\n" not in made["body"]
    assert forged["body"].endswith("not the bot's")
    assert quoted["body"].endswith("an answer")
    assert job.outputs["run"]["exit-code"] == "0"
    assert job.outputs["run"]["changes"] == "true"


def test_the_summary_has_the_plan_and_nothing_has_a_secret(job: Job, github: StandIn) -> None:
    assert job.use(**PLAN) == 0, job.log
    assert "a.t" in job.summary
    written = [p.read_text(errors="replace") for p in job.temp.rglob("*") if p.is_file()]
    for text in (job.log, job.summary, str(github.comments), *written, *map(str, github.zips.values())):
        assert SECRET not in text
        assert TOKEN not in text


def test_the_plan_is_kept_under_the_digest_of_the_manifests(job: Job, github: StandIn, workspace: Path) -> None:
    assert job.use(**PLAN, name="prod") == 0, job.log
    (first,) = github.artifacts
    assert re.fullmatch(r"reconciler-prod-[0-9a-f]{40}", first["name"])
    assert github.comments[0]["body"].startswith("<!-- reconciler:prod -->")
    write(workspace / "manifests", namespace("b"), name="tables.yaml")
    assert job.use(**PLAN, name="prod") == 0
    assert github.artifacts[1]["name"] != first["name"]


def test_variables_of_the_job_reach_the_program_and_those_of_the_action_do_not(
    job: Job, github: StandIn, workspace: Path
) -> None:
    """Also those of the job that begin as the action's own do."""
    job.secrets = {**job.secrets, "R_REGION": "eu-west-9"}
    text = namespace("a", spec="{properties: {x: '${env:R_REGION}', y: '${env:R_TOKEN:-none}'}}")
    write(workspace / "manifests", text, name="tables.yaml")
    assert job.use(**PLAN, env_allow="R_") == 0, job.log
    body = github.comments[0]["body"]
    assert ("eu-west-9" in body, TOKEN in body) == (True, False)


def test_the_variables_of_the_action_are_known() -> None:
    """One that is not on the list would reach the program."""
    steps = yaml.safe_load((ROOT / ".github/actions/reconciler/action.yml").read_text())["runs"]["steps"]
    (step,) = (s for s in steps if s.get("id") == "run")
    text = (ROOT / ".github/actions/reconciler/run.py").read_text()
    listed = text[text.index("INPUTS = ") : text.index("class BadInput")]
    assert {f"R_{name}" for name in re.findall(r'"([A-Z_]+)"', listed)} == set(step["env"])


@pytest.mark.parametrize("command", ["plan", "validate"])
def test_a_file_name_that_is_no_text(job: Job, github: StandIn, workspace: Path, command: str) -> None:
    name = os.fsencode(workspace / "manifests") + b"/\xff\xfe.yaml"
    with open(name, "w") as file:
        file.write(namespace("b", spec="{protct: true}"))
    assert job.use(**{**PLAN, "command": command}) == 1
    assert "M203" in job.summary
    assert "Traceback" not in job.log, job.log


def test_no_plan_is_a_comment_too(job: Job, github: StandIn, workspace: Path) -> None:
    write(workspace / "manifests", namespace("a", spec="{protct: true}"), name="tables.yaml")
    assert job.use(**PLAN) == 1
    (made,) = github.comments
    assert made["body"].startswith(f"{MARKER}\n### No plan: exit code 1\n\n### 1 error, 0 warnings\n")
    assert made["body"].count("**error** `M203` | `manifests/tables.yaml:5`") == 1
    assert job.outputs["run"]["changes"] == "false"
    assert github.artifacts == []
    assert job.ran == ["Run", "Comment", "Result"]


def test_no_document_is_a_comment_too(job: Job, github: StandIn) -> None:
    assert job.use(**PLAN, args="--no-such-flag") == 1
    (made,) = github.comments
    assert made["body"].startswith(f"{MARKER}\n### No plan: exit code 1\n\n```text\n")
    assert "--no-such-flag" in made["body"]


POLICY = """---
apiVersion: reconciler.lance/v1
kind: Policy
metadata: {name: house}
spec: {rules: [{rule: naming, namespace: "[A-Z].*"}]}
"""


def test_a_plan_that_a_policy_refuses_says_so(job: Job, github: StandIn, workspace: Path) -> None:
    write(workspace / BASE / "manifests", POLICY, name="policy.yaml")
    assert job.use(**PLAN) == 3
    (made,) = github.comments
    assert made["body"].startswith(f"{MARKER}\n### Plan: 2 to create, 0 to update, 0 to delete, 0 blocked.\n")
    assert "**Refused:** policy:" in made["body"]
    assert "No plan" not in made["body"] + job.summary
    assert job.outputs["run"]["changes"] == "true"
    assert job.ran == ["Run", "Comment", "Keep", "Result"]


DEFAULTS = """\
apiVersion: reconciler.lance/v1
kind: Defaults
metadata: {catalog: lake, name: d%d}
spec: {match: ["nowhere%d.*"], properties: {x: y}}
"""


def test_no_filler_hides_a_changed_catalog(job: Job, github: StandIn, workspace: Path) -> None:
    """Of a plan that does not fit, with more warnings than a comment holds."""
    moved = catalog(path="./elsewhere", storage__token="${env:CATALOG_TOKEN}")
    tables = [namespace("a"), *(table("a", f"{'t' * 40}{i}") for i in range(1500))]
    write(workspace / "manifests", moved, *tables, name="tables.yaml")
    (workspace / "manifests" / "lake.yaml").unlink()
    for i in range(90):
        write(workspace / "manifests", DEFAULTS % (i, i), name=f"{'f' * 100}{i}.yaml")
    assert job.use(**PLAN) == 0, job.log
    (made,) = github.comments
    body = made["body"]
    assert len(body) <= 65_000
    assert body.count("`M312`") == 1
    assert body.index("`M312`") < body.index("#### Catalog")
    assert "**90 of 91 warnings not shown**: 90 warning<br>" in body
    assert body.count("<details") == body.count("</details>")
    assert body.endswith(
        "<sub>For commit 5f0c6a2d9b1e, by [this run](https://github.example/acme/lake/actions/runs/99).</sub>\n"
    )
    assert job.summary.count("`M312`") == 1


@pytest.mark.parametrize(
    "faults",
    [
        [Fault("GET", 500, {"Retry-After": "0"}), Fault("POST", 503, {"Retry-After": "0"})],
        [Fault("POST", 502, {"Retry-After": "0"}, lands=True)],
        [Fault("POST", 403, {"Retry-After": "0"})],
        [Fault("GET", 429, {"Retry-After": "0"}, times=2)],
    ],
    ids=["passing", "landed", "secondary limit", "limit"],
)
def test_a_fault_that_passes_leaves_one_comment(job: Job, github: StandIn, faults: list[Fault]) -> None:
    github.faults = faults
    assert job.use("the plan", **PLAN) == 0, job.log
    assert len(github.comments) == 1
    assert "::warning" not in job.log


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault("POST", 403, times=9), "pull-requests: write"),
        (Fault("GET", 404, times=9), "pull-requests: write"),
        (Fault("POST", 422, times=9), "422 fault 422"),
        (Fault("GET", 429, {"Retry-After": "3600"}, times=9), "429 fault 429"),
        (Fault("PATCH", 500, {"Retry-After": "0"}, times=9), "500 fault 500"),
    ],
)
def test_a_comment_that_cannot_be_written_is_a_warning(job: Job, github: StandIn, fault: Fault, said: str) -> None:
    if fault.method == "PATCH":
        github.comment(f"{MARKER}\nold", BOT)
    github.faults = [fault]
    assert job.use("the plan", **PLAN) == 0, job.log
    (warning,) = [line for line in job.log.splitlines() if line.startswith("::warning")]
    assert said in warning
    assert all("the plan" not in c["body"] for c in github.comments)
    assert job.ran == ["Comment", "Result"], "and the job goes on"


def test_no_comment_is_written_when_none_is_wanted(job: Job, github: StandIn) -> None:
    assert job.use(**PLAN, comment="false") == 0
    assert github.seen == []


@pytest.mark.parametrize(
    "event", ["pull_request", "pull_request_target", "pull_request_review_comment", "issue_comment", "of_tomorrow"]
)
def test_a_pull_request_needs_the_catalogs_of_the_base(job: Job, github: StandIn, event: str) -> None:
    job.event_name = event
    assert job.use(command="plan", version="none") == 1
    assert "::error title=reconciler::the input `catalogs-from` is needed" in job.log
    assert github.comments == []


def test_no_wrong_input_gets_far(job: Job) -> None:
    for wrong in ({"command": "destroy"}, {**PLAN, "paths": "\n"}, {**PLAN, "name": "a b"}, {**PLAN, "paths": "-o"}):
        assert job.use(**{"version": "none", **wrong}) == 1
        assert "$ reconciler" not in job.log


def test_inputs_are_not_split_by_a_shell(job: Job, workspace: Path) -> None:
    (workspace / "manifests").rename(workspace / "$(touch hit) `touch hit`; touch hit #")
    assert job.use(**PLAN, paths="$(touch hit) `touch hit`; touch hit #", args="--target\na.t") == 0, job.log
    assert not (workspace / "hit").exists()


def test_text_of_others_commands_nothing(job: Job, workspace: Path) -> None:
    """A file name with a line break in it comes first in a message."""
    (workspace / "manifests" / "x\n::error title=forged::y\n.yaml").write_text("a: [")
    assert job.use(**PLAN) == 1
    stopped: str | None = None
    for line in job.log.splitlines():
        if stopped is not None:
            stopped = None if line == f"::{stopped}::" else stopped
        elif line.startswith("::stop-commands::"):
            stopped = line.removeprefix("::stop-commands::")
        else:
            assert "forged" not in line
    assert stopped is None
    assert "forged" in job.log


def test_no_module_of_the_pull_request_is_imported(job: Job, workspace: Path) -> None:
    for name in ("json", "venv", "yaml", "sitecustomize", "usercustomize", "github_api", "workflow", "reconciler"):
        (workspace / f"{name}.py").write_text(f"open({str(workspace / 'hit')!r}, 'w')\nraise SystemExit(9)\n")
    assert job.use(**PLAN) == 0, job.log
    assert not (workspace / "hit").exists()


def test_validate_reads_no_secret_and_marks_the_lines(job: Job, workspace: Path) -> None:
    """What a pull request from a fork gets: there are no secrets, and none is asked for."""
    job.secrets = {}
    assert job.use(command="validate", version="none") == 0, job.log
    text = namespace("a", spec='{properties: {x: "${env:NONE}"}, protct: true}')
    write(workspace / "manifests", text, name="tables.yaml")
    assert job.use(command="validate", version="none") == 1
    assert "::error file=manifests/tables.yaml,line=5,col=40,title=M203::unknown key" in job.log
    assert "M302" not in job.log


def test_the_version_that_comes_with_the_action_is_installed(job: Job, tmp_path: Path) -> None:
    """By pip, into an environment of its own; the libraries are those of this environment, for time."""
    copy = tmp_path / "action-repository"
    for name in ("pyproject.toml", "README.md", "LICENSE", "schemas", "reconciler", ".github"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copy.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    job.action = copy / ".github" / "actions" / "reconciler"
    (job.workspace / "venv.py").write_text("raise SystemExit(9)\n")
    libraries = sysconfig.get_path("purelib")
    job.secrets = {"PIP_NO_DEPS": "1", "PYTHONPATH": libraries}
    assert job.use(command="validate") == 0, job.log
    assert job.ran == ["Install", "Run", "Result"]
    assert job.outputs["install"]["program"] == str(job.temp / "reconciler-venv" / "bin" / "reconciler")
    assert "3 documents, 0 errors" in job.summary
