"""Warnings beside a plan: in every document, and no filler hides what others may not do."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as tree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from read_html import RENDERERS, read
from rendered_plans import create, delete, hostile, plan
from test_markdown_bounds import cut, rows, whole
from test_markdown_safety import NASTY, OURS, UNSAFE, everywhere

from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.render.diagnostics_page import diagnostics_page
from reconciler.render.junit import plan_junit
from reconciler.render.markdown import plan_markdown
from reconciler.render.markdown_parts import diagnostics_markdown
from reconciler.render.plan_page import plan_page
from reconciler.render.safe_markdown import length
from reconciler.render.sarif import plan_sarif

THEIRS = Diagnostic(Source("z.yaml", 9), "M312", "warning", "not used: it differs", "it counts once it is there")


def filler(number: int, severity: str = "warning") -> list[Diagnostic]:
    return [Diagnostic(Source(f"a{i}.yaml", 1), "M501", severity, "no object gets it") for i in range(number)]  # type: ignore[arg-type]


def warned(markdown: str) -> list[list[str]]:
    return [r for r in rows(markdown) if r[0].startswith("warning")]


def test_no_filler_hides_what_others_may_not_do() -> None:
    made = plan([create(i, f"t{i}") for i in range(1500)])
    markdown = plan_markdown(made, warnings=[*filler(90), THEIRS])
    assert length(markdown) <= 60_000
    assert whole(markdown)
    (shown,) = warned(markdown)
    assert shown == ["warning M312", "z.yaml:9", "not used: it differs", "it counts once it is there"]
    assert cut(markdown)["warning"] == (90, 91, {"warning": 90})
    assert markdown.index("M312") < markdown.index("#### Catalog")


def test_it_stands_open_right_under_the_headline() -> None:
    markdown = plan_markdown(plan(), warnings=[*filler(2), THEIRS])
    assert markdown.startswith("### No changes. The live catalogs match the manifests.\n\n#### Warnings\n\n|")
    assert "<details open><summary>2 more warnings</summary>" in markdown
    assert markdown.count("M312") == 1
    assert "<details open><summary>2 warnings</summary>" in plan_markdown(plan(), warnings=filler(2))


def test_a_warning_that_is_about_no_place() -> None:
    markdown = plan_markdown(plan(), warnings=[THEIRS], said=["plan.json is exact, and values in it hold secrets"])
    assert [r[0] for r in warned(markdown)] == ["warning M312", "warning"]
    assert warned(markdown)[1][2] == "plan.json is exact, and values in it hold secrets"


@given(st.integers(0, 60), st.integers(0, 300), st.integers(0, 20), st.integers(2500, 20_000))
def test_any_number_at_any_limit(theirs: int, others: int, said: int, limit: int) -> None:
    """Those of others take their share, and steps are seen all the same."""
    told = [*filler(others), *[THEIRS] * theirs]
    markdown = plan_markdown(plan([delete(1, "old")]), warnings=told, limit=limit, said=["a secret"] * said)
    assert length(markdown) <= limit
    assert whole(markdown)
    shown = warned(markdown)
    hidden, total, _ = cut(markdown).get("warning", (0, len(shown), {}))
    assert (total, len(shown)) == (theirs + others + said, total - hidden)
    assert any(r[0] == "delete" for r in rows(markdown))
    if theirs:
        assert shown[0][0] == "warning M312"


@everywhere
@given(text=NASTY)
def test_they_are_text_and_nothing_else(how: str, text: str) -> None:
    theirs = Diagnostic(Source(text, 3), "M312", "warning", text, text)
    other = Diagnostic(Source(text, 3), text, "warning", text, text)
    markdown = plan_markdown(hostile(text), warnings=[theirs, other], said=[text])
    page = read(RENDERERS[how](markdown))
    assert page.tags <= OURS
    assert page.attributes <= {"class", "open"}
    assert not UNSAFE.search(page.text), page.text
    assert not [line for line in markdown.splitlines() if line.lstrip().startswith("/")]
    assert len([r for r in page.rows if r[0].startswith("warning") and len(r) == 4]) == 3


def test_where_there_is_no_plan_it_comes_before_the_errors() -> None:
    markdown = diagnostics_markdown([*filler(3000, "error"), THEIRS])
    assert rows(markdown)[0][0] == "warning M312"
    assert cut(markdown)["problem"][2].keys() == {"error"}
    assert entries(diagnostics_page([*filler(3, "error"), THEIRS], "no plan"))[0]["code"] == "M312"


def entries(page: str) -> list[dict[str, str]]:
    (data,) = re.findall('id="plan">(.*?)</script>', page)
    found: list[dict[str, str]] = json.loads(data)["entries"]
    return found


def test_the_page_has_them() -> None:
    found = entries(plan_page(plan([create(1, "a")]), warnings=[*filler(1), THEIRS]))
    assert [e.get("code", e["kind"]) for e in found] == ["M312", "step", "M501"]
    assert found[0]["reason"] == "not used: it differs; it counts once it is there"


@pytest.mark.parametrize("drift", [False, True])
def test_junit_has_them_and_fails_for_none(drift: bool) -> None:
    suites = tree.fromstring(plan_junit(plan(), drift, [THEIRS]).encode())
    text = suites.findtext(".//testsuite[@name='manifests']/testcase[@name='z.yaml']/system-out")
    assert text is not None
    assert "M312" in text
    assert suites.attrib["failures"] == "0"


def test_sarif_leaves_it_out_last() -> None:
    results = json.loads(plan_sarif(plan(), {}, [*filler(6000, "error"), THEIRS]))["runs"][0]["results"]
    assert [results[0]["ruleId"], len(results)] == ["M312", 5000]
