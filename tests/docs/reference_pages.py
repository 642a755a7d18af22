"""The pages of docs/reference/, made from the schemas and the code, so that they cannot say anything else."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from codes_page import codes_page
from types_page import types_page

from reconciler.cli.arguments import parser
from reconciler.cli.help_examples import EXAMPLES
from reconciler.manifest.schema_files import schema

MADE = "<!-- Made from the {source}. `UPDATE_DOCS=1 pytest tests/docs` writes it anew. -->\n"
PAGES = ("codes.md", "commands.md", "manifests.md", "plan.md", "report.md", "types.md")


def page(name: str) -> str:
    if name == "commands.md":
        return "\n".join(_commands())
    if name == "codes.md":
        return codes_page(MADE)
    if name == "types.md":
        return types_page(MADE)
    what = name.removesuffix(".md")
    return "\n".join(_schema_page("manifest" if what == "manifests" else what))


def _commands() -> Iterator[str]:
    yield "# Commands\n"
    yield MADE.format(source="command line's own parser")
    yield "Every command takes `--help`. Exit codes are explained in [operations](../operations.md).\n"
    yield from _command(parser(), ())


def _command(of: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[str]:
    below = [a for a in of._actions if isinstance(a, argparse._SubParsersAction)]
    if words:
        yield f"## `reconciler {' '.join(words)}`\n"
        yield f"{_sentence(of.description or '')}\n"
    else:
        yield "## For every command\n"
    rows = [row for a in of._actions if a not in below and a.dest != "help" for row in _flag(a, bool(words))]
    if rows:
        yield "| | |\n|---|---|"
        yield "\n".join(rows) + "\n"
    for why, line in EXAMPLES.get(" ".join(words), ()):
        yield f"- {why}: `{line}`"
    yield ""
    for action in below:
        for name, inner in action.choices.items():
            yield from _command(inner, (*words, name))


COMMON = frozenset({"debug", "log_level", "color", "log_format", "version"})


def _flag(action: argparse.Action, below: bool) -> Iterator[str]:
    if below and action.dest in COMMON:
        return
    names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{action.metavar or action.dest}`"
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    value = f" `{metavar}`" if action.option_strings and metavar else ""
    choices = (
        ""
        if action.choices is None or str(action.help).startswith("one of")
        else " One of " + ", ".join(f"`{c}`" for c in action.choices) + "."
    )
    text = str(action.help or "").replace("%(default)s", str(action.default)).replace("|", "\\|")
    yield f"| {names}{value} | {_sentence(text)}{choices} |"


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if not text or text[-1] in ".:" else f"{text}."


def _schema_page(name: str) -> Iterator[str]:
    found = schema(name)
    yield f"# {found['title'][:1].upper() + found['title'][1:]}\n"
    yield MADE.format(source=f"JSON Schema `schemas/{name}.schema.json`")
    yield f"{found['description']}\n"
    if name != "manifest":
        yield from _object("", found, found)
    for key, rule in found.get("$defs", {}).items():
        if "properties" in rule or "patternProperties" in rule:
            yield from _object(key, rule, found)


def _object(name: str, rule: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[str]:
    if name:
        yield f"## {name}\n"
        yield f"{rule['description']}\n" if "description" in rule else ""
    yield "| key | value | |\n|---|---|---|"
    yield from _rows("", rule, root)
    yield ""


def _rows(prefix: str, rule: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[str]:
    required = rule.get("required", ())
    for key, inner in rule.get("properties", {}).items():
        if inner is False:
            continue
        told = inner.get("description") or referred(inner, root).get("description", "")
        notes = (" *Required.*" if key in required else "") + (" *Secret.*" if inner.get("x-secret") else "")
        default = f" Default: `{_plain(inner['default'])}`." if "default" in inner else ""
        yield f"| `{prefix}{key}` | {_value(inner, root)} | {_cell(told)}{default}{notes} |"
        yield from _rows(f"{prefix}{key}.", inner, root)
        items = inner.get("items")
        if isinstance(items, dict):
            yield from _rows(f"{prefix}{key}[].", items, root)
    for pattern, inner in rule.get("patternProperties", {}).items():
        notes = " *Secret.*" if inner.get("x-secret") else ""
        shown = pattern.strip("^").replace("\\", "") + "*"
        yield f"| `{prefix}{shown}` | {_value(inner, root)} | {_cell(inner.get('description', ''))}{notes} |"


def referred(rule: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    found = root if "$ref" in rule else rule
    for part in rule.get("$ref", "#").split("/")[1:]:
        found = found[part]
    return found


def _value(rule: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if "$ref" in rule:
        name, inner = rule["$ref"].removeprefix("#/$defs/"), referred(rule, root)
        if "properties" in inner:
            return f"[{name}](#{name.lower().replace('.', '')})"
        return _value(inner, root)
    if "const" in rule:
        return f"`{_plain(rule['const'])}`"
    if "enum" in rule:
        return ", ".join(dict.fromkeys("`null`" if v is None else f"`{_plain(v)}`" for v in rule["enum"]))
    if "oneOf" in rule or "anyOf" in rule:
        return " or ".join(_value(v, root) for v in rule.get("oneOf") or rule["anyOf"])
    if "items" in rule:
        return f"list of {_value(rule['items'], root)}"
    types = rule.get("type", "anything")
    words = {"string": "text", "boolean": "true or false", "integer": "whole number", "object": "map", "null": "null"}
    named = " or ".join(words.get(t, t) for t in ([types] if isinstance(types, str) else types))
    low, high = rule.get("minimum"), rule.get("maximum")
    if low is not None and high is not None and high < 2**31 - 1:
        return f"{named}, {low} to {high}"
    return named


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
