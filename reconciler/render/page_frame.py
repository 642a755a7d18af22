"""What every page of entries is: a file that needs nothing else, to be read in a browser, searched, linked to, printed.

Names and values are other people's. They are in the page as JSON that cannot end its element, and enter the document as
text only; should one slip through, the page's own policy runs no script but ours and loads nothing. Without scripts
there are the summary, the picture and a list of the first entries. The page is ASCII: no encoding can break it.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape

from reconciler.render.assets import asset
from reconciler.render.page_plain import PLAIN, Entry, plain_list
from reconciler.render.safe_text import bounded, printable

_STYLES = ("colours.css", "graph.css", "page.css")
_SCRIPTS = ("state.js", "list.js", "picture.js", "detail.js", "start.js")


def page(heading: str, of: str, header: str, picture: str, entries: Sequence[Entry]) -> str:
    """`header` and `picture` are markup, made by us; all else is text."""
    style = "".join(asset(name) for name in _STYLES)
    script = "(() => {\n'use strict';\n" + "".join(asset(name) for name in _SCRIPTS) + "})();\n"
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<title>{heading} {text(of[:19])}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n<header>\n<h1>{heading}</h1>\n{header}\n</header>\n"
    )
    whole = f"{head}{_APP}{picture}{plain_list(entries)}{_data(entries)}<script>{script}</script>\n</body>\n</html>\n"
    return whole.encode("ascii", "xmlcharrefreplace").decode()


def _policy(script: str, style: str) -> str:
    """Only what has these hashes runs, and no text can become markup by way of a script."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


_APP = """<main id="app" hidden>
<form id="filters" role="search" aria-label="Filter the entries" autocomplete="off">
<input id="q" name="q" type="search" placeholder="Search names, reasons, values, files" aria-label="Search"
 aria-keyshortcuts="/">
<div id="quick"></div><button type="reset">Clear</button><output id="count" aria-live="polite"></output>
<span class="dim hint"><span class="key">/</span> searches, arrows move, <span class="key">Enter</span> opens</span>
</form>
<div class="split">
<div id="list" role="listbox" tabindex="0" aria-label="Entries of the plan">
<div id="rows" role="presentation"></div>
</div>
<section id="detail" tabindex="-1" aria-label="The chosen entry"></section>
</div>
</main>
"""


def _data(entries: Sequence[Entry]) -> str:
    """No character of it can end the element or begin a comment in it."""
    text = json.dumps({"entries": entries, "plain": PLAIN}, ensure_ascii=True, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="plan">{text}</script>\n'


def text(value: str) -> str:
    return escape(printable(bounded(value)))


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
