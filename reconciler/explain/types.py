"""All types of columns as one list, for `reconciler explain types`."""

from __future__ import annotations

from reconciler.model.arrow_forms import FORMS
from reconciler.model.arrow_grammar import ALIASES


def types_text() -> str:
    rows = [
        (spelling, form.holds if first == 0 else "")
        for form in FORMS.values()
        for first, spelling in enumerate(form.spellings)
    ]
    wide = max(len(spelling) for spelling, _ in rows)
    lines = [f"{spelling:{wide}}  {holds}".rstrip() for spelling, holds in rows]
    other = ", ".join(f"{alias} = {name}" for alias, name in ALIASES.items())
    return "\n".join([*lines, "", f"Also read: {other}", ""])
