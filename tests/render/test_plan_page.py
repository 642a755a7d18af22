"""The page of a plan, in a real browser: typed into, clicked, linked to, printed; and attacked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from render.browser import Opened, opened
from render.plans import OURS, TRAPS, big, golden, hostile, plan, step

from reconciler.model.change import CreateNamespace, DeregisterTable
from reconciler.model.errors import Code, ReadError
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import CatalogSummary, Plan
from reconciler.render.plan_page import plan_page
from reconciler.render.ran import run_of_report
from reconciler.render.run_page import run_page

pytestmark = pytest.mark.slow


@contextmanager
def shown(browser: Browser, folder: Path, made: Plan, hash_: str = "", **more: object) -> Iterator[Opened]:
    file = folder / "plan.html"
    file.write_text(plan_page(made), encoding="ascii")
    with opened(browser, file, hash_, **more) as page:  # type: ignore[arg-type]
        yield page


def names(page: Opened) -> list[str]:
    return page.page.locator("#rows .row .mono").all_inner_texts()


def chosen(page: Opened) -> str:
    return page.text("#detail h2")


def mixed() -> Plan:
    """A bit of everything."""
    made = big(120)
    key = ObjectKey("lake", ("old", "gone"), "Table")
    drop = step(121, DeregisterTable(("old", "dead")), risk="destructive", reason="no manifest declares it")
    first = made.steps[3].key
    findings = (
        Finding("P301", "warning", first, "a warning", ""),
        Finding("P201", "error", first, "has no owner", "set it"),
        Finding("P202", "error", None, "waived one", "", None, Waiver("known", "2031-01-01")),
    )
    catalogs = {
        "lake": CatalogSummary(
            "dir", False, 3, 12, {}, (ReadError(Code.INTERNAL, "the listing of x broke off"),), (("ns0", "stale"),)
        )
    }
    lists = {"orphans": (key,), "unowned": (key,), "left_out": (key,)}
    return plan((*made.steps, drop), findings=findings, catalogs=catalogs, **lists)


def test_what_refuses_comes_first_then_what_is_held_back_then_what_destroys(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, mixed(), high=3000) as page:
        rows = page.page.locator("#rows .row").all()
        chips = [" ".join(row.locator(".chip").all_inner_texts()) for row in rows[:12]]
        assert chips[0] == "refusing"
        assert "incomplete" in page.page.locator("#rows .row").nth(1).inner_text()
        assert chips[2:5] == ["blocked destructive"] * 3
        assert chips[5:9] == ["destructive"] * 4
        assert "The policy refuses this plan: 1 finding." in page.text("header")
        assert "not read completely" in page.text("header")
        page.page.select_option("[name=sort]", "plan")
        assert names(page)[4:7] == ["lake:ns0", "lake:ns0.table_0", "lake:ns0.table_1"]
        assert page.clean


LEFT = (
    ("kind", "step", 121), ("kind", "finding", 3), ("kind", "orphaned", 1), ("kind", "unowned", 1),
    ("kind", "left out", 1), ("kind", "stale", 1), ("kind", "problem", 1), ("risk", "destructive", 7),
    ("verdict", "blocked", 3), ("action", "drop_columns", 6), ("policy", "refusing", 3), ("policy", "P301", 3),
    ("policy", "waived", 1),
)  # fmt: skip


def test_every_filter_leaves_what_it_says(browser: Browser, tmp_path: Path) -> None:
    """The number in the menu is the number that it leaves."""
    with shown(browser, tmp_path, mixed()) as page:
        for filter_, value, count in LEFT:
            option = page.page.locator(f"[name={filter_}] option[value='{value}']")
            assert option.inner_text() == f"{value} ({count})"
            page.page.select_option(f"[name={filter_}]", value)
            expect(page.page.locator("#count")).to_have_text(f"{count} of 129 entries")
            assert page.page.locator("#rows .row").first.get_attribute("aria-setsize") == str(count)
            page.page.click("button[type=reset]")
            expect(page.page.locator("#count")).to_have_text("129 entries")
        page.page.click("#quick button:has-text('blocked')")
        expect(page.page.locator("#count")).to_have_text("3 of 129 entries")
        assert page.page.locator("#quick [aria-pressed=true]").all_inner_texts() == ["3 blocked"]
        assert page.clean


def test_search_looks_at_names_values_files_and_reasons(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, mixed()) as page:
        for text, found in (
            ("TABLE_28", {"lake:ns0.table_28"}),
            ("no manifest declares", {"lake:old.dead", "lake:old.gone"}),
            ("tables.yaml:43 ", {"lake:ns0.table_3"}),
            ("known 2031", {"the whole plan"}),
            ("fixed_size_list table_6 ", {"lake:ns0.table_6"}),
        ):
            page.page.fill("#q", text)
            if text.startswith("no manifest"):
                assert "lake:old.dead" in names(page)
            else:
                assert {n for n in names(page) if n in found} == found, text
                assert len(set(names(page))) <= 12
        page.page.fill("#q", "nothing has this")
        assert names(page) == []
        assert "Nothing matches." in page.text("#rows")
        assert page.clean


def test_the_address_holds_the_state(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, mixed()) as page:
        page.page.fill("#q", "legacy")
        page.page.select_option("[name=verdict]", "blocked")
        page.page.locator("#rows .row").nth(1).click()
        link, count, title = page.page.url, page.text("#count"), chosen(page)
        page.page.locator("#rows .row").nth(2).click()
        assert chosen(page) != title
        page.page.go_back()
        assert chosen(page) == title
    with shown(browser, tmp_path, mixed(), "#" + link.partition("#")[2]) as page:
        assert (page.text("#count"), chosen(page)) == (count, title)
        assert page.page.input_value("#q") == "legacy"
        assert page.page.input_value("[name=verdict]") == "blocked"
        assert page.page.locator("#rows [aria-selected=true]").count() == 1
        assert page.clean
    with shown(browser, tmp_path, mixed(), "#at=s9999") as page:
        assert "no entry s9999" in page.text("#detail")


def test_what_the_plan_does_not_have_is_no_filter(browser: Browser, tmp_path: Path) -> None:
    """A link made for another plan."""
    with shown(browser, tmp_path, mixed(), "#verdict=nothing&catalog=other&sort=up&kind=finding") as page:
        expect(page.page.locator("#count")).to_have_text("3 of 129 entries")
        for name, value in (("verdict", ""), ("sort", ""), ("kind", "finding")):
            assert page.page.input_value(f"[name={name}]") == value
        assert page.clean


def test_a_button_says_what_it_counts(browser: Browser, tmp_path: Path) -> None:
    """The finding, and the steps on what it is about."""
    with shown(browser, tmp_path, mixed()) as page:
        assert "The policy refuses this plan: 1 finding." in page.text("header")
        assert page.page.locator("#quick [data-value=refusing]").inner_text() == "3 with a refusing finding"


def test_without_scripts_a_finding_says_how_much_it_weighs(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, mixed(), script=False) as page:
        told = [line for line in page.page.locator("#plain-list li").all_inner_texts() if "finding" in line]
        weights = [re.search("finding \\S (\\w+) \\S (P[0-9]+)", line) for line in told]
        assert [found and found.groups() for found in weights] == [
            ("refusing", "P201"), ("warning", "P301"), ("waived", "P202"),
        ]  # fmt: skip
        assert "known (until 2031-01-01)" in told[-1]


def test_it_is_used_by_keys_alone(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, big(2000)) as page:
        keys = page.page.keyboard
        keys.press("/")
        assert page.page.evaluate("document.activeElement.id") == "q"
        keys.type("create_dataset ns3")
        keys.press("ArrowDown")
        assert page.page.evaluate("document.activeElement.id") == "list"
        first = chosen(page)
        keys.press("ArrowDown")
        assert chosen(page) != first
        keys.press("ArrowUp")
        assert chosen(page) == first
        keys.press("End")
        active = page.page.get_attribute("#list", "aria-activedescendant")
        assert active is not None
        row = page.page.locator(f"#{active}")
        assert row.get_attribute("aria-posinset") == row.get_attribute("aria-setsize")
        expect(row).to_be_in_viewport()
        assert row.locator(".mono").inner_text() in chosen(page)
        keys.press("Enter")
        assert page.page.evaluate("document.activeElement.id") == "detail"
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        keys.press("Tab")
        assert page.page.evaluate(outline) != "none"
        assert page.clean


def test_enter_opens_the_first_match_and_what_is_filtered_out_is_not_shown(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, mixed()) as page:
        keys, before = page.page.keyboard, chosen(page)
        keys.press("/")
        keys.type("create_dataset")
        assert before not in page.text("#detail")
        assert "at=" not in page.page.url, "a link must not show what is not in its list either"
        keys.press("Enter")
        assert chosen(page).removeprefix("+ ") == names(page)[0]
        assert page.page.evaluate("document.activeElement.id") == "detail"
        assert page.page.locator("#rows [aria-selected=true]").get_attribute("aria-posinset") == "1"
        link, opened_ = page.page.url, chosen(page)
        page.page.fill("#q", "nothing has this")
        keys.press("Enter")
        assert page.text("#detail").startswith("Choose an entry")
        assert page.clean
    with shown(browser, tmp_path, mixed(), "#" + link.partition("#")[2]) as page:
        assert (chosen(page), page.count("#detail .notice")) == (opened_, 0)


def test_a_link_to_what_is_filtered_out_says_so(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, golden("unity-replace"), "#q=drop_nothing&at=s2") as page:
        assert (names(page), page.count("#detail .notice")) == ([], 1)
        page.page.click("button[type=reset]")
        page.page.locator("#rows .row").first.click()
        assert page.count("#detail .notice") == 0
        assert page.clean


def test_a_schema_is_shown_side_by_side(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, golden("unity-replace"), "#at=s2") as page:
        rows = page.page.locator("#detail table tbody tr").all_inner_texts()
        cells = [re.split(r"\t\n?|\n", row) for row in rows]
        assert ["label", "—", "string"] in cells
        assert ["team", "vision", "—"] in cells
        assert ["protected", "no", "yes"] in cells
    with shown(browser, tmp_path, golden("widen-type"), "#at=s1") as page:
        cells = [re.split(r"\t\n?|\n", r) for r in page.page.locator("#detail table tbody tr").all_inner_texts()]
        assert ["width", "int32", "int64"] in cells
        assert page.clean


def test_the_picture_around_a_step_leads_to_its_neighbours(browser: Browser, tmp_path: Path) -> None:
    """A namespace that hundreds of steps need: some of them, and how many more."""
    with shown(browser, tmp_path, big(1000), "#at=s1") as page:
        picture = page.page.locator("#detail svg.graph")
        assert picture.locator("g.node").count() == 10
        assert "191 more" in picture.inner_html()
        assert "149 more" in page.text("#detail .links")
        assert picture.locator("path.edge").count() == 8
        box = picture.locator("a").nth(2)
        label = box.locator("text").nth(1).inner_html()
        box.click()
        assert f"step {label.split()[0]} " in page.text("#detail")
        assert picture.locator("g.here").count() == 1
        assert page.count("#picture") == 0
        assert page.clean


def test_the_whole_picture_of_a_plan_that_fits(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, mixed()) as page:
        page.page.click("#picture summary")
        nodes = page.page.locator("#picture g.node")
        assert nodes.count() == 121
        nodes.nth(7).click()
        assert "step s8" in page.text("#detail")
        assert page.clean
    chain = golden("create-everything")
    with shown(browser, tmp_path, chain) as page:
        assert page.count("#picture g.node") == len(chain.steps)


def test_hostile_values_make_no_element_run_nothing_and_ask_for_nothing(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, hostile()) as page:
        told = page.page.evaluate("document.title")
        page.page.click("#picture summary")
        for row in range(page.count("#rows .row")):
            page.page.locator("#rows .row").nth(row).hover()
        keys = [f"s{i + 1}" for i in range(3 * len(TRAPS))] + [f"@{i}" for i in range(0, 81, 5)]
        for key in keys:
            page.page.evaluate("key => { location.hash = '#at=' + encodeURIComponent(key) }", key)
            page.page.wait_for_timeout(5)
        for trap in TRAPS:
            page.page.fill("#q", trap[:20])
        page.page.emulate_media(media="print")
        page.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        elements = "[...new Set([...document.querySelectorAll('*')].map(e => e.localName))].sort()"
        assert set(page.page.evaluate(elements)) <= ELEMENTS
        assert page.page.evaluate(HANDLERS) == []
        assert page.page.evaluate("document.title") == told
        assert page.clean, (page.complaints, page.requests)


ELEMENTS = {
    "a", "body", "button", "code", "defs", "details", "div", "form", "g", "h1", "h2", "h3", "head", "header", "html",
    "input", "li", "main", "marker", "meta", "ol", "option", "output", "p", "path", "pre", "rect", "script", "section",
    "select", "span", "strong", "style", "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr",
    "ul",
}  # fmt: skip
HANDLERS = """[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]
  .filter(a => a.name.startsWith('on') || (a.name === 'href' && !a.value.startsWith('#')))
  .map(a => a.name + a.value))"""


def test_the_policy_of_the_page_stops_what_would_slip_through(browser: Browser, tmp_path: Path) -> None:
    """The browser enforces it: a script that is put in by hand does not run, and text cannot become markup."""
    text = plan_page(golden("create-everything")).replace("<main", "<script>document.title='pwned'</script><main")
    file = tmp_path / "broken.html"
    file.write_text(text)
    with opened(browser, file) as page:
        assert page.page.title() != "pwned"
        assert any("CSP violation: script-src" in c for c in page.complaints)
        assert page.count("#rows .row") == 6
        refused = page.page.evaluate(
            "() => { try { document.body.innerHTML = '<b>x</b>' } catch (e) { return e.name } }"
        )
        assert refused == "TypeError"


def test_without_scripts_there_are_the_summary_and_a_list(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, big(1200), script=False) as page:
        assert "to create" in page.text("header")
        assert page.text("#plain-title") == "The first 500 of 1202 entries"
        assert page.count("#plain-list > li") == 500
        assert "- legacy = string" in page.text("#plain-list")
        assert not page.page.is_visible("#app")
        assert page.requests == []


def test_what_is_printed_is_what_was_filtered(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, mixed()) as page:
        page.page.select_option("[name=verdict]", "blocked")
        assert not page.page.is_visible("#plain")
        page.page.pdf(path=tmp_path / "page.pdf")
        assert page.count("#plain-list > li") == 3
        page.page.emulate_media(media="print")
        assert page.page.is_visible("#plain")
        assert not page.page.is_visible("#app")
        assert page.clean


@pytest.mark.parametrize("wide", [360, 800, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window_and_text_can_be_read(
    browser: Browser, tmp_path: Path, wide: int, scheme: str
) -> None:
    for made in (mixed(), hostile()):
        with shown(browser, tmp_path, made, wide=wide, color_scheme=scheme) as page:
            page.page.locator("#rows .row").nth(4).click()
            assert page.page.is_visible("#detail h2")
            assert page.page.evaluate("document.documentElement.scrollWidth") <= wide
            assert page.page.evaluate("document.getElementById('detail').scrollWidth") <= wide
            assert page.page.evaluate(CONTRAST) == []
            if wide < 800:
                page.page.keyboard.press("Escape")
                assert not page.page.is_visible("#detail h2")
            assert page.clean


CONTRAST = """(() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map(v => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll('p, .why, .chip, .symbol, .mono, th, td:not(.nothing), h2, h3, button, select')]
    .filter(e => e.checkVisibility()).map(e => {
      const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
      return [(a + .05) / (b + .05), e.className, e.textContent.slice(0, 40)]; }).filter(([ratio]) => ratio < 4.5);
})()"""


def test_a_plan_without_steps_says_so(browser: Browser, tmp_path: Path) -> None:
    empty = replace(plan(()), catalogs={})
    with shown(browser, tmp_path, empty) as page:
        assert "No changes." in page.text("header")
        assert "Nothing to tell." in page.text("#rows")
        assert page.clean


def test_ten_thousand_steps_are_all_there_and_few_are_in_the_document(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, big(10_000)) as page:
        assert page.count("#rows .row") < 60
        page.page.fill("#q", "table_4999 create_dataset")
        assert names(page) == ["lake:ns49.table_4999"]
        page.page.click("button[type=reset]")
        page.page.focus("#list")
        page.page.keyboard.press("End")
        expect(page.page.locator("#rows .row").last).to_have_attribute("aria-posinset", "10011")
        assert page.count("#rows .row") < 60
        assert page.clean


def test_it_works_in_a_frame_without_an_address_of_its_own(browser: Browser, tmp_path: Path) -> None:
    """As the pages of a CI's artifacts may be shown."""
    (tmp_path / "plan.html").write_text(plan_page(mixed()))
    (tmp_path / "outer.html").write_text(
        '<iframe sandbox="allow-scripts" src="plan.html" width=900 height=800></iframe>'
    )
    with opened(browser, tmp_path / "outer.html") as page:
        frame = page.page.frame_locator("iframe")
        frame.locator("#q").fill("table_28")
        frame.locator("#rows .row").nth(1).click()
        assert "table_28" in frame.locator("#detail h2").inner_text()
        assert page.complaints == []


def test_a_report_shows_what_failed_first(browser: Browser, tmp_path: Path) -> None:
    statuses = ("done", "not_run", "failed")
    steps = [
        {"id": f"s{i}", "action": "create_namespace", "catalog": "lake",
         "object": {"kind": "Namespace", "id": [status]},
         "status": status, "error": {"code": 18, "name": "Internal", "message": "<b>no</b>"} if i == 2 else None,
         "attempts": 1, "seconds": 0.5, "version_before": 3, "version_after": 4 if i == 0 else 3, "tag": None}
        for i, status in enumerate(statuses)
    ]  # fmt: skip
    report = {"plan_id": "sha256:1", "outcome": "partial", "steps": steps, "summary": dict.fromkeys(statuses, 1)}
    (tmp_path / "report.html").write_text(run_page("Report", [run_of_report(report)]))
    with opened(browser, tmp_path / "report.html") as page:
        assert names(page) == ["lake:failed", "lake:not_run", "lake:done"]
        assert "Internal (18): <b>no</b>" in page.text("#detail")
        page.page.click("#quick button:has-text('not run')")
        assert names(page) == ["lake:not_run"]
        page.page.select_option("[name=status]", "done")
        page.page.locator("#rows .row").click()
        assert re.split(r"\t\n?|\n", page.text("#detail tbody tr")) == ["version", "3", "4"]
        assert page.clean


def test_names_of_other_scripts_are_readable(browser: Browser, tmp_path: Path) -> None:
    made = plan((step(1, CreateNamespace(("Größe", "データ"), {"müde": "ß"}, OURS)),))
    with shown(browser, tmp_path, made) as page:
        assert names(page) == ["lake:Größe.データ"]
        page.page.fill("#q", "GRÖSSE")
        page.page.fill("#q", "GRÖßE データ")
        assert names(page) == ["lake:Größe.データ"]
