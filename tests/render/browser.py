"""A real browser, driven: what a page does when a person types and clicks, and whatever it tried that it must not.

Chromium or Chrome on the PATH, by Playwright's client; nothing is downloaded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_WATCH = """addEventListener('securitypolicyviolation',
  e => console.error('CSP violation: ' + e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sample))"""


def executable() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"the pages need a browser on the PATH: one of {', '.join(NAMES)} (apt-get install chromium)")
    return found


@contextmanager
def browsing() -> Iterator[Browser]:
    path = executable()
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Its sandbox refuses to work for root.
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@dataclass
class Opened:
    page: Page
    complaints: list[str] = field(default_factory=list)
    """Errors, broken policy, dialogs: whatever must not be."""
    requests: list[str] = field(default_factory=list)
    """Beyond the file itself."""

    @property
    def clean(self) -> bool:
        return not self.complaints and not self.requests

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()


@contextmanager
def opened(
    browser: Browser, file: Path, hash_: str = "", wide: int = 1400, high: int = 900, script: bool = True, **more: str
) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": wide, "height": high}, java_script_enabled=script, **more)
    page = context.new_page()
    seen = Opened(page)
    page.on("console", lambda m: seen.complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: seen.complaints.append(str(e)))
    page.on("dialog", lambda d: (seen.complaints.append(f"dialog: {d.message}"), d.dismiss()))
    page.on("request", lambda r: None if r.url.startswith(file.as_uri()) else seen.requests.append(r.url))
    if script:
        page.add_init_script(_WATCH)
    page.goto(file.as_uri() + hash_)
    yield seen
    context.close()
