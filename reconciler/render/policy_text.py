"""What the policy says, for people: errors first, then warnings, then what was waived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model.finding import Finding
from reconciler.model.ident import dotted
from reconciler.render.safe_text import bounded, safe

_SIGNS = {"error": "!", "warning": " "}


def policy_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Nothing without findings; otherwise a block that ends with an empty line."""
    if not findings:
        return
    yield "Policy"
    for severity, sign in _SIGNS.items():
        for f in findings:
            if f.severity == severity and f.waiver is None:
                yield f"  {sign} {severity}[{safe(f.code)}] {_about(f)}{safe(bounded(f.message))}"
                if f.source is not None:
                    yield f"      at {safe(f'{f.source.file}:{f.source.line}')}"
                if f.hint:
                    yield f"      fix: {safe(bounded(f.hint))}"
    for f in findings:
        if f.waiver is not None:
            held = f"waived until {safe(f.waiver.until)}: {safe(bounded(f.waiver.reason))}"
            yield f"    waived[{safe(f.code)}] {_about(f)}{safe(bounded(f.message))}; {held}"
    yield ""


def _about(f: Finding) -> str:
    if f.key is None:
        return ""
    return f"{f.key.kind.lower()} {safe(f.key.catalog)}:{safe(dotted(f.key.ident))}: "
