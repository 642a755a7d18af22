"""What has to change in the columns of a document that is there already: each in its place, at any depth.

Fields that are written out (`fields:`) are gone into as the columns themselves are, so that comments and order stay. A
type that is written as one text is replaced as one, and so are fields that the live type has no place for any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.core.diff_schema import Ignored, aspect_of, compare, ignore_rule
from reconciler.manifest.columns import outer_type
from reconciler.manifest.emit_columns import Doc, column, type_around
from reconciler.manifest.import_values import entry_at, map_edits
from reconciler.manifest.problem import Path
from reconciler.manifest.variables import escaped
from reconciler.manifest.yaml_edit import Append, Edit, Remove, Set
from reconciler.model.arrow import ArrowType, Dictionary, Field, ListOf, MapOf, Struct
from reconciler.model.desired import DesiredTable

SCHEMA: Path = ("spec", "schema")
Docs = Mapping[str, Doc]


def column_edits(
    declared: DesiredTable, live: Sequence[Field], wanted: Sequence[Field], docs: Docs, written: Sequence[Doc]
) -> Iterator[Edit]:
    """`wanted` and `docs` are the live columns that a manifest can have, `written` the document's."""
    edits = _Edits(ignore_rule(declared.ignore_differences), declared.at_least, declared.ignore_differences)
    yield from edits.level(SCHEMA, "", declared.fields or (), wanted, docs, written)
    unsaid = {f.name for f in live} - {f.name for f in wanted}
    if not declared.at_least and any(not edits.ignored(name, None) for name in unsaid):
        yield Set(("spec", "schemaMode"), "at_least")  # As in a new document: what cannot be said is left alone.


def rewritten(edits: Sequence[Edit], written: Any) -> Iterator[str]:
    """The columns whose written-out fields do not stay as text."""
    for edit in edits:
        if edit.path[-1] == "fields" and not isinstance(edit, Append):
            value: Any = written
            names: list[str] = []
            for part in edit.path:
                value = value[part] if isinstance(part, int) else (value or {}).get(part)
                names += [str(value["name"])] if isinstance(part, int) else []
            if value is not None:
                yield ".".join(names)


@dataclass(frozen=True, slots=True)
class _Inside:
    """The two structs whose fields are compared, and the path of what is in them."""

    said: Struct
    found: Struct
    prefix: str


@dataclass(frozen=True, slots=True)
class _Edits:
    ignored: Ignored
    at_least: bool
    paths: Sequence[str]
    """Of `ignoreDifferences`."""

    def level(
        self,
        path: Path,
        prefix: str,
        fields: Sequence[Field],
        wanted: Sequence[Field],
        docs: Docs,
        written: Sequence[Doc],
    ) -> Iterator[Edit]:
        there = {f.name: f for f in wanted}
        names = {f.name for f in fields}
        for number, said in enumerate(fields):
            if self.ignored(prefix + said.name, None):
                continue
            old = {} if said.renamed_from in there and said.name not in there else entry_at(written, number, said.name)
            if said.name in there:
                yield from self.column((*path, number), prefix, said, there[said.name], docs[said.name], old)
            elif said.renamed_from in there:
                names.add(said.renamed_from)  # It is to be renamed, and was not yet: that is the manifest's to say.
            else:
                yield Remove((*path, number))
        new = [docs[f.name] for f in wanted if f.name not in names and not self.ignored(prefix + f.name, None)]
        if new and not self.at_least:
            yield Append(path, tuple(escaped(doc) for doc in new))

    def column(self, path: Path, prefix: str, said: Field, found: Field, doc: Doc, old: Doc) -> Iterator[Edit]:
        name = prefix + said.name
        if not self.ignored(name, "type"):
            yield from self.type(path, name, said, found, doc, old)
        if said.nullable != found.nullable and not self.ignored(name, "nullable"):
            yield Set((*path, "nullable"), found.nullable)
        if said.comment != found.comment and not self.ignored(name, "comment"):
            place = (*path, "metadata", "comment") if "comment" in (old.get("metadata") or {}) else (*path, "comment")
            yield Remove(place) if found.comment is None else Set(place, escaped(found.comment))
        left = [k for k in (*said.metadata, *found.metadata) if self.ignored(name, aspect_of(k))]
        yield from map_edits((*path, "metadata"), said.metadata, found.metadata, unsaid={*left})

    def type(self, path: Path, name: str, said: Field, found: Field, doc: Doc, old: Doc) -> Iterator[Edit]:
        inside = self.inside(name, said, found, old)
        if inside is not None:
            around = type_around(found.type, inside.found)
            if type_around(said.type, inside.said) != around:
                yield Set((*path, "type"), around)
            docs = {f.name: column(f, []) for f in inside.found.fields}
            fields = (inside.said.fields, inside.found.fields)
            yield from self.level((*path, "fields"), inside.prefix, *fields, docs, old["fields"])
        elif self.other_type(name, said, found):
            for key in ("type", "fields"):
                if key in doc:
                    yield Set((*path, key), escaped(doc[key]))
                elif key in old:
                    yield Remove((*path, key))

    def inside(self, name: str, said: Field, found: Field, old: Doc) -> _Inside | None:
        """None where nothing is written out, or where it would all have to go."""
        if not isinstance(old.get("fields"), list):
            return None
        outer = outer_type(old.get("type", "struct"))
        both = _at_hole(outer, said.type, found.type, f"{name}.") if outer is not None else None
        if both is None:
            return None
        known = {f.name for f in both.found.fields}
        stays = any({f.name, f.renamed_from} & known for f in both.said.fields)
        return both if stays or not self.at_least else None

    def other_type(self, name: str, said: Field, found: Field) -> bool:
        """As the planner compares it; and with comments and metadata inside, unless some of it is left to others."""
        found = replace(found, nullable=said.nullable)
        prefix = name.removesuffix(said.name)
        if any(compare((replace(said, renamed_from=None),), (found,), self.at_least, self.ignored, prefix)):
            return True
        partly = self.at_least or any(p.startswith(f"schema.{name}.") for p in self.paths)
        return not partly and _plain(said.type) != _plain(found.type)


def _at_hole(outer: ArrowType, said: ArrowType, found: ArrowType, prefix: str) -> _Inside | None:
    """Down to where the written type leaves its struct open. Lists of different kinds are still lists."""
    match outer, said, found:
        case Struct(()), Struct(), Struct():
            return _Inside(said, found, prefix)
        case ListOf(), ListOf(), ListOf():
            return _at_hole(outer.item, said.item, found.item, prefix + "item.")
        case MapOf(), MapOf(), MapOf() if _plain(said.key) == _plain(found.key):
            return _at_hole(outer.value, said.value, found.value, prefix + "value.")
        case _:
            return None


def _plain(type_: ArrowType) -> ArrowType:
    """Without what nested fields say about the past."""
    match type_:
        case Struct(fields):
            return Struct(tuple(replace(f, type=_plain(f.type), renamed_from=None, default=None) for f in fields))
        case ListOf():
            return replace(type_, item=_plain(type_.item))
        case MapOf():
            return replace(type_, key=_plain(type_.key), value=_plain(type_.value))
        case Dictionary():
            return replace(type_, value=_plain(type_.value))
        case _:
            return type_
