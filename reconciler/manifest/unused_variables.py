"""A variable of the command line that nothing refers to is most likely misspelt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from reconciler.manifest.nearest import nearest
from reconciler.model.diagnostic import Diagnostic, Severity, Source

_ALMOST = 0.75


def unused(given: Mapping[str, str], known: Set[str], path: str) -> Iterator[Diagnostic]:
    """`known`: the variables that a document refers to, or gives a value. Almost the name of one of them is an error:
    the run would go to the place of its default. Any other is a warning: one set of them may be for many folders."""
    for name in sorted(given.keys() - known):
        others = sorted(known - given.keys())
        near = nearest(name, others)
        hint = f"did you mean {near}?" if near else "remove it, or write ${var:NAME} where it is wanted"
        severity: Severity = "error" if nearest(name, others, _ALMOST) else "warning"
        yield Diagnostic(Source(path), "M521", severity, f"--var {name}: no manifest refers to this variable", hint)
