"""How a step talks to the runner: outputs, the summary, annotations, and text of others that must not talk to it."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def output(**values: str) -> None:
    """Values that are ours only: one with a line break in it could set another output."""
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        for name, value in values.items():
            if "\n" in value or "\r" in value:
                raise ValueError(f"the output {name} has more than one line")
            file.write(f"{name.replace('_', '-')}={value}\n")


def summary(text: str) -> None:
    """At most a mebibyte is shown, and more makes the step fail."""
    with open(os.environ["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8", errors="replace") as file:
        file.write(text[:500_000] + "\n")


def fenced(text: str) -> str:
    """Nothing in it ends the block: the fence is longer than any row of backticks."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}\n"


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
