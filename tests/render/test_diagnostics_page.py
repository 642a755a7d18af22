"""The page that CI keeps when there is no plan: what is wrong and where; nothing in it that others wrote is more than
text, and it needs nothing but itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.cli_runs import catalog, namespace, reconciler, table, write
from playwright.sync_api import Browser, expect
from render.browser import Opened, opened
from render.plans import TRAPS
from render.test_page_parts import DATA, Seen, embedded
from render.test_plan_page import CONTRAST, ELEMENTS, HANDLERS

from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.render.diagnostics_page import diagnostics_page

WRONG = [
    Diagnostic(Source("m/b.yaml", 3, 2), "M403", "warning", "no parent", "declare it"),
    Diagnostic(Source("m/a.yaml", 7, 5), "M204", "error", "spec is missing"),
    Diagnostic(Source("m/b.yaml", 9, 1), "M203", "error", "unknown key", "did you mean spec?"),
]
HOSTILE = [Diagnostic(Source(f"m/{t}.yaml", 3), t, "error" if i % 2 else "warning", t, t) for i, t in enumerate(TRAPS)]


def test_errors_come_first_and_each_has_its_place_and_its_fix() -> None:
    page = diagnostics_page(WRONG, "the manifests have errors")
    assert [(e["severity"], e["code"], e["name"], e["reason"]) for e in embedded(page)] == [
        ("error", "M204", "m/a.yaml:7:5", "spec is missing"),
        ("error", "M203", "m/b.yaml:9:1", "unknown key; did you mean spec?"),
        ("warning", "M403", "m/b.yaml:3:2", "no parent; declare it"),
    ]
    assert "<h1>No plan</h1>" in page
    assert '<p class="alert">the manifests have errors</p>\n<p>2 errors, 1 warning</p>' in page


def test_a_run_that_failed_without_any_diagnostic_says_why() -> None:
    page = diagnostics_page([], "the catalog lake cannot be reached")
    assert embedded(page) == []
    assert "the catalog lake cannot be reached" in page
    assert "0 errors" not in page


@pytest.mark.parametrize("found", [WRONG, HOSTILE, []], ids=["wrong", "hostile", "none"])
def test_it_needs_nothing_else_and_no_value_leaves_its_place(found: list[Diagnostic]) -> None:
    page = diagnostics_page(found, "".join(TRAPS))
    assert page.isascii()
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert re.sub("sha256-[A-Za-z0-9+/]{43}=", "hash", policy) == (
        "default-src 'none'; script-src 'hash'; style-src 'hash'; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    assert re.findall(r"(?:src|href|action)=\"(?!#)[^\"]*\"", re.sub("<script.*?</script>", "", page, flags=re.S)) == []
    seen = Seen()
    seen.feed(page)
    assert (seen.tags.count("script"), seen.tags.count("style")) == (2, 1)
    assert not {"img", "link", "iframe", "object", "base", "b"} & set(seen.tags)
    data = DATA.search(page)
    assert data is not None
    assert not set("<>&") & set(data.group(1))


def broken(folder: Path, text: str = "int65") -> Path:
    """A folder of manifests whose name, whose file's name and whose contents are somebody else's."""
    made = folder / "m <img src=x onerror=alert(1)> &amp;"
    made.mkdir()
    write(made, catalog(), namespace("n"), table("n", "t", schema=f"[{{name: id, type: {text!r}}}]"), name="<b>.yaml")
    return made


@pytest.mark.parametrize("command", ["plan", "drift"])
def test_a_plan_that_cannot_be_made_leaves_the_page_on_stdout(tmp_path: Path, command: str) -> None:
    made = broken(tmp_path, "</script><script>alert(1)</script>")
    run = reconciler(tmp_path, command, made.name, "--format", "html")
    assert run.code == 1
    assert "error[M211]" in run.err
    (entry,) = embedded(run.out)
    assert entry["name"] == f"{made.name}/<b>.yaml:17:29"
    assert (entry["code"], entry["severity"]) == ("M211", "error")
    seen = Seen()
    seen.feed(run.out)
    assert not {"img", "b"} & set(seen.tags)
    assert seen.tags.count("script") == 2


@contextmanager
def shown(browser: Browser, folder: Path, found: list[Diagnostic], **more: object) -> Iterator[Opened]:
    file = folder / "page.html"
    file.write_text(diagnostics_page(found, f"{TRAPS[0]}: the manifests have errors"), encoding="ascii")
    with opened(browser, file, **more) as page:  # type: ignore[arg-type]
        yield page


@pytest.mark.slow
def test_it_is_searched_and_read_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, WRONG) as page:
        assert "the manifests have errors" in page.text("header .alert")
        assert page.page.locator("#rows .row .mono").all_inner_texts() == [
            "m/a.yaml:7:5",
            "m/b.yaml:9:1",
            "m/b.yaml:3:2",
        ]
        page.page.fill("#q", "m/b.yaml did you mean")
        expect(page.page.locator("#count")).to_have_text("1 of 3 entries")
        page.page.locator("#rows .row").first.click()
        assert "m/b.yaml:9:1" in page.text("#detail h2")
        assert "unknown key; did you mean spec?" in page.text("#detail")
        assert page.clean, (page.complaints, page.requests)
    with shown(browser, tmp_path, WRONG, script=False) as page:
        assert page.count("#plain-list > li") == 3
        assert "M204" in page.text("#plain-list")


@pytest.mark.slow
def test_hostile_names_make_no_element_run_nothing_and_ask_for_nothing(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, HOSTILE) as page:
        told = page.page.title()
        for row in range(len(HOSTILE)):
            page.page.locator("#rows .row").nth(row).click()
            assert set(page.page.evaluate("[...document.querySelectorAll('*')].map(e => e.localName)")) <= ELEMENTS
        assert page.page.evaluate(HANDLERS) == []
        assert page.page.title() == told
        assert page.clean, (page.complaints, page.requests)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(browser: Browser, tmp_path: Path, wide: int, scheme: str) -> None:
    for found in (WRONG, HOSTILE):
        with shown(browser, tmp_path, found, wide=wide, color_scheme=scheme) as page:
            page.page.locator("#rows .row").first.click()
            assert page.page.is_visible("#detail h2")
            assert page.page.evaluate("document.documentElement.scrollWidth") <= wide
            assert page.page.evaluate(CONTRAST) == []
            assert page.clean, (page.complaints, page.requests)
