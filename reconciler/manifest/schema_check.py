"""One document against the published JSON Schema, and what it refuses in words a person can act on.

The validator is compiled once (jsonschema_rs). It also lists its errors lazily and with their place, so that explaining
a hostile document is bounded by the number of problems shown and not by its size.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.schema_files import is_secret, schema
from reconciler.manifest.substitute import Substituted, put
from reconciler.manifest.yaml_careful import Careful, Node
from reconciler.manifest.yaml_scalars import Value, describe, quoted, resolve

MAX_ERRORS = 100

_WORDS = {
    "string": "a string",
    "object": "a mapping",
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}
_HINTS = {("column", "description"): "comment", ("field", "description"): "comment"}


@lru_cache(maxsize=1)
def validator() -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(schema("manifest"))


def accepts(value: Value) -> bool:
    return bool(validator().is_valid(value))


def settle(substituted: Substituted) -> None:
    """Gives references that stand alone the type their place wants: only where a string was refused."""
    if not substituted.soft or accepts(substituted.value):
        return
    for error in islice(validator().iter_errors(substituted.value), 10 * MAX_ERRORS):
        path = tuple(error.instance_path)
        text = substituted.soft.get(path)
        if text is not None and (
            error.kind.name == "pattern" or "string" not in getattr(error.kind, "types", ["string"])
        ):
            put(substituted.value, path, resolve(text))


def explain(value: Value, careful: Careful) -> Iterator[Problem]:
    """The problems of a refused document, each once."""
    if not isinstance(value, dict):
        yield Problem("M200", (), "a manifest document is a mapping with apiVersion, kind, metadata and spec")
        return
    if isinstance(value.get("apiVersion"), str) and value["apiVersion"] != "reconciler.lance/v1":
        yield Problem(
            "M201", ("apiVersion",), f"unknown apiVersion {value['apiVersion']!r}", "write reconciler.lance/v1"
        )
        return
    seen: set[Problem] = set()
    for error in islice(validator().iter_errors(value), MAX_ERRORS):
        for problem in _problems(error, value, careful):
            if problem not in seen:
                seen.add(problem)
                yield problem


def _problems(error: Any, value: dict[str, Value], careful: Careful) -> Iterator[Problem]:
    path: Path = tuple(error.instance_path)
    node = careful.locate(path)[1]
    kind = error.kind
    rule = _rule(error.schema_path)
    message = str(rule.get("x-message", ""))
    where = f"`{_show(path)}`" if path else "the document"
    match kind.name:
        case "type":
            yield _wrong_type(path, list(kind.types), node)
        case "additionalProperties":
            known = sorted(rule.get("properties", {}))
            for key in kind.unexpected:
                yield Problem(
                    "M203",
                    (*path, key),
                    f"unknown key {key!r} in {where}",
                    _nearest_key(error, key, known),
                    at_key=True,
                )
        case "required":
            hint = f"add {kind.property}: …"
            yield Problem("M204", path, f"{where} needs the key {kind.property!r}", hint)
        case "enum" | "const" | "constant":
            yield _not_one_of(path, rule, node)
        case "minLength" | "minItems" | "minProperties":
            yield Problem("M210", path, f"{where} must not be empty", "give it a value, or remove the key")
        case "maxLength" | "maxItems":
            limit = rule.get(kind.name)
            yield Problem("M208", path, f"{where} is too long", f"at most {limit}")
        case "minimum" | "maximum":
            low, high = rule.get("minimum"), rule.get("maximum")
            yield Problem("M208", path, f"{where} is out of range", f"from {low} to {high}")
        case "not":
            yield Problem("M209", path, message or f"{where} has keys that exclude each other", "keep one of them")
        case "propertyNames":
            yield Problem("M210", path, f"a key of {where} is empty", "give it a name")
        case "pattern":
            yield Problem("M207", path, f"{where}: {message}" if message else f"{where} has a form that is not allowed")
        case _:
            yield Problem("M207", path, f"{where} is not allowed here")


def _show(path: Path) -> str:
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)
    return text.removeprefix(".")


def _rule(path: list[str | int]) -> dict[str, Any]:
    """The subschema that holds the keyword which failed. The path is given from the definition on."""
    at: Any = schema("manifest")
    for part in path[:-1]:
        at = at[part]
    return at if isinstance(at, dict) else {}


def _secret_place(path: Path) -> bool:
    return len(path) == 2 and path[0] == "spec" and isinstance(path[1], str) and is_secret(path[1])


def _wrong_type(path: Path, types: list[str], node: Node | None) -> Problem:
    where = f"`{_show(path)}`" if path else "the document"
    wanted = " or ".join(_WORDS.get(t, t) for t in types)
    if node is None:
        return Problem("M205", path, f"{where} must be {wanted}")
    if node.kind != "scalar":
        found = "a list" if node.kind == "sequence" else "a mapping"
        hint = "write each option as its own key: storage.KEY: value" if path == ("spec", "storage") else ""
        return Problem("M205", path, f"{where} must be {wanted}, not {found}", hint)
    if node.plain and not node.text:
        return Problem("M210", path, f"{where} has no value", f"give it {wanted}, or remove the key")
    if node.plain and "string" in types and not isinstance(resolve(node.text), str):
        if _secret_place(path):
            return Problem(
                "M206", path, f"{where} is read as {describe(node.text)}, not as a string", "put it in quotes"
            )
        message = f"{where}: {node.text} is read as {describe(node.text)}, not as a string"
        return Problem("M206", path, message, f"write {quoted(node.text)}")
    if _secret_place(path):
        return Problem("M205", path, f"{where} must be {wanted}")
    found = describe(node.text) if node.plain else "a string"
    hint = "write decimal digits without quotes" if {"integer", "number"} & set(types) else ""
    hint = "write true or false without quotes" if types == ["boolean"] else hint
    return Problem("M205", path, f"{where} must be {wanted}; {node.text[:80]} is {found}", hint)


def _not_one_of(path: Path, rule: dict[str, Any], node: Node | None) -> Problem:
    options = [str(o) for o in rule.get("enum", [rule.get("const")])]
    text = node.text if node is not None and node.kind == "scalar" else ""
    code = {"apiVersion": "M201", "kind": "M202"}.get(_show(path), "M207")
    if node is not None and node.kind == "scalar" and node.plain and not isinstance(resolve(text), str):
        return Problem(
            "M206", path, f"`{_show(path)}`: {text or 'an empty value'} is read as {describe(text)}", _one_of(options)
        )
    if text in rule.get("x-planned", ()):
        message = f"`{_show(path)}`: {text} is not supported by this version yet"
        return Problem(code, path, message, _one_of(options))
    near = difflib.get_close_matches(text.lower(), options, 1, 0.5)
    hint = f"did you mean {near[0]}?" if near and len(options) > 1 else _one_of(options)
    return Problem(
        code, path, f"`{_show(path)}` cannot be {text[:80]!r}" if text else f"`{_show(path)}` has the wrong value", hint
    )


def _one_of(options: list[str]) -> str:
    return f"write {options[0]}" if len(options) == 1 else "one of " + ", ".join(options)


def _nearest_key(error: Any, key: str, known: list[str]) -> str:
    definition = str(error.schema_path[1]) if error.schema_path[0] == "$defs" else ""
    special = _HINTS.get((definition, key))
    if special:
        return f"did you mean {special}?"
    if key == "storage" and definition.startswith("catalog."):
        return "write each option as its own key: storage.KEY: value"
    near = difflib.get_close_matches(key, known, 1, 0.5) or difflib.get_close_matches(key.lower(), known, 1, 0.5)
    if near:
        return f"did you mean {near[0]}?"
    return "known keys: " + ", ".join(known) if known else "no key is known here"
