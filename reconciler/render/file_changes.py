"""Changes of files for people: a line each, or a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from reconciler.model.file_change import FileChange
from reconciler.render.safe_text import safe, safe_line

MOST = 40


def changes_text(changes: Sequence[FileChange]) -> str:
    lines = [f"{'wrote' if c.before is None else 'updated'} {safe(c.path)}" for c in changes[:MOST]]
    if len(changes) > MOST:
        lines.append(f"and {len(changes) - MOST} more files")
    return "".join(f"{line}\n" for line in lines)


def changes_diff(changes: Sequence[FileChange]) -> str:
    return "".join(f"{line}\n" for change in changes for line in _diff(change))


def _diff(change: FileChange) -> Iterator[str]:
    old = "/dev/null" if change.before is None else safe(change.path)
    for line in difflib.unified_diff(_lines(change.before or ""), _lines(change.after), old, safe(change.path)):
        yield safe_line(line.rstrip("\r\n"))
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _lines(text: str) -> list[str]:
    """Other characters that Python takes for the end of a line are none in a file."""
    lines = [f"{line}\n" for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "\n" else [*lines[:-1], lines[-1][:-1]]
