"""Why there is no plan, as a page: an artifact of CI that is empty would look like one that was lost."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.diagnostic import Diagnostic
from reconciler.render.page_frame import count, page, text
from reconciler.render.page_plain import Entry
from reconciler.render.safe_text import bounded, printable


def diagnostics_page(found: Sequence[Diagnostic], message: str) -> str:
    ranked = sorted(found, key=lambda d: d.severity != "error")
    entries = [_entry(order, one) for order, one in enumerate(ranked)]
    errors = sum(1 for one in found if one.severity == "error")
    counts = f"<p>{count(errors, 'error')}, {count(len(found) - errors, 'warning')}</p>" if found else ""
    return page("No plan", "", f'<p class="alert">{text(message)}</p>\n{counts}', "", entries)


def _entry(order: int, one: Diagnostic) -> Entry:
    error = one.severity == "error"
    return {
        "kind": "diagnostic",
        "order": order,
        "code": one.code,
        "symbol": "!" if error else "i",
        "style": "blocked" if error else "told",
        "catalog": "",
        "name": printable(bounded(str(one.source))),
        "type": one.severity,
        "severity": one.severity,
        "reason": printable(bounded(f"{one.message}; {one.hint}" if one.hint else one.message)),
    }
