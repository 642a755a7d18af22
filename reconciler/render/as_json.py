"""The same things for programs: one JSON document, same bytes for same input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.diagnostic import Diagnostic
from reconciler.model.errors import ReadError
from reconciler.model.log_commands import in_json
from reconciler.model.plan import Json, Plan
from reconciler.model.plan_json import plan_to_json
from reconciler.model.report import Report
from reconciler.render.safe_text import bounded
from reconciler.render.step_diff import fields_of


def plan_json(plan: Plan) -> str:
    return dumped(plan_to_json(plan))


def drift_json(plan: Plan) -> str:
    """A plan, with the differences field by field. They follow from the steps and are no part of its `plan_id`."""
    found: list[Json] = []
    for step in plan.steps:
        about: dict[str, Json] = {
            "catalog": step.catalog,
            "object": {"kind": step.change.kind, "id": [*step.change.ident]},
        }
        found += [
            {**about, "step": step.id, "field": d.field, "live": d.before, "declared": d.after} for d in fields_of(step)
        ]
    return dumped({**plan_to_json(plan), "differences": found})


def report_json(report: Report) -> str:
    return dumped(report.to_json())


def diagnostics_json(diagnostics: Sequence[Diagnostic], documents: int) -> str:
    summary = {**_counts(diagnostics), "documents": documents}
    return dumped({"diagnostics": _shown(diagnostics), "summary": summary})


def failure_json(message: str, diagnostics: Sequence[Diagnostic], error: ReadError | None = None) -> str:
    """A command that has no result: why, with the code when a catalog said so, and the diagnostics as `validate` gives
    them."""
    why = ReadError(error.code if error is not None else None, bounded(message)).data
    return dumped({"error": why, "diagnostics": _shown(diagnostics), "summary": _counts(diagnostics)})


def _shown(diagnostics: Sequence[Diagnostic]) -> list[object]:
    return [replace(d, message=bounded(d.message), hint=bounded(d.hint)).to_json() for d in diagnostics]


def _counts(diagnostics: Sequence[Diagnostic]) -> dict[str, int]:
    errors = sum(1 for d in diagnostics if d.severity == "error")
    return {"errors": errors, "warnings": len(diagnostics) - errors}


def dumped(value: object) -> str:
    return in_json(json.dumps(value, indent=2, ensure_ascii=True)) + "\n"
