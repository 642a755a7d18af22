"""--format of every command: a document for those who take it in, whatever happened, and the same exit code."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as tree

import pytest
from cli_runs import catalog, check_schema, namespace, process, reconciler, table, write

DOCUMENTS = ("markdown", "sarif", "junit")


def well_formed(text: str, how: str) -> None:
    if how == "markdown":
        assert text.startswith("### ")
    elif how == "sarif":
        assert json.loads(text)["version"] == "2.1.0"
    else:
        assert tree.fromstring(text.encode()).tag == "testsuites"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, catalog(), namespace("a"), table("a", "t"))
    return tmp_path


@pytest.mark.parametrize("how", DOCUMENTS)
@pytest.mark.parametrize("command", ["validate", "plan", "drift"])
def test_good_manifests(lake: Path, command: str, how: str) -> None:
    run = reconciler(lake, command, "m.yaml", "--format", how)
    assert run.code == (2 if command == "drift" else 0)
    well_formed(run.out, how)
    red = tree.fromstring(run.out.encode()).attrib["failures"] if how == "junit" else None
    assert red in (None, "2" if command == "drift" else "0")


@pytest.mark.parametrize("how", DOCUMENTS)
@pytest.mark.parametrize("command", ["validate", "plan", "drift"])
def test_manifests_with_errors_give_a_document_too(tmp_path: Path, command: str, how: str) -> None:
    write(tmp_path, catalog(), namespace("a", spec="{propertys: {x: y}}"))
    run = reconciler(tmp_path, command, "m.yaml", "--format", how)
    assert run.code == 1
    well_formed(run.out, how)
    assert "M203" in run.out
    assert "propertys" in run.out


def test_text_has_errors_on_stderr_only(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("a", spec="{propertys: {x: y}}"))
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert (run.code, run.out) == (1, "")
    assert "M203" in run.err


@pytest.mark.parametrize("command", ["plan", "drift", "status"])
def test_json_is_one_document_also_when_there_is_no_plan(tmp_path: Path, command: str) -> None:
    write(tmp_path, catalog(), namespace("a", spec="{propertys: {x: y}}"))
    wrong = reconciler(tmp_path, command, "m.yaml", "--format", "json")
    assert wrong.code == 1
    check_schema("failure", wrong.json)
    assert (
        wrong.json["diagnostics"] == reconciler(tmp_path, "validate", "m.yaml", "--format", "json").json["diagnostics"]
    )
    assert wrong.json["summary"] == {"errors": 1, "warnings": 0}
    assert f"error: {wrong.json['error']['message']}" in wrong.err
    assert "M203" in wrong.err
    dead_server = "{type: rest, uri: http://127.0.0.1:9, max_retries: 0}"
    write(tmp_path, f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: far}}\nspec: {dead_server}\n")
    dead = reconciler(tmp_path, command, "m.yaml", "--format", "json")
    assert dead.code == 1
    check_schema("failure", dead.json)
    assert dead.json["diagnostics"] == []
    assert "127.0.0.1:9" in dead.json["error"]["message"]
    assert (dead.json["error"]["code"], dead.json["error"]["name"]) == (17, "ServiceUnavailable")
    assert (wrong.json["error"]["code"], wrong.json["error"]["name"]) == (None, None)
    report = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json").json
    check_schema("report", report)
    assert (report["error"]["code"], report["error"]["name"]) == (17, "ServiceUnavailable")


def test_no_result_is_no_plan_that_could_be_applied(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("a", spec="{propertys: {x: y}}"))
    (tmp_path / "p.json").write_text(reconciler(tmp_path, "plan", "m.yaml", "--format", "json").out)
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes")
    assert run.code == 1
    assert "p.json" in run.err
    assert not (tmp_path / "lake").exists()


def test_a_flag_that_names_nothing_is_a_document_too(lake: Path) -> None:
    for words in (("plan", "m.yaml", "--catalog", "nowhere"), ("show", "nowhere.json"), ("explain", "nowhere")):
        run = reconciler(lake, *words, "--format", "json")
        assert run.code == 1
        check_schema("failure", run.json)
        assert "nowhere" in run.json["error"]["message"]


@pytest.mark.parametrize("how", DOCUMENTS)
def test_a_run_that_fails_later_gives_a_document_too(lake: Path, how: str) -> None:
    run = reconciler(lake, "plan", "m.yaml", "--catalog", "nowhere", "--format", how)
    assert run.code == 1
    well_formed(run.out, how)
    assert "nowhere" in run.out


def test_warnings_come_along_with_the_plan(lake: Path) -> None:
    """A table in a namespace that is neither declared nor live is a warning of validate; live, it stays one of plan."""
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    write(lake, catalog(), table("a", "t"))
    run = reconciler(lake, "plan", "m.yaml", "--format", "sarif")
    (found,) = json.loads(run.out)["runs"][0]["results"]
    assert found["ruleId"] == "M403"
    assert "M403" in reconciler(lake, "plan", "m.yaml", "--format", "markdown").out


def test_apply_gives_its_report(lake: Path) -> None:
    run = reconciler(lake, "apply", "m.yaml", "--yes", "--format", "markdown", "--report", "r.json")
    assert run.code == 0
    assert run.out.startswith("### Applied: 3 done\n")
    assert reconciler(lake, "show", "r.json", "--format", "markdown").out == run.out
    again = reconciler(lake, "apply", "m.yaml", "--yes", "--format", "junit")
    assert tree.fromstring(again.out.encode()).attrib["failures"] == "0"


@pytest.mark.parametrize("how", ["markdown", "junit"])
def test_apply_that_cannot_start_gives_a_report_too(lake: Path, how: str) -> None:
    run = reconciler(lake, "apply", "m.yaml", "--format", how)
    assert run.code == 1
    well_formed(run.out, how)
    assert "pass --yes" in run.out.replace("`", "")


@pytest.mark.parametrize("how", ["text", "json", *DOCUMENTS])
def test_show_knows_plan_report_and_journal(lake: Path, how: str) -> None:
    done = reconciler(lake, "plan", "m.yaml", "-o", "plan.json", "--format", how)
    shown = reconciler(lake, "show", "plan.json", "--format", how)
    assert (shown.code, shown.out) == (0, done.out)
    flags = ("--yes", "--report", "r.json", "--journal", "run.jsonl")
    assert reconciler(lake, "apply", "--plan", "plan.json", *flags).code == 0
    for file in ("r.json", "run.jsonl"):
        run = reconciler(lake, "show", file, "--format", how)
        assert run.code == 0
        if how in DOCUMENTS:
            well_formed(run.out, how)
        if how != "sarif":
            assert "create_dataset" in run.out
    journal = [json.loads(line) for line in (lake / "run.jsonl").read_text().splitlines()]
    cut = [e for e in journal if e["event"] != "finish" and not (e["event"] == "end" and e["step"] == "s3")]
    (lake / "killed.jsonl").write_text("".join(json.dumps(e) + "\n" for e in cut) + '{"event":"en')
    killed = reconciler(lake, "show", "killed.jsonl", "--format", how)
    assert killed.code == 0
    if how == "json":
        check_schema("journal", killed.json)
        check_schema("journal", reconciler(lake, "show", "run.jsonl", "--format", how).json)
    words = {"text": "NO END", "json": '"never_ended": 1', "markdown": "never ended", "junit": "<error", "sarif": "s3"}
    assert words[how] in killed.out


def test_show_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"event": "other"}\n')
    run = reconciler(tmp_path, "show", "x.json")
    assert run.code == 1
    assert "neither a plan, nor a report, nor a journal" in run.err


@pytest.mark.slow
def test_junit_is_what_it_says_in_any_encoding(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("a"), name="é.yaml")
    run = process(tmp_path, "validate", "é.yaml", "--format", "junit", env={"PYTHONIOENCODING": "latin-1"})
    assert tree.fromstring(run.out.encode()).find(".//testcase[@name='é.yaml']") is not None


COMMAND = "##[add-mask]x"


def test_no_command_of_a_runner_leaves_the_program(tmp_path: Path) -> None:
    """A saved plan with one in it is the same plan, and is applied."""
    write(tmp_path, catalog(), namespace("a", spec=json.dumps({"properties": {COMMAND: COMMAND}})))
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    shown = [reconciler(tmp_path, *words, "--format", how) for how in ("text", "json", "markdown", "junit", "sarif")
             for words in (["plan", "m.yaml"], ["show", "p.json"], ["validate", "m.yaml"])]  # fmt: skip
    plans = [json.loads(run.out) for run in shown if '"plan_id"' in run.out]
    saved = json.loads((tmp_path / "p.json").read_text())
    assert plans == [saved, saved]
    assert saved["steps"][0]["after"]["properties"] == {COMMAND: COMMAND}
    flags = ("--yes", "--report", "r.json", "--journal", "j.jsonl", "--log-format", "json")
    shown.append(reconciler(tmp_path, "apply", "--plan", "p.json", *flags))
    assert shown[-1].code == 0
    shown.append(reconciler(tmp_path, "validate", f"{COMMAND}.yaml"))
    files = [path.read_text() for path in (tmp_path / "p.json", tmp_path / "r.json", tmp_path / "j.jsonl")]
    for text in (*files, *(text for run in shown for text in (run.out, run.err))):
        assert COMMAND[:3] not in text
    assert reconciler(tmp_path, "plan", "m.yaml").out.startswith("No changes.")


NAMING = """---
apiVersion: reconciler.lance/v1
kind: Policy
metadata: {name: p}
spec: {rules: [{rule: naming, table: "[a-z]+"}]}
"""


@pytest.mark.parametrize("words", [["plan"], ["validate"]])
def test_a_rule_in_sarif_says_what_explain_says(tmp_path: Path, words: list[str]) -> None:
    write(tmp_path, catalog(), table("T1"), NAMING)
    (run,) = reconciler(tmp_path, *words, "m.yaml", "--format", "sarif").json["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    (known,) = reconciler(tmp_path, "explain", "P001", "--format", "json").json["explanations"]
    assert rule["id"] == "P001"
    assert rule["shortDescription"]["text"] == "Name that does not fit the naming pattern"
    assert known["fix"] in rule["help"]["text"]
    assert known["means"] in rule["help"]["text"]


@pytest.mark.parametrize("how", ["markdown", "html", "sarif", "junit"])
def test_that_a_catalog_is_not_used_is_in_every_document(tmp_path: Path, how: str) -> None:
    """Also when nothing else is to be told: whoever opens the artifact sees no log."""
    (tmp_path / "base").mkdir()
    write(tmp_path / "base", catalog())
    write(tmp_path, catalog(path="./elsewhere"))
    run = reconciler(tmp_path, "plan", "m.yaml", "--catalogs-from", "base", "--format", how)
    assert run.code == 0
    assert "M312" in run.out
    if how == "markdown":
        assert run.out.startswith("### No changes. The live catalogs match the manifests.\n\n#### Warnings\n\n|")
        assert run.out.count("M312") == 1


def test_that_a_file_holds_secrets_is_in_the_document(tmp_path: Path) -> None:
    secret = "CANARY-of-a-catalog-7"
    write(tmp_path, catalog(storage__token="${env:TOKEN}"), namespace("a", spec=f"{{properties: {{x: {secret}}}}}"))
    words = ("plan", "m.yaml", "-o", "p.json", "--format", "markdown")
    run = reconciler(tmp_path, *words, env={"TOKEN": secret})
    assert run.code == 0
    assert "hold secrets of this run" in run.err
    assert "hold secrets of this run" in run.out
    assert secret not in run.out
