"""References inside one document, replaced before the schema looks at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from reconciler.manifest.problem import Path, Problem, Problems
from reconciler.manifest.resolved_options import empty_parts
from reconciler.manifest.variables import Resolver
from reconciler.manifest.yaml_careful import Careful
from reconciler.manifest.yaml_scalars import ScalarValue, Value, resolve

DATA_SOURCE: Path = ("spec", "data", "source")


@dataclass(slots=True)
class Substituted:
    value: Value
    soft: dict[Path, str] = field(default_factory=dict)
    """Scalars that were one reference and whose text YAML would not read as a string. Where they stand unquoted, such
    a text is a string where one is wanted, and what YAML makes of it elsewhere."""
    unknown: frozenset[Path] = frozenset()
    """Where references were left as they are: nothing can be said about the values there."""


def mentions_reference(value: Value) -> bool:
    if isinstance(value, str):
        return "${" in value
    if isinstance(value, dict):
        return any("${" in k or mentions_reference(v) for k, v in value.items())
    return isinstance(value, list) and any(mentions_reference(v) for v in value)


def substitute(value: Value, careful: Callable[[], Careful], resolver: Resolver, problems: Problems) -> Substituted:
    """In a Catalog document `${env:}` and `${file:}` stay as written, for `secrets.connection_options`, and so they do
    in the data source of a table, for `secrets.resolved_source`.

    `careful` costs a second reading of the document: it is asked only where it matters how a value was written.
    """
    kind = value.get("kind") if isinstance(value, dict) else None
    late = isinstance(kind, str) and resolver.plain(kind) == "Catalog"
    walk = _Walk(late, careful, resolver, problems)
    return Substituted(walk.value(value, ()), walk.soft, frozenset(walk.unknown))


class _Walk:
    def __init__(self, late: bool, careful: Callable[[], Careful], resolver: Resolver, problems: Problems) -> None:
        self.late = late
        self.careful = careful
        self.resolver = resolver
        self.problems = problems
        self.soft: dict[Path, str] = {}
        self.unknown: set[Path] = set()

    def value(self, value: Value, path: Path) -> Value:
        if isinstance(value, str):
            return self.text(value, path) if "${" in value else value
        if isinstance(value, dict):
            for key in value:
                if "${" in key:
                    message = "references are replaced in values only, not in keys"
                    self.problems.append(Problem("M304", (*path, key), message, "write the key out", at_key=True))
            return {k: self.value(v, (*path, k)) for k, v in value.items()}
        if isinstance(value, list):
            return [self.value(v, (*path, i)) for i, v in enumerate(value)]
        return value

    def text(self, text: str, path: Path) -> ScalarValue:
        expanded = self.resolver.expand(text, late=self.late or path[:3] == DATA_SOURCE)
        for trouble in expanded.troubles:
            if self.resolver.missing.again(trouble.code, trouble.message):
                self.problems.repeated(path)
            else:
                self.problems.append(Problem(trouble.code, path, trouble.message, trouble.hint, offset=trouble.offset))
        for problem in empty_parts(path, expanded) if self.late else ():
            self.problems.append(problem)
        result = expanded.text
        if expanded.unknown:
            # An element of a list decides what the list is.
            self.unknown.update((path, path[:-1]) if path and isinstance(path[-1], int) else (path,))
            return result
        if not expanded.whole or expanded.troubles or "${" in result:
            return result
        typed = resolve(result)
        if isinstance(typed, str):
            return result
        if path[-1:] == ("default",) and path[1:2] == ("schema",):
            # A default may be of any type, so YAML's own reading counts.
            return typed if is_plain(self.careful(), path) else result
        self.soft[path] = result
        return result


def is_plain(careful: Careful, path: Path) -> bool:
    """True for a scalar that is written without quotes."""
    node = careful.locate(path)[1]
    return node is not None and node.plain


def put(value: Value, path: Path, new: ScalarValue) -> None:
    """Replaces one scalar in place."""
    target: Value = value
    for part in path[:-1]:
        target = target[part]  # type: ignore[index]
    target[path[-1]] = new  # type: ignore[index]
