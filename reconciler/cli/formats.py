"""--format: plans, reports and diagnostics as what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reconciler import app
from reconciler.cli.output import Output
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.plan import Plan
from reconciler.render import as_json, text


def plan_as(made: Plan, how: str, out: Output, title: str = text.NO_CHANGES) -> str:
    return as_json.plan_json(made) if how == "json" else text.plan_text(made, out.color, title, out.width)


def report_as(report: Any, how: str, source: Path) -> str:
    """A saved report that cannot be shown as text is none, so it is not passed on as JSON either."""
    try:
        shown = text.report_text(report)
    except (KeyError, TypeError, AttributeError) as error:
        raise app.Failure(f"{source} is not a report of this program: it is malformed") from error
    return as_json.dumped(report) if how == "json" else shown


def diagnostics_as(found: Sequence[Diagnostic], documents: int, how: str) -> str:
    if how == "json":
        return as_json.diagnostics_json(found, documents)
    errors = sum(1 for d in found if d.severity == "error")
    counts = (_count(documents, "document"), _count(errors, "error"), _count(len(found) - errors, "warning"))
    return text.diagnostics_text(found) + f"{', '.join(counts)}\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
