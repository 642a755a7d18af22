"""`status`: one look, no writes, exit code 0 whenever it could look."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from cli_runs import catalog, namespace, reconciler, table, write

from reconciler.model.ident import ObjectKey
from reconciler.model.plan import Summary
from reconciler.model.run_context import AppliedBy
from reconciler.model.status import CatalogStatus, FleetStatus
from reconciler.render.status import status_text


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """One of each: as declared, to be created, changed, orphaned, not ours."""
    first = (catalog(), namespace("a"), table("a", "same"), table("a", "changed"), table("a", "orphan"))
    write(tmp_path, *first)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", env={"GITHUB_ACTOR": "ada"}).code == 0
    lance.write_dataset(pa.schema([("id", pa.int64())]).empty_table(), str(tmp_path / "lake" / "theirs.lance"))
    wider = table("a", "changed", schema="[{name: id, type: int64}, {name: more, type: string}]")
    write(tmp_path, catalog(), namespace("a"), table("a", "same"), wider, table("a", "new"), table("theirs"))
    return tmp_path


def everything(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(p), p.stat().st_mtime_ns) for p in (folder / "lake").rglob("*"))


def test_as_text(lake: Path) -> None:
    before = everything(lake)
    run = reconciler(lake, "status", "m.yaml")
    lines = run.out.split("\n")
    last = next(line for line in lines if line.startswith("  Last applied: "))
    assert (run.code, run.err) == (0, "")
    assert last.endswith(" by ada")
    assert [line for line in lines if line != last] == [
        "Catalog lake (dir, owner team)",
        "  Live:         1 namespace, 4 tables",
        "  Ours:         1 namespace, 3 tables",
        "  Pending:      1 to create, 1 to update",
        "  Live and not ours:",
        "    without an owner: 1 table",
        "  Not as declared:",
        "    table a.changed: add_columns: + schema.more string",
        "    table a.new: declare_table, create_dataset",
        "  Orphans, ours and no longer declared:",
        "    table a.orphan",
        "  As declared, and not ours yet (`apply --adopt` takes what nobody owns):",
        "    table theirs, without an owner",
        "",
    ]
    assert everything(lake) == before


def test_as_json_each_object_says_who_wrote_it(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes", "--target", "a.changed", env={"GITHUB_ACTOR": "bob"}).code == 0
    found = reconciler(lake, "status", "m.yaml", "--format", "json").json["catalogs"]["lake"]
    who = {".".join(entry["object"]["id"]): entry["by"] for entry in found["applied"]}
    assert who == {"a": "ada", "a.same": "ada", "a.orphan": "ada", "a.changed": "bob"}
    assert (found["last_applied"]["by"], found["complete"]) in (("ada", True), ("bob", True))  # in one second
    assert found["summary"] == {"create": 1, "update": 0, "delete": 0, "blocked": 0, "unsupported": 0}


@pytest.fixture
def shared(lake: Path) -> Path:
    """As `lake`, with objects that another team applied: one of them as we declare it, one not."""
    theirs = (namespace("b"), table("b", "c"), table("b", "differs"))
    write(lake, catalog(owner="fleet *team*"), *theirs, name="fleet.yaml")
    assert reconciler(lake, "apply", "fleet.yaml", "--yes").code == 0
    wider = table("b", "differs", schema="[{name: id, type: int64}, {name: more, type: string}]")
    write(lake, catalog(), namespace("a"), namespace("b"), table("b", "c"), wider, table("theirs"))
    return lake


def test_whose_the_others_are(shared: Path) -> None:
    lines = reconciler(shared, "status", "m.yaml").out.split("\n")
    assert lines[lines.index("  Live and not ours:") :][:3] == [
        "  Live and not ours:",
        "    owned by fleet *team*: 1 namespace, 2 tables",
        "    without an owner: 1 table",
    ]
    assert "    table b.differs: add_columns (blocked, owned by fleet *team*): + schema.more string" in lines
    at = lines.index("  As declared, and not ours yet (`apply --adopt` takes what nobody owns):")
    assert lines[at + 1 : at + 4] == [
        "    namespace b, owned by fleet *team*",
        "    table b.c, owned by fleet *team*",
        "    table theirs, without an owner",
    ]


def test_whose_the_others_are_in_other_formats(shared: Path) -> None:
    found = reconciler(shared, "status", "m.yaml", "--format", "json").json["catalogs"]["lake"]
    whose = {".".join(entry["object"]["id"]): entry["owner"] for entry in found["others"]}
    assert whose == {"b": "fleet *team*", "b.c": "fleet *team*", "b.differs": "fleet *team*", "theirs": None}
    assert found["live"]["tables"] == found["owned"]["tables"] + 3
    page = reconciler(shared, "status", "m.yaml", "--format", "markdown").out
    assert "**Catalog `lake`: Live and not ours**\n\n- owned by fleet `*team*`: 1 namespace, 2 tables\n" in page
    assert "- table `b.c`, owned by fleet `*team*`\n" in page
    narrow = reconciler(shared, "status", "m.yaml", "--target", "theirs", "--format", "json").json["catalogs"]["lake"]
    assert [entry["object"]["id"] for entry in narrow["others"]] == [["theirs"]]


def test_a_catalog_that_is_all_ours_says_nothing_of_others(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("a"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    run = reconciler(tmp_path, "status", "m.yaml")
    assert "Ours:         1 namespace, 0 tables" in run.out
    assert "not ours" not in run.out
    assert reconciler(tmp_path, "status", "m.yaml", "--format", "json").json["catalogs"]["lake"]["others"] == []


def test_a_target_narrows_it(lake: Path) -> None:
    found = reconciler(lake, "status", "m.yaml", "--target", "a.new", "--format", "json").json["catalogs"]["lake"]
    assert [p["object"]["id"] for p in found["pending"]] == [["a", "new"]]
    assert (found["orphans"], found["owned"]["tables"]) == ([], 0)


def test_all_figures_are_of_the_target_and_what_it_leaves_out_is_told(lake: Path) -> None:
    whole = reconciler(lake, "status", "m.yaml", "--format", "json").json["catalogs"]["lake"]
    assert whole["left_out"] == {
        "live": {"namespaces": 0, "tables": 0, "other_tables": 0},
        "declared": [],
    }
    run = reconciler(lake, "status", "m.yaml", "--target", "a.same")
    assert "  Live:         0 namespaces, 1 table\n  Ours:         0 namespaces, 1 table\n" in run.out
    left = "by --target: 4 declared objects (a, a.changed, a.new, theirs); live and not in these figures: "
    assert f"  Left out:     {left}1 namespace, 3 tables\n" in run.out
    found = reconciler(lake, "status", "m.yaml", "--target", "a.same", "--format", "json").json["catalogs"]["lake"]
    for kind in ("namespaces", "tables"):
        assert found["live"][kind] + found["left_out"]["live"][kind] == whole["live"][kind]
    declared = [".".join(key["id"]) for key in found["left_out"]["declared"]]
    assert declared == ["a", "a.changed", "a.new", "theirs"]
    page = reconciler(lake, "status", "m.yaml", "--target", "a.same", "--format", "markdown").out
    assert "**Catalog `lake`: Left out** by `--target`: 4 declared objects " in page
    assert "Left out" not in reconciler(lake, "status", "m.yaml").out


def test_a_commit_with_changes_says_so_in_words(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("a"))
    git = ("git", "-C", str(tmp_path), "-c", "user.name=ada", "-c", "user.email=ada@example.org")
    for words in (("init", "-q"), ("add", "m.yaml"), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "m.yaml").write_text((tmp_path / "m.yaml").read_text() + "# more\n")
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    for how in ("text", "markdown"):
        told = reconciler(tmp_path, "status", "m.yaml", "--format", how).out
        assert re.search(r"commit `?[0-9a-f]{12}`? \(with uncommitted changes\)", told), told


def test_what_another_writer_noted_does_not_fill_the_screen() -> None:
    """The note is a property of a live object: anybody who may write it chose its length."""
    key = ObjectKey("lake", ("t",), "Table")
    by = AppliedBy("2026-01-02T03:04:05Z" + "0" * 5000, "a" * 5000, "c" * 5000 + "+", "https://ci.example/7" * 300)
    one = CatalogStatus("lake", "dir", "us", True, (), 1, 1, 1, 1, Summary(), (), (), (), ((key, by),))
    line = next(line for line in status_text(FleetStatus((one,))).splitlines() if "Last applied" in line)
    assert len(line) < 800
    assert all(part in line for part in ("2026-01-02T03:04:05Z", " by aaa", ", commit ccc", "https://ci.example/7"))
    assert "(with uncommitted changes)" in line


def test_markdown_holds_no_markup_of_others(tmp_path: Path) -> None:
    name = "x|[a](b)<i>@ada c"
    write(tmp_path, catalog(), namespace(name))
    out = reconciler(tmp_path, "status", "m.yaml", "--format", "markdown").out
    assert "create" in out
    assert r"- namespace `x|[a](b)<i>@ada` c: `create_namespace`" in out, "all that could be markup is code"


def test_what_cannot_be_read_is_an_error_or_said(tmp_path: Path) -> None:
    write(tmp_path, catalog(path="./no/such/folder"), namespace("a"))
    run = reconciler(tmp_path, "status", "m.yaml")
    assert (run.code, run.out) == (1, "")
    write(tmp_path, catalog(), table("broken"))
    (tmp_path / "lake" / "broken.lance").mkdir(parents=True)
    (tmp_path / "lake" / "broken.lance" / "data").write_text("not a dataset")
    run = reconciler(tmp_path, "status", "m.yaml")
    assert run.code == 0
    assert "  Incomplete: what could not be read is in none of these figures\n    broken" in run.out
    assert "table broken: declare_table (blocked)" in run.out or "(blocked)" in run.out
