"""What has to change in a document that is there already, so that it says what is live.

What the document leaves to others stays left to others: a table without `schema`, columns beyond `schemaMode:
at_least`, everything in `ignoreDifferences`. What it says besides the state (`allow`, `checks`, `data`, ...) stays, and
so does every value that means the same, however it is written: a reference, another spelling of a type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.core.diff_index import index_differences
from reconciler.core.diff_properties import left_to_others, with_description
from reconciler.core.diff_schema import ignore_rule
from reconciler.core.taken_away import TakenAway
from reconciler.core.uris import canonical_location
from reconciler.manifest.emit_columns import Doc
from reconciler.manifest.ignore_paths import check_ignore_differences
from reconciler.manifest.import_columns import SCHEMA, column_edits
from reconciler.manifest.import_target import IGNORED
from reconciler.manifest.import_values import entry_at, map_edits, with_old_lines
from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.variables import escaped
from reconciler.manifest.yaml_edit import Append, Edit, Remove, Set
from reconciler.model.arrow import Field
from reconciler.model.desired import DesiredObject, DesiredTable
from reconciler.model.state import DESCRIPTION_KEY, DatasetState, Index, NamespaceState, TableState

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
    return [_line_by_line(edit, declared, wanted, written) for edit in edits]


def left_edits(
    declared: DesiredObject, wanted: DesiredObject, gone: Sequence[TakenAway], written: Doc
) -> Iterator[Edit]:
    """Of `ignoreDifferences`: it gets what others took away, and loses what can mean nothing in the live columns."""
    known = declared.ignore_differences
    said = {*wanted.ignore_differences}
    new = sorted(t.path for t in gone if t.path in said and not t.is_left(known))
    if new:
        yield Append(IGNORED, tuple(escaped(path) for path in new))
    if isinstance(declared, DesiredTable) and isinstance(wanted, DesiredTable):
        problems: list[Problem] = []
        count = len(_at(written, IGNORED) or ())
        check_ignore_differences(known[:count], "Table", _columns_after(declared, wanted), problems)
        yield from (Remove(problem.path) for problem in problems)


def _columns_after(declared: DesiredTable, wanted: DesiredTable) -> Sequence[Field] | None:
    """As the document will have them: the live ones, but for those that it leaves to others."""
    if declared.fields is None or wanted.fields is None:
        return declared.fields
    left = ignore_rule(declared.ignore_differences)
    said, live = {f.name: f for f in declared.fields}, {f.name: f for f in wanted.fields}
    kept = {name: f for name, f in said.items() if left(name, None) or (left(name, "type") and name in live)}
    return [*kept.values(), *(f for name, f in live.items() if name not in kept)]


def _line_by_line(edit: Edit, declared: DesiredObject, wanted: DesiredObject, written: Doc) -> Edit:
    """Texts of several lines keep the references in lines that stay."""
    said, found = _text_at(declared, edit.path), _text_at(wanted, edit.path)
    if not isinstance(edit, Set) or said is None or found is None:
        return edit
    return Set(edit.path, with_old_lines(_at(written, edit.path), said, found))


def _text_at(object_: DesiredObject, path: Path) -> str | None:
    if path == ("spec", "description"):
        return object_.properties.get(DESCRIPTION_KEY)
    if len(path) != 3:
        return None
    maps: dict[object, Mapping[str, str]] = {"properties": object_.properties}
    if isinstance(object_, DesiredTable):
        maps |= {"config": object_.config, "schemaMetadata": object_.schema_metadata}
    return maps.get(path[1], {}).get(str(path[2]))


def _common(
    declared: DesiredObject, live: NamespaceState | TableState, wanted: DesiredObject, written: Doc
) -> Iterator[Edit]:
    said, found = dict(declared.properties), dict(wanted.properties)
    described = (said.pop(DESCRIPTION_KEY, None), found.pop(DESCRIPTION_KEY, None))
    ignored = declared.ignore_differences
    unsaid = live.properties.keys() - wanted.properties.keys()
    left = left_to_others(with_description(ignored))(DESCRIPTION_KEY)
    if described[0] != described[1] and not left and DESCRIPTION_KEY not in unsaid:
        inside = DESCRIPTION_KEY in (_at(written, ("spec", "properties")) or {})
        path: Path = ("spec", "properties", DESCRIPTION_KEY) if inside else ("spec", "description")
        yield Remove(path) if described[1] is None else Set(path, escaped(described[1]))
    yield from map_edits(("spec", "properties"), said, found, ignored, unsaid)
    if declared.protect is not None and declared.protect != live.marks.protect:
        yield Set(("spec", "protect"), live.marks.protect)


def _location(declared: DesiredTable, wanted_doc: Doc) -> Iterator[Edit]:
    """Only where a manifest has to give it."""
    location = wanted_doc["spec"].get("location")
    if location is not None and (
        declared.location is None or canonical_location(declared.location) != canonical_location(location)
    ):
        yield Set(("spec", "location"), escaped(location))


def _dataset(
    declared: DesiredTable, live: DatasetState, wanted: DesiredTable, wanted_doc: Doc, written: Doc
) -> Iterator[Edit]:
    ignored = declared.ignore_differences
    yield from map_edits(("spec", "config"), declared.config, wanted.config, ignored)
    yield from map_edits(("spec", "schemaMetadata"), declared.schema_metadata, wanted.schema_metadata, ignored)
    if declared.fields is not None and wanted.fields is not None:
        docs = {doc["name"]: doc for doc in wanted_doc["spec"]["schema"]}
        yield from column_edits(declared, live.fields, wanted.fields, docs, _at(written, SCHEMA) or [])
    if "indexes" not in ignored:
        yield from _indexes(declared, live, wanted.indexes, wanted_doc, _at(written, INDEXES) or [])


def _indexes(
    declared: DesiredTable, live: DatasetState, wanted: Sequence[Index], wanted_doc: Doc, written: Sequence[Doc]
) -> Iterator[Edit]:
    there = {i.name: (i, doc) for i, doc in zip(wanted, wanted_doc["spec"].get("indexes", ()), strict=True)}
    shown = {i.name: i for i in live.indexes}
    unsaid = shown.keys() - there.keys()
    new: list[Doc] = []
    for number, said in enumerate(declared.indexes):
        path = (*INDEXES, number)
        if said.name in unsaid or f"indexes.{said.name}" in declared.ignore_differences:
            continue
        entry = entry_at(written, number, said.name)
        if said.name not in there:
            yield Remove(path)
            continue
        found, doc = there[said.name]
        if (said.type, said.column) != (found.type, found.column):
            yield from _another_index(path, entry, said, doc)
            continue
        for key in index_differences(said, shown[said.name]):
            if key in found.params:
                yield Set((*path, "params", key), found.params[key])
    names = {i.name for i in declared.indexes}
    new += [d for n, (_, d) in there.items() if n not in names and f"indexes.{n}" not in declared.ignore_differences]
    if new:
        yield Append(INDEXES, tuple(escaped(doc) for doc in new))


def _another_index(path: Path, entry: Doc, said: Index, doc: Doc) -> Iterator[Edit]:
    """In its place, with the comments there. Parameters of another type mean something else, so only those stay that
    the live index has."""
    params = doc.get("params", {})
    if doc["column"] != said.column:
        yield Set((*path, "column"), escaped(doc["column"]))
    if doc["type"] != said.type:
        yield Set((*path, "type"), doc["type"])
    if "name" in doc and "name" not in entry:
        yield Set((*path, "name"), escaped(doc["name"]))
    for key in said.params:
        if key not in params:
            yield Remove((*path, "params", key))
    for key, value in params.items():
        if said.params.get(key) != value:
            yield Set((*path, "params", key), escaped(value))


def _at(document: Any, path: Path) -> Any:
    for part in path:
        document = document.get(part) if isinstance(document, dict) else None
    return document
