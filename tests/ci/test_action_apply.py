"""The steps of the action, run: what was reviewed is applied, and nothing else is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from action_runs import PLAN, Job
from cli.cli_runs import catalog, namespace, table, write
from github_stand_in import HEAD, WORKFLOW, Fault, StandIn

pytestmark = pytest.mark.slow

APPLY = {"command": "apply", "version": "none"}


def merged(job: Job) -> Job:
    """The job after the merge, with the same files."""
    return Job(job.workspace, job.temp.with_name("after"), job.github, "push", job.secrets)


def test_the_reviewed_plan_is_applied_once(job: Job, github: StandIn, workspace: Path) -> None:
    assert job.use(**PLAN) == 0, job.log
    after = merged(job)
    assert after.use(**APPLY) == 0, after.log
    assert (workspace / "lake").exists()
    assert "Applied: 3 done" in after.summary
    report = json.loads((after.temp / "reconciler-plan" / "report.json").read_text())
    assert report["outcome"] == "applied"
    assert github.artifacts[-1]["name"] == "reconciler-report-plan-99-1"
    asked = len(github.seen)
    assert after.use(**APPLY) == 0, "the job is run again"
    assert len(github.seen) == asked, "nothing to do needs no review"


def test_the_token_does_not_go_where_the_artifact_lies(planned: Job, github: StandIn) -> None:
    assert merged(planned).use(**APPLY) == 0
    store = [header for _, path, header in github.seen if path.startswith("/store/")]
    assert store == [None]


def test_manifests_that_nobody_planned_are_not_applied(planned: Job, github: StandIn, workspace: Path) -> None:
    write(workspace / "manifests", namespace("a"), table("a", "other"), name="tables.yaml")
    after = merged(planned)
    assert after.use(**APPLY) == 4
    assert "no pull request was planned with these manifests" in after.log
    assert "a pull request from a branch of this repository" in after.summary
    assert "a.other" in after.summary, "what was not applied"
    assert not (workspace / "lake").exists()
    assert after.use(**APPLY, reviewed="false") == 0, after.log


def test_a_catalog_that_moved_is_planned_again(job: Job, workspace: Path) -> None:
    """The plan of the pull request was made for where the catalog is in the base branch."""
    moved = catalog(path="./elsewhere", storage__token="${env:CATALOG_TOKEN}")
    write(workspace / "manifests", moved, name="lake.yaml")
    assert job.use(**PLAN) == 0, job.log
    assert "not used: Catalog documents are taken from" in job.summary
    assert merged(job).use(**APPLY) == 4
    assert not (workspace / "elsewhere").exists()


def test_what_changed_since_the_review_is_not_applied(job: Job, github: StandIn, workspace: Path) -> None:
    assert job.use(**PLAN) == 0
    (kept,) = github.artifacts
    with_less = json.loads((job.temp / "reconciler-plan" / "plan.json").read_text())
    write(workspace / "manifests", namespace("a"), name="tables.yaml")
    assert job.use(**PLAN) == 0
    less = json.loads((job.temp / "reconciler-plan" / "plan.json").read_text())
    assert len(less["steps"]) < len(with_less["steps"])
    github.artifacts.clear()
    github.keep(kept["name"], (job.temp / "reconciler-plan" / "plan.json").read_bytes())
    write(workspace / "manifests", namespace("a"), table("a", "t"), name="tables.yaml")
    after = merged(job)
    assert after.use(**APPLY) == 4
    assert "the reviewed plan" in after.summary
    assert "plan and review again" in after.summary
    assert not (workspace / "lake").exists()
    assert merged(job).use(**APPLY, reviewed=named_in(after)) == 0


FORGED = {
    "another workflow": {"path": ".github/workflows/mine.yml"},
    "a push": {"event": "push"},
    "by hand": {"event": "workflow_dispatch"},
    "another commit": {"head_sha": "f" * 40},
}


@pytest.mark.parametrize("how", FORGED)
def test_a_plan_that_somebody_else_kept_is_not_taken(planned: Job, github: StandIn, workspace: Path, how: str) -> None:
    """Whoever can push a branch can keep an artifact of this name, newer than the one that was reviewed."""
    (kept,) = github.artifacts
    plan = (planned.temp / "reconciler-plan" / "plan.json").read_bytes()
    github.artifacts.clear()
    run = github.keep(kept["name"], plan)
    run.update(FORGED[how])
    github.artifacts[-1]["workflow_run"]["head_sha"] = run["head_sha"]
    after = merged(planned)
    assert after.use(**APPLY) == 4
    assert not (workspace / "lake").exists()
    run.update(path=WORKFLOW, event="pull_request", head_sha=HEAD)
    github.artifacts[-1]["workflow_run"]["head_sha"] = HEAD
    assert after.use(**APPLY) == 0, "that was all that was wrong with it"


def test_the_reviewed_plan_is_found_behind_a_forged_one(planned: Job, github: StandIn) -> None:
    github.keep(github.artifacts[0]["name"], b"{}")["event"] = "push"
    assert merged(planned).use(**APPLY) == 0


MAIN, OWN = {"ref": "main", "repo": {"id": 1}}, {"id": 1}


@pytest.mark.parametrize(
    ("pull", "why"),
    [
        ({"merged_at": None}, "none brought it to main; it was pushed"),
        ({"base": {**MAIN, "ref": "other"}}, "none brought it to main; it was pushed"),
        ({"head": {"sha": "f" * 40, "repo": OWN}}, "the manifests have changed since, or it has expired"),
    ],
)
def test_a_plan_of_a_pull_request_that_was_not_merged_is_not_taken(
    planned: Job, github: StandIn, workspace: Path, pull: dict[str, object], why: str
) -> None:
    github.pulls[0].update(pull)
    after = merged(planned)
    assert after.use(**APPLY) == 4
    assert "merged with this commit" in after.log
    assert why in after.log
    assert not (workspace / "lake").exists()


def test_another_workflow_may_plan(planned: Job, github: StandIn) -> None:
    after = merged(planned)
    after.workflow = ".github/workflows/apply.yml"
    assert after.use(**APPLY) == 4
    assert after.use(**APPLY, plan_workflow=WORKFLOW) == 0, after.log


@pytest.mark.parametrize("how", ["fork", "expired", "no zip", "refused"])
def test_no_plan_of_another_kind_is_taken(planned: Job, github: StandIn, workspace: Path, how: str) -> None:
    (kept,) = github.artifacts
    if how == "fork":
        kept["workflow_run"]["head_repository_id"] = 2
    elif how == "expired":
        kept["expired"] = True
    elif how == "no zip":
        github.zips[kept["id"]] = b"<html>"
    else:
        github.faults = [Fault("GET", 403, times=9)]
    after = merged(planned)
    assert after.use(**APPLY) == 4
    assert not (workspace / "lake").exists()
    assert "::error title=reconciler::" in after.log


def named_in(job: Job) -> str:
    (found,) = set(re.findall(r"`reviewed: (sha256:[0-9a-f]{64})`", job.log))
    return str(found)


def fork(github: StandIn, repository: object) -> None:
    """The pull request is from there. GitHub gave its run no secrets, so nothing was planned."""
    github.pulls[0]["head"]["repo"] = repository
    github.artifacts.clear()


@pytest.mark.parametrize("repository", [{"id": 2}, None], ids=["there", "gone"])
def test_what_a_fork_brought_is_applied_when_somebody_names_the_plan(
    job: Job, github: StandIn, workspace: Path, repository: object
) -> None:
    fork(github, repository)
    after = merged(job)
    assert after.use(**APPLY) == 4
    assert "#7 is from a fork, and a fork gets no plan" in after.log
    assert "a.t" in after.summary, "the plan is there to be looked at"
    assert not (workspace / "lake").exists()
    by_hand = merged(job)
    by_hand.event_name = "workflow_dispatch"
    assert by_hand.use(**APPLY, reviewed=named_in(after)) == 0, by_hand.log
    assert "Applied: 3 done" in by_hand.summary


def test_a_plan_that_somebody_named_is_that_plan_or_none(job: Job, github: StandIn, workspace: Path) -> None:
    fork(github, {"id": 2})
    after = merged(job)
    assert after.use(**APPLY) == 4
    seen = named_in(after)
    write(workspace / "manifests", namespace("a"), table("a", "t"), table("a", "other"), name="tables.yaml")
    again = merged(job)
    assert again.use(**APPLY, reviewed=seen) == 4
    assert f"the plan is no longer {seen}" in again.log
    assert named_in(again) != seen
    assert not (workspace / "lake").exists()
    assert github.writes() == []
    for wrong in (seen[:-1], "yes", seen.removeprefix("sha256:"), "sha256:"):
        again = merged(job)
        assert again.use(**APPLY, reviewed=wrong) == 1
        assert "$ reconciler" not in again.log


def test_a_branch_with_the_commit_of_the_fork_gets_the_plan(planned: Job, github: StandIn) -> None:
    """A maintainer pushed it and opened a pull request of it; the one that is merged is that of the fork."""
    github.pulls[0]["head"]["repo"] = {"id": 2}
    assert merged(planned).use(**APPLY) == 0


def test_a_plan_made_for_a_fork_with_secrets_is_not_taken(planned: Job, github: StandIn) -> None:
    """`pull_request_target`: strangers' files lay beside what kept it."""
    fork_run = next(iter(github.runs.values()))
    fork_run["event"] = "pull_request_target"
    assert merged(planned).use(**APPLY) == 4


POLICY = """---
apiVersion: reconciler.lance/v1
kind: Policy
metadata: {name: house}
spec: {rules: [{rule: naming, namespace: "[A-Z].*"}]}
"""


def test_a_plan_that_a_policy_refuses_is_not_applied(job: Job, workspace: Path) -> None:
    write(workspace / "manifests", POLICY, name="policy.yaml")
    after = merged(job)
    assert after.use(**APPLY, reviewed="false") == 3
    assert "Refused, nothing was applied: exit code 3" in after.summary
    assert "Refused: policy: " in after.summary
    assert not (workspace / "lake").exists()
