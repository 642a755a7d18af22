"""Folders whose names are no text (disks take any bytes): each is one entry that cannot be read, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli_runs import catalog, reconciler, table, write

LAYOUTS: dict[str, dict[str, Any]] = {"default": {}, "v1": {"manifest_enabled": False}}
REASON = "the name of the folder b\\xff.lance is not UTF-8: rename it, or move it out of the catalog's root"


@pytest.fixture(params=LAYOUTS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return LAYOUTS[request.param]


@pytest.fixture
def home(tmp_path: Path, options: dict[str, Any]) -> Path:
    write(tmp_path, catalog("me", **options), table("t"))
    try:
        for name in (b"b\xff.lance", b"plain\xfe", b".hidden\xfe", b"__ours\xfe"):
            os.makedirs(os.fsencode(tmp_path / "lake") + b"/" + name)
    except OSError:
        pytest.skip("this disk takes UTF-8 names only")
    return tmp_path


def test_it_is_one_unreadable_entry(home: Path, options: dict[str, Any]) -> None:
    made = reconciler(home, "plan", "m.yaml", "--format", "json")
    assert made.code == 0, made
    lake = made.json["catalogs"]["lake"]
    assert (lake["complete"], lake["tables"], lake["skipped_folders"]) == (False, 1, 2)
    assert [p["message"] for p in lake["problems"]] == [f"b\\xff cannot be read: {REASON}"]
    assert reconciler(home, "apply", "m.yaml", "--yes").code == 0
    again = reconciler(home, "plan", "m.yaml", "--prune", "--format", "json").json
    assert again["steps"] == []
    assert again["orphans"] == []
    assert b"b\xff.lance" in os.listdir(os.fsencode(home / "lake"))
    for words in (("plan", "m.yaml"), ("status", "m.yaml")):
        assert REASON in reconciler(home, *words).out
    assert reconciler(home, "drift", "m.yaml").code == 2


def test_where_folders_without_the_suffix_are_tables_too(home: Path, options: dict[str, Any]) -> None:
    write(home, catalog("me", plain_folders=True, **options), table("t"))
    lake = reconciler(home, "plan", "m.yaml", "--format", "json").json["catalogs"]["lake"]
    assert [p["message"].partition(" ")[0] for p in lake["problems"]] == ["b\\xff", "plain\\xfe"]


def test_import_says_so(home: Path) -> None:
    done = reconciler(home, "import", "m.yaml", "-o", "out")
    assert done.code == 5, done
    assert REASON in done.err


def test_a_dataset_in_it_is_not_opened(home: Path, options: dict[str, Any]) -> None:
    """Nor taken for the table whose name looks like it."""
    lance.write_dataset(pa.table({"id": [1]}), home / "made")
    os.rename(home / "made", os.fsencode(home / "lake") + b"/t\xff.lance")
    plan = reconciler(home, "plan", "m.yaml", "--format", "json").json
    assert [s["action"] for s in plan["steps"]] == ["declare_table", "create_dataset"]
    assert len(plan["catalogs"]["lake"]["problems"]) == 2
