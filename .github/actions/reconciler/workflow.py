"""How a step talks to the runner: outputs, the summary, annotations, and text of others that must not talk to it."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MAX_SUMMARY = (1 << 20) - 1024
"""Bytes. A step may write a mebibyte, and fails with more."""
LONGEST = 200_000
"""Characters of what the program said, in a summary. A character has up to four bytes."""
_FENCE = re.compile("`{3,}")


def output(**values: str) -> None:
    """Values that are ours only: one with a line break in it could set another output."""
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        for name, value in values.items():
            if "\n" in value or "\r" in value:
                raise ValueError(f"the output {name} has more than one line")
            file.write(f"{name.replace('_', '-')}={value}\n")


def summary(text: str) -> None:
    """What fits after what the step wrote there before."""
    path = os.environ["GITHUB_STEP_SUMMARY"]
    room = MAX_SUMMARY - (os.path.getsize(path) if os.path.exists(path) else 0)
    with open(path, "a", encoding="utf-8", errors="replace") as file:
        file.write(fitted(f"{text}\n", room, _bytes, "see the log of the job"))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def fitted(markdown: str, room: int, size: Callable[[str], int], rest: str) -> str:
    """The lines that fit, with the fence and the folds that are open there closed, and the exact number of those that
    do not; `rest`: where they are. The markdown is ours: text of others begins no line of it outside of a fence."""
    if size(markdown) <= room:
        return markdown
    lines = markdown.removesuffix("\n").split("\n")
    kept, end, used, fence, folds = 0, "", 0, "", 0
    spare = size(_cut(len(lines), len(lines), rest))
    if spare > room:
        return ""
    for number, line in enumerate(lines, 1):
        used += size(f"{line}\n")
        ticks = _FENCE.match(line)
        if fence:
            fence = "" if ticks and ticks[0] == line.rstrip() and len(ticks[0]) >= len(fence) else fence
        elif ticks:
            fence = ticks[0]
        else:
            folds += line.count("<details") - line.count("</details>")
        closing = (f"{fence}\n" if fence else "") + "\n</details>\n" * folds
        if used + spare > room:
            break
        if used + spare + size(closing) <= room:
            kept, end = number, closing
    shown = "".join(f"{line}\n" for line in lines[:kept])
    return f"{shown}{end}{_cut(len(lines) - kept, len(lines), rest)}"


def _cut(hidden: int, total: int, rest: str) -> str:
    return f"\n**{hidden} of {total} lines not shown**: {rest}.\n"


def fenced(text: str, longest: int = LONGEST) -> str:
    """Nothing in it ends the block: the fence is longer than any row of backticks. Of a text that is too long the
    middle is left out, since what went wrong comes last."""
    text = text.rstrip()
    if len(text) > longest:
        begin, end = longest * 3 // 4, longest // 4
        text = f"{text[:begin]}\n… {len(text) - begin - end} characters left out …\n{text[-end:]}"
    ticks = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}text\n{text}\n{fence}\n"


def annotation(level: str, message: str, **place: object) -> None:
    """`level` is error, warning or notice; `place` has file, line and col."""
    where = ",".join(f"{key}={_value(str(value))}" for key, value in place.items())
    print(f"::{level} {where}::{_data(message)}", flush=True)


def warning(message: str) -> None:
    annotation("warning", message, title="reconciler")


def error(message: str) -> None:
    annotation("error", message, title="reconciler")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


@contextmanager
def no_commands() -> Iterator[None]:
    """A line of the log that begins with `::` is a command to the runner. What is written in here is not: names and
    values in it come from a pull request."""
    word = secrets.token_hex(16)
    print(f"::stop-commands::{word}", flush=True)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        print(f"\n::{word}::", flush=True)
