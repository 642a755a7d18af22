"""What has to change in a document that is there already, so that it says what is live.

What the document leaves to others stays left to others: a table without `schema`, columns beyond `schemaMode:
at_least`, everything in `ignoreDifferences`. What it says besides the state (`allow`, `checks`, `data`, ...) stays, and
so does every value that means the same, however it is written: a reference, another spelling of a type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.core.diff_schema import Ignored, compare, ignore_rule
from reconciler.core.uris import place_of
from reconciler.manifest.emit_columns import Doc
from reconciler.manifest.problem import Path
from reconciler.manifest.variables import escaped
from reconciler.manifest.yaml_edit import Append, CannotEdit, Edit, Remove, Set
from reconciler.model.arrow import ArrowType, Dictionary, Field, ListOf, MapOf, Struct
from reconciler.model.desired import DesiredObject, DesiredTable
from reconciler.model.state import DESCRIPTION_KEY, DatasetState, Index, NamespaceState, TableState, default_index_name

SCHEMA: Path = ("spec", "schema")
INDEXES: Path = ("spec", "indexes")


def edits_for(
    declared: DesiredObject, live: NamespaceState | TableState, wanted: DesiredObject, wanted_doc: Doc, written: Doc
) -> list[Edit]:
    """`declared` is what the document `written` means, with what overlays and Defaults put into it; `wanted` and
    `wanted_doc` the same of a new document of the live object. Empty when nothing differs. Raises CannotEdit."""
    edits = [*_common(declared, live, wanted, written)]
    if isinstance(declared, DesiredTable) and isinstance(wanted, DesiredTable):
        dataset = live.dataset if isinstance(live, TableState) else None
        edits += _location(declared, wanted_doc)
        if isinstance(dataset, DatasetState):
            edits += _dataset(declared, dataset, wanted, wanted_doc, written)
    return edits


def _common(
    declared: DesiredObject, live: NamespaceState | TableState, wanted: DesiredObject, written: Doc
) -> Iterator[Edit]:
    said, found = dict(declared.properties), dict(wanted.properties)
    described = (said.pop(DESCRIPTION_KEY, None), found.pop(DESCRIPTION_KEY, None))
    ignored = declared.ignore_differences
    unsaid = live.properties.keys() - wanted.properties.keys()
    if described[0] != described[1] and "description" not in ignored and DESCRIPTION_KEY not in unsaid:
        inside = DESCRIPTION_KEY in (_at(written, ("spec", "properties")) or {})
        path: Path = ("spec", "properties", DESCRIPTION_KEY) if inside else ("spec", "description")
        yield Remove(path) if described[1] is None else Set(path, escaped(described[1]))
    yield from _map(("spec", "properties"), said, found, ignored, unsaid)
    if declared.protect is not None and declared.protect != live.marks.protect:
        yield Set(("spec", "protect"), live.marks.protect)


def _map(
    path: Path,
    said: Mapping[str, str],
    found: Mapping[str, str],
    ignored: Sequence[str] = (),
    unsaid: frozenset[str] | set[str] = frozenset(),
) -> Iterator[Edit]:
    """`unsaid`: live keys that no manifest can have; whatever the document has there stays."""
    word = str(path[-1])
    if word in ignored:
        return
    for key in (*said, *(k for k in found if k not in said)):
        if said.get(key) != found.get(key) and f"{word}.{key}" not in ignored and key not in unsaid:
            yield Set((*path, key), escaped(found[key])) if key in found else Remove((*path, key))


def _location(declared: DesiredTable, wanted_doc: Doc) -> Iterator[Edit]:
    """Only where a manifest has to give it."""
    location = wanted_doc["spec"].get("location")
    if location is not None and (declared.location is None or place_of(declared.location) != place_of(location)):
        yield Set(("spec", "location"), escaped(location))


def _dataset(
    declared: DesiredTable, live: DatasetState, wanted: DesiredTable, wanted_doc: Doc, written: Doc
) -> Iterator[Edit]:
    ignored = declared.ignore_differences
    yield from _map(("spec", "config"), declared.config, wanted.config, ignored)
    yield from _map(("spec", "schemaMetadata"), declared.schema_metadata, wanted.schema_metadata, ignored)
    if declared.fields is not None and wanted.fields is not None:
        docs = {doc["name"]: doc for doc in wanted_doc["spec"]["schema"]}
        yield from _columns(declared, live, wanted.fields, docs, _at(written, SCHEMA) or [])
    if "indexes" not in ignored:
        yield from _indexes(declared, live, wanted.indexes, wanted_doc, _at(written, INDEXES) or [])


def _columns(
    declared: DesiredTable, live: DatasetState, wanted: Sequence[Field], docs: Mapping[str, Doc], written: Sequence[Doc]
) -> Iterator[Edit]:
    rule = ignore_rule(declared.ignore_differences)
    there = {f.name: f for f in wanted}
    unsaid = {f.name for f in live.fields} - there.keys()
    fields = declared.fields or ()
    names = {f.name for f in fields}
    for number, said in enumerate(fields):
        path = (*SCHEMA, number)
        if rule(said.name, None):
            continue
        if said.name in there:
            old = _entry(written, number, said.name)
            yield from _column(path, said, there[said.name], docs[said.name], old, declared, rule)
        elif said.renamed_from in there:
            names.add(said.renamed_from)  # It is to be renamed, and was not yet: that is the manifest's to say.
        else:
            _entry(written, number, said.name)
            yield Remove(path)
    if not declared.at_least and any(not rule(name, None) for name in unsaid):
        yield Set(("spec", "schemaMode"), "at_least")  # As in a new document: what cannot be said is left alone.
    new = [docs[f.name] for f in wanted if f.name not in names and not rule(f.name, None)]
    if new and not declared.at_least:
        yield Append(SCHEMA, tuple(escaped(doc) for doc in new))


def _column(
    path: Path, said: Field, found: Field, doc: Doc, old: Doc, declared: DesiredTable, ignored: Ignored
) -> Iterator[Edit]:
    name = said.name
    if _other_type(said, found, declared, ignored):
        for key in ("type", "fields"):
            if key in doc:
                yield Set((*path, key), escaped(doc[key]))
            elif key in old:
                yield Remove((*path, key))
    if said.nullable != found.nullable and not ignored(name, "nullable"):
        yield Set((*path, "nullable"), found.nullable)
    if said.comment != found.comment and not ignored(name, "comment"):
        place = (*path, "metadata", "comment") if "comment" in (old.get("metadata") or {}) else (*path, "comment")
        yield Remove(place) if found.comment is None else Set(place, escaped(found.comment))
    if not ignored(name, "metadata"):
        yield from _map((*path, "metadata"), said.metadata, found.metadata)


def _other_type(said: Field, found: Field, declared: DesiredTable, ignored: Ignored) -> bool:
    """As the planner compares it; and with the comments and metadata inside, unless some of it is left to others."""
    found = replace(found, nullable=said.nullable)
    if any(compare((replace(said, renamed_from=None),), (found,), declared.at_least, ignored)):
        return True
    partly = declared.at_least or any(p.startswith(f"schema.{said.name}.") for p in declared.ignore_differences)
    return not partly and _plain(said.type) != _plain(found.type)


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


def _indexes(
    declared: DesiredTable, live: DatasetState, wanted: Sequence[Index], wanted_doc: Doc, written: Sequence[Doc]
) -> Iterator[Edit]:
    there = {i.name: (i, doc) for i, doc in zip(wanted, wanted_doc["spec"].get("indexes", ()), strict=True)}
    unsaid = {i.name for i in live.indexes} - there.keys()
    new: list[Doc] = []
    for number, said in enumerate(declared.indexes):
        path = (*INDEXES, number)
        if said.name in unsaid or f"indexes.{said.name}" in declared.ignore_differences:
            continue
        _entry(written, number, said.name)
        if said.name not in there:
            yield Remove(path)
            continue
        found, doc = there[said.name]
        if (said.type, said.column) != (found.type, found.column):
            yield Remove(path)
            new.append(doc)
            continue
        for key, value in said.params.items():
            if key in found.params and found.params[key] != value:
                yield Set((*path, "params", key), found.params[key])
    names = {i.name for i in declared.indexes}
    new += [d for n, (_, d) in there.items() if n not in names and f"indexes.{n}" not in declared.ignore_differences]
    if new:
        yield Append(INDEXES, tuple(escaped(doc) for doc in new))


def _entry(written: Sequence[Doc], number: int, name: str) -> Doc:
    """The column or index of the name. An edit goes by position: another one there would be changed instead."""
    entry = written[number] if number < len(written) else {}
    said = entry.get("name") or default_index_name(str(entry.get("column")))
    if said != name and "${" not in str(said):
        raise CannotEdit(f"{name} is not where it was expected")
    return entry


def _at(document: Any, path: Path) -> Any:
    for part in path:
        document = document.get(part) if isinstance(document, dict) else None
    return document
