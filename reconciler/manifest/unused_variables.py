"""A variable of the command line that nothing refers to is most likely misspelt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from reconciler.manifest.nearest import nearest
from reconciler.model.diagnostic import Diagnostic, Source


def unused(given: Mapping[str, str], known: Set[str], path: str) -> Iterator[Diagnostic]:
    """`known`: the variables that a document refers to, or gives a value."""
    for name in sorted(given.keys() - known):
        near = nearest(name, sorted(known - given.keys()))
        hint = f"did you mean {near}?" if near else "remove it, or write ${var:NAME} where it is wanted"
        yield Diagnostic(Source(path), "M521", "warning", f"--var {name}: no manifest refers to this variable", hint)
