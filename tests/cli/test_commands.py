"""Every command and every exit code, by running the program on real folders."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from cli_runs import REPO, catalog, check_schema, command, environment, namespace, reconciler, table, write

TWO = (catalog(), namespace("a", spec="{properties: {team: x}}"), table("a", "t"))


def applied(folder: Path, *documents: str) -> None:
    write(folder, *(documents or TWO))
    run = reconciler(folder, "apply", "m.yaml", "--yes")
    assert run.code == 0, run.err + run.out


def test_the_way_of_a_change(tmp_path: Path) -> None:
    """validate, plan, save, apply, plan again, change, apply from paths, drift."""
    write(tmp_path, *TWO)
    assert reconciler(tmp_path, "validate", "m.yaml").out == "3 documents, 0 errors, 0 warnings\n"
    planned = reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json")
    assert planned.code == 0, planned.err
    assert '  + namespace a\n      + team = "x"' in planned.out
    assert planned.out.endswith("Plan: 2 to create, 0 to update, 0 to delete, 0 blocked.\n")
    check_schema("plan", json.loads((tmp_path / "p.json").read_text()))
    assert not (tmp_path / "lake").exists(), "plan writes nothing"
    done = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--report", "r.json", "--format", "json")
    assert (done.code, done.err) == (0, "")
    check_schema("report", done.json)
    assert done.json == json.loads((tmp_path / "r.json").read_text())
    assert (done.json["outcome"], done.json["summary"]["done"]) == ("applied", 3)
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").out.startswith("No changes.")
    again = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--format", "json")
    assert (again.code, again.json["summary"]["skipped"]) == (0, 3)
    write(
        tmp_path,
        catalog(),
        namespace("a"),
        table("a", "t", schema="[{name: id, type: int64}, {name: n, type: string}]"),
    )
    drift = reconciler(tmp_path, "drift", "m.yaml")
    assert drift.code == 2
    assert '- team = "x"' in drift.out
    assert "+ column n: string" in drift.out
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    assert reconciler(tmp_path, "drift", "m.yaml").code == 0
    uri = next(str(p) for p in (tmp_path / "lake").iterdir() if p.name.endswith("a$t"))
    assert lance.dataset(uri).schema.names == ["id", "n"]


def test_plans_are_the_same_bytes_and_show_renders_them(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    first = reconciler(tmp_path, "plan", "m.yaml", "--format", "json", "-o", "p.json")
    second = reconciler(tmp_path, "plan", "m.yaml", "--format", "json")
    assert first.out == second.out == (tmp_path / "p.json").read_text()
    shown = reconciler(tmp_path, "show", "p.json", "--format", "json")
    assert shown.out == first.out
    assert reconciler(tmp_path, "show", "p.json").out == reconciler(tmp_path, "plan", "m.yaml").out
    applied(tmp_path)
    reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json")
    report = reconciler(tmp_path, "show", "r.json")
    assert (report.code, report.out.splitlines()[-1]) == (0, "No changes")
    check_schema("report", reconciler(tmp_path, "show", "r.json", "--format", "json").json)


def test_the_example_is_planned_by_the_published_schema(tmp_path: Path) -> None:
    run = reconciler(tmp_path, "plan", REPO / "manifests-example", "--format", "json")
    assert run.code == 0, run.err
    check_schema("plan", run.json)


def test_detailed_exit_code(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    assert reconciler(tmp_path, "plan", "m.yaml").code == 0
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 2
    applied(tmp_path)
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0
    write(tmp_path, catalog(), namespace("a", spec="{properties: {team: x}}"))
    orphaned = reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode")
    assert orphaned.code == 0, "orphans alone are no step"
    assert "table a.t" in orphaned.out
    assert reconciler(tmp_path, "drift", "m.yaml").code == 2, "drift counts orphans"


def test_blocked_steps_are_3_and_the_rest_is_applied(tmp_path: Path) -> None:
    applied(
        tmp_path, catalog(), namespace("a"), table("a", "t", schema="[{name: id, type: int64}, {name: x, type: int8}]")
    )
    write(tmp_path, catalog(), namespace("a"), namespace("b"), table("a", "t"))
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json")
    assert run.code == 3, run.out
    assert "      ! drop_columns blocked: " in run.out
    assert "--allow drop_column" in run.out
    report = json.loads((tmp_path / "r.json").read_text())
    check_schema("report", report)
    assert report["outcome"] == "refused"
    assert {s["action"]: s["status"] for s in report["steps"]} == {
        "create_namespace": "done",
        "drop_columns": "not_run",
    }
    allowed = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--allow", "drop_column", "--format", "json")
    assert allowed.code == 0
    (dropped,) = allowed.json["steps"]
    assert dropped["tag"].startswith("reconciler-")
    assert dropped["version_after"] > dropped["version_before"]
    uri = next(str(p) for p in (tmp_path / "lake").iterdir() if p.name.endswith("a$t"))
    assert lance.dataset(uri, version=dropped["tag"]).schema.names == ["id", "x"]


def test_a_threshold_refuses_with_zero_writes(tmp_path: Path) -> None:
    many = [namespace(f"n{i:02}") for i in range(12)]
    applied(tmp_path, catalog(), *many)
    write(tmp_path, catalog(), namespace("new"))
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--prune", "--format", "json")
    assert run.code == 3
    assert run.json["outcome"] == "refused"
    assert {s["status"] for s in run.json["steps"]} == {"not_run"}
    assert "Plan: 1 to create" in reconciler(tmp_path, "plan", "m.yaml").out, "nothing was written"


def test_prune_deletes_what_is_ours_and_keeps_data(tmp_path: Path) -> None:
    applied(tmp_path)
    uri = next(p for p in (tmp_path / "lake").iterdir() if p.name.endswith("a$t"))
    write(tmp_path, catalog())
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--prune", "--format", "json")
    assert run.code == 0, run.out
    check_schema("report", run.json)
    assert [s["action"] for s in run.json["steps"]] == ["deregister_table", "drop_namespace"]
    assert lance.dataset(str(uri)).count_rows() == 0
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0


def test_a_stale_plan_is_4_with_zero_writes(tmp_path: Path) -> None:
    applied(tmp_path)
    write(tmp_path, catalog(), namespace("a"), table("a", "t", spec="properties: {x: '1'}"))
    reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json")
    write(tmp_path, catalog(), namespace("a"), table("a", "t", spec="properties: {x: '2'}"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--report", "r.json")
    assert run.code == 4
    assert "lake:a.t" in run.out
    report = json.loads((tmp_path / "r.json").read_text())
    check_schema("report", report)
    assert (report["outcome"], report["summary"]["done"]) == ("stale", 0)
    assert reconciler(tmp_path, "drift", "m.yaml").code == 0


@pytest.mark.parametrize(
    ("wanted", "outsider"),
    [
        ((namespace("z", spec="{renamedFrom: [a]}"), table("z", "t")), namespace("z", spec="{properties: {team: x}}")),
        ((namespace("a"), namespace("b"), table("b", "u", spec="renamedFrom: [a, t]")), namespace("b", "u")),
        ((namespace("a"), namespace("z"), namespace("b")), table("b")),
    ],
    ids=["a namespace like the one to be renamed", "a namespace where a table goes", "a table where a namespace goes"],
)
def test_an_outsider_under_a_name_that_the_plan_fills_makes_it_stale(
    tmp_path: Path, wanted: tuple[str, ...], outsider: str
) -> None:
    """Someone with the same owner, so that nothing but the name tells them apart."""
    applied(tmp_path)
    write(tmp_path, catalog(), *wanted)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    write(tmp_path, catalog(), namespace("b") if '"b", "u"' in outsider else "", outsider, name="theirs.yaml")
    assert reconciler(tmp_path, "apply", "theirs.yaml", "--yes").code == 0
    before = reconciler(tmp_path, "import", "theirs.yaml", "-o", "before").code, live_text(tmp_path / "before")
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--format", "json")
    assert (run.code, run.json["outcome"]) == (4, "stale"), run.json["message"]
    assert (reconciler(tmp_path, "import", "theirs.yaml", "-o", "after").code, live_text(tmp_path / "after")) == before


def live_text(folder: Path) -> str:
    return "".join(f"{p.relative_to(folder)}\n{p.read_text()}" for p in sorted(folder.rglob("*.yaml")))


def test_partly_applied_is_5(tmp_path: Path) -> None:
    """`not null` on a column that gets a null after the plan was made is refused by the data."""
    applied(tmp_path)
    uri = next(str(p) for p in (tmp_path / "lake").iterdir() if p.name.endswith("a$t"))
    lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), uri, mode="append")
    not_null = "[{name: id, type: int64, nullable: false}]"
    write(tmp_path, catalog(), namespace("a", spec="{properties: {team: y}}"), table("a", "t", schema=not_null))
    assert reconciler(tmp_path, "plan", "m.yaml", "--allow", "set_not_null", "-o", "p.json").code == 0
    lance.write_dataset(pa.table({"id": pa.array([None], pa.int64())}), uri, mode="append")
    arguments = ("apply", "--plan", "p.json", "--yes", "--report", "r.json")
    run = reconciler(tmp_path, *arguments)
    report = json.loads((tmp_path / "r.json").read_text())
    check_schema("report", report)
    assert (run.code, report["outcome"]) == (5, "partial"), report
    assert {s["action"]: s["status"] for s in report["steps"]} == {
        "update_namespace": "done",
        "alter_columns": "failed",
    }
    assert "FAILED" in run.out
    alone = reconciler(tmp_path, *arguments)
    assert alone.code == 1, "no write landed"
    assert json.loads((tmp_path / "r.json").read_text())["outcome"] == "failed"


BAD_INPUT = {
    "no such path": (["plan", "nowhere"], "nowhere"),
    "no such command": (["pla"], "did you mean plan?"),
    "unknown flag": (["plan", "m.yaml", "--pruen"], "did you mean --prune?"),
    "abbreviated flag": (["plan", "m.yaml", "--detailed"], "is not known here"),
    "unknown allow word": (["plan", "m.yaml", "--allow", "everything"], "is not one of drop_column"),
    "bad var": (["plan", "m.yaml", "--var", "x"], "NAME=VALUE"),
    "unknown catalog": (["plan", "m.yaml", "--catalog", "lak"], "did you mean lake?"),
    "unknown target": (["plan", "m.yaml", "--target", "a.tt"], "did you mean a.t?"),
    "plan and paths": (["apply", "m.yaml", "--plan", "p.json", "--yes"], "PATH"),
    "plan and prune": (["apply", "--plan", "p.json", "--prune", "--yes"], "--prune"),
    "neither plan nor path": (["apply", "--yes"], "--plan FILE"),
    "no terminal": (["apply", "m.yaml"], "--yes"),
    "missing plan": (["apply", "--plan", "p.json", "--yes"], "p.json"),
    "not a plan": (["apply", "--plan", "m.yaml", "--yes"], "m.yaml"),
    "show of nothing": (["show", "m.yaml"], "m.yaml"),
    "zero parallelism": (["apply", "m.yaml", "--yes", "--parallelism", "0"], "positive"),
    "nan timeout": (["apply", "m.yaml", "--yes", "--timeout", "nan"], "positive"),
    "import without folder": (["import", "m.yaml"], "-o"),
    "journal nowhere": (["apply", "m.yaml", "--yes", "--journal", "m.yaml/j"], "journal"),
    "plan file nowhere": (["plan", "m.yaml", "-o", "no/such/p.json"], "no/such/p.json"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_1_with_a_message_and_no_write(tmp_path: Path, case: str) -> None:
    write(tmp_path, *TWO)
    arguments, hint = BAD_INPUT[case]
    run = reconciler(tmp_path, *arguments)
    assert run.code == 1
    assert hint in run.err
    assert run.out == "" or case == "journal nowhere"
    assert not (tmp_path / "lake").exists()


def test_diagnostics_have_a_place_and_a_hint(tmp_path: Path) -> None:
    write(tmp_path, catalog(), table("a", "t", schema="[{name: id, type: int46}]"))
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert run.code == 1
    assert run.err.startswith("m.yaml:")
    assert ": error[M" in run.err
    checked = reconciler(tmp_path, "validate", "m.yaml", "--format", "json")
    assert checked.code == 1
    assert checked.json["summary"]["errors"] == 1
    assert checked.json["diagnostics"][0]["file"] == "m.yaml"


def test_a_failure_before_there_is_a_plan_is_reported_too(tmp_path: Path) -> None:
    run = reconciler(tmp_path, "apply", "nowhere", "--yes", "--report", "r.json")
    assert run.code == 1
    report = json.loads((tmp_path / "r.json").read_text())
    check_schema("report", report)
    assert (report["outcome"], report["plan_id"], report["steps"]) == ("failed", "", [])


def test_an_edited_plan_is_refused(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json")
    text = (tmp_path / "p.json").read_text()
    (tmp_path / "p.json").write_text(text.replace('"team": "x"', '"team": "y"'))
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes")
    assert run.code == 1
    assert "plan_id" in run.err
    assert not (tmp_path / "lake").exists()


def test_import_gives_manifests_whose_plan_is_empty(tmp_path: Path) -> None:
    applied(tmp_path)
    write(tmp_path, catalog(), name="c.yaml")
    run = reconciler(tmp_path, "import", "c.yaml", "-o", "live")
    assert (run.code, run.out) == (0, "wrote live/lake/catalog.yaml\nwrote live/lake/a.yaml\n"), run.err
    again = reconciler(tmp_path, "plan", "live", "--detailed-exitcode")
    assert again.code == 0, again.out
    before = live_text(tmp_path / "live")
    second = reconciler(tmp_path, "import", "c.yaml", "-o", "live")
    assert (second.code, second.out) == (0, "")
    assert second.err == "nothing to do: the files in live say what is live\n"
    assert live_text(tmp_path / "live") == before


def test_help_and_version() -> None:
    assert reconciler(REPO, "--version").out.startswith("reconciler ")
    assert "apply" in reconciler(REPO, "--help").out
    assert "--take-over" in reconciler(REPO, "apply", "--help").out


def test_an_unwritable_default_journal_is_one_warning(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    (tmp_path / ".reconciler").write_text("a file, not a folder")
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert run.code == 0
    assert run.err.startswith("warning: cannot write the journal")
    assert run.err.count("\n") == 1


def test_the_journal_tells_the_story(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--journal", "j.jsonl").code == 0
    events = [json.loads(line) for line in (tmp_path / "j.jsonl").read_text().splitlines()]
    assert events[0]["event"] == "header"
    assert events[0]["plan_id"].startswith("sha256:")
    assert (events[-1]["event"], events[-1]["outcome"]) == ("finish", "applied")
    for step in ("s1", "s2", "s3"):
        assert [e["event"] for e in events if e.get("step") == step] == ["start", "end"]


@pytest.mark.slow
def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    write(tmp_path, catalog(), *(namespace(f"n{i}") for i in range(2000)))
    shell = " ".join(f"'{c}'" for c in command("plan", "m.yaml")) + " | head -n 1"
    done = subprocess.run(
        ["bash", "-c", shell], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout.startswith("Catalog lake")


NEW_COLUMN = "[{name: id, type: int64}, {name: n, type: string}]"


@pytest.mark.parametrize(
    "moved",
    [table("z", "y", "u", spec="renamedFrom: [a, b, t]"), table("z", "y", "t", schema=NEW_COLUMN)],
    ids=["renamed too", "same name"],
)
def test_renames_inside_a_renamed_namespace(tmp_path: Path, moved: str) -> None:
    applied(tmp_path, catalog(), namespace("a"), namespace("a", "b"), table("a", "b", "t"))
    moves = namespace("z", spec="{renamedFrom: [a]}"), namespace("z", "y", spec="{renamedFrom: [a, b]}")
    write(tmp_path, catalog(), *moves, moved)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--format", "json")
    assert (run.code, run.json["summary"]["done"]) == (0, 3), run.out
    assert reconciler(tmp_path, "drift", "m.yaml").code == 0


def test_a_function_that_is_not_installed_stops_nothing_else(tmp_path: Path) -> None:
    head = "apiVersion: reconciler.lance/v1\nkind: "
    lake = (
        f"{head}Catalog\nmetadata: {{name: lake}}\nspec: {{type: dir, path: ./lake, management: {{owner: us}}}}\n---\n"
    )

    def declare(more: str, *tables: str) -> None:
        texts = [
            f"{head}Table\nmetadata: {{catalog: lake, id: [{t}]}}\n"
            f"spec: {{schema: [{{name: id, type: int64}}{more if t == 't' else ''}]}}\n"
            for t in tables
        ]
        (tmp_path / "m.yaml").write_text(lake + "---\n".join(texts))

    declare("", "t")
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    declare(", {name: v, type: int32, backfill: {function: embed}}", "t", "u")
    assert reconciler(tmp_path, "validate", "m.yaml").code == 0
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json")
    assert run.code == 3
    steps = {(s["action"], s["status"]) for s in run.json["steps"]}
    assert {("declare_table", "done"), ("create_dataset", "done"), ("backfill_columns", "not_run")} <= steps
    assert "there is no function 'embed'" in run.out
    dataset = lance.dataset(str(tmp_path / "lake" / "t.lance"))
    dataset.add_columns(pa.schema([("v", pa.int32())]))
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0
