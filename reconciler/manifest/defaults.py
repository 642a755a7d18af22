"""`kind: Defaults`: what many objects of a catalog share. An object's own document wins, key by key.

All Defaults that match an object apply. None of them is stronger: two that give one key different values are an error,
unless the object gives its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.core.globs import Finder, matcher
from reconciler.manifest.identity import Key, identity, shown
from reconciler.manifest.layers import Layer, Layered, filled
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.shared_values import checked
from reconciler.manifest.variables import Resolver
from reconciler.manifest.yaml_reader import Document
from reconciler.model.ident import Ident

_SELECT = frozenset({"match", "except", "kinds"})
_OF_TABLES = frozenset({"schemaMode", "config", "checks", "maintenance"})
_ALL = ("**",)


@dataclass(slots=True)
class _One:
    layer: Layer
    spec: Mapping[str, Any]
    written: bool
    """Whether `match` is."""
    globs: tuple[str, ...]
    kinds: frozenset[str]
    excepted: Any
    hit: set[str] = field(default_factory=set)
    objects: list[Ident] = field(default_factory=list)
    """Those that got it."""

    def values(self, kind: str) -> dict[str, Any]:
        hidden = _SELECT if kind == "Table" else _SELECT | _OF_TABLES
        return {k: v for k, v in self.spec.items() if k not in hidden}


@dataclass(frozen=True, slots=True)
class Conflict:
    path: Path
    first: Layer
    second: Layer


@dataclass(slots=True)
class Together:
    """Some Defaults, merged."""

    value: dict[str, Any] = field(default_factory=dict)
    written: dict[Path, Layer] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)

    def add(self, value: Mapping[str, Any], layer: Layer) -> None:
        self._into(self.value, value, layer, ("spec",))

    def _into(self, out: dict[str, Any], value: Mapping[str, Any], layer: Layer, path: Path) -> None:
        for key, new in value.items():
            here = (*path, key)
            first = self.written.setdefault(here, layer)
            if isinstance(new, dict):
                self._into(out.setdefault(key, {}), new, layer, here)
            elif key not in out:
                out[key] = new
            elif out[key] != new:
                self.conflicts.append(Conflict(here, first, layer))


class Defaults:
    def __init__(self) -> None:
        self._all: dict[Key, _One] = {}
        self._by_glob: dict[str, dict[str, list[_One]]] = {}
        self._finders: dict[str, Finder] = {}
        self._together: dict[tuple[int, ...], Together] = {}
        self._told: set[tuple[Path, int, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._all)

    def take(self, layer: Layer, resolver: Resolver) -> Key | None:
        """Which ones they are; None when something is wrong with the document, which is told."""
        value = checked(layer, resolver)
        if value is None:
            return None
        key = identity(dict(value)) or ()
        first = self._all.get(key)
        if first is not None:
            message = f"{shown(key)} is declared at {first.layer.place} already"
            hint = "give each a metadata.name of its own, or merge them"
            layer.sink.problem(layer.document, Problem("M500", ("metadata",), message, hint))
            return None
        spec = value["spec"]
        one = _One(
            layer,
            spec,
            "match" in spec,
            tuple(spec.get("match", _ALL)),
            frozenset(spec.get("kinds", ("Table",))),
            matcher(spec.get("except", ())),
        )
        if "Table" not in one.kinds:
            for name in sorted(_OF_TABLES & spec.keys()):
                message = f"`spec.{name}` is for tables, and these defaults are for namespaces only"
                layer.sink.problem(
                    layer.document, Problem("M503", ("spec", name), message, "add Table to spec.kinds", at_key=True)
                )
        self._all[key] = one
        by_glob = self._by_glob.setdefault(value["metadata"]["catalog"], {})
        for glob in one.globs:
            by_glob.setdefault(glob, []).append(one)
        return key

    def applied(self, document: Document | Layered, value: Any) -> tuple[Document | Layered, Any]:
        """The document and its value with what it gets."""
        key = identity(value)
        if key is None or key[0] not in ("Table", "Namespace"):
            return document, value
        own = value.get("spec", {})
        matching = self._matching(key[0], key[1], key[2:])
        if not matching or not isinstance(own, dict):
            return document, value
        together = self._merged(key[0], matching)
        out = Layered(document, None, shown(key))  # type: ignore[arg-type]
        if isinstance(document, Layered):
            out = replace(document, written=dict(document.written), removed=dict(document.removed))
        out.defaults, out.given = together.value, together.written
        spec = filled(own, together.value, together.written, out, ("spec",))
        for conflict in together.conflicts:
            if conflict.path in out.written:
                self._tell(conflict, out.about)
        out.value = {**value, "spec": spec}
        return out, out.value

    def given_to(self, kind: str, catalog: str, ident: Ident) -> Together | None:
        """What an object would get that is not declared yet. After all that are."""
        matching = self._matching(kind, catalog, ident)
        return self._merged(kind, matching) if matching else None

    def objects_of(self, key: Key) -> list[Ident]:
        """Of its catalog, what got these defaults."""
        return self._all[key].objects if key in self._all else []

    def _matching(self, kind: str, catalog: str, ident: Ident) -> list[_One]:
        by_glob = self._by_glob.get(catalog)
        if by_glob is None:
            return []
        finder = self._finders.get(catalog)
        if finder is None:
            finder = self._finders[catalog] = Finder(by_glob)
        found: dict[int, _One] = {}
        for glob in finder.find(ident):
            for one in by_glob[glob]:
                if kind in one.kinds:
                    one.hit.add(glob)
                    if not one.excepted(ident):
                        found[id(one)] = one
        for one in found.values():
            one.objects.append(ident)
        return sorted(found.values(), key=lambda one: one.layer.place)

    def _merged(self, kind: str, matching: list[_One]) -> Together:
        name = (len(kind), *(id(one) for one in matching))
        together = self._together.get(name)
        if together is None:
            together = self._together[name] = Together()
            for one in matching:
                together.add(one.values(kind), one.layer)
        return together

    def _tell(self, conflict: Conflict, about: str) -> None:
        mark = (conflict.path, id(conflict.first), id(conflict.second))
        if mark in self._told:
            return
        self._told.add(mark)
        name = ".".join(str(p) for p in conflict.path)
        message = f"`{name}` has another value in the defaults at {conflict.first.place}; both are for {about}"
        hint = "narrow `match`, name the object in `except`, or give the value in the object's own document"
        second = conflict.second
        second.sink.problem(second.document, Problem("M502", conflict.path, message, hint))

    def tell(self, catalogs: Iterable[str], certain: bool) -> None:
        """After all objects: the defaults that nothing gets. `certain`: all objects could be read."""
        known = set(catalogs)
        for key, one in self._all.items():
            if key[1] not in known:
                near = nearest(key[1], sorted(known))
                hint = f"did you mean {near}?" if near else "declare it with a document of kind Catalog"
                problem = Problem("M402", ("metadata", "catalog"), f"the catalog {key[1]!r} is not declared", hint)
                one.layer.sink.problem(one.layer.document, problem)
            elif certain:
                self._tell_unused(one)

    def _tell_unused(self, one: _One) -> None:
        what = " or ".join(sorted(k.lower() for k in one.kinds))
        for index, glob in enumerate(one.globs):
            if glob not in one.hit:
                path: Path = ("spec", "match", index) if one.written else ("metadata",)
                message = f"no declared {what} matches {glob}: these defaults are for nothing"
                if one.hit:
                    message = f"no declared {what} matches {glob}"
                hint = "`*` stays inside one name, `**` stands for any number of names"
                problem = Problem("M501", path, message, hint, severity="warning")
                one.layer.sink.problem(one.layer.document, problem)
