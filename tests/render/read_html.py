"""Markdown as two renderers read it: GitHub's own (cmark-gfm) with its extensions, and markdown-it with linkify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt

CODE = ("code", "pre")
VOID = ("br",)


def as_github(markdown: str) -> str:
    html: str = cmarkgfm.markdown_to_html_with_extensions(
        markdown, options=Options.CMARK_OPT_UNSAFE, extensions=["table", "autolink", "strikethrough", "tasklist"]
    )
    return html


def as_markdown_it(markdown: str) -> str:
    html: str = MarkdownIt("gfm-like", {"html": True, "linkify": True}).render(markdown)
    return html


RENDERERS: dict[str, Callable[[str], str]] = {"github": as_github, "markdown-it": as_markdown_it}


@dataclass
class Page(HTMLParser):
    """`tags` that occur, `plain` text outside of code, `rows` of tables: the text of each cell."""

    tags: set[str] = field(default_factory=set)
    plain: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    spans: list[str] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    stack: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag in VOID:
            return
        self.stack.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "code":
            self.spans.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag, "elements must nest"

    def handle_comment(self, data: str) -> None:
        self.tags.add("!--")

    def handle_decl(self, decl: str) -> None:
        self.tags.add("!")

    def handle_data(self, data: str) -> None:
        if not any(tag in CODE for tag in self.stack):
            self.plain.append(data)
        if "code" in self.stack:
            self.spans[-1] += data
        if any(tag in ("td", "th") for tag in self.stack):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return "".join(self.plain)


def read(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert page.stack == [], "every element must be closed"
    return page
