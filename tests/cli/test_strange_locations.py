"""A pull request gives a table a location: with --catalogs-from nothing is looked at that the base does not lead to."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from cli_runs import namespace, reconciler, table, write
from contract.backends import BACKENDS
from contract.conftest import *  # noqa: F403 - the servers' fixtures, whichever there are

from reconciler.model.codec import canonical

pytestmark = pytest.mark.slow
CANARY = "canary_column"


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A Glue catalog in `base`, the same with a table in `pr`, and data of the machine that is nobody's business."""
    (backend,) = (b for b in BACKENDS if b.name == "glue")
    site = backend.make(tmp_path, request.getfixturevalue)
    catalog = (
        f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {json.dumps(site.options)}\n"
    )
    (tmp_path / "root").write_text(str(site.options["root"]))
    lance.write_dataset(pa.table({"id": [1], CANARY: [1]}), str(tmp_path / "private.lance"))
    for name in ("base", "pr"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, catalog, namespace(*site.container, "n"), name="lake.yaml")
    at = (*site.container, "n")
    write(tmp_path / "pr", table(*at, "t", spec=f"location: {tmp_path}/private.lance"), name="t.yaml")
    return tmp_path


def test_files_of_the_runner_are_not_read(folder: Path) -> None:
    control = reconciler(folder, "plan", "pr")
    assert CANARY in control.out + control.err, "the attack is a real one"
    done = reconciler(folder, "plan", "pr", "--catalogs-from", "base", "-o", "plan.json")
    assert done.code == 0, done.err
    assert CANARY not in done.out + done.err + (folder / "plan.json").read_text()
    assert "is not looked at: locations are taken from base" in " ".join(done.out.split())
    steps = json.loads((folder / "plan.json").read_text())["steps"]
    assert {s["blocked_by"] for s in steps if s["object"]["kind"] == "Table"} == {"location"}


def test_a_new_table_below_the_root_is_planned_and_a_saved_plan_for_elsewhere_is_refused(folder: Path) -> None:
    root = (folder / "root").read_text()
    text = (folder / "pr" / "t.yaml").read_text().replace(f"{folder}/private.lance", f"{root}/mine/t.lance")
    (folder / "pr" / "t.yaml").write_text(text)
    done = reconciler(folder, "plan", "pr", "--catalogs-from", "base", "-o", "plan.json")
    assert done.code == 0, done.err
    saved = json.loads((folder / "plan.json").read_text())
    assert {s["verdict"] for s in saved["steps"]} == {"allowed"}
    trusting = ("apply", "--plan", "plan.json", "--catalogs-from", "base", "--yes")
    (step,) = (s for s in saved["steps"] if s["action"] == "declare_table")
    step["after"]["location"] = f"{folder}/elsewhere.lance"
    rest = {k: v for k, v in saved.items() if k != "plan_id"}
    saved["plan_id"] = "sha256:" + hashlib.sha256(canonical(rest).encode()).hexdigest()
    good = (folder / "plan.json").read_text()
    (folder / "plan.json").write_text(json.dumps(saved))
    refused = reconciler(folder, *trusting)
    assert (refused.code, "the location of lake:" in refused.err) == (3, True), refused.err
    assert not (folder / "elsewhere.lance").exists()
    (folder / "plan.json").write_text(good)
    assert reconciler(folder, *trusting).code == 0
