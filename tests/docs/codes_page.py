"""docs/reference/codes.md, made from what `reconciler explain` says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from reconciler.explain.catalogue import explanations
from reconciler.model.explanation import KINDS, Explanation, Repeated
from reconciler.render.explained import explained

SHORT = 12
"""Lines of an example that is shown here; `reconciler explain` shows them all, with the corrected one."""
NO_CODES = frozenset({"action", "word"})
"""Words of outputs, which explain themselves where they are read."""


def codes_page(made: str) -> str:
    return "\n".join(_lines(made))


def _lines(made: str) -> Iterator[str]:
    yield "# Codes\n"
    yield made.format(source="data of `reconciler explain`")
    yield (
        "Every code that a diagnostic, a policy, an error or the end of a run has: what it means, the fix, and an\n"
        "example where it is short. `reconciler explain CODE` shows the corrected example too, and explains the words\n"
        "and signs of plans, reports and journals, which are not listed here.\n"
    )
    titles = {kind: title for kind, title in KINDS.items() if kind not in NO_CODES}
    yield from (f"- [{title}](#{_anchor(title)})" for title in titles.values())
    yield ""
    for kind, title in titles.items():
        yield f"## {title}\n"
        yield from (_entry(e) for e in explanations() if e.kind == kind)


def _entry(e: Explanation) -> str:
    return "#" + explained([replace(e, bad=e.bad if _is_short(e) else None, good=None)], "markdown")


def _is_short(e: Explanation) -> bool:
    if e.bad is None or isinstance(e.bad, Repeated):
        return False
    texts = [e.bad] if isinstance(e.bad, str) else [f"# {name}\n{text}" for name, text in e.bad.items()]
    return sum(len(text.splitlines()) for text in texts) <= SHORT


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
