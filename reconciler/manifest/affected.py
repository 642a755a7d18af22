"""Which objects a run is about when only some documents changed: theirs, and what depends on them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from reconciler.core.globs import matcher
from reconciler.manifest.changed_documents import Change, Changes, Values
from reconciler.manifest.defaults import Defaults
from reconciler.manifest.identity import DEFAULTS, OBJECTS, VARIABLES, Key
from reconciler.manifest.substitute import mentions_reference
from reconciler.manifest.yaml_scalars import Value
from reconciler.model.change import tables_read
from reconciler.model.desired import Desired, DesiredTable
from reconciler.model.ident import Ident

Object = tuple[str, Ident]


@dataclass(frozen=True, slots=True)
class Changed:
    only: Mapping[str, frozenset[Ident]]
    """By catalog: what changed, is gone, or depends on such an object. Every declared catalog has an entry."""
    catalogs: frozenset[str]
    """Whose own document changed, or which have such objects."""
    files: frozenset[str]
    """Whose content changed."""


def affected(
    changes: Changes, desired: Desired, uses: Mapping[Key, Set[str]], defaults: Defaults, layered: bool
) -> Changed:
    """`uses`: the variables that each document refers to. `layered`: an overlay is read too."""
    names = {n for key, found in changes.documents.items() if key[0] == VARIABLES for c in found for n in _differing(c)}
    renamed = frozenset[Key]() if layered else _renamed(changes.documents)
    keys = {key for key in changes.documents if key[0] != VARIABLES} - renamed
    keys |= {key for key, used in uses.items() if used & names}
    seen = _Selection(desired)
    for key in keys:
        match key[0]:
            case "Catalog":
                seen.whole(key[1])
            case kind if kind in OBJECTS:
                seen.add(key[1], key[2:])
            case kind if kind == DEFAULTS:
                seen.objects |= {(key[1], ident) for ident in defaults.objects_of(key)}
                for change in changes.documents.get(key, ()):
                    for old in change.old:
                        seen.objects |= {(key[1], ident) for ident in _matched(old, seen.declared(key[1]))}
            case _:
                for name in desired.catalogs:  # A document that says something about all of them.
                    seen.whole(name)
    seen.close_over_namespaces()
    seen.close_over_rows()
    only = {name: frozenset(i for c, i in seen.objects if c == name) for name in desired.catalogs}
    touched = frozenset(name for name in desired.catalogs if only[name] or name in seen.catalogs)
    return Changed(only, touched, frozenset(changes.files))


class _Selection:
    def __init__(self, desired: Desired) -> None:
        self.desired = desired
        self.objects: set[Object] = set()
        self.catalogs: set[str] = set()
        self.namespaces: dict[str, set[Ident]] = {}
        """With what is in them."""

    def declared(self, catalog: str) -> list[Ident]:
        return [*self.desired.namespaces.get(catalog, ()), *self.desired.tables.get(catalog, ())]

    def whole(self, catalog: str) -> None:
        self.catalogs.add(catalog)
        self.objects |= {(catalog, ident) for ident in self.declared(catalog)}

    def add(self, catalog: str, ident: Ident) -> None:
        self.objects.add((catalog, ident))
        if ident in self.desired.namespaces.get(catalog, ()):
            self.namespaces.setdefault(catalog, set()).add(ident)

    def close_over_namespaces(self) -> None:
        """What is in a namespace comes along: it may be renamed, or go."""
        for catalog, chosen in self.namespaces.items():
            inside = (i for i in self.declared(catalog) if any(i[:n] in chosen for n in range(1, len(i))))
            self.objects |= {(catalog, ident) for ident in inside}

    def close_over_rows(self) -> None:
        """Tables whose rows come from one that is selected, and so on."""
        readers: dict[Object, list[Object]] = {}
        for name, tables in self.desired.tables.items():
            for ident, table in tables.items():
                for origin in _origins(table):
                    readers.setdefault(origin, []).append((name, ident))
        waiting = [o for o in self.objects if o in readers] if readers else []
        while waiting:
            new = [reader for reader in readers.get(waiting.pop(), ()) if reader not in self.objects]
            self.objects |= set(new)
            waiting += new


def _renamed(documents: Mapping[Key, Sequence[Change]]) -> frozenset[Key]:
    """Defaults that have another name and say the same: no object gets anything else. An overlay finds what it changes
    by that name, so that this holds only without one."""
    found: dict[str, list[tuple[Key, Change]]] = {}
    for key, (change, *more) in documents.items():
        if key[0] == DEFAULTS and not more and len(change.old) + len(change.new) == 1:
            found.setdefault(_nameless((*change.old, *change.new)[0]), []).append((key, change))
    pairs = (pair for pair in found.values() if len(pair) == 2 and len(pair[0][1].old) + len(pair[1][1].old) == 1)
    return frozenset(key for pair in pairs for key, _ in pair)


def _nameless(document: Value) -> str:
    assert isinstance(document, dict)
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    return json.dumps({**document, "metadata": {k: v for k, v in metadata.items() if k != "name"}}, sort_keys=True)


def _origins(table: DesiredTable) -> Iterator[Object]:
    if table.migration is not None:
        yield table.migration.catalog, table.migration.ident
    if table.data is not None:
        yield from tables_read(table.data.source)


def _differing(change: Change) -> set[str]:
    """The variables that the documents no longer give the same value."""
    old, new = _given(change.old), _given(change.new)
    return {name for name, _ in old ^ new}


def _given(documents: Values) -> set[tuple[str, str]]:
    return {(name, repr(value)) for document in documents for name, value in _part(document, "values").items()}


def _matched(value: Value, idents: list[Ident]) -> list[Ident]:
    """What defaults, as they were, may have been for. Where that is not known, all of the catalog."""
    spec = _part(value)
    globs = spec.get("match", ["**"])
    if mentions_reference(globs) or not isinstance(globs, list):
        return idents
    chosen = matcher(str(glob) for glob in globs)
    return [ident for ident in idents if chosen(ident)]


def _part(value: Value, key: str | None = None) -> dict[str, Value]:
    found = value.get("spec") if isinstance(value, dict) else None
    if key is not None and isinstance(found, dict):
        found = found.get(key)
    return found if isinstance(found, dict) else {}
