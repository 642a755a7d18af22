"""--env, --target and --changed-since as someone at a terminal meets them, on a lake in a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cli.cli_runs import reconciler

CATALOG = """\
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec:
  type: dir
  path: ${var:root}
  management: {owner: robots}
---
apiVersion: reconciler.lance/v1
kind: Variables
spec: {values: {root: dev-lake}}
"""
PROD = """\
apiVersion: reconciler.lance/v1
kind: Variables
spec: {values: {root: prod-lake}}
---
apiVersion: reconciler.lance/v1
kind: Table
metadata: {catalog: lake, id: [vision, images]}
spec: {protect: true}
"""


def namespace(name: str) -> str:
    return f"apiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {{catalog: lake, id: [{name}]}}\n"


def table(name: str, team: str = "a") -> str:
    return (
        f"apiVersion: reconciler.lance/v1\nkind: Table\nmetadata: {{catalog: lake, id: [vision, {name}]}}\n"
        f"spec:\n  properties: {{team: {team}}}\n  schema: [{{name: id, type: int64}}]\n"
    )


def git(folder: Path, *arguments: str) -> None:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=folder, env=os.environ | who | alone, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m" / "overlays" / "prod").mkdir(parents=True)
    (tmp_path / "m" / "catalog.yaml").write_text(CATALOG)
    (tmp_path / "m" / "ns.yaml").write_text(namespace("vision"))
    for name in ("images", "labels"):
        (tmp_path / "m" / f"{name}.yaml").write_text(table(name))
    (tmp_path / "m" / "overlays" / "prod" / "prod.yaml").write_text(PROD)
    return tmp_path


def test_two_environments_are_two_lakes(folder: Path) -> None:
    for environment, lake in (((), "dev-lake"), (("--env", "prod"), "prod-lake")):
        done = reconciler(folder, "apply", "m", "--yes", *environment)
        assert done.code == 0, done.err
        assert (folder / lake).is_dir()
        assert reconciler(folder, "plan", "m", "--detailed-exitcode", *environment).code == 0
    assert not (folder / "overlays").exists()
    steps = {
        s["object"]["id"][-1]: s
        for s in reconciler(folder, "plan", "m", "--env", "prod", "--var", "root=new", "--format", "json").json["steps"]
    }
    assert steps["images"]["source"]["file"] == "m/images.yaml"


def test_an_empty_or_wrong_environment_stops_the_run(folder: Path) -> None:
    assert reconciler(folder, "apply", "m", "--yes", "--env", "").code == 1
    done = reconciler(folder, "apply", "m", "--yes", "--env", "prd")
    assert (done.code, "did you mean prod?" in done.err) == (1, True)
    done = reconciler(folder, "validate", "m", "--var", "rot=x")
    assert (done.code, "did you mean root?" in done.out) == (1, True)
    done = reconciler(folder, "apply", "m", "--yes", "--var", "rot=x")
    assert (done.code, "error[M521]" in done.err) == (1, True)
    done = reconciler(folder, "validate", "m", "--var", "region=x")
    assert (done.code, "warning[M521]" in done.out) == (0, True)
    assert not (folder / "dev-lake").exists()


def test_a_target_tells_what_it_leaves_out(folder: Path) -> None:
    done = reconciler(folder, "plan", "m", "--target", "vision.images")
    assert "Left out by --target or --changed-since: 1 declared object (vision.labels)" in done.out
    assert "+ namespace vision\n" in done.out, "the parent that has to be made comes along, and is not left out"
    reconciler(folder, "apply", "m", "--yes")
    done = reconciler(folder, "plan", "m", "--target", "vision.images")
    assert done.out.splitlines() == [
        "No changes. What was looked at matches the manifests.",
        "Left out by --target or --changed-since: 2 declared objects (vision, vision.labels)",
    ]
    assert reconciler(folder, "plan", "m").out == "No changes. The live catalogs match the manifests.\n"


def test_a_pull_request_plans_what_it_changed(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "m")
    git(folder, "commit", "-q", "-m", "x")
    assert reconciler(folder, "apply", "m", "--yes").code == 0
    since = ("--changed-since", "main")
    done = reconciler(folder, "plan", "m", *since)
    assert done.out.startswith("No changes. What was looked at matches the manifests.\nLeft out"), done.out
    (folder / "m" / "images.yaml").write_text(table("images", "b"))
    (folder / "m" / "labels.yaml").unlink()
    (folder / "m" / "new.yaml").write_text(table("new"))
    plan = reconciler(folder, "plan", "m", *since, "--format", "json").json
    assert {s["object"]["id"][-1] for s in plan["steps"]} == {"images", "new"}
    assert [o["object"]["id"] for o in plan["orphans"]] == [["vision", "labels"]]
    assert [o["object"]["id"] for o in plan["left_out"]] == [["vision"]]
    assert reconciler(folder, "drift", "m", *since).code == 2
    pruned = reconciler(folder, "plan", "m", *since, "--prune", "--format", "json").json
    assert [s["object"]["id"] for s in pruned["steps"] if s["action"] == "deregister_table"] == [["vision", "labels"]]
    assert reconciler(folder, "apply", "m", *since, "--prune", "--yes").code == 0
    assert reconciler(folder, "plan", "m", "--detailed-exitcode", "--prune").code == 0


def test_prune_touches_no_orphan_that_this_change_did_not_make(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    assert reconciler(folder, "apply", "m", "--yes").code == 0
    (folder / "m" / "labels.yaml").unlink()
    git(folder, "add", "m")
    git(folder, "commit", "-q", "-m", "labels went before")
    (folder / "m" / "images.yaml").write_text(table("images", "b"))
    plan = reconciler(folder, "plan", "m", "--changed-since", "main", "--prune", "--format", "json").json
    assert [s["action"] for s in plan["steps"]] == ["update_table"]
    both = reconciler(folder, "plan", "m", "--changed-since", "main", "--target", "vision.labels")
    assert both.code == 0
    assert "No changes." in both.out, "each limit must let an object through"
    done = reconciler(folder, "plan", "m", "--changed-since", "nowhere")
    assert (done.code, "error[M532]" in done.err) == (1, True)


def test_a_catalog_that_nothing_changed_in_is_not_even_opened(folder: Path) -> None:
    other = CATALOG.split("---")[0].replace("name: lake", "name: far").replace("${var:root}", "/no/such/mount/lake")
    (folder / "m" / "far.yaml").write_text(other)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "m")
    git(folder, "commit", "-q", "-m", "x")
    (folder / "m" / "images.yaml").write_text(table("images", "b"))
    assert reconciler(folder, "plan", "m").code == 1, "it cannot be read"
    assert reconciler(folder, "plan", "m", "--changed-since", "main").code == 0


@pytest.mark.parametrize("command", ["plan", "graph", "status"])
def test_a_target_with_its_catalog_is_told_how_to_write_it(folder: Path, command: str) -> None:
    """Steps and reports name objects so."""
    done = reconciler(folder, command, "m", "--target", "lake:vision.**")
    assert done.code == 1
    assert "a target has no catalog in it: write --catalog lake --target 'vision.**'" in done.err
    done = reconciler(folder, command, "m", "--catalog", "lake", "--target", "vision.**")
    assert done.code == 0
