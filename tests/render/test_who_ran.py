"""Reports and journals say who ran it, from which commit, and where to read on."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli.cli_runs import catalog, namespace, reconciler, write
from runs import end, events, finish, header, identity, report, result, start

from reconciler.model.run_record import journal_from
from reconciler.render.ran import run_of_report, runs_of_journal

COMMIT = "c0ffee" * 6
ALL = f"run by ann, commit {COMMIT}, reconciler 1.2.3, https://ci.example/7"
AT = " at 2026-01-02T03:04:05Z"
ALL_AND_WHEN = ALL.replace("ann", f"ann{AT}")
TOLD = [
    (identity(), ALL),
    (identity(dirty=True), f"run by ann, commit {COMMIT} with changes, reconciler 1.2.3, https://ci.example/7"),
    (identity(dirty=None, url=None), f"run by ann, commit {COMMIT}, reconciler 1.2.3"),
    (identity(commit=None, dirty=None), "run by ann, reconciler 1.2.3, https://ci.example/7"),
    (identity(commit=None, dirty=True, url=None), "run by ann, reconciler 1.2.3"),
    ({"by": "ann"}, "run by ann"),
    ({"url": "https://ci.example/7"}, "https://ci.example/7"),
    ({}, ""),
    (None, ""),
    ("ann", ""),
]


@pytest.mark.parametrize(("run", "told"), TOLD)
def test_what_is_known_is_told_and_nothing_else(run: Any, told: str) -> None:
    """Files of older versions have no `run`, and a file can hold anything."""
    when = AT if isinstance(run, dict) and "at" in run else ""
    assert run_of_report(report(result(1), run=run)).who == told.replace("run by ann", f"run by ann{when}")
    lines = events(header() | {"run": run}, start("s1"), end("s1"), finish())
    assert [one.who for one in runs_of_journal(journal_from(lines.splitlines()))] == [told]


def files(folder: Path, **more: Any) -> tuple[str, str]:
    (folder / "r.json").write_text(json.dumps(report(result(1), outcome="applied", message="1 done", **more)))
    (folder / "j.jsonl").write_text(events(header() | more, start("s1"), end("s1"), finish()))
    return "r.json", "j.jsonl"


def words(page: str) -> str:
    """What a person reads of markdown or of a page."""
    return html.unescape(re.sub("<[^>]*>", "", page)).replace("`", "")


@pytest.mark.parametrize("how", ["text", "markdown", "html"])
def test_every_format_for_people_says_it(tmp_path: Path, how: str) -> None:
    for file in files(tmp_path, run=identity()):
        shown = reconciler(tmp_path, "show", file, "--format", how)
        assert shown.code == 0, shown.err
        assert words(shown.out).count(ALL_AND_WHEN if file == "r.json" else ALL) == 1
    for file in files(tmp_path):
        assert "run by" not in reconciler(tmp_path, "show", file, "--format", how).out


def test_text_has_it_before_what_was_done(tmp_path: Path) -> None:
    of_report, of_journal = files(tmp_path, run=identity())
    first, *_ = reconciler(tmp_path, "show", of_report).out.splitlines()
    assert first == ALL_AND_WHEN
    title, second, *_ = reconciler(tmp_path, "show", of_journal).out.splitlines()
    assert (title, second) == ("2026-01-02T03:04:05.000+00:00  run of plan sha256:ab", f"  {ALL}")


def test_a_time_is_told_of_nobody_too() -> None:
    assert run_of_report(report(result(1), run={"at": "2026-01-02T03:04:05Z"})).who == f"run{AT}"


def test_each_part_has_its_own_code_in_markdown(tmp_path: Path) -> None:
    """A link in the same span as a version cannot be copied."""
    for file in files(tmp_path, run=identity()):
        shown = reconciler(tmp_path, "show", file, "--format", "markdown").out
        assert f"commit `{COMMIT}`, reconciler `1.2.3`, `https://ci.example/7`\n" in shown


def test_json_has_it_as_data(tmp_path: Path) -> None:
    of_report, of_journal = files(tmp_path, run=identity())
    assert reconciler(tmp_path, "show", of_report, "--format", "json").json["run"] == identity()
    assert reconciler(tmp_path, "show", of_journal, "--format", "json").json["runs"][0]["run"] == identity()


def test_each_run_of_a_journal_has_its_own(tmp_path: Path) -> None:
    first, second = (events(header() | {"run": identity(by=by)}, finish()) for by in ("ann", "bob"))
    (tmp_path / "j.jsonl").write_text(first + second)
    for how, latest_first in (("text", False), ("markdown", True), ("html", False)):
        shown = words(reconciler(tmp_path, "show", "j.jsonl", "--format", how).out)
        assert (shown.index("run by bob") < shown.index("run by ann")) is latest_first


@pytest.mark.parametrize("how", ["text", "markdown", "html", "json", "sarif", "junit"])
def test_hostile_words_stay_words(tmp_path: Path, how: str) -> None:
    """A file can be anybody's: nothing of it steers a terminal or becomes an element of the page."""
    evil = "\x1b[31m\u202e<img src=x onerror=alert(1)></li><script>x</script>\n"
    for file in files(tmp_path, run=identity(by=evil, commit=evil, url=evil, tool_version=evil)):
        shown = reconciler(tmp_path, "show", file, "--format", how).out
        assert shown.replace("\n", "").isprintable()
        assert how in ("text", "json", "markdown") or "<img" not in shown
        assert how != "text" or "run by \\x1b[31m\\u202e<img src=x" in shown


def test_a_real_run_is_told_by_show_and_not_to_the_one_who_ran_it(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("n"))
    env = {"GITHUB_ACTOR": "ada", "RECONCILER_RUN_URL": "https://u:secret@ci.example/7?token=x"}
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json", "--journal", "j.jsonl", env=env)
    assert done.code == 0, done.err
    assert "run by" not in done.out
    for file in ("r.json", "j.jsonl"):
        shown = reconciler(tmp_path, "show", file).out
        assert re.search(
            r"^ *run by ada( at \S+)?, (commit \w+, )?reconciler \S+, https://ci\.example/7$", shown, re.MULTILINE
        )
