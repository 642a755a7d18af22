"""What a run leaves behind when it fails: one report, on stdout and in the file, and words a person can act on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import Run, catalog, check_schema, namespace, reconciler, table, write

TWO = (catalog(), namespace("a"), table("a", "t"))


def reported(folder: Path, run: Run) -> dict[str, object]:
    """The one report of a run with --format json and --report."""
    report: dict[str, object] = run.json
    check_schema("report", report)
    assert json.loads((folder / "r.json").read_text()) == report
    return report


NO_PLAN = {
    "bad manifests": (
        [catalog(), table("a", "t", schema="[{name: id, type: int46}]")],
        ["--yes"],
        "m.yaml:13:29: type",
    ),
    "unreadable catalog": ([catalog(path="./no/such/lake"), namespace("a")], ["--yes"], "no/such"),
    "parent missing": ([catalog(), table("a", "t")], ["--yes"], "needs namespace a"),
    "no answer": ([*TWO], [], "--yes"),
    "flags": ([*TWO], ["--yes", "--plan", "p.json"], "PATH"),
    "unknown target": ([*TWO], ["--yes", "--target", "b"], "--target b"),
}


@pytest.mark.parametrize("case", NO_PLAN)
def test_no_plan_is_reported_on_stdout_and_in_the_file(tmp_path: Path, case: str) -> None:
    documents, flags, reason = NO_PLAN[case]
    write(tmp_path, *documents)
    run = reconciler(tmp_path, "apply", "m.yaml", "--format", "json", "--report", "r.json", *flags)
    assert run.code == 1
    report = reported(tmp_path, run)
    assert (report["outcome"], report["plan_id"], report["steps"]) == ("failed", "", [])
    assert reason in str(report["message"])
    assert "error: " in run.err
    assert not (tmp_path / "lake").exists()


def test_as_text_the_reason_is_on_stderr_only(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    run = reconciler(tmp_path, "apply", "m.yaml", "--report", "r.json")
    assert (run.code, run.out) == (1, "")
    assert "--yes" in json.loads((tmp_path / "r.json").read_text())["message"]


def test_a_report_counts_the_errors_it_does_not_tell(tmp_path: Path) -> None:
    write(tmp_path, catalog(), *(table("a", f"t{i}", schema="[{name: id, type: int46}]") for i in range(3)))
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json")
    assert run.json["message"].endswith("(and 2 more)")
    assert run.err.count("error[M") == 3


LITERAL = {
    "storage__aws_access_key_id": "AKIAliteral",
    "storage__aws_region": "${env:REGION}",
    "storage__token": "toklit",
}


@pytest.mark.parametrize("more", [[], ["--format", "json"]])
def test_a_saved_plan_names_the_variables_it_needs(tmp_path: Path, more: list[str]) -> None:
    write(tmp_path, catalog(**LITERAL), namespace("a"))
    run = reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", *more, env={"REGION": "us-east-1"})
    assert run.code == 0
    said = [line for line in run.err.splitlines() if line.startswith("warning: catalog lake: ")]
    assert len(said) == 1, "once per catalog"
    assert run.err.count("warning[M447]") == 2
    spec = json.loads((tmp_path / "p.json").read_text())["catalogs"]["lake"]["spec"]
    for key in ("storage.aws_access_key_id", "storage.token"):
        name = spec[key].removeprefix("${env:").removesuffix("}")
        assert name.startswith("RECONCILER_LAKE_")
        assert name in said[0]
    assert "literal" not in run.err + run.out
    assert "region" not in said[0], "a reference is copied as it is"
    without = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", env={"REGION": "us-east-1"})
    assert without.code == 1
    given = {"RECONCILER_LAKE_STORAGE_AWS_ACCESS_KEY_ID": "x", "RECONCILER_LAKE_STORAGE_TOKEN": "y"}
    assert reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", env={"REGION": "r", **given}).code == 0


def test_no_warning_without_literals_or_without_a_file(tmp_path: Path) -> None:
    """Of what a saved plan needs; that a secret stands in the manifest is always said."""
    write(tmp_path, catalog(**LITERAL), namespace("a"))
    assert "warning: catalog lake" not in reconciler(tmp_path, "plan", "m.yaml", env={"REGION": "us-east-1"}).err
    write(tmp_path, catalog(storage__aws_region="${env:REGION}"), namespace("a"))
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env={"REGION": "us-east-1"}).err == ""


def test_orphans_alone_are_no_match(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(), namespace("a"))
    left = "There is nothing to apply, but 1 object is orphaned.\n"
    planned, drift = reconciler(tmp_path, "plan", "m.yaml"), reconciler(tmp_path, "drift", "m.yaml")
    assert (planned.code, planned.out.splitlines()[-1] + "\n") == (0, f"No changes. {left}")
    assert (drift.code, drift.out.splitlines()[-1] + "\n") == (2, f"Drift. {left}")


def test_a_report_is_not_a_plan(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json").code == 0
    run = reconciler(tmp_path, "apply", "--plan", "r.json", "--yes")
    assert run.code == 1
    assert "r.json is a report, not a plan" in run.err
    assert "changed after" not in run.err


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "text", ["{}", '{"a": 1}', "[]", "7", "null", '{"outcome": 1}', '{"outcome": 1, "steps": [1]}']
)
def test_show_takes_plans_and_reports_only(tmp_path: Path, text: str, form: str) -> None:
    (tmp_path / "x.json").write_text(text)
    run = reconciler(tmp_path, "show", "x.json", "--format", form)
    assert run.code == 1
    if form == "json":
        check_schema("failure", run.json)
    else:
        assert run.out == ""
    assert run.err.startswith("error: x.json is n")
    assert run.err.count("\n") == 1


def test_a_variable_that_a_saved_plan_needs_is_to_be_set_for_the_run(tmp_path: Path) -> None:
    """In a manifest it could be given a default; a plan is not edited."""
    write(tmp_path, catalog(path="${env:LAKE_ROOT}"), namespace("a"))
    missing = reconciler(tmp_path, "plan", "m.yaml")
    assert "hint: set it, or give a default: ${env:LAKE_ROOT:-value}" in missing.err
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env={"LAKE_ROOT": "./lake"}).code == 0
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes")
    assert run.code == 1
    assert "p.json:1:1: error[M302]: catalog lake: `spec.path`: " in run.err
    assert "hint: set it for this run: a saved plan is applied as it is" in run.err
