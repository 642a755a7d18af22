"""The question before a plan is applied. What could lose data needs more than the habit of typing yes."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator, Sequence

from reconciler import app
from reconciler.cli.output import Output
from reconciler.model.plan import Plan, Step
from reconciler.render.safe_text import safe
from reconciler.render.text import plan_summary, symbol_of

MOST = 20
"""Steps that are told one by one, shared by the catalogs; all of them are in the plan above."""
ANSWER_SECONDS = 120.0
"""A program that runs on a pseudo-terminal of a notebook or a build is asked like a person, and nobody can type."""
LEAST = 3
"""Of each catalog, however many there are: nobody is asked about one of which nothing is shown."""


def confirm(made: Plan, out: Output, summary: bool) -> None:
    """Asks on stderr, so that stdout stays the result. Raises Failure unless the answer is the word that was asked for:
    `yes`, or the name of every catalog whose data could be lost, each right below what it would lose. `summary`: the
    plan with its last line went elsewhere than to whoever answers."""
    harmful: dict[str, list[Step]] = {}
    for step in made.steps:
        if step.verdict == "allowed" and (step.risk == "destructive" or step.deletes):
            harmful.setdefault(step.catalog, []).append(step)
    share = max(LEAST, MOST // max(1, len(harmful)))
    names = sorted(name for name, steps in harmful.items() if any(s.loses_data for s in steps))
    lines = plan_summary(made).split("\n") if summary else []
    for name in sorted(harmful.keys() - set(names)):
        lines += _harmful(name, harmful[name], share)
    _say(lines, out)
    for name in names:
        _say([*_harmful(name, harmful[name], share)], out)
        _ask(f"Data in catalog {safe(name)} could be lost. To apply, type the catalog's name: ", name)
    if not names:
        _ask("Apply this plan? Type yes to apply, anything else to stop: ", "yes")


def _say(lines: Sequence[str], out: Output) -> None:
    if lines:
        out.say_lines(lines)


def _harmful(catalog: str, steps: Sequence[Step], most: int) -> Iterator[str]:
    """The worst first: what loses values, then what leaves the catalog."""
    lost, removed = [s for s in steps if not s.deletes], [s for s in steps if s.deletes]
    if lost:
        yield f"Destructive in catalog {safe(catalog)}: {len(lost)} {'step' if len(lost) == 1 else 'steps'}"
        yield from _some(sorted(lost, key=lambda s: not s.loses_data), most)
    if removed:
        yield f"Removed from catalog {safe(catalog)}: {len(removed)} {'object' if len(removed) == 1 else 'objects'}"
        yield from _some(removed, max(LEAST, most - len(lost)))


def _some(steps: Sequence[Step], most: int) -> Iterator[str]:
    for s in steps[:most]:
        yield f"  {symbol_of(s)} {safe(str(s.key))}  {s.action}: {safe(s.reason)}"
    if len(steps) > most:
        yield f"  ... and {len(steps) - most} more"


def _ask(question: str, wanted: str) -> None:
    answer = typed(question)
    if answer is None:
        why = f"nobody answered within {ANSWER_SECONDS:g} seconds; where nobody can type, pass --yes"
        raise app.Failure(f"not applied: nothing was written; {why}")
    if answer != wanted:
        raise app.Failure("not applied: nothing was written")


def typed(question: str) -> str | None:
    """The line that somebody types once the question, on stderr, is there; None when nobody does in time. What was
    typed before is no answer to it and is thrown away. Read without a buffer: that could hold such a line, too."""
    import termios  # Only a terminal is asked.

    terminal_in, text = sys.stdin.fileno(), b""
    end = time.monotonic() + ANSWER_SECONDS
    try:
        termios.tcflush(terminal_in, termios.TCIFLUSH)
        sys.stderr.write(question)
        sys.stderr.flush()
        while not text.endswith(b"\n"):
            if not select.select([terminal_in], [], [], max(0.0, end - time.monotonic()))[0]:
                sys.stderr.write("\n")
                return None
            if not (more := os.read(terminal_in, 4096)):
                break
            text += more
    except (OSError, termios.error):  # The terminal is gone, and who could have answered.
        return None
    return text.decode(errors="replace").strip()


def terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
