"""What a step changes, side by side: a name, what was there, what will be. None stands for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.core.secret_values import MASK
from reconciler.core.storage_keys import is_credential_property
from reconciler.core.text import listing
from reconciler.model import change as c
from reconciler.model.arrow import Field
from reconciler.model.codec import column_from, field_from, index_from
from reconciler.model.ident import dotted
from reconciler.model.plan import Step
from reconciler.model.report import Difference
from reconciler.model.state import Column, Index, Marks
from reconciler.render.column_notes import notes_of


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    before: str | None
    after: str | None
    note: bool = False
    """What somebody says about a column: among the types, but no type."""


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    lines: tuple[Line, ...]


COLUMNS, SHOWN, PROPERTIES, ENTRY = "Columns", "Columns that the catalog shows", "Properties", "Catalog entry"
CONFIG, METADATA, INDEXES, ROWS = "Dataset config", "Schema metadata", "Indexes", "Rows"


def sections(step: Step) -> list[Section]:
    """As much as `details` tells, in the same order; a part without a difference is not there."""
    before: Mapping[str, Any] = step.before if isinstance(step.before, dict) else {}
    found = (Section(title, tuple(lines)) for title, lines in _parts(step.change, before))
    return [section for section in found if section.lines]


_FIELDS = {
    COLUMNS: "schema.", SHOWN: "shown_columns.", PROPERTIES: "properties.", ENTRY: "", CONFIG: "config.",
    METADATA: "schema_metadata.", INDEXES: "indexes.", ROWS: "",
}  # fmt: skip
_NEW = (c.CreateNamespace, c.DeclareTable, c.MigrateTable)


def fields_of(step: Step) -> list[Difference]:
    """Live against declared, field by field, with the names that a stale plan uses too. An object that is to be made
    or removed is one difference: its state."""
    if step.deletes or isinstance(step.change, _NEW):
        live = "present" if step.deletes else step.expect.state
        return [Difference("state", live, "absent" if step.deletes else "present")]
    if isinstance(step.change, c.CreateDataset):
        return [Difference("dataset", "absent", "present")]
    return [
        _hidden(Difference(f"{_prefix(section.title)}{line.name}", line.before, line.after))
        for section in sections(step)
        for line in section.lines
    ]


def _hidden(found: Difference) -> Difference:
    """Once a property is no longer in a map, its name does not stand beside its value."""
    if not is_credential_property(found.field.removeprefix(_FIELDS[PROPERTIES])):
        return found
    before, after = (MASK if isinstance(value, str) else value for value in (found.before, found.after))
    return Difference(found.field, before, after)


def _prefix(title: str) -> str:
    return _FIELDS[title] if title in _FIELDS else f"schema.{title.removeprefix('Column ')}."


Part = tuple[str, Iterable[Line]]


def _parts(change: c.Change, before: Mapping[str, Any]) -> Iterator[Part]:
    match change:
        case c.CreateNamespace() | c.DeclareTable():
            yield PROPERTIES, _merged(change.properties, {})
            yield ENTRY, _marks(change.marks, {"owner": change.marks.owner})
            if isinstance(change, c.DeclareTable) and change.location is not None:
                yield ENTRY, [Line("location", None, change.location)]
            if isinstance(change, c.CreateNamespace) and change.level is not None:
                yield ENTRY, [Line("level", None, change.level)]
        case c.UpdateNamespace() | c.UpdateTable() | c.ReplaceTable():
            yield PROPERTIES, _merged({**change.set, **dict.fromkeys(change.unset)}, _map(before, "properties"))
            yield ENTRY, _marks(change.marks, _map(before, "marks"))
            if isinstance(change, c.ReplaceTable):
                yield SHOWN, _shown(change.columns, before)
        case c.SyncColumns():
            yield SHOWN, _shown(change.columns, before)
        case c.AdoptNamespace() | c.AdoptTable():
            yield ENTRY, _marks(change.marks, _map(before, "marks"))
        case c.RenameTable() | c.RenameNamespace():
            yield ENTRY, [Line("name", dotted(change.source), dotted(change.ident))]
        case c.UpdateDataset():
            yield CONFIG, _merged(change.config, _map(before, "config"))
            yield METADATA, _merged(change.schema_metadata, _map(before, "schema_metadata"))
            old = _map(before, "fields")
            for path, values in change.fields.items():
                yield f"Column {path}", _merged(values, _map(old, path))
        case _:
            yield from _of_the_dataset(change, before)


def _of_the_dataset(change: c.Change, before: Mapping[str, Any]) -> Iterator[Part]:
    match change:
        case c.CreateDataset():
            yield COLUMNS, _new_columns(change.fields)
            yield CONFIG, _merged(change.config, {})
            yield METADATA, _merged(change.schema_metadata, {})
        case c.AddColumns() | c.BackfillColumns():
            yield COLUMNS, _new_columns(change.fields)
        case c.RewriteColumns():
            old = _fields(before)
            yield COLUMNS, (Line(f.name, old.get(f.name), _column(f)) for f in change.fields)
        case c.MaterializeTable() if change.only_notes:
            yield ROWS, [Line("rows", "in already", "in already, and noted")]
        case c.MaterializeTable():
            where = next((change.reads[k] for k in ("path", "table", "query", "sql") if k in change.reads), "")
            place = ", ".join(map(str, where)) if isinstance(where, list | tuple) else str(where)
            old_rows = "what is there now" if change.replace else None
            yield ROWS, [Line("rows", old_rows, f"from {change.reads['format']} {place}")]
            if change.unused:
                yield ROWS, [Line("source columns not used", None, listing(change.unused, 20))]
        case c.MigrateTable():
            yield ROWS, [Line("rows and indexes", None, f"those of {change.from_catalog}:{dotted(change.from_ident)}")]
            yield COLUMNS, _new_columns(change.fields)
        case c.AlterColumns():
            yield COLUMNS, (_alteration(a, before.get("columns")) for a in change.columns)
        case c.DropColumns():
            old = _fields(before)
            yield COLUMNS, (Line(path, old.get(path.rpartition(".")[2], "there"), None) for path in change.paths)
        case c.CreateIndex():
            yield INDEXES, [Line(change.index.name, None, _index(change.index))]
        case c.ReplaceIndex():
            yield INDEXES, [Line(change.index.name, _old_index(before), _index(change.index))]
        case c.DropIndex():
            yield INDEXES, [Line(change.name, _old_index(before), None)]
        case c.RefreshIndex():
            rows, indexed = before.get("rows"), before.get("indexed_rows")
            covered = f"covers {indexed:,} of {rows:,} rows" if isinstance(rows, int) else "lacks the rows of this plan"
            yield INDEXES, [Line(change.index.name, covered, "covers all rows")]


def _new_columns(fields: Iterable[Field]) -> Iterator[Line]:
    for f in fields:
        yield Line(f.name, None, _column(f))
        yield from (Line(f"{path} {key}", None, value, note=True) for path, key, value in notes_of(f))


def _map(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _merged(values: Mapping[str, str | None], old: Mapping[str, Any]) -> Iterator[Line]:
    for key, value in values.items():
        known = old.get(key)
        yield Line(key, None if known is None and value is not None else _known(known), value)


def _known(value: object) -> str:
    return "there" if value is None else str(value)


def _marks(marks: Marks, old: Mapping[str, Any]) -> Iterator[Line]:
    if marks.owner != old.get("owner"):
        yield Line("owner", old.get("owner"), marks.owner)
    if marks.protect != old.get("protect", False):
        yield Line("protected", "no" if marks.protect else "yes", "yes" if marks.protect else "no")


def _shown(columns: Iterable[Column] | None, before: Mapping[str, Any]) -> Iterator[Line]:
    if columns is None or "columns" not in before:
        return
    old = {x["name"]: _shown_column(column_from(x)) for x in before["columns"]}
    new = {x.name: _shown_column(x) for x in columns}
    yield from (Line(name, old.get(name), text) for name, text in new.items() if old.get(name) != text)
    yield from (Line(name, text, None) for name, text in old.items() if name not in new)


def _shown_column(column: Column) -> str:
    comment = f" {column.comment!r}" if column.comment is not None else ""
    return f"{column.type}{'' if column.nullable else ' not null'}{comment}"


def _fields(before: Mapping[str, Any]) -> dict[str, str]:
    """Live columns by name. A step knows those that it touches."""
    found = before.get("columns")
    return {x["name"]: _column(field_from(x)) for x in found} if isinstance(found, list) else {}


def _column(f: Field) -> str:
    default = f" = {f.default}" if f.default is not None else ""
    return f"{f.type}{'' if f.nullable else ' not null'}{default}"


def _alteration(a: c.ColumnAlteration, old: object) -> Line:
    known = old.get(a.path) if isinstance(old, Mapping) else None
    was, new = [known] if isinstance(known, str) else [], [] if a.type is None else [str(a.type)]
    if a.rename is not None:
        was, new = [a.path, *was], [a.rename, *new]
    if a.nullable is not None:
        was, new = [*was, "not null" if a.nullable else "nullable"], [*new, "nullable" if a.nullable else "not null"]
    return Line(a.path, " ".join(was) or "there", " ".join(new))


def _old_index(before: Mapping[str, Any]) -> str:
    return _index(index_from(before)) if "column" in before else "there"


def _index(index: Index) -> str:
    known = {**dict.fromkeys(index.unread, "unknown"), **index.built_with}
    params = ", ".join(f"{k}={v}" for k, v in sorted(known.items()))
    return f"{index.type} on {index.column}" + (f" ({params})" if params else "")
