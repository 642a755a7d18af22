"""(k) The page of a plan of 10,000 steps: making it, and in Chromium the time until its first rows are shown and until
a search is answered, beside an empty page opened in the same browser. Argument: the number of steps.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser
from render.browser import browsing
from render.plans import big
from timing import best, table

from reconciler.render.as_json import plan_json
from reconciler.render.plan_page import plan_page

TIMES = 5


def shown(browser: Browser, file: Path, ready: str) -> float:
    """Seconds from the call until the element is there and painted, in a tab of its own."""
    context = browser.new_context()
    page = context.new_page()
    start = time.perf_counter()
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_selector(ready)
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    seconds = time.perf_counter() - start
    context.close()
    return seconds


def searched(browser: Browser, file: Path, text: str, expected: str) -> float:
    """Seconds from the first key until the rows are those of the search, the first in this tab: nothing is prepared."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(file.as_uri())
    start = time.perf_counter()
    page.fill("#q", text)
    page.wait_for_function("name => document.querySelector('#rows .mono')?.textContent === name", arg=expected)
    seconds = time.perf_counter() - start
    context.close()
    return seconds


def main(count: int) -> None:
    plan = big(count)
    made = best(lambda: plan_page(plan))
    as_json = best(lambda: plan_json(plan))
    last = next(s for s in reversed(plan.steps) if s.action == "create_dataset")
    name = last.change.ident[-1]
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        page, empty = Path(folder) / "plan.html", Path(folder) / "empty.html"
        page.write_text(plan_page(plan))
        empty.write_text("<!doctype html><title>empty</title><p>empty")
        opened = min(shown(browser, page, "#rows .row") for _ in range(TIMES))
        bare = min(shown(browser, empty, "p") for _ in range(TIMES))
        answered = min(
            searched(browser, page, f"{name} create_dataset", f"lake:{'.'.join(last.change.ident)}")
            for _ in range(TIMES)
        )
        size = page.stat().st_size / 1e6
    table(
        ["steps", "what", "ours", "beside", "ratio"],
        [
            [str(count), f"page made ({size:.1f} MB), beside its JSON", f"{made:.2f} s", f"{as_json:.2f} s",
             f"{made / as_json:.2f}x"],
            [str(count), "first rows shown, beside an empty page", f"{opened:.2f} s", f"{bare:.2f} s",
             f"{opened / bare:.1f}x"],
            [str(count), "search answered", f"{answered:.2f} s", "", ""],
            [str(count), "usable: shown and searched (aim 3 s)", f"{opened + answered:.2f} s", f"{bare:.2f} s",
             f"{(opened + answered) / bare:.1f}x"],
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
