"""The question before a plan is applied. What could lose data needs more than the habit of typing yes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from reconciler import app
from reconciler.cli.output import Output
from reconciler.model.plan import Plan, Step
from reconciler.render.columns import wrapped
from reconciler.render.safe_text import safe
from reconciler.render.text import plan_summary, symbol_of

MOST = 20
"""Steps that are told one by one; all of them are in the plan above."""


def confirm(made: Plan, out: Output, summary: bool) -> None:
    """Asks on stderr, so that stdout stays the result. Raises Failure unless the answer is the word that was asked for:
    `yes`, or the name of every catalog whose data could be lost. `summary`: the plan with its last line went elsewhere
    than to whoever answers."""
    lines = [*plan_summary(made).split("\n")] if summary else []
    lines += _destructive(made)
    if lines:
        out.say("\n".join(part for line in lines for part in wrapped(line, _columns())))
    names = sorted({s.catalog for s in made.steps if s.loses_data})
    for name in names:
        _ask(f"Data in catalog {safe(name)} could be lost. To apply, type the catalog's name: ", name)
    if not names:
        _ask("Apply this plan? Type yes to apply, anything else to stop: ", "yes")


def _destructive(made: Plan) -> Iterator[str]:
    harmful = [s for s in made.steps if s.verdict == "allowed" and s.risk == "destructive"]
    if harmful:
        yield "Destructive:"
    yield from (f"  {symbol_of(s)} {safe(str(s.key))}  {s.action}: {safe(s.reason)}" for s in _worst_first(harmful))
    if len(harmful) > MOST:
        yield f"  ... and {len(harmful) - MOST} more"


def _worst_first(steps: list[Step]) -> list[Step]:
    return sorted(steps, key=lambda s: not s.loses_data)[:MOST]


def _ask(question: str, wanted: str) -> None:
    sys.stderr.write(question)
    sys.stderr.flush()
    if sys.stdin.readline().strip() != wanted:
        raise app.Failure("not applied: nothing was written")


def _columns() -> int | None:
    """Of the terminal that shows the question, which need not be that of stdout."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or None
    except (OSError, ValueError):
        return None


def terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
