"""Why a step was not run stands wherever the run is told of: whoever has only the report learns what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import Run, catalog, check_schema, namespace, reconciler, table, write

WHY = "belongs to them"
REMEDY = "--take-over them"


@pytest.fixture
def taken(tmp_path: Path) -> Path:
    """A table of somebody else, and a namespace that is not there yet."""
    write(tmp_path, catalog("them"), namespace("a"), table("a", "t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog("us"), namespace("b"), table("a", "t", spec='description: "other"'))
    return tmp_path


def applied(folder: Path, *arguments: str, code: int = 3) -> Run:
    run = reconciler(folder, "apply", "m.yaml", "--yes", "--report", "r.json", "--journal", "j.jsonl", *arguments)
    assert run.code == code, run
    return run


def test_the_report_says_what_holds_a_step_back(taken: Path) -> None:
    run = applied(taken, "--format", "json")
    report = json.loads((taken / "r.json").read_text())
    assert report == run.json
    check_schema("report", report)
    held = [s for s in report["steps"] if s["status"] == "not_run"]
    assert [(s["verdict"], s["blocked_by"], s["error"]) for s in held] == [("blocked", "foreign_owner", None)]
    assert WHY in held[0]["reason"]
    assert REMEDY in held[0]["reason"]
    assert not any({"verdict", "blocked_by", "reason"} & s.keys() for s in report["steps"] if s["status"] == "done")
    assert report["message"].startswith("1 done, 1 blocked; s2 update_table lake:a.t: it belongs to them")
    assert REMEDY in report["message"]
    assert REMEDY in run.err
    assert "error: partly applied: 1 done, 1 blocked; " in run.err


@pytest.mark.parametrize("how", ["text", "markdown", "html", "junit", "sarif", "json"])
@pytest.mark.parametrize("file", ["r.json", "j.jsonl"])
def test_every_format_of_report_and_journal_has_it(taken: Path, how: str, file: str) -> None:
    run = applied(taken, "--format", how if how in ("text", "markdown", "junit", "json") else "text")
    shown = reconciler(taken, "show", file, "--format", how).out
    for text in (run.out, shown) if file == "r.json" else (shown,):
        assert "foreign_owner" in text, text
        assert "take-over" in text, text
        assert "blocked" in text
    if how == "json" and file == "j.jsonl":
        check_schema("journal", json.loads(shown))


def test_a_journal_names_the_step_that_it_holds_back(taken: Path) -> None:
    applied(taken)
    shown = reconciler(taken, "show", "j.jsonl").out
    line = next(line for line in shown.splitlines() if "blocked  " in line)
    assert "update_table  lake:a.t" in line


def test_a_log_for_programs_has_it(taken: Path) -> None:
    lines = [json.loads(line) for line in applied(taken, "--log-format", "json").err.splitlines()]
    held = [line for line in lines if line["event"] == "step_held_back"]
    assert [(h["level"], h["verdict"], h["blocked_by"], h["object"]["id"]) for h in held] == [
        ("warning", "blocked", "foreign_owner", ["a", "t"])
    ]
    assert REMEDY in held[0]["reason"]
    assert REMEDY in held[0]["message"]


def test_the_last_words_say_it_once(taken: Path) -> None:
    reconciler(
        taken, "apply", "m.yaml", "--yes", "--format", "json", env={"RECONCILER_TERMINATION_LOG": "last-words"}
    )  # fmt: skip
    assert (taken / "last-words").read_text().count(REMEDY) == 1


def test_what_refuses_the_whole_run_is_on_each_step_of_it(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("a"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    limits = catalog().replace("{owner: team}", "{owner: team, thresholds: {deletes: 0}}")
    write(tmp_path, limits, namespace("a", spec="{state: absent}"))
    applied(tmp_path)
    (step,) = json.loads((tmp_path / "r.json").read_text())["steps"]
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "threshold")
    assert "threshold" in reconciler(tmp_path, "show", "j.jsonl").out


def test_many_reasons_are_counted_and_the_first_are_told(tmp_path: Path) -> None:
    names = [f"t{n}" for n in range(9)]
    write(tmp_path, catalog("them"), *(table(n) for n in names))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog("us"), *(table(n, spec="description: x") for n in names))
    message = applied(tmp_path, "--format", "json").json["message"]
    assert message.startswith("9 blocked; s1 ")
    assert message.count(REMEDY) == 3
    assert message.endswith("; and 6 more")


def test_a_report_of_an_earlier_version_is_shown(taken: Path) -> None:
    applied(taken)
    report = json.loads((taken / "r.json").read_text())
    for step in report["steps"]:
        for key in ("verdict", "blocked_by", "reason"):
            step.pop(key, None)
    (taken / "old.json").write_text(json.dumps(report))
    for how in ("text", "markdown", "html", "junit", "sarif", "json"):
        assert reconciler(taken, "show", "old.json", "--format", how).code == 0


def test_a_secret_in_a_reason_stays_in_no_file(tmp_path: Path) -> None:
    """The owner is what somebody else wrote."""
    secret = "CANARYowner12"
    write(tmp_path, catalog(secret), table("t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog("us", storage__token="${env:KEY}"), table("t", spec="description: x"))
    flags = ("--report", "r.json", "--journal", "j.jsonl", "--format", "json", "--log-format", "json")
    env = {"KEY": secret, "RECONCILER_TERMINATION_LOG": "last-words"}
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", *flags, env=env)
    assert run.code == 3
    for text in (run.out, run.err, *((tmp_path / n).read_text() for n in ("r.json", "j.jsonl", "last-words"))):
        assert secret not in text
        assert "belongs to" in text


def test_done_and_blocked_is_partly_applied(taken: Path) -> None:
    """The outcome and the exit code stay those of a refusal; the words say what was done."""
    run = applied(taken)
    assert run.out.splitlines()[-1] == "Partly applied: 1 done, 1 blocked"
    assert json.loads((taken / "r.json").read_text())["outcome"] == "refused"
    for file in ("r.json", "j.jsonl"):
        for how in ("text", "markdown", "html", "junit", "sarif"):
            assert "Refused" not in reconciler(taken, "show", file, "--format", how).out


@pytest.mark.parametrize("command", ["plan", "drift", "apply"])
def test_what_blocks_comes_first_and_once(taken: Path, command: str) -> None:
    """Also where it blocks two steps of a table."""
    write(
        taken,
        catalog("us"),
        namespace("b"),
        table("a", "t", spec='description: "other"', schema="[{name: id, type: int64}, {name: x, type: int64}]"),
    )
    made = reconciler(taken, "plan", "m.yaml", "--format", "json").json
    blocked = [s for s in made["steps"] if s["verdict"] == "blocked"]
    assert len(blocked) > 1
    assert all(
        s["reason"] == f"it belongs to them: pass {REMEDY} to take it from them; {s['purpose']}" for s in blocked
    )
    for how in ("text", "markdown", "junit"):
        flags = ["--yes"] if command == "apply" else []
        out = reconciler(taken, command, "m.yaml", "--format", how, *flags).out
        assert out.count("to take it from them") == (len(blocked) if (command, how) == ("apply", "junit") else 1), out
        assert out.index("belongs to them") < out.index(blocked[0]["purpose"])


def test_a_step_that_is_unsupported_is_called_so_once(tmp_path: Path) -> None:
    write(tmp_path, catalog(), table("t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(), table("t", schema="[{name: other, type: string}]"), table("u"))
    lines = reconciler(tmp_path, "apply", "m.yaml", "--yes").out.splitlines()
    assert any(line.startswith("  unsupported  s1  add_columns") for line in lines)
    assert "unsupported" not in [line.strip() for line in lines]


@pytest.mark.parametrize("spec", ["", "\n  allow: [drop_column]"])
def test_a_plan_says_who_allows_a_step(tmp_path: Path, spec: str) -> None:
    """Where the word is written, or that it is on the command line; saved and shown again, too."""
    write(tmp_path, catalog(), namespace("a"), table("a", "t", schema="[{name: a, type: int8}, {name: b, type: int8}]"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    file = write(tmp_path, catalog(), namespace("a"), table("a", "t", schema="[{name: a, type: int8}]", spec=spec))
    line = next((n for n, text in enumerate(file.read_text().splitlines(), 1) if "allow" in text), None)
    run = reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", *(() if spec else ("--allow", "drop_column")))
    where = f"at m.yaml:{line}" if spec else "by `--allow drop_column`"
    for text in (run.out, reconciler(tmp_path, "show", "p.json").out):
        assert f"`drop_column` is allowed {where}" in text
    saved = json.loads((tmp_path / "p.json").read_text())
    check_schema("plan", saved)
    source = {"file": "m.yaml", "line": line} if spec else None
    assert [s.get("permissions") for s in saved["steps"]] == [[{"word": "drop_column", "source": source}]]
    assert reconciler(tmp_path, "apply", "--plan", "p.json", "--yes").code == 0
