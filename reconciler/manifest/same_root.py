"""Two catalogs at one root are one lake under two names: what both declare, they must declare alike.

Otherwise each apply undoes what the other did, and no plan is ever empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from reconciler.core.uris import canonical_location
from reconciler.manifest.registry import Entry, Registry
from reconciler.model.desired import CatalogSpec, DesiredObject, DesiredTable
from reconciler.model.ident import Ident, Kind, dotted

Root = tuple[str, ...]


def check_same_root(registry: Registry) -> None:
    for names in at_one_root(entry.spec for entry in registry.catalogs.values()):
        _compare(entry for name in names for entry in _entries(registry, name))


def at_one_root(specs: Iterable[CatalogSpec]) -> list[list[str]]:
    """The catalogs that share a root, by name."""
    lakes: dict[Root, list[str]] = {}
    for spec in sorted(specs, key=lambda s: s.name):
        lakes.setdefault(_root(spec), []).append(spec.name)
    return [names for names in lakes.values() if len(names) > 1]


def _root(spec: CatalogSpec) -> Root:
    """The place as far as its text says. The same path at another endpoint is another place; so is a service asked with
    other credentials or headers, because they may decide what is seen."""
    if spec.type != "dir":
        return (spec.type, *sorted(f"{k}={v}" for k, v in spec.options.items() if not _tunes(k)))
    path = canonical_location(str(spec.options.get("path", "")))
    local = "://" not in path and "${" not in path
    endpoints = sorted(f"{k}={v}" for k, v in spec.options.items() if "endpoint" in k.lower())
    return (spec.type, os.path.realpath(path) if local else path, *endpoints)


_TUNING = frozenset({"connect_timeout", "read_timeout", "max_retries", "root", "scope", "assume_role_session_name",
                     "assume_role_timeout_sec", "catalogs"})  # fmt: skip


def _tunes(key: str) -> bool:
    """How a service is reached or where new tables go, not which service it is."""
    return key in _TUNING or key.startswith(("storage.", "tls."))


def _entries(registry: Registry, catalog: str) -> Iterable[Entry]:
    yield from registry.namespaces.get(catalog, {}).values()
    yield from registry.tables.get(catalog, {}).values()


def _compare(entries: Iterable[Entry]) -> None:
    first: dict[tuple[Kind, Ident], Entry] = {}
    for entry in sorted(entries, key=lambda e: e.declared.source):
        other = first.setdefault((entry.kind, entry.declared.ident), entry)
        if other.declared.catalog == entry.declared.catalog:
            continue
        differing = _difference(other.declared, entry.declared)
        if differing is not None:
            mine, theirs = entry.declared.catalog, other.declared.catalog
            entry.error(
                "M416",
                ("metadata", "id"),
                f"{dotted(entry.declared.ident)} has other {differing} at {other.declared.source}, and the catalogs "
                f"{theirs!r} and {mine!r} are one place: each apply would undo the other's",
                "declare it alike in both, or in one of them only",
            )


def _difference(one: DesiredObject, other: DesiredObject) -> str | None:
    """In a word, what differs. `protect` that is not written leaves the live mark alone."""
    if one.absent or other.absent:
        return None if one.absent == other.absent else "`state`"
    if dict(one.properties) != dict(other.properties):
        return "properties"
    if None not in (one.protect, other.protect) and one.protect != other.protect:
        return "`protect`"
    if set(one.ignore_differences) != set(other.ignore_differences):
        return "`ignoreDifferences`"
    if isinstance(one, DesiredTable) and isinstance(other, DesiredTable):
        return _table_difference(one, other)
    return None


def _table_difference(one: DesiredTable, other: DesiredTable) -> str | None:
    if _columns(one) != _columns(other) or one.at_least != other.at_least:
        return "columns"
    if {i.name: i for i in one.indexes} != {i.name: i for i in other.indexes}:
        return "indexes"
    if dict(one.config) != dict(other.config):
        return "`config`"
    return "`schemaMetadata`" if dict(one.schema_metadata) != dict(other.schema_metadata) else None


def _columns(table: DesiredTable) -> object:
    """In any order, and without how they came about."""
    if table.fields is None:
        return None
    return {f.name: (f.type, f.nullable, f.comment, dict(f.metadata)) for f in table.fields}
