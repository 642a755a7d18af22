"""Graphs in front of those who read them: SVG in a browser, Mermaid's language in Mermaid itself."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from render.browser import Opened, opened
from render.plans import TRAPS, big, golden, hostile
from servers.cache import fetch, needs, once

from reconciler.model.plan import Plan
from reconciler.render.graph_svg import svg
from reconciler.render.graph_text import MERMAID_EDGES, mermaid
from reconciler.render.plan_graph import plan_graph
from reconciler.render.safe_text import safe

MERMAID = "mermaid@11.17.2"
pytestmark = pytest.mark.slow


def test_an_svg_file_is_drawn_and_nothing_in_it_acts(browser: Browser, tmp_path: Path) -> None:
    for made in (hostile(), golden("create-everything"), big(700)):
        (tmp_path / "graph.svg").write_text(svg(plan_graph(made)), encoding="ascii")
        with opened(browser, tmp_path / "graph.svg") as page:
            boxes = page.page.locator("g.node")
            assert boxes.count() == min(len(made.steps), 501)
            assert boxes.first.is_visible()
            assert page.clean, (page.complaints, page.requests)


def overlaps(page: Opened) -> int:
    """Pairs of boxes that cover each other, and texts that leave their box."""
    found: int = page.page.evaluate(
        """() => { const nodes = [...document.querySelectorAll('g.node')];
          const boxes = nodes.map(n => n.querySelector('rect').getBoundingClientRect());
          const cover = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
          return boxes.filter((a, i) => boxes.some((b, j) => j > i && cover(a, b))).length +
            nodes.filter((n, i) => [...n.querySelectorAll('text')].some(t =>
              t.getBoundingClientRect().right > boxes[i].right + 1)).length; }"""
    )
    return found


def test_no_box_covers_another_and_no_text_leaves_its_box(browser: Browser, tmp_path: Path) -> None:
    for made in (golden("create-everything"), golden("absent-namespace"), big(450), hostile()):
        (tmp_path / "graph.svg").write_text(svg(plan_graph(made)))
        with opened(browser, tmp_path / "graph.svg") as page:
            assert overlaps(page) == 0


@pytest.fixture(scope="module")
def library() -> Path:
    npm = needs("npm", "Mermaid")

    def fill(folder: Path) -> None:
        fetch([npm, "pack", MERMAID, "--loglevel=error"], "Mermaid", folder)
        (packed,) = folder.glob("*.tgz")
        with tarfile.open(packed) as archive:
            member = archive.extractfile("package/dist/mermaid.min.js")
            assert member is not None
            (folder / "mermaid.min.js").write_bytes(member.read())
        packed.unlink()

    return once(MERMAID.replace("@", "-"), fill) / "mermaid.min.js"


def read_by_mermaid(browser: Browser, folder: Path, library: Path, made: Plan) -> dict[str, Any]:
    """Drawn as on a code host: with its usual limits, as strictly as it goes."""
    (folder / "empty.html").write_text("<!doctype html><title>empty</title><div id=out></div>")
    with opened(browser, folder / "empty.html") as page:
        page.page.add_script_tag(path=library)
        drawn: dict[str, Any] = page.page.evaluate(
            """async text => { mermaid.initialize({startOnLoad: false, securityLevel: 'strict'});
              const kind = (await mermaid.parse(text)).diagramType;
              document.getElementById('out').innerHTML = (await mermaid.render('drawn', text)).svg;
              return {kind, labels: [...document.querySelectorAll('#out .nodeLabel')].map(e => e.innerText),
                edges: document.querySelectorAll('#out path.flowchart-link').length,
                others: document.querySelectorAll('#out script, #out img, #out a, #out b').length}; }""",
            mermaid(plan_graph(made)),
        )
        assert page.page.title() == "empty"
        assert page.clean, (page.complaints, page.requests)
        return drawn


def test_mermaid_reads_what_we_write(browser: Browser, tmp_path: Path, library: Path) -> None:
    made = golden("create-everything")
    drawn = read_by_mermaid(browser, tmp_path, library, made)
    assert drawn["kind"].startswith("flowchart")
    assert drawn["edges"] == sum(len(s.needs) for s in made.steps)
    assert "lake:vision\ns1 create_namespace" in drawn["labels"]


def test_mermaid_takes_hostile_texts_as_texts(browser: Browser, tmp_path: Path, library: Path) -> None:
    drawn = read_by_mermaid(browser, tmp_path, library, hostile())
    assert drawn["others"] == 0
    shown = "\n".join(drawn["labels"])
    for trap in TRAPS[:4]:
        assert safe(trap)[:40] in shown


def test_mermaid_accepts_the_biggest_that_we_write(browser: Browser, tmp_path: Path, library: Path) -> None:
    """Read only: it refuses too many arrows while it reads, and drawing takes it twenty seconds."""
    (tmp_path / "empty.html").write_text("<!doctype html><title>empty</title>")
    parse = "async text => { try { return (await mermaid.parse(text)).diagramType } catch (e) { return e.message } }"
    with opened(browser, tmp_path / "empty.html") as page:
        page.page.add_script_tag(path=library)
        whole = mermaid(plan_graph(big(3000)))
        assert page.page.evaluate(parse, whole).startswith("flowchart")
        too_many = whole + "  n1 --> n2\n" * (MERMAID_EDGES + 1)
        assert "Edge limit exceeded" in page.page.evaluate(parse, too_many)
