"""A report as one page: what failed and what nobody knows first, then what was not run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.model.ident import dotted
from reconciler.model.plan import Json
from reconciler.render.page_frame import page, text
from reconciler.render.page_plain import Entry
from reconciler.render.safe_text import bounded, safe

_ORDER = ("failed", "unknown", "not_run", "skipped", "done")
_SHOWN = {
    "failed": ("\u2717", "delete"), "unknown": ("?", "blocked"), "not_run": ("\u00b7", "told"),
    "skipped": ("=", "told"), "done": ("\u2713", "create"),
}  # fmt: skip


def report_page(report: Mapping[str, Any]) -> str:
    """From the report's JSON. Raises KeyError, TypeError when it is none."""
    entries = [_entry(order, result) for order, result in enumerate(report["steps"])]
    entries.sort(key=lambda entry: _ORDER.index(entry["status"]))
    return page("Report", str(report["plan_id"]), _header(report), "", entries)


def _header(report: Mapping[str, Any]) -> str:
    outcome = str(report["outcome"]).replace("_", " ").capitalize()
    message = str(report.get("message") or "")
    told = outcome if message in ("", outcome.lower()) else f"{outcome}: {message}"
    mood = "" if report["outcome"] in ("applied", "no_changes") else ' class="alert"'
    counts = ", ".join(f"{number} {status.replace('_', ' ')}" for status, number in report["summary"].items() if number)
    about = f"<li>plan <code>{text(str(report['plan_id']))}</code></li><li>{text(counts)}</li>"
    return f'<p{mood}>{text(told)}</p>\n<ul class="about">{about}</ul>'


def _entry(order: int, result: Mapping[str, Any]) -> Entry:
    symbol, style = _SHOWN[result["status"]]
    before, after = result.get("version_before"), result.get("version_after")
    versions: list[Json] = [["version", _number(before), _number(after)]] if before != after else []
    out: Entry = {
        "kind": "step",
        "order": order,
        "id": _text(result["id"]),
        "symbol": symbol,
        "style": style,
        "catalog": _text(result["catalog"]),
        "name": _text(dotted(tuple(result["object"]["id"]))),
        "type": _text(result["object"]["kind"].lower()),
        "action": _text(result["action"]),
        "status": result["status"],
        "reason": _text(_reason(result)),
    }
    return out | ({"diff": [["Dataset", versions]]} if versions else {})


def _reason(result: Mapping[str, Any]) -> str:
    error, tag = result.get("error"), result.get("tag")
    parts = [] if error is None else [f"{error['name']} ({error['code']}): {error['message']}"]
    if tag is not None:
        parts.append(f"version {result.get('version_before')} is tagged {tag}")
    if result.get("attempts"):
        parts.append(f"{result['attempts']} attempt{'' if result['attempts'] == 1 else 's'}, {result['seconds']} s")
    return "; ".join(parts)


def _number(value: object) -> str | None:
    return None if value is None else _text(str(value))


def _text(value: str) -> str:
    return safe(bounded(value))
