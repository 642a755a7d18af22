"""Why there is no plan, as a page: an artifact of CI that is empty would look like one that was lost."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.diagnostic import Diagnostic, foremost
from reconciler.render.page_entries import diagnostic_entry
from reconciler.render.page_frame import count, page, text


def diagnostics_page(found: Sequence[Diagnostic], message: str) -> str:
    entries = [{**diagnostic_entry(one), "order": order} for order, one in enumerate(foremost(found))]
    errors = sum(1 for one in found if one.severity == "error")
    counts = f"<p>{count(errors, 'error')}, {count(len(found) - errors, 'warning')}</p>" if found else ""
    return page("No plan", "", f'<p class="alert">{text(message)}</p>\n{counts}', "", entries)
