"""References inside one document, replaced before the schema looks at it."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.variables import Resolver
from reconciler.manifest.yaml_careful import Careful
from reconciler.manifest.yaml_scalars import ScalarValue, Value, resolve


@dataclass(slots=True)
class Substituted:
    value: Value
    problems: list[Problem]
    soft: dict[Path, str] = field(default_factory=dict)
    """Plain scalars that were one reference: a string where one is wanted, what YAML makes of the text elsewhere."""


def mentions_reference(value: Value) -> bool:
    if isinstance(value, str):
        return "${" in value
    if isinstance(value, dict):
        return any("${" in k or mentions_reference(v) for k, v in value.items())
    return isinstance(value, list) and any(mentions_reference(v) for v in value)


def substitute(value: Value, careful: Careful, resolver: Resolver, problems: list[Problem]) -> Substituted:
    """In a Catalog document `${env:}` and `${file:}` stay as written, for `secrets.connection_options`."""
    late = isinstance(value, dict) and value.get("kind") == "Catalog"
    result = Substituted(None, problems)
    result.value = _walk(value, (), late, careful, resolver, result)
    return result


def _walk(value: Value, path: Path, late: bool, careful: Careful, resolver: Resolver, result: Substituted) -> Value:
    if isinstance(value, dict):
        for key in value:
            if "${" in key:
                message = "references are replaced in values only, not in keys"
                result.problems.append(Problem("M304", (*path, key), message, "write the key out", at_key=True))
        return {k: _walk(v, (*path, k), late, careful, resolver, result) for k, v in value.items()}
    if isinstance(value, list):
        return [_walk(v, (*path, i), late, careful, resolver, result) for i, v in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    expanded = resolver.expand(value, late=late)
    for trouble in expanded.troubles:
        result.problems.append(Problem(trouble.code, path, trouble.message, trouble.hint, offset=trouble.offset))
    if not expanded.whole or expanded.troubles or "${" in expanded.text:
        return expanded.text
    node = careful.locate(path)[1]
    if node is not None and node.plain:
        typed = resolve(expanded.text)
        if not isinstance(typed, str):
            if path[-1:] == ("default",) and path[1:2] == ("schema",):
                return typed  # a default may be of any type, so YAML's own reading counts
            result.soft[path] = expanded.text
    return expanded.text


def put(value: Value, path: Path, new: ScalarValue) -> None:
    """Replaces one scalar in place."""
    target: Value = value
    for part in path[:-1]:
        target = target[part]  # type: ignore[index]
    target[path[-1]] = new  # type: ignore[index]
