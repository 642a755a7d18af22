"""One document against the published JSON Schema, and what it refuses in words a person can act on.

The validator is compiled once (jsonschema_rs). It also lists its errors lazily and with their place, so that explaining
a hostile document is bounded by the number of problems shown and not by its size.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.schema_files import catalog_types, is_secret, is_secret_of_source, schema, secret_keys
from reconciler.manifest.shape_hints import column, shape_hint
from reconciler.manifest.substitute import DATA_SOURCE, Substituted, is_plain, put
from reconciler.manifest.yaml_careful import Careful, Node
from reconciler.manifest.yaml_scalars import LARGEST, Value, describe, is_too_large, quoted, resolve

MAX_ERRORS = 100
_SHORT = 80
"""Characters of a value that a message repeats."""

_WORDS = {
    "string": "a string",
    "object": "a mapping",
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}
_FLAT = {"storage": "storage.KEY", "header": "header.NAME", "tls": "tls.KEY"}
_HINTS = {("column", "description"): "comment", ("field", "description"): "comment"}


class Rules:
    """A JSON Schema, compiled when it is first asked."""

    def __init__(self, text: Mapping[str, Any]) -> None:
        self.schema = text

    @cached_property
    def validator(self) -> Any:
        import jsonschema_rs

        return jsonschema_rs.validator_for(dict(self.schema))

    def accepts(self, value: object) -> bool:
        return bool(self.validator.is_valid(value))


@lru_cache(maxsize=1)
def published() -> Rules:
    return Rules(schema("manifest"))


def validator() -> Any:
    return published().validator


def accepts(value: Value) -> bool:
    return published().accepts(value)


def settle(substituted: Substituted, careful: Callable[[], Careful]) -> None:
    """Gives references that stand alone, unquoted, the type their place wants: only where a string was refused."""
    if not substituted.soft or accepts(substituted.value):
        return
    for error in islice(validator().iter_errors(substituted.value), 10 * MAX_ERRORS):
        path = tuple(error.instance_path)
        text = substituted.soft.get(path)
        if text is None or not is_plain(careful(), path):
            continue
        if error.kind.name == "pattern" or "string" not in getattr(error.kind, "types", ["string"]):
            put(substituted.value, path, resolve(text))


def explain(value: Value, careful: Careful, rules: Rules | None = None) -> Iterator[Problem]:
    """The problems of a document that these rules (the published ones) refuse, each once."""
    rules = rules or published()
    if not isinstance(value, dict):
        yield Problem("M200", (), "a manifest document is a mapping with apiVersion, kind, metadata and spec")
        return
    if isinstance(value.get("apiVersion"), str) and value["apiVersion"] != "reconciler.lance/v1":
        yield Problem(
            "M201", ("apiVersion",), f"unknown apiVersion {value['apiVersion']!r}", "write reconciler.lance/v1"
        )
        return
    seen: set[Problem] = set()
    for error in islice(rules.validator.iter_errors(value), MAX_ERRORS):
        for problem in _problems(error, value, careful, rules):
            if problem not in seen:
                seen.add(problem)
                yield problem


def _problems(error: Any, value: dict[str, Value], careful: Careful, rules: Rules) -> Iterator[Problem]:
    path: Path = tuple(error.instance_path)
    node = careful.locate(path)[1]
    kind = error.kind
    rule = _rule(rules, error.schema_path)
    message = str(rule.get("x-message", ""))
    where = f"`{_show(path)}`" if path else "the document"
    match kind.name:
        case "type":
            yield _wrong_type(path, list(kind.types), node, rule, _is_secret_place(rules, value, path))
        case "additionalProperties":
            known = sorted(rule.get("properties", {}))
            for key in kind.unexpected:
                hint = _column_of_one_key(rule, node) or _nearest_key(error, key, known)
                yield Problem("M203", (*path, key), f"unknown key {key!r} in {where}", hint, at_key=True)
        case "required" if error.schema_path[-1] == "dependentRequired":
            yield _stands_alone(path, rule, value, kind.property)
        case "required":
            hint = f"add {kind.property}: …"
            yield Problem("M204", path, f"{where} needs the key {kind.property!r}", hint, missing=kind.property)
        case "enum" | "const" | "constant":
            yield _not_one_of(path, rule, None if _is_secret_place(rules, value, path) else node)
        case "minLength" | "minItems" | "minProperties":
            yield Problem("M210", path, f"{where} must not be empty", "give it a value, or remove the key")
        case "maxLength" | "maxItems":
            limit = rule.get(kind.name)
            yield Problem("M208", path, f"{where} is too long", f"at most {limit}")
        case "minimum" | "maximum":
            low, high = rule.get("minimum"), rule.get("maximum")
            yield Problem("M208", path, f"{where} is out of range", f"from {low} to {high}")
        case "anyOf":
            yield Problem("M204", path, f"{where}: {message}" if message else f"{where} lacks a key")
        case "not" if "required" in rule.get("not", ()) and (node is None or node.kind != "mapping"):
            return  # Whatever is no mapping "has" all keys; that it is none is told already.
        case "not":
            yield Problem("M209", path, message or f"{where} has keys that exclude each other", "keep one of them")
        case "propertyNames":
            what, hint = ("no name that it can have", message) if message else ("empty", "give it a name")
            yield Problem("M207" if message else "M210", path, f"a key of {where} is {what}", hint)
        case "pattern":
            yield Problem("M207", path, f"{where}: {message}" if message else f"{where} has a form that is not allowed")
        case _:
            yield Problem("M207", path, f"{where} is not allowed here")


def _show(path: Path) -> str:
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)
    return text.removeprefix(".")


def _rule(rules: Rules, path: list[str | int]) -> dict[str, Any]:
    """The subschema that holds the keyword which failed. The path is given from the definition on."""
    at: Any = rules.schema
    for part in path[:-1]:
        inside = (isinstance(at, dict) and part in at) or (isinstance(at, list) and isinstance(part, int))
        at = at[part] if inside else None  # A plug-in's schema may refer to places that are not counted that way.
    return at if isinstance(at, dict) else {}


def _is_secret_place(rules: Rules, value: dict[str, Value], path: Path) -> bool:
    """An option of a catalog that its type's schema marks as a secret. Of a type that is not known, any of them. Or a
    key of a data source that some format marks."""
    if path[:3] == DATA_SOURCE:
        return is_secret_of_source(path[3:])
    if len(path) != 2 or path[0] != "spec" or not isinstance(path[1], str):
        return False
    if rules is not published():
        return secret_keys({**rules.schema["properties"]["spec"], "$defs": rules.schema["$defs"]})(path[1])
    spec = value.get("spec")
    type_ = spec.get("type") if isinstance(spec, dict) else None
    return is_secret(path[1], type_ if isinstance(type_, str) and type_ in catalog_types() else None)


def _stands_alone(path: Path, rule: dict[str, Any], value: dict[str, Value], missing: str) -> Problem:
    """A key that makes no sense without another one."""
    holder: Any = value
    for part in path:
        holder = holder[part]
    key = next(k for k, needed in rule["dependentRequired"].items() if k in holder and missing in needed)
    hint = f"add {missing}, or remove {key}"
    return Problem(
        "M209", (*path, key), f"`{_show((*path, key))}` needs the key {missing!r} beside it", hint, at_key=True
    )


def _wrong_type(path: Path, types: list[str], node: Node | None, rule: dict[str, Any], secret: bool) -> Problem:
    """The rule's message says in words what the schema wants where it is more than one type."""
    where = f"`{_show(path)}`" if path else "the document"
    form = str(rule.get("x-message", ""))
    wanted = form if form and len(types) > 1 else " or ".join(_WORDS.get(t, t) for t in types)
    if node is None:
        return Problem("M205", path, f"{where} must be {wanted}")
    if node.kind != "scalar":
        found = "a list" if node.kind == "sequence" else "a mapping"
        hint = "" if secret else shape_hint(path, types, node)
        return Problem("M205", path, f"{where} must be {wanted}, not {found}", hint)
    if node.plain and not node.text:
        return Problem("M210", path, f"{where} has no value", f"give it {wanted}, or remove the key")
    if node.plain and types == ["string"] and not isinstance(resolve(node.text), str):
        what = f"{where} is" if secret else f"{where}: {node.text} is"
        hint = "put it in quotes" if secret else _as_string(node.text, rule)
        return Problem("M206", path, f"{what} read as {describe(node.text)}, not as a string", hint)
    if secret:
        return Problem("M205", path, f"{where} must be {wanted}")
    found = describe(node.text) if node.plain else "a string"
    if node.plain and is_too_large(node.text):
        or_text = (
            f"write {quoted(node.text)} if it is a text; " if "string" in types and len(node.text) <= _SHORT else ""
        )
        message = f"{where}: {node.text[:_SHORT]} is a number that is too large"
        return Problem("M205", path, message, f"{or_text}a number is at most {LARGEST}")
    hint = "write decimal digits without quotes" if {"integer", "number"} & set(types) else ""
    hint = "write true or false without quotes" if types == ["boolean"] else hint
    if "string" in types and node.plain and len(node.text) <= _SHORT:
        hint = f"write {quoted(node.text)}"  # A date, say, where texts are taken too.
    hint = hint or shape_hint(path, types, node)
    return Problem("M205", path, f"{where} must be {wanted}; {node.text[:_SHORT]} is {found}", hint)


def _as_string(text: str, rule: dict[str, Any]) -> str:
    """How to write a plain scalar that is to be a string: in quotes, unless the string would be refused next. What an
    age lacks is its unit."""
    pattern = rule.get("pattern")
    if pattern is None or re.search(pattern, text):
        return f"write {quoted(text)}"
    form = str(rule.get("x-message", ""))
    return f"write {text}d, say: {form}" if form and re.search(pattern, f"{text}d") else form


def _not_one_of(path: Path, rule: dict[str, Any], node: Node | None) -> Problem:
    given = rule.get("enum", [rule.get("const", "another value")])
    options = list(dict.fromkeys("null" if o is None else str(o) for o in given))
    text = node.text if node is not None and node.kind == "scalar" else ""
    code = {"apiVersion": "M201", "kind": "M202"}.get(_show(path), "M207")
    if node is not None and node.kind == "scalar" and node.plain and not isinstance(resolve(text), str):
        return Problem(
            "M206", path, f"`{_show(path)}`: {text or 'an empty value'} is read as {describe(text)}", _one_of(options)
        )
    near = difflib.get_close_matches(text.lower(), options, 1, 0.5)
    hint = f"did you mean {near[0]}?" if near and len(options) > 1 else _one_of(options)
    return Problem(
        code, path, f"`{_show(path)}` cannot be {text[:80]!r}" if text else f"`{_show(path)}` has the wrong value", hint
    )


def _one_of(options: list[str]) -> str:
    return f"write {options[0]}" if len(options) == 1 else "one of " + ", ".join(options)


def _column_of_one_key(rule: Mapping[str, Any], node: Node | None) -> str:
    """`- id: int64` for a column."""
    if node is None or len(node.pairs) != 1 or "renamedFrom" not in rule.get("properties", {}):
        return ""
    name, type_ = node.pairs[0]
    short = type_.kind == "scalar" and "name" in rule.get("required", ()) and len(name.text + type_.text) <= _SHORT
    return f"write `{column(name.text, type_.text)}`" if short else ""


def _nearest_key(error: Any, key: str, known: list[str]) -> str:
    definition = str(error.schema_path[1]) if error.schema_path[0] == "$defs" else ""
    special = _HINTS.get((definition, key))
    if special:
        return f"did you mean {special}?"
    if key in _FLAT and definition.startswith(("catalog.", "source.")):
        return f"write each option as its own key: {_FLAT[key]}: value"
    near = difflib.get_close_matches(key, known, 1, 0.5) or difflib.get_close_matches(key.lower(), known, 1, 0.5)
    if near:
        return f"did you mean {near[0]}?"
    return "known keys: " + ", ".join(known) if known else "no key is known here"
