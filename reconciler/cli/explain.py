"""`reconciler explain`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from reconciler import app, app_files
from reconciler.cli.exits import OK
from reconciler.cli.output import Output
from reconciler.explain.catalogue import explanations, find, nearest
from reconciler.model.explanation import Explanation
from reconciler.render.explained import explained, listed
from reconciler.render.way_back import ways_back_as

_QUALIFIERS = frozenset({"exit", "outcome", "status", "error"})


def run(args: argparse.Namespace, out: Output) -> int:
    if args.report is not None:
        out.result(ways_back_as(app_files.ways_back(Path(args.report), args.code), args.format))
        return OK
    if not args.code:
        out.result(listed(explanations(), args.format))
        return OK
    found = {e.code: e for word in _words(args.code) for e in _found(word)}
    out.result(explained(list(found.values()), args.format))
    return OK


def _words(given: Sequence[str]) -> Iterator[str]:
    """`exit 3` is one name, also without quotes."""
    words = iter(given)
    for word in words:
        yield f"{word} {next(words, '')}".strip() if word.lower() in _QUALIFIERS else word


def _found(word: str) -> list[Explanation]:
    found = find(word)
    if not found:
        near = nearest(word)
        meant = f"; did you mean {near}?" if near else ""
        raise app.Failure(f"nothing is called {word}{meant} (`reconciler explain` lists all codes and words)")
    return found
