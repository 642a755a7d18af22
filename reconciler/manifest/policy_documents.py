"""`kind: Policy` and `spec.waivers` as pydantic models, and what becomes of them."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints, model_validator

from reconciler.manifest.catalog_documents import ABSENT, CatalogName, NonEmpty, Strict, whole
from reconciler.model import policy as p
from reconciler.model.diagnostic import Source
from reconciler.model.ident import Kind

Code = Literal["P001", "P002", "P003", "P004", "P005", "P006", "P007"]
Date = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"[^\s\x00-\x1f]")]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Patterns = Annotated[dict[NonEmpty, Pattern], Field(min_length=1)]
Kinds = Annotated[list[Kind], Field(min_length=1)]
Prefix = Annotated[str, StringConstraints(min_length=1, pattern=r"^([A-Za-z][A-Za-z0-9+.-]*://|/)")]
Limit = Annotated[int, BeforeValidator(whole), Field(ge=1, le=1_000_000)]
Days = Annotated[int, BeforeValidator(whole), Field(ge=1, le=36_500)]


class WaiverDoc(Strict):
    code: Code
    reason: Reason
    until: Date


class _Rule(Strict):
    severity: Literal["error", "warning", "off", False] = "error"
    """YAML takes a plain `off` for false."""
    match: Annotated[list[NonEmpty], Field(min_length=1)] = ABSENT
    catalogs: Annotated[list[CatalogName], Field(min_length=1)] = ABSENT
    environments: Annotated[list[NonEmpty], Field(min_length=1)] = ABSENT

    def _one_of(self, *keys: str) -> None:
        if not self.model_fields_set & set(keys):
            raise ValueError(f"it needs one of {', '.join(keys)}")


class NamingRule(_Rule):
    rule: Literal["naming"]
    namespace: Pattern = ""
    table: Pattern = ""

    @model_validator(mode="after")
    def _complete(self) -> NamingRule:
        self._one_of("namespace", "table")
        return self

    def check(self) -> p.Check:
        return p.Naming(self.namespace or None, self.table or None)


class PropertiesRule(_Rule):
    rule: Literal["required-properties"]
    properties: Patterns
    kinds: Kinds = ABSENT

    def check(self) -> p.Check:
        return p.RequiredProperties(MappingProxyType(self.properties), _kinds(self.kinds))


class OwnerRule(_Rule):
    rule: Literal["required-owner"]
    property: NonEmpty = ""
    pattern: Pattern = ".+"
    kinds: Kinds = ABSENT

    def check(self) -> p.Check:
        return p.RequiredOwner(self.property or None, self.pattern, _kinds(self.kinds))


class LocationRule(_Rule):
    rule: Literal["location-prefix"]
    prefixes: Annotated[list[Prefix], Field(min_length=1)]

    def check(self) -> p.Check:
        local = [prefix for prefix in self.prefixes if prefix.startswith("/")]
        led_to = (real for prefix in local if (real := os.path.realpath(prefix)) != prefix.rstrip("/"))
        return p.LocationPrefix(tuple(self.prefixes), tuple(led_to))


class ColumnsRule(_Rule):
    rule: Literal["column-limits"]
    maxColumns: Limit = ABSENT
    maxDepth: Limit = ABSENT
    name: Pattern = ""

    @model_validator(mode="after")
    def _complete(self) -> ColumnsRule:
        self._one_of("maxColumns", "maxDepth", "name")
        return self

    def check(self) -> p.Check:
        return p.ColumnLimits(self.maxColumns, self.maxDepth, self.name or None)


class DestructiveRule(_Rule):
    rule: Literal["no-destructive-change"]
    risks: Annotated[list[Literal["destructive", "rewrite"]], Field(min_length=1)] = ABSENT

    def check(self) -> p.Check:
        return p.NoDestructiveChange(tuple(self.risks)) if self.risks else p.NoDestructiveChange()


class RequireDoc(Strict):
    metadata: Patterns = ABSENT
    comment: Pattern = ""
    properties: Patterns = ABSENT

    @model_validator(mode="after")
    def _complete(self) -> RequireDoc:
        if not self.model_fields_set:
            raise ValueError("nothing is required")
        return self


class TaggedRule(_Rule):
    rule: Literal["tagged-columns"]
    columns: Pattern = ""
    tagged: Patterns = ABSENT
    require: RequireDoc

    @model_validator(mode="after")
    def _complete(self) -> TaggedRule:
        self._one_of("columns", "tagged")
        return self

    def check(self) -> p.Check:
        need = self.require
        return p.TaggedColumns(
            self.columns or None,
            MappingProxyType(self.tagged or {}),
            MappingProxyType(need.metadata or {}),
            need.comment or None,
            MappingProxyType(need.properties or {}),
        )


RuleDoc = Annotated[
    NamingRule | PropertiesRule | OwnerRule | LocationRule | ColumnsRule | DestructiveRule | TaggedRule,
    Discriminator("rule"),
]


class PolicyMetadata(Strict):
    name: CatalogName


class PolicySpec(Strict):
    maxWaiverDays: Days = ABSENT
    rules: Annotated[list[RuleDoc], Field(min_length=1)]


class PolicyDocument(Strict):
    apiVersion: Literal["reconciler.lance/v1"]
    kind: Literal["Policy"]
    metadata: PolicyMetadata
    spec: PolicySpec


def _kinds(given: list[Kind] | None) -> tuple[Kind, ...]:
    return tuple(given) if given else ("Namespace", "Table")


def policy_of(document: PolicyDocument, source: Source) -> p.Policy:
    spec = document.spec
    rules = tuple(_rule(doc) for doc in spec.rules if doc.severity not in ("off", False))
    return p.Policy(document.metadata.name, rules, source, spec.maxWaiverDays)


def _rule(doc: Any) -> p.Rule:
    reach = p.Reach(tuple(doc.match or ()), tuple(doc.catalogs or ()), tuple(doc.environments or ()))
    return p.Rule(p.RULES[doc.rule], doc.severity, doc.check(), reach)
