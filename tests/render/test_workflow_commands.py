"""What others write into names, values and messages is no command of a runner: that of GitHub obeys a line that begins
with `::`, be it after spaces, and `##[command]` anywhere in a line, whoever printed it."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rendered_plans import hostile
from runs import failed, identity, report

from reconciler.cli.arguments import parser
from reconciler.cli.json_log import JsonLog
from reconciler.cli.output import Output
from reconciler.engine.journal import FileJournal
from reconciler.engine.progress import Lines, Terminal
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.errors import Code, ReadError
from reconciler.model.file_change import FileChange
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import Plan, Summary
from reconciler.model.plan_json import plan_to_json
from reconciler.model.run_context import AppliedBy
from reconciler.model.status import CatalogStatus, FleetStatus, Pending
from reconciler.render.as_json import dumped, plan_json
from reconciler.render.file_changes import changes_diff
from reconciler.render.junit import diagnostics_junit, plan_junit, run_junit
from reconciler.render.markdown import plan_markdown
from reconciler.render.markdown_parts import diagnostics_markdown
from reconciler.render.markdown_run import report_markdown
from reconciler.render.plan_page import plan_page
from reconciler.render.ran import run_of_report
from reconciler.render.ran_text import journal_text
from reconciler.render.run_page import run_page
from reconciler.render.safe_text import safe
from reconciler.render.sarif import diagnostics_sarif, plan_sarif, run_sarif
from reconciler.render.status import status_markdown, status_text
from reconciler.render.text import diagnostics_text, plan_text, report_text
from reconciler.session import Session

TEXTS = (
    "::error::pwn",
    "a\n::error::pwn",
    "a\n  ::error::pwn",
    "a\r::error::pwn",
    "a\r\n\t::error::pwn",
    "\n::add-mask::a",
    "a ##[error]pwn",
    "###[add-mask]a",
    "a\u202e##[error]pwn",
)
PLANS: dict[str, Callable[[Plan], str]] = {
    "text": plan_text,
    "junit": plan_junit,
    "junit of drift": lambda plan: plan_junit(plan, drift=True),
    "markdown": plan_markdown,
    "sarif": lambda plan: plan_sarif(plan, {}),
    "html": plan_page,
}


def commands(shown: str) -> list[str]:
    """The lines that a runner would obey."""
    return [line for line in re.split(r"[\r\n]", shown) if line.lstrip().startswith("::") or "##[" in line]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("how", PLANS)
def test_in_a_plan(how: str, text: str) -> None:
    shown = PLANS[how](hostile(text))
    assert "error" in shown or "mask" in shown
    assert how == "html" or commands(shown) == []


def told(text: str) -> dict[str, Any]:
    """A report, with it wherever a server or a person can have written it."""
    ran = (failed(1, message=text, name=text), failed(2, "unknown", text, location=text, tag=text))
    return report(*ran, message=text, run=identity(by=text, url=text))


RUNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "text": report_text,
    "journal": lambda r: journal_text([run_of_report(r)], 0),
    "junit": lambda r: run_junit([run_of_report(r)]),
    "markdown": lambda r: report_markdown(run_of_report(r)),
    "sarif": lambda r: run_sarif([run_of_report(r)], {}),
    "html": lambda r: run_page("Report", [run_of_report(r)]),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("how", RUNS)
def test_in_a_report(how: str, text: str) -> None:
    shown = RUNS[how](told(text))
    assert "error" in shown or "mask" in shown
    assert how == "html" or commands(shown) == []


FOUND: dict[str, Callable[[list[Diagnostic]], str]] = {
    "text": diagnostics_text,
    "junit": diagnostics_junit,
    "markdown": lambda found: diagnostics_markdown(found, 1),
    "sarif": lambda found: diagnostics_sarif(found, {}),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("how", FOUND)
def test_in_diagnostics(how: str, text: str) -> None:
    shown = FOUND[how](
        [Diagnostic(Source(text, 1, 1), "M200", severity, text, text) for severity in ("error", "warning")]
    )
    assert commands(shown) == []


@pytest.mark.parametrize("text", TEXTS)
def test_in_a_status(text: str) -> None:
    key = ObjectKey("lake", (text, text), "Table")
    by, unread = AppliedBy(text, text, text, text), ReadError(Code.INTERNAL, text)
    one = CatalogStatus(
        text, text, text, False, (unread,), 1, 1, 1, 1, Summary(), (Pending(key, ("update_table",), "allowed"),),
        (key,), (key,), ((key, by),), ((key, text),),
    )  # fmt: skip
    for shown in (status_text(FleetStatus((one,))), status_markdown(FleetStatus((one,)))):
        assert commands(shown) == []


def test_what_is_said_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(debug=True)
    out.set_up_logging("warning")
    for text in TEXTS:
        out.say(text)
        out.diagnostics([Diagnostic(Source(text), "M200", "error", text, text)])
        out.traceback(ValueError(text))
        logging.getLogger("a.dependency").warning(text)
    assert commands(capsys.readouterr().err) == []


@pytest.mark.parametrize("text", TEXTS)
def test_how_far_a_run_is(text: str) -> None:
    for kind in (Lines, Terminal):
        stream, now = io.StringIO(), iter(range(0, 1000, 10))
        kind(stream, Session(str).shown, lambda now=now: next(now)).update(1, 2, [text])
        assert stream.getvalue()
        assert commands(stream.getvalue().replace("\r\x1b[2K", "")) == []


@pytest.mark.parametrize("text", TEXTS)
def test_a_wrong_command_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["validate", text, "--format", text])
    assert commands(capsys.readouterr().err) == []


@pytest.mark.parametrize("text", TEXTS)
def test_a_file_that_an_import_would_change(text: str) -> None:
    assert commands(changes_diff([FileChange(text, f"a: |\n{text}\n", f"a: |\n{text}\nb: {text}\n")])) == []


@pytest.mark.parametrize("text", TEXTS)
def test_json_says_exactly_what_it_would_have_said(text: str) -> None:
    made = hostile(text)
    shown = plan_json(made)
    assert commands(shown) == []
    assert json.loads(shown) == plan_to_json(made)
    for value in (told(text), {"k\\": ["\\##[a]", text, {text: '"##[b]'}]}):
        assert commands(dumped(value)) == []
        assert json.loads(dumped(value)) == value
    sarif = json.loads(diagnostics_sarif([Diagnostic(Source("m.yaml"), "M200", "error", "a ##[error]b")], {}))
    assert sarif["runs"][0]["results"][0]["message"]["text"] == "a ##[error]b"


def test_a_log_and_a_journal_for_programs(tmp_path: Path) -> None:
    stream = io.StringIO()
    JsonLog(stream).tell("info", "message", "a ##[error]b", {"##[c]": "##[d]"})
    journal = FileJournal(tmp_path / "j", "##[plan]")
    journal.finish("applied")
    for shown in (stream.getvalue(), (tmp_path / "j").read_text()):
        assert commands(shown) == []
    line = json.loads(stream.getvalue())
    assert (line["message"], line["##[c]"]) == ("a ##[error]b", "##[d]")
    assert json.loads((tmp_path / "j").read_text().splitlines()[0])["plan_id"] == "##[plan]"


def test_it_is_seen_that_something_was_there() -> None:
    assert safe("a ##[error]b ###[c]") == "a #\\x23[error]b ##\\x23[c]"
