"""`apply --plan FILE` and `show FILE` name what is wrong with the file, before anything else is asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_runs import catalog, namespace, reconciler, table, write

from reconciler import app_files
from reconciler.session import Failure


@pytest.mark.parametrize("flags", [(), ("--yes",), ("--yes", "--format", "json", "--report", "r.json")])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "there is no file plan.json"),
        ("folder", "plan.json is a folder"),
        (b"", "plan.json is empty"),
        (b" \n", "plan.json is empty"),
        (b"{", "plan.json is not JSON"),
        (b"\xff\xfe\x00", "plan.json is not JSON"),
        (b"kind: Plan\n", "plan.json is not JSON"),
        (b"[]", "plan.json: this is not a plan file"),
    ],
)
def test_apply_says_what_is_wrong_with_the_file(
    tmp_path: Path, content: bytes | str | None, problem: str, flags: tuple[str, ...]
) -> None:
    """Also without a terminal to ask on, which would be the next problem."""
    path = tmp_path / "plan.json"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    run = reconciler(tmp_path, "apply", "--plan", "plan.json", *flags)
    assert run.code == 1
    assert problem in run.err
    assert "terminal" not in run.err
    if "--report" in flags:
        assert problem in json.loads((tmp_path / "r.json").read_text())["message"]
    shown = reconciler(tmp_path, "show", "plan.json")
    assert (shown.code, problem in shown.err or content == b"[]") == (1, True)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the answer of the system is forced where the tests run as root."""
    path = tmp_path / "plan.json"
    path.write_text("{}")
    path.chmod(0)
    if os.access(path, os.R_OK):
        refused = PermissionError(13, "Permission denied")
        monkeypatch.setattr(app_files, "read_given", lambda *_: (_ for _ in ()).throw(refused))
    with pytest.raises(Failure, match="no permission to read"):
        app_files.saved_plan(path)


def test_a_table_that_comes_back_is_attached_to_its_existing_data(tmp_path: Path) -> None:
    """And its removal is no loss: risk metadata, still a delete in every count."""
    write(tmp_path, catalog(), namespace("a"), table("a", "t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(), namespace("a"))
    made = reconciler(tmp_path, "plan", "m.yaml", "--prune", "--format", "json").json
    assert [(s["action"], s["risk"]) for s in made["steps"]] == [("deregister_table", "metadata")]
    assert made["summary"]["delete"] == 1
    assert "destructive" not in reconciler(tmp_path, "plan", "m.yaml", "--prune", "--format", "markdown").out.lower()
    assert reconciler(tmp_path, "apply", "m.yaml", "--prune", "--yes").code == 0
    write(tmp_path, catalog(), namespace("a"), table("a", "t"))
    for how in ("text", "markdown", "html", "json"):
        assert "attached to its existing data at " in reconciler(tmp_path, "plan", "m.yaml", "--format", how).out
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json")
    assert "declare_table  lake:a.t\n           attached to its existing data\nApplied: 1 done" in run.out
    for how in ("text", "markdown", "html"):
        assert "attached to its existing data" in reconciler(tmp_path, "show", "r.json", "--format", how).out
