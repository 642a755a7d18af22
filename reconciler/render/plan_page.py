"""A plan as one page: a file that needs nothing else, to be read in a browser, searched, linked to and printed.

Names and values are other people's. They are in the page as JSON that cannot end its element, and enter the document as
text only; should one slip through, the page's own policy runs no script but ours and loads nothing. Without scripts
there are the summary, the picture and a list of the first steps. The page is ASCII: no encoding can break it.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from html import escape
from urllib.parse import urlencode

from reconciler.model.plan import Plan
from reconciler.render.assets import asset
from reconciler.render.graph import Graph
from reconciler.render.graph_svg import drawing
from reconciler.render.page_entries import Entry, entries
from reconciler.render.page_plain import PLAIN, plain_list
from reconciler.render.plan_graph import object_graph, plan_graph
from reconciler.render.safe_text import bounded, safe
from reconciler.render.text import DRIFT, NO_CHANGES, plan_summary

PICTURE = 150
"""Boxes in the picture of the whole; a bigger plan has only those around a step."""
_CATALOGS = 12
_STYLES = ("colours.css", "graph.css", "page.css")
_SCRIPTS = ("state.js", "list.js", "picture.js", "detail.js", "start.js")


def plan_page(plan: Plan, title: str = NO_CHANGES) -> str:
    found = entries(plan)
    style = "".join(asset(name) for name in _STYLES)
    script = "(() => {\n'use strict';\n" + "".join(asset(name) for name in _SCRIPTS) + "})();\n"
    heading = "Drift" if title == DRIFT else "Plan"
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<title>{heading} {_text(plan.plan_id[:19])}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n"
    )
    body = _header(plan, heading, title) + _APP + _picture(plan) + plain_list(found)
    text = f"{head}{body}{_data(found)}<script>{script}</script>\n</body>\n</html>\n"
    return text.encode("ascii", "xmlcharrefreplace").decode()


def _policy(script: str, style: str) -> str:
    """Only what has these hashes runs, and no text can become markup by way of a script."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _header(plan: Plan, heading: str, title: str) -> str:
    told = [f"<p>{_text(line)}</p>" for line in plan_summary(plan, title).splitlines()]
    refusing = sum(1 for finding in plan.findings if finding.refuses)
    if refusing:
        told.append(f'<p class="alert">The policy refuses this plan: {_count(refusing, "finding")}.</p>')
    about = [f"plan <code>{_text(plan.plan_id)}</code>", f"reconciler {_text(plan.tool_version)}"]
    for name, catalog in sorted(plan.catalogs.items(), key=lambda item: (item[1].complete, item[0]))[:_CATALOGS]:
        size = f"{_count(catalog.namespaces, 'namespace')}, {_count(catalog.tables, 'table')}"
        state = "" if catalog.complete else ' <span class="alert">not read completely</span>'
        about.append(f"catalog <strong>{_text(name)}</strong> ({_text(catalog.type)}: {size}){state}")
    if len(plan.catalogs) > _CATALOGS:
        about.append(f"{len(plan.catalogs) - _CATALOGS} more catalogs")
    lines = "".join(f"<li>{line}</li>" for line in about)
    return f'<header>\n<h1>{heading}</h1>\n{"".join(told)}\n<ul class="about">{lines}</ul>\n</header>\n'


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


def _picture(plan: Plan) -> str:
    """Of the steps, or of the objects when the steps are too many, or none."""
    if not any(step.needs for step in plan.steps):
        return ""
    fitting = (graph for graph in (plan_graph(plan), object_graph(plan)) if len(graph.nodes) <= PICTURE)
    graph: Graph | None = next(fitting, None)
    if graph is None:
        return ""
    shown = drawing(graph, lambda node: "#" + urlencode({"at": safe(node.id)}))
    return (
        f'<details id="picture"><summary>{_text(graph.title)}, in their order</summary>'
        f'<div class="scroll" tabindex="0">{shown}</div></details>\n'
    )


def _data(found: list[Entry]) -> str:
    """No character of it can end the element or begin a comment in it."""
    text = json.dumps({"entries": found, "plain": PLAIN}, ensure_ascii=True, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="plan">{text}</script>\n'


def _text(value: str) -> str:
    return escape(safe(bounded(value)))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
