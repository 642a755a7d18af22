"""A plan file says where to connect and what to do: what it takes before one counts."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from cli_runs import catalog, namespace, reconciler, table, write

from reconciler.model.codec import canonical


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("base", "pr"):
        (tmp_path / name).mkdir()
    write(tmp_path / "base", catalog(storage__token="${env:TOKEN}"))
    write(tmp_path / "pr", catalog(storage__token="${env:TOKEN}"), namespace("a"), table("a", "t"))
    return tmp_path


TOKEN = {"TOKEN": "hush-hush", "OTHER": "hush-hush"}


def plan(folder: Path, *more: str, file: str = "plan.json") -> None:
    done = reconciler(folder, "plan", "pr", "-o", file, *more, env=TOKEN)
    assert done.code == 0, done.err


def forged(folder: Path, **options: str) -> None:
    """As whoever can write a file can do it: the plan's id is made anew."""
    text = json.loads((folder / "plan.json").read_text())
    text["catalogs"]["lake"]["spec"].update(options)
    rest = {k: v for k, v in text.items() if k != "plan_id"}
    text["plan_id"] = "sha256:" + hashlib.sha256(canonical(rest).encode()).hexdigest()
    (folder / "plan.json").write_text(json.dumps(text))


def test_a_plan_for_these_catalogs_is_applied(folder: Path) -> None:
    plan(folder)
    done = reconciler(folder, "apply", "--plan", "plan.json", "--catalogs-from", "base", "--yes", env=TOKEN)
    assert done.code == 0, done.err
    assert reconciler(folder, "plan", "pr", "--detailed-exitcode", env=TOKEN).code == 0


def test_a_plan_for_the_first_overlay_of_an_environment_is_applied(folder: Path) -> None:
    """The catalogs that it was made with have nothing to change for that environment."""
    (folder / "pr" / "overlays" / "prod").mkdir(parents=True)
    write(folder / "pr" / "overlays" / "prod", namespace("a", spec="{properties: {stage: prod}}"))
    plan(folder, "--env", "prod", "--catalogs-from", "base")
    words = ("apply", "--plan", "plan.json", "--catalogs-from", "base", "--env", "prod", "--yes")
    done = reconciler(folder, *words, env=TOKEN)
    assert done.code == 0, done.err


@pytest.mark.parametrize("change", [{"path": "./elsewhere"}, {"storage.endpoint": "http://127.0.0.1:9"}])
def test_a_plan_for_another_place_is_refused(folder: Path, change: dict[str, str]) -> None:
    plan(folder)
    forged(folder, **change)
    done = reconciler(
        folder, "apply", "--plan", "plan.json", "--catalogs-from", "base", "--yes", "--report", "r.json", env=TOKEN
    )
    assert done.code == 3
    assert "plan.json is not a plan for the catalogs of base: catalog lake is another one" in done.err
    assert json.loads((folder / "r.json").read_text())["outcome"] == "refused"
    assert not (folder / "lake").exists()
    assert not (folder / "elsewhere").exists()


def test_git_is_not_asked_about_the_folders_of_a_plan_that_is_refused(folder: Path) -> None:
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    plan(folder)
    trusting = ("apply", "--plan", "plan.json", "--catalogs-from", "base", "--yes", "--report", "r.json")
    forged(folder, path="./elsewhere")
    assert reconciler(folder, *trusting, env=TOKEN).code == 3
    assert json.loads((folder / "r.json").read_text())["run"]["commit"] is None
    plan(folder)
    assert reconciler(folder, *trusting, env=TOKEN).code == 0
    assert json.loads((folder / "r.json").read_text())["run"]["commit"]


def test_a_plan_for_a_catalog_that_is_not_declared_is_refused(folder: Path) -> None:
    plan(folder)
    write(folder / "base", catalog().replace("name: lake", "name: pond"))
    done = reconciler(folder, "apply", "--plan", "plan.json", "--catalogs-from", "base", "--yes", env=TOKEN)
    assert done.code == 3
    assert "catalog lake is not declared there" in done.err


def test_a_secret_that_stands_in_the_base_need_not_be_given_again(folder: Path) -> None:
    """The plan file has a reference in its place, and the base has the value."""
    for name in ("base", "pr"):
        file = folder / name / "m.yaml"
        file.write_text(file.read_text().replace("${env:TOKEN}", "hush-hush"))
    plan(folder)
    assert "hush-hush" not in (folder / "plan.json").read_text()
    done = reconciler(folder, "apply", "--plan", "plan.json", "--catalogs-from", "base", "--yes")
    assert done.code == 0, done.err


@pytest.mark.parametrize("flag", ["--env-allow", "--file-root"])
def test_flags_that_say_nothing_about_a_saved_plan_are_refused(folder: Path, flag: str) -> None:
    plan(folder)
    done = reconciler(folder, "apply", "--plan", "plan.json", flag, "x", "--yes", env=TOKEN)
    assert done.code == 1
    assert f"it does not go together with {flag}" in done.err


def apply_reviewed(folder: Path, *more: str) -> tuple[int, str]:
    done = reconciler(folder, "apply", "pr", "--reviewed", "plan.json", "--yes", *more, env=TOKEN)
    return done.code, done.err


def test_what_was_reviewed_is_applied(folder: Path) -> None:
    plan(folder, "--catalogs-from", "base")
    assert apply_reviewed(folder) == (0, "")
    assert (folder / "lake").exists()
    assert apply_reviewed(folder) == (0, ""), "nothing left to do is not stale"


def test_a_run_that_was_cut_off_is_finished(folder: Path) -> None:
    plan(folder)
    assert reconciler(folder, "apply", "pr", "--target", "a", "--yes", env=TOKEN).code == 0
    assert apply_reviewed(folder) == (0, "")
    assert reconciler(folder, "plan", "pr", "--detailed-exitcode", env=TOKEN).code == 0


def test_other_manifests_are_stale(folder: Path) -> None:
    plan(folder)
    write(folder / "pr", catalog(storage__token="${env:TOKEN}"), namespace("a"))
    code, err = apply_reviewed(folder, "--report", "r.json")
    assert code == 4
    assert "it was made from other manifests" in err
    assert json.loads((folder / "r.json").read_text())["outcome"] == "stale"
    assert not (folder / "lake").exists()


def test_another_catalog_document_is_stale(folder: Path) -> None:
    """The pull request moved the catalog; its plan was made for where the catalog is in the base branch."""
    file = folder / "pr" / "m.yaml"
    file.write_text(file.read_text().replace("path: ./lake", "path: ./elsewhere"))
    plan(folder, "--catalogs-from", "base")
    code, err = apply_reviewed(folder)
    assert code == 4
    assert "other Catalog documents" in err
    assert not (folder / "elsewhere").exists()


def test_a_step_that_nobody_saw_is_stale(folder: Path) -> None:
    """Somebody changed the table in the meantime: to bring it back is another change than the one reviewed."""
    assert reconciler(folder, "apply", "pr", "--yes", env=TOKEN).code == 0
    text = (folder / "pr" / "m.yaml").read_text()
    (folder / "pr" / "m.yaml").write_text(text + "  description: new\n")
    plan(folder)
    wide = text.replace("type: int64}", "type: int64}, {name: extra, type: int8}")
    write(folder, wide, name="wide.yaml")
    assert reconciler(folder, "apply", "wide.yaml", "--yes", env=TOKEN).code == 0
    code, err = apply_reviewed(folder, "--allow", "drop_column")
    assert code == 4
    assert "it does not have drop_columns lake:a.t (destructive)" in err
    assert apply_reviewed(folder)[0] == 3, "a blocked step does not run, and the reviewed one does"


def test_the_same_action_with_another_result_is_stale(folder: Path) -> None:
    """Somebody set a property meanwhile that the manifests take away again: an update too, and not the reviewed one."""
    text = (catalog(storage__token="${env:TOKEN}"), namespace("a", spec="{properties: {team: x}}"))
    write(folder / "pr", *text)
    assert reconciler(folder, "apply", "pr", "--yes", env=TOKEN).code == 0
    write(folder / "pr", text[0], namespace("a", spec="{properties: {team: y}}"))
    plan(folder)
    write(folder, text[0], namespace("a", spec="{properties: {team: x, other: z}}"), name="wide.yaml")
    assert reconciler(folder, "apply", "wide.yaml", "--yes", env=TOKEN).code == 0
    code, err = apply_reviewed(folder)
    assert code == 4
    assert "it does not have update_namespace lake:a" in err
    shown = reconciler(folder, "plan", "wide.yaml", "--detailed-exitcode", env=TOKEN)
    assert shown.code == 0, "nothing was written"


def test_a_saved_plan_can_be_held_against_the_reviewed_one(folder: Path) -> None:
    plan(folder)
    plan(folder, file="now.json")
    both = ("apply", "--plan", "now.json", "--reviewed", "plan.json", "--yes")
    (folder / "pr" / "m.yaml").write_text("nobody reads this")
    assert reconciler(folder, *both, env=TOKEN).code == 0
    write(folder / "pr", catalog(storage__token="${env:TOKEN}"), namespace("b"))
    plan(folder, file="now.json")
    assert reconciler(folder, *both, env=TOKEN).code == 4


def test_a_reviewed_file_is_never_run(folder: Path) -> None:
    """It is compared only: one that somebody forged does not lead elsewhere."""
    plan(folder)
    forged(folder, path="./elsewhere")
    assert apply_reviewed(folder) == (0, "")
    assert not (folder / "elsewhere").exists()
