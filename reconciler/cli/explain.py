"""`reconciler explain`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from reconciler import app, app_files
from reconciler.cli.exits import OK
from reconciler.cli.output import Output
from reconciler.explain.catalogue import QUALIFIERS, explanations, find
from reconciler.explain.suggest import meant
from reconciler.model.explanation import Explanation
from reconciler.render.explained import explained, listed
from reconciler.render.sarif_rules import BLOCKED
from reconciler.render.way_back import ways_back_as

_STEP = re.compile(r"s[0-9]+")


def run(args: argparse.Namespace, out: Output) -> int:
    if args.report is not None:
        out.result(ways_back_as(app_files.ways_back(Path(args.report), args.code), args.format, out.width))
        return OK
    if not args.code:
        out.result(listed(explanations(), args.format, out.width))
        return OK
    found = {e.code: e for word in _words(args.code) for e in _found(word)}
    out.result(explained(list(found.values()), args.format, out.width))
    return OK


def _words(given: Sequence[str]) -> Iterator[str]:
    """`exit 3` and `left out` are one name, also without quotes."""
    words = [word.removeprefix(BLOCKED) or word for word in given]
    while words:
        word = words.pop(0)
        if words and _belong(word, words[0]):
            word = f"{word} {words.pop(0)}"
        yield word


def _belong(word: str, after: str) -> bool:
    if word.lower() in QUALIFIERS and not find(word):
        return True
    return any(c.isalnum() for c in after) and bool(find(f"{word} {after}"))


def _found(word: str) -> list[Explanation]:
    found = find(word)
    if not found:
        raise app.Failure(f"nothing is called {word}{_meant(word)} (`reconciler explain` lists all codes and words)")
    return found


def _meant(word: str) -> str:
    if _STEP.fullmatch(word):
        return (
            f". A step is numbered in its own plan: `reconciler show FILE` shows it, "
            f"`reconciler explain {word} --report FILE` the way back from what it did"
        )
    return meant(word)
