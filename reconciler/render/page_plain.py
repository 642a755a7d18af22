"""The list of a plan's page that needs no script: for readers without, and for paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

Entry = dict[str, Any]
"""What the scripts of a page show: texts that are safe to show, by names that they know."""
PLAIN = 500
"""The most entries in it, printed or not."""
_WORDS = ("id", "action", "code", "status", "verdict", "risk", "reason", "waiver", "source")
_BETWEEN = " \u00b7 "


def plain_list(found: Sequence[Entry]) -> str:
    title = f"The first {PLAIN} of {len(found)} entries" if len(found) > PLAIN else f"{len(found)} entries"
    items = "".join(_item(entry) for entry in found[:PLAIN])
    return f'<section id="plain">\n<h2 id="plain-title">{title}</h2>\n<ol id="plain-list">\n{items}</ol>\n</section>\n'


def _item(entry: Entry) -> str:
    name = ":".join(entry[key] for key in ("catalog", "name") if entry[key])
    kind = [] if entry["kind"] == "step" else [entry["kind"]]
    weight = [entry["policy"][0].split(" ")[0]] if entry["kind"] == "finding" and entry.get("policy") else []
    told = [*kind, *weight, *(entry[key] for key in _WORDS if entry.get(key))]
    lines = "\n".join(_line(*row) for _, rows in entry.get("diff", ()) for row in rows)
    head = f'<strong class="mono">{escape(entry["symbol"])} {escape(name)}</strong> {escape(_BETWEEN.join(told))}'
    shown = f"<pre>{escape(lines)}</pre>" if lines else ""
    return f'<li class="{escape(entry["style"])}"><p>{head}</p>{shown}</li>\n'


def _line(name: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"+ {name} = {after}"
    return f"- {name} = {before}" if after is None else f"~ {name}: {before} -> {after}"
