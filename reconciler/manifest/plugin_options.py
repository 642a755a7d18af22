"""Catalog types beyond the built-in ones: whether somebody serves the word, and whether its keys are as the plug-in's
own JSON Schema wants them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Problem
from reconciler.manifest.schema_check import Rules, explain
from reconciler.manifest.schema_files import catalog_types, schema
from reconciler.manifest.yaml_careful import Careful
from reconciler.model.errors import CatalogError

_REFERENCE = re.compile(r"\$\{(env|file):[^}]*\}")
_STORAGE = r"^storage\."
_MANAGEMENT = "reconciler.management"
"""Beside the plug-in's own definitions."""


def _none(type_: str) -> Mapping[str, Any] | None:
    return None


@dataclass
class PluginTypes:
    """`known`: all types that are served, for a hint. `options`: the schema of a plug-in's keys, None when nobody has
    the type; raises CatalogError when the plug-in cannot be loaded. By default there are no plug-ins."""

    known: Callable[[], Sequence[str]] = catalog_types
    options: Callable[[str], Mapping[str, Any] | None] = _none
    _rules: dict[tuple[str, frozenset[str]], Rules] = field(default_factory=dict)

    def problems(self, document: Mapping[str, Any], careful: Callable[[], Careful]) -> list[Problem]:
        """What is wrong with the spec of a Catalog document that the published schema accepts."""
        spec: Mapping[str, Any] = document["spec"]
        type_: str = spec["type"]
        if type_ in catalog_types():
            return []
        try:
            options = self.options(type_)
        except CatalogError as error:
            return [
                Problem("M440", ("spec", "type"), error.message, "install a version of it that works with this one")
            ]
        if options is None:
            return [self._unknown(type_)]
        late = frozenset(k for k, v in spec.items() if isinstance(v, str) and _REFERENCE.fullmatch(v))
        try:
            rules = self._rules.get((type_, late))
            if rules is None:
                rules = self._rules[type_, late] = Rules(document_schema(type_, options, late))
            return [] if rules.accepts(document) else list(explain(dict(document), careful(), rules))
        except (ValueError, TypeError, AttributeError) as error:
            message = f"the plug-in for catalog type {type_!r} describes its options in no valid JSON Schema: {error}"
            return [Problem("M440", ("spec", "type"), message, "tell its author")]

    def _unknown(self, type_: str) -> Problem:
        known = self.known()
        near = nearest(type_.lower(), known)
        hint = "known types: " + ", ".join(known) + "; others come with plug-ins"
        if near:
            hint = f"did you mean {near}? {hint}"
        return Problem("M207", ("spec", "type"), f"no catalog type is called {type_[:80]!r}", hint)


def document_schema(type_: str, options: Mapping[str, Any], late: frozenset[str]) -> dict[str, Any]:
    """A whole document, so that places are told as for every other. Keys in `late` are references: what they stand for
    is not known yet. Every type takes `storage.*`, `management` and `requireEnvironment`."""
    published = schema("manifest")["$defs"]
    properties = {k: True if k in late else v for k, v in dict(options.get("properties", {})).items()}
    spec = {
        **with_storage(options),
        "type": "object",
        "properties": {
            **properties,
            "type": {"const": type_},
            "management": {"$ref": f"#/$defs/{_MANAGEMENT}"},
            "requireEnvironment": published["requireEnvironment"],
        },
        "additionalProperties": False,
    }
    definitions = {**options.get("$defs", {}), _MANAGEMENT: published["management"]}
    spec.pop("$defs", None)
    return {"$defs": definitions, "properties": {"spec": spec}}


def with_storage(options: Mapping[str, Any]) -> dict[str, Any]:
    """Every type takes `storage.*`, as a secret: the datasets are opened with it."""
    rule = schema("manifest")["$defs"]["catalog.dir"]["patternProperties"][_STORAGE]
    return {**options, "patternProperties": {_STORAGE: rule, **options.get("patternProperties", {})}}
