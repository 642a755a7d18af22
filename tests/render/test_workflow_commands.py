"""What others write into names, values and messages starts no line: a runner of GitHub takes a line that begins with
`::`, be it after spaces, for a command, whoever printed it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from rendered_plans import hostile
from runs import failed, identity, report

from reconciler.cli.output import Output
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import Plan, Summary
from reconciler.model.run_context import AppliedBy
from reconciler.model.status import CatalogStatus, FleetStatus, Pending
from reconciler.render.junit import diagnostics_junit, plan_junit, run_junit
from reconciler.render.markdown import plan_markdown
from reconciler.render.markdown_parts import diagnostics_markdown
from reconciler.render.markdown_run import report_markdown
from reconciler.render.plan_page import plan_page
from reconciler.render.ran import run_of_report
from reconciler.render.ran_text import journal_text
from reconciler.render.run_page import run_page
from reconciler.render.sarif import diagnostics_sarif, plan_sarif, run_sarif
from reconciler.render.status import status_markdown, status_text
from reconciler.render.text import diagnostics_text, plan_text, report_text

TEXTS = (
    "::error::pwn",
    "a\n::error::pwn",
    "a\n  ::error::pwn",
    "a\r::error::pwn",
    "a\r\n\t::error::pwn",
    "\n::add-mask::a",
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
    return [line for line in re.split(r"[\r\n]", shown) if line.lstrip().startswith("::")]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("how", PLANS)
def test_in_a_plan(how: str, text: str) -> None:
    shown = PLANS[how](hostile(text))
    assert "error" in shown or "mask" in shown
    assert commands(shown) == []


def told(text: str) -> dict[str, Any]:
    """A report, with it wherever a server or a person can have written it."""
    ran = (failed(1, message=text, name=text), failed(2, "unknown", text, location=text, tag=text))
    return report(*ran, message=text, run=identity(by=text, url=text))


RUNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "text": report_text,
    "journal": lambda r: journal_text([run_of_report(r)], 0),
    "junit": lambda r: run_junit([run_of_report(r)]),
    "markdown": lambda r: report_markdown(run_of_report(r)),
    "sarif": lambda r: run_sarif([run_of_report(r)]),
    "html": lambda r: run_page("Report", [run_of_report(r)]),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("how", RUNS)
def test_in_a_report(how: str, text: str) -> None:
    shown = RUNS[how](told(text))
    assert "error" in shown or "mask" in shown
    assert commands(shown) == []


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
    by = AppliedBy(text, text, text, text)
    one = CatalogStatus(
        text, text, text, False, (text,), 1, 1, 1, 1, Summary(), (Pending(key, ("update_table",), "allowed"),), (key,),
        (key,), ((key, by),), ((key, text),),
    )  # fmt: skip
    for shown in (status_text(FleetStatus((one,))), status_markdown(FleetStatus((one,)))):
        assert commands(shown) == []


def test_what_is_said_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    for text in TEXTS:
        Output().say(text)
    assert commands(capsys.readouterr().err) == []
