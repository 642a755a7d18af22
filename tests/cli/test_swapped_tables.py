"""When somebody put other data in the place of a table of ours, our record of the table, or its row, does not make that
data ours. Nothing is written into it, not even the marker that takes a table out of the catalog."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli_runs import catalog, namespace, reconciler, table, write
from contract.outsider_dir import LocalFiles

LAYOUTS: dict[str, dict[str, Any]] = {"default": {}, "v1": {"manifest_enabled": False}}


@pytest.fixture(params=LAYOUTS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return LAYOUTS[request.param]


@pytest.fixture
def home(tmp_path: Path, options: dict[str, Any]) -> Path:
    """Two tables of ours, and somebody's dataset."""
    write(tmp_path, catalog("me", **options), table("t"), table("u"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    lance.write_dataset(pa.table({"id": [1], "secret": ["x"]}), tmp_path / "theirs")
    return tmp_path


def swap(home: Path, how: str) -> Path:
    ours = home / "lake" / "t.lance"
    ours.rename(home / "away")
    if how == "link":
        (home / "theirs").rename(home / "lake" / "theirs")
        ours.symlink_to("theirs")
        return home / "lake" / "theirs"
    shutil.copytree(home / "theirs", ours)
    if how == "marked":
        lance.dataset(ours).update_metadata({"reconciler.owner": "them"})
    return ours


ABSENT = table("t").replace("schema: [{name: id, type: int64}]", "state: absent")


@pytest.mark.parametrize("how", ["folder", "link", "marked"])
@pytest.mark.parametrize("words", [(ABSENT,), ("--prune",)], ids=["absent", "prune"])
def test_it_is_not_deregistered(home: Path, options: dict[str, Any], how: str, words: tuple[str, ...]) -> None:
    theirs = swap(home, how)
    before = LocalFiles(theirs).all()
    absent = words if words[0] == ABSENT else ()
    write(home, catalog("me", **options), table("u"), *absent)
    more = () if absent else words
    plan = reconciler(home, "plan", "m.yaml", *more, "--format", "json").json
    assert [(s["verdict"], s["blocked_by"]) for s in plan["steps"]] == ([("blocked", "not_owned")] if absent else [])
    assert reconciler(home, "apply", "m.yaml", "--yes", *more).code == (3 if absent else 0)
    assert LocalFiles(theirs).all() == before


def test_a_link_out_of_the_root_is_unreadable(home: Path, options: dict[str, Any]) -> None:
    """As it is for a table that stays: apply would refuse it."""
    (home / "lake" / "t.lance").rename(home / "away")
    (home / "lake" / "t.lance").symlink_to(home / "away")
    write(home, catalog("me", **options), ABSENT, table("u"))
    (step,) = reconciler(home, "plan", "m.yaml", "--format", "json").json["steps"]
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "unreadable")
    assert "leads out of the catalog's root folder" in step["reason"]


def spoil(folder: Path) -> None:
    for file in (folder / "_versions").iterdir():
        file.write_bytes(b"spoiled")


@pytest.mark.parametrize("adopted", [False, True], ids=["created", "adopted"])
def test_prune_takes_no_table_whose_data_cannot_be_read(home: Path, options: dict[str, Any], adopted: bool) -> None:
    """Whether its mark is beside the data (created) or only in it (adopted)."""
    name, folder = ("a", home / "lake" / "a.lance") if adopted else ("t", home / "lake" / "t.lance")
    if adopted:
        lance.write_dataset(pa.table({"id": [1]}), folder)
        write(home, catalog("me", **options), table("t"), table("u"), table("a"))
        assert reconciler(home, "apply", "m.yaml", "--yes", "--adopt").code == 0
    kept = [table(n) for n in ("t", "u") if n != name]
    write(home, catalog("me", **options), *kept)
    assert reconciler(home, "plan", "m.yaml", "--prune", "-o", "p.json").code == 0
    spoil(folder)
    before = LocalFiles(folder).all()
    plan = reconciler(home, "plan", "m.yaml", "--prune", "--format", "json").json
    assert [(s["action"], s["verdict"], s["blocked_by"]) for s in plan["steps"]] == [
        ("deregister_table", "blocked", "unreadable")
    ]
    assert plan["steps"][0]["error"]["message"]
    assert reconciler(home, "apply", "m.yaml", "--yes", "--prune").code == 3
    assert reconciler(home, "apply", "--plan", "p.json", "--yes").code == 1
    assert LocalFiles(folder).all() == before


def test_a_manifest_lets_go_of_what_cannot_be_read_if_it_is_known_to_be_ours(
    home: Path, options: dict[str, Any]
) -> None:
    """The marker that we put into the folder shows it. An adopted table has its mark in its data alone."""
    lance.write_dataset(pa.table({"id": [1]}), home / "lake" / "a.lance")
    write(home, catalog("me", **options), table("t"), table("u"), table("a"))
    assert reconciler(home, "apply", "m.yaml", "--yes", "--adopt").code == 0
    spoil(home / "lake" / "t.lance")
    spoil(home / "lake" / "a.lance")
    write(home, catalog("me", **options), ABSENT, ABSENT.replace('"t"', '"a"'), table("u"))
    steps = reconciler(home, "plan", "m.yaml", "--format", "json").json["steps"]
    verdicts = {s["object"]["id"][0]: (s["verdict"], s["blocked_by"]) for s in steps}
    assert verdicts == {"t": ("allowed", None), "a": ("blocked", "unreadable")}
    assert reconciler(home, "apply", "m.yaml", "--yes").code == 3
    assert (home / "lake" / "t.lance" / ".lance-deregistered").exists()
    assert not (home / "lake" / "a.lance" / ".lance-deregistered").exists()


def test_not_with_a_plan_of_before_either(home: Path, options: dict[str, Any]) -> None:
    write(home, catalog("me", **options), ABSENT, table("u"))
    assert reconciler(home, "plan", "m.yaml", "-o", "p.json").code == 0
    theirs = swap(home, "folder")
    before = LocalFiles(theirs).all()
    done = reconciler(home, "apply", "--plan", "p.json", "--yes")
    assert done.code in (1, 4), done.out
    assert LocalFiles(theirs).all() == before


def test_our_own_table_goes_whoever_wrote_its_rows(home: Path, options: dict[str, Any]) -> None:
    """A table that we declared without a schema gets its dataset from its users, without our mark."""
    write(home, catalog("me", **options), table("n").replace("schema: [{name: id, type: int64}]", "protect: false"))
    assert reconciler(home, "apply", "m.yaml", "--yes").code == 0
    lance.write_dataset(pa.table({"id": [1]}), home / "lake" / "n.lance", mode="append")
    for protect in ("true", "false"):  # The record is written anew.
        write(
            home,
            catalog("me", **options),
            table("n").replace("schema: [{name: id, type: int64}]", f"protect: {protect}"),
        )
        assert reconciler(home, "apply", "m.yaml", "--yes").code == 0
    write(home, catalog("me", **options), ABSENT, ABSENT.replace('"t"', '"n"'))
    done = reconciler(home, "apply", "m.yaml", "--yes")
    assert done.code == 0, done.out
    assert (home / "lake" / "n.lance" / ".lance-deregistered").exists()


@pytest.mark.parametrize("adopted", [False, True], ids=["created", "adopted"])
def test_a_table_that_is_dropped_and_made_again_is_nobodys(
    tmp_path: Path, options: dict[str, Any], adopted: bool
) -> None:
    """Their columns, their properties and their marker stay as they are, until somebody says --adopt."""
    wanted = "\n  properties: {a: '2'}" if options == {} else ""
    declared = table("t", spec=f"allow: [drop_column]{wanted}")
    folder = tmp_path / "lake" / "t.lance"
    if adopted:
        lance.write_dataset(pa.table({"id": [1]}), folder)
    write(tmp_path, catalog("me", **options), table("t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--adopt").code == 0
    shutil.rmtree(folder)
    lance.write_dataset(pa.table({"id": [1], "secret": ["x"]}), folder)
    (folder / ".lance-reserved").write_bytes(b"theirs")
    before = LocalFiles(tmp_path / "lake").all()
    write(tmp_path, catalog("me", **options), declared)
    plan = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    assert {(s["verdict"], s["blocked_by"]) for s in plan["steps"]} == {("blocked", "adopt")}
    assert plan["unowned"] == []
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 3
    assert LocalFiles(tmp_path / "lake").all() == before
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--adopt").code == 0
    assert lance.dataset(folder).schema.names == ["id"]


@pytest.mark.parametrize("theirs", [b"reserved", b""], ids=["text", "empty"])
def test_a_declared_table_that_is_made_again_is_nobodys(tmp_path: Path, options: dict[str, Any], theirs: bytes) -> None:
    """Its marker is all that there is of it: without our token it is not our table. Taking it over gives it one."""
    declared = table("t").replace("schema: [{name: id, type: int64}]", "protect: false")
    write(tmp_path, catalog("me", **options), declared)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    marker = tmp_path / "lake" / "t.lance" / ".lance-reserved"
    marker.write_bytes(theirs)
    write(tmp_path, catalog("me", **options), table("t"))
    plan = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    assert [(s["action"], s["verdict"], s["blocked_by"]) for s in plan["steps"]] == [
        ("create_dataset", "blocked", "adopt")
    ]
    write(tmp_path, catalog("me", **options), declared)
    assert reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json["unowned"] != []
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--adopt").code == 0
    assert marker.read_bytes() != theirs
    assert reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json["unowned"] == []


WITH_NAMESPACES: dict[str, dict[str, Any]] = {"default": {}, "v2": {"dir_listing_enabled": False}}
WITHOUT_SCHEMA = ("schema: [{name: id, type: int64}]", "protect: false")


@pytest.fixture(params=WITH_NAMESPACES)
def nested(request: pytest.FixtureRequest) -> dict[str, Any]:
    return WITH_NAMESPACES[request.param]


def folder_of(home: Path, name: str = "t") -> Path:
    (folder,) = (p for p in (home / "lake").iterdir() if p.name.endswith(f"a${name}"))
    return folder


@pytest.fixture
def swapped(tmp_path: Path, nested: dict[str, Any]) -> Path:
    """`a.t` is ours; somebody else's dataset is in its folder."""
    write(tmp_path, catalog("me", **nested), namespace("a"), table("a", "t"), table("a", "u"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    folder = folder_of(tmp_path)
    shutil.rmtree(folder)
    lance.write_dataset(pa.table({"id": [1], "secret": ["x"]}), folder)
    return tmp_path


@pytest.mark.parametrize("marked", [None, "them"])
def test_a_swapped_table_in_a_namespace_is_not_ours_for_any_step(
    swapped: Path, nested: dict[str, Any], marked: str | None
) -> None:
    if marked:
        lance.dataset(folder_of(swapped)).update_metadata({"reconciler.owner": marked})
    before = LocalFiles(swapped / "lake").all()
    wanted = table("a", "t", spec="allow: [drop_column]\n  properties: {k: v}\n  protect: true")
    write(swapped, catalog("me", **nested), namespace("a"), wanted, table("a", "u"))
    plan = reconciler(swapped, "plan", "m.yaml", "--format", "json").json
    assert {s["action"]: s["blocked_by"] for s in plan["steps"]} == dict.fromkeys(
        ("update_table", "drop_columns"), "foreign_owner" if marked else "adopt"
    )
    assert reconciler(swapped, "apply", "m.yaml", "--yes").code == 3
    status = reconciler(swapped, "status", "m.yaml").out
    assert "Ours:         1 namespace, 1 table" in status
    assert LocalFiles(swapped / "lake").all() == before
    more = ("--take-over", marked) if marked else ("--adopt",)
    assert reconciler(swapped, "apply", "m.yaml", "--yes", *more).code == 0
    assert lance.dataset(folder_of(swapped)).schema.names == ["id"]
    assert reconciler(swapped, "plan", "m.yaml", "--detailed-exitcode").code == 0


def test_a_swapped_table_in_a_namespace_is_not_deregistered(swapped: Path, nested: dict[str, Any]) -> None:
    before = LocalFiles(swapped / "lake").all()
    kept = (catalog("me", **nested), namespace("a"), table("a", "u"))
    write(swapped, *kept)
    assert reconciler(swapped, "plan", "m.yaml", "--prune", "--format", "json").json["steps"] == []
    assert reconciler(swapped, "apply", "m.yaml", "--yes", "--prune").code == 0
    write(swapped, *kept, table("a", "t").replace("schema: [{name: id, type: int64}]", "state: absent"))
    (step,) = reconciler(swapped, "plan", "m.yaml", "--format", "json").json["steps"]
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "not_owned")
    assert reconciler(swapped, "apply", "m.yaml", "--yes").code == 3
    assert LocalFiles(swapped / "lake").all() == before


def test_a_plan_of_before_does_not_deregister_it_either(tmp_path: Path, nested: dict[str, Any]) -> None:
    docs = catalog("me", **nested), namespace("a")
    write(tmp_path, *docs, table("a", "t"), table("a", "u"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, *docs, table("a", "u"))
    assert reconciler(tmp_path, "plan", "m.yaml", "--prune", "-o", "p.json").code == 0
    folder = folder_of(tmp_path)
    shutil.rmtree(folder)
    lance.write_dataset(pa.table({"id": [1], "secret": ["x"]}), folder)
    before = LocalFiles(folder).all()
    assert reconciler(tmp_path, "apply", "--plan", "p.json", "--yes").code in (1, 4)
    assert LocalFiles(folder).all() == before
    write(tmp_path, *docs, table("a", "t", schema="[{name: id, type: int64}, {name: secret, type: string}]"))
    assert reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json["unowned"] != []  # It is still there.


def test_a_declared_table_in_a_namespace_is_ours_by_its_marker(tmp_path: Path, nested: dict[str, Any]) -> None:
    """Also once its users have written its rows, without our mark. A folder whose marker names nobody, with rows in it,
    was put there by somebody else."""
    docs = catalog("me", **nested), namespace("a")
    write(tmp_path, *docs, table("a", "t").replace(*WITHOUT_SCHEMA))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    folder = folder_of(tmp_path)
    write(tmp_path, *docs, table("a", "t").replace("schema: [{name: id, type: int64}]", "state: absent"))
    held: list[str | None] = []
    for rows, token in ((False, None), (True, None), (True, b""), (True, b"reconciler.owner=them\n")):
        if rows:
            lance.write_dataset(pa.table({"id": [1]}), folder, mode="append")
        if token is not None:
            (folder / ".lance-reserved").write_bytes(token)
        held += [s["blocked_by"] for s in reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json["steps"]]
    assert held == [None, None, "not_owned", "not_owned"]


def test_a_row_whose_folder_is_gone_can_still_be_taken_out(tmp_path: Path, nested: dict[str, Any]) -> None:
    """Nobody's data is there instead."""
    docs = catalog("me", **nested), namespace("a")
    write(tmp_path, *docs, table("a", "t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    shutil.rmtree(folder_of(tmp_path))
    write(tmp_path, *docs, table("a", "t").replace("schema: [{name: id, type: int64}]", "state: absent"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0
