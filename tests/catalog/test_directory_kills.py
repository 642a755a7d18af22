"""A run that is killed at any call of a declare or a deregistration is finished by the next one."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from dir_kills import Watch, dies, every_storage_call, every_system_call
from dir_support import (
    DEFAULT,
    V1,
    V2,
    create_namespace,
    dataset,
    declare,
    detail,
    field,
    find,
    open_catalog,
    run,
    scanned,
    table,
)

from reconciler.model.change import Change, DeregisterTable
from reconciler.model.ident import Ident
from reconciler.model.observed import Absent, Detached, Unreadable
from reconciler.model.state import DatasetState

sys.path.append(str(Path(__file__).parents[1] / "cli"))
import cli_runs

pytestmark = pytest.mark.slow

OWNER = "team-a"  # of the changes in `dir_support`
STORAGE = pytest.param(every_storage_call, id="storage")
SYSTEM = pytest.param(every_system_call, id="system")
WATCHES = pytest.mark.parametrize("watch", [STORAGE, SYSTEM])
LISTED = [pytest.param(V1, ("t0",), id="v1"), pytest.param(DEFAULT, ("t0",), id="default")]
BELOW = pytest.param(DEFAULT, ("n", "t0"), id="default-in-namespace")
ROWS = [pytest.param(V2, ("t0",), id="v2"), BELOW]
PRESENT = "schema: [{name: id, type: int64}]"
ABSENT = "state: absent"


@pytest.fixture(autouse=True)
def nobody_else_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to wait for."""
    monkeypatch.setattr("reconciler.catalog.directory_read.PAUSES", (0.0,))


def manifest(folder: Path, layout: dict[str, str], ident: Ident, *spec: str) -> Path:
    """The table alone: its namespace stays undeclared."""
    options = "".join(f"  {key}: {value}\n" for key, value in layout.items())
    lines = "".join(f"  {line}\n" for line in spec)
    text = (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\n"
        f"spec:\n  type: dir\n  path: ./lake\n{options}  management: {{owner: {OWNER}}}\n---\n"
        "apiVersion: reconciler.lance/v1\nkind: Table\n"
        f"metadata: {{catalog: lake, id: {json.dumps(ident)}}}\nspec:\n{lines}"
    )
    return cli_runs.write(folder, text)


def start(tmp_path: Path, layout: dict[str, str], ident: Ident, *changes: Change) -> None:
    lake = tmp_path / "start" / "lake"
    lake.mkdir(parents=True)
    namespace = [create_namespace("n")] if len(ident) > 1 else []
    run(open_catalog(lake, **layout), *namespace, *changes)


def whole(*ident: str) -> tuple[Change, Change]:
    return declare(*ident), dataset(*ident, fields=(field("id", "int64"),))


def converges(folder: Path, file: Path, at: int = 0) -> None:
    done = cli_runs.reconciler(folder, "apply", file, "--yes")
    assert done.code == 0, (at, done.out, done.err)
    then = cli_runs.reconciler(folder, "plan", file, "--detailed-exitcode")
    assert then.code == 0, (at, then.out, then.err)


def kill_everywhere(
    tmp_path: Path, watch: Watch, layout: dict[str, str], ident: Ident, change: Callable[[Path], Change], *spec: str
) -> list[Path]:
    """`start` is copied for each kill, so that every one happens in the same lake."""
    ended: list[Path] = []
    while True:
        folder = tmp_path / f"kill{len(ended) + 1}"
        shutil.copytree(tmp_path / "start", folder)
        if not dies(watch, folder / "lake", change(folder / "lake"), len(ended) + 1, **layout):
            break
        ended.append(folder)
        converges(folder, manifest(folder, layout, ident, *spec), len(ended))
    assert ended
    return ended


def is_ours(folder: Path, layout: dict[str, str], ident: Ident, properties: dict[str, str]) -> None:
    state = table(open_catalog(folder / "lake", **layout), *ident)
    assert (state.marks.owner, state.properties) == (OWNER, properties)
    assert isinstance(state.dataset, DatasetState)
    assert lance.dataset(str(state.location)).count_rows() == 0


def properties_in(layout: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    return ({}, []) if layout == V1 else ({"colour": "red"}, ["properties: {colour: red}"])


@WATCHES
@pytest.mark.parametrize(("layout", "ident"), [*LISTED, *ROWS])
def test_a_declare(watch: Watch, layout: dict[str, str], ident: Ident, tmp_path: Path) -> None:
    start(tmp_path, layout, ident)
    properties, more = properties_in(layout)

    def change(lake: Path) -> Change:
        return declare(*ident, **properties)

    for folder in kill_everywhere(tmp_path, watch, layout, ident, change, PRESENT, *more):
        is_ours(folder, layout, ident, properties)


@WATCHES
@pytest.mark.parametrize("filled", [pytest.param(True, id="data"), pytest.param(False, id="declared-only")])
@pytest.mark.parametrize(("layout", "ident"), LISTED)
def test_a_declare_of_a_deregistered_table(
    watch: Watch, filled: bool, layout: dict[str, str], ident: Ident, tmp_path: Path
) -> None:
    start(tmp_path, layout, ident, *whole(*ident)[: 2 if filled else 1], DeregisterTable(ident))
    properties, more = properties_in(layout)

    def change(lake: Path) -> Change:
        return declare(*ident, location=str(lake / "t0.lance") if filled else None, **properties)

    for folder in kill_everywhere(tmp_path, watch, layout, ident, change, PRESENT, *more):
        is_ours(folder, layout, ident, properties)
        assert not (folder / "lake" / "t0.lance" / ".lance-deregistered").exists()


@WATCHES
@pytest.mark.parametrize(("layout", "ident"), [*LISTED, *ROWS])
def test_a_deregistration(watch: Watch, layout: dict[str, str], ident: Ident, tmp_path: Path) -> None:
    start(tmp_path, layout, ident, *whole(*ident))

    def change(lake: Path) -> Change:
        return DeregisterTable(ident)

    for folder in kill_everywhere(tmp_path, watch, layout, ident, change, ABSENT):
        left = find(open_catalog(folder / "lake", **layout), *ident)
        assert isinstance(left, Detached)
        assert lance.dataset(left.location).count_rows() == 0


TOKEN = "a" * 32


def claimed(root: Path, owner: str = OWNER) -> None:
    """The record of a run that died before the table was there."""
    record = {"version": 1, "table": "t0", "owner": owner, "protect": False, "applied": [], "claim": TOKEN}
    file = root / "__reconciler" / "tables" / "t0.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**record, "state": "claimed"}))


@pytest.mark.parametrize(("layout", "ident"), LISTED)
@pytest.mark.parametrize("left", ["nothing", "temporary", "marker", "temporary, no record"])
def test_what_a_killed_declare_of_an_earlier_version_left(
    left: str, layout: dict[str, str], ident: Ident, tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    (root / "t0.lance").mkdir(parents=True)
    if "no record" not in left:
        claimed(root)
    if "temporary" in left:
        (root / "t0.lance" / f".tmp-{TOKEN}").write_text("x")
    if left == "marker":
        (root / "t0.lance" / ".lance-reserved").write_text(TOKEN)
    converges(tmp_path, manifest(tmp_path, layout, ident, PRESENT))
    is_ours(tmp_path, layout, ident, {})


@pytest.mark.parametrize("layout", [V1, DEFAULT], ids=["v1", "default"])
@pytest.mark.parametrize("found", ["empty, no record", "another's file", "another's folder"])
def test_what_is_not_ours_is_not_resumed(found: str, layout: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "t0.lance"
    folder.mkdir(parents=True)
    if found != "empty, no record":
        claimed(tmp_path / "lake")
        if found == "another's file":
            (folder / ".keep").touch()
        else:
            (folder / "_transactions").mkdir()
    catalog = open_catalog(tmp_path / "lake", **layout)
    for finding in (find(catalog, "t0"), scanned(catalog, detail(("t0",)))["Table", ("t0",)]):
        assert isinstance(finding, Unreadable)
        assert "empty folder" in finding.message
    before = sorted((tmp_path / "lake").rglob("*"))
    done = cli_runs.reconciler(tmp_path, "apply", manifest(tmp_path, layout, ("t0",), PRESENT), "--yes")
    assert done.code == 3, done.out
    assert sorted((tmp_path / "lake").rglob("*")) == before


def test_the_claim_of_another_owner_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "lake" / "t0.lance").mkdir(parents=True)
    claimed(tmp_path / "lake", "another-team")
    assert find(open_catalog(tmp_path / "lake", **V1), "t0") == Absent()
    done = cli_runs.reconciler(tmp_path, "apply", manifest(tmp_path, V1, ("t0",), PRESENT), "--yes")
    assert done.code == 1
    assert "claimed by owner 'another-team'" in done.out + done.err
    assert list((tmp_path / "lake" / "t0.lance").iterdir()) == []
