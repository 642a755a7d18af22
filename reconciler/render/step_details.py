"""What a step changes, line by line: `+ key = new`, `~ key = old -> new`, `- key = old`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.core.diff_index import differences_text
from reconciler.core.text import listing
from reconciler.model import change as c
from reconciler.model.arrow import Field
from reconciler.model.codec import canonical, column_from, field_from, index_from
from reconciler.model.ident import dotted
from reconciler.model.plan import Json, Step
from reconciler.model.report import Difference
from reconciler.model.state import Column, Index, Marks, Param
from reconciler.render.column_notes import notes_of
from reconciler.render.safe_text import LONGEST, LONGEST_TYPE, bounded, key_name, quoted, quoted_change, safe


class Line(str):
    """A detail as text. `label` is as long as what stands before its ` = ` or `: `, so that lines can be aligned with
    others of their `kind`: the word that says what the label is a name of (`column`, `index`). None of a name alone,
    which may have spaces of its own: the caller says so."""

    label: int
    kind: str

    def __new__(cls, start: str, between: str, value: str, kind: str | None = None) -> Line:
        made = super().__new__(cls, f"{start}{between}{value}")
        made.label = len(start)
        first, space, _ = start[2:].partition(" ")
        made.kind = kind if kind is not None else first if space else ""
        return made


def details(step: Step) -> Iterator[str]:
    """Every line begins with its sign; those that name something and say what it is are a `Line`."""
    before: Mapping[str, Any] = step.before if isinstance(step.before, dict) else {}
    change = step.change
    match change:
        case c.CreateNamespace() | c.DeclareTable():
            yield from _set("", change.properties, {})
            yield from _marks(change.marks, {"owner": change.marks.owner})
            if isinstance(change, c.DeclareTable) and change.location is not None:
                yield Line("+ location", " = ", quoted(change.location))
            if isinstance(change, c.CreateNamespace) and change.level is not None:
                yield Line("+ level", " = ", quoted(change.level))
        case c.UpdateNamespace() | c.UpdateTable() | c.ReplaceTable():
            old = before.get("properties") or {}
            yield from _set("", change.set, old)
            yield from _unset("", change.unset, old)
            yield from _marks(change.marks, before.get("marks") or {})
            if isinstance(change, c.ReplaceTable):
                yield from _shown(change.columns, before)
        case c.SyncColumns():
            yield from _shown(change.columns, before)
        case c.AdoptNamespace() | c.AdoptTable():
            yield from _marks(change.marks, before.get("marks") or {})
        case c.RenameTable() | c.RenameNamespace():
            yield f"~ {safe(dotted(change.source))} -> {safe(dotted(change.ident))}"
        case c.UpdateDataset():
            yield from _dataset(change, before)
        case _:
            yield from _columns_and_indexes(change, before)


def _dataset(change: c.UpdateDataset, before: Mapping[str, Any]) -> Iterator[str]:
    for label, name, values in (
        ("config ", "config", change.config),
        ("schema metadata ", "schema_metadata", change.schema_metadata),
    ):
        yield from _merge(label, values, before.get(name) or {})
    old = before.get("fields") or {}
    for path, changes in change.fields.items():
        yield from _merge(f"column {safe(path)} ", changes, old.get(path) or {})


def _columns_and_indexes(change: c.Change, before: Mapping[str, Any]) -> Iterator[str]:
    match change:
        case c.CreateDataset():
            yield from _new_columns(change.fields)
            yield from _set("config ", change.config, {})
            yield from _set("schema metadata ", change.schema_metadata, {})
        case c.AddColumns() | c.BackfillColumns():
            yield from _new_columns(change.fields)
        case c.RewriteColumns():
            found = before.get("columns")
            were = {f["name"]: f for f in found} if isinstance(found, list) else {}
            yield from (_rewritten(f, were.get(f.name)) for f in change.fields)
        case c.MaterializeTable() if change.only_notes:
            yield "~ a note of the rows that are in already"
        case c.MaterializeTable():
            where = next((change.reads[k] for k in ("path", "table", "query", "sql") if k in change.reads), "")
            place = ", ".join(map(str, where)) if isinstance(where, list | tuple) else str(where)
            yield f"{'~' if change.replace else '+'} rows from {change.reads['format']} {safe(place)}"
            if change.unused:
                yield f"  source columns not used: {safe(listing(change.unused, 20))}"
        case c.MigrateTable():
            yield f"+ rows and indexes of {safe(change.from_catalog)} {safe(dotted(change.from_ident))}"
            yield from _new_columns(change.fields)
        case c.AlterColumns():
            old = before.get("columns")
            yield from (_alteration(a, old if isinstance(old, dict) else {}) for a in change.columns)
        case c.DropColumns():
            yield from (f"- column {safe(path)}" for path in change.paths)
        case c.CreateIndex():
            yield _index("+ index ", change.index)
        case c.ReplaceIndex():
            what = differences_text(change.index, index_from(before)) if "column" in before else "built anew"
            yield Line(f"~ index {safe(change.index.name)}", ": ", f"{safe(what)}{_keeps(change.index)}")
        case c.DropIndex():
            yield f"- index {safe(change.name)}"
        case c.RefreshIndex():
            yield _refreshed(change, before)


def _refreshed(change: c.RefreshIndex, before: Mapping[str, Any]) -> str:
    rows, keeps = before.get("rows"), _keeps(change.index)
    if not isinstance(rows, int):
        return Line(
            f"~ index {safe(change.index.name)}", ": ", f"built again over the rows that this plan brings{keeps}"
        )
    told = f"covers {before.get('indexed_rows', 0):,} of {rows:,} row{'' if rows == 1 else 's'} -> all of them{keeps}"
    return Line(f"~ index {safe(change.index.name)}", ": ", told)


def _shown(columns: Iterable[Column] | None, before: Mapping[str, Any]) -> Iterator[str]:
    """What the catalog shows as the columns. A step that leaves them alone has none in `before`."""
    if columns is None or "columns" not in before:
        return
    old = {c["name"]: _shown_column(column_from(c)) for c in before["columns"]}
    new = {c.name: _shown_column(c) for c in columns}
    for name, text in new.items():
        if name not in old:
            yield Line(f"+ shown column {safe(name)}", ": ", text)
        elif old[name] != text:
            yield Line(f"~ shown column {safe(name)}", ": ", f"{old[name]} -> {text}")
    yield from (Line(f"- shown column {safe(name)}", ": ", text) for name, text in old.items() if name not in new)


def difference(found: Difference) -> Line:
    """A field that changed since a plan was made."""
    start, old, new = safe(bounded(found.field, LONGEST)), found.before, found.after
    if old is None:
        return Line(f"+ {start}", " = ", _json(new))
    return (
        Line(f"- {start}", " = ", _json(old))
        if new is None
        else Line(f"~ {start}", " = ", f"{_json(old)} -> {_json(new)}")
    )


def _json(value: Json) -> str:
    return quoted(value) if isinstance(value, str) else safe(bounded(canonical(value), LONGEST_TYPE))


def _shown_column(column: Column) -> str:
    comment = f" {quoted(column.comment)}" if column.comment is not None else ""
    return f"{_type(column.type)}{'' if column.nullable else ' not null'}{comment}"


def _set(label: str, values: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[str]:
    kind = label.partition(" ")[0]
    for key, value in values.items():
        if old.get(key) is None:
            yield Line(f"+ {label}{key_name(key)}", " = ", quoted(value), kind)
        else:
            yield Line(f"~ {label}{key_name(key)}", " = ", quoted_change(old[key], value), kind)


def _unset(label: str, keys: Iterable[str], old: Mapping[str, Any]) -> Iterator[str]:
    kind = label.partition(" ")[0]
    for key in keys:
        known = old.get(key) is not None
        yield Line(f"- {label}{key_name(key)}", " = ", quoted(old[key]), kind) if known else f"- {label}{key_name(key)}"


def _merge(label: str, values: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[str]:
    yield from _set(label, {k: v for k, v in values.items() if v is not None}, old)
    yield from _unset(label, [k for k, v in values.items() if v is None], old)


def _marks(marks: Marks, old: Mapping[str, Any]) -> Iterator[str]:
    """Owner and protection; the list of keys we set is bookkeeping and follows from the lines above."""
    if marks.owner != old.get("owner"):
        yield from _merge("", {"owner": marks.owner}, old)
    if marks.protect != old.get("protect", False):
        yield "+ protected" if marks.protect else "- protected"


def _new_columns(fields: Iterable[Field]) -> Iterator[Line]:
    """What is said about a column stands beneath it, as a change of it would."""
    for f in fields:
        yield _column("+ column ", f)
        for path, key, value in notes_of(f):
            yield Line(f"+ column {_name(path)} {_name(key)}", " = ", quoted(value))


def _name(text: str) -> str:
    return safe(bounded(text, LONGEST))


def _column(start: str, f: Field) -> Line:
    default = f" = {safe(bounded(f.default, LONGEST))}" if f.default is not None else ""
    return Line(f"{start}{safe(f.name)}", ": ", f"{_type(str(f.type))}{'' if f.nullable else ' not null'}{default}")


def _rewritten(f: Field, old: Mapping[str, Any] | None) -> Line:
    new = _column("~ column ", f)
    if old is None:
        return new
    was = field_from(old)
    return Line(new[: new.label], ": ", f"{_type(str(was.type))} -> {new[new.label + 2 :]}")


def _alteration(a: c.ColumnAlteration, old: Mapping[str, Any]) -> Line:
    parts = []
    if a.rename is not None:
        parts.append(f"renamed to {safe(a.rename)}")
    if a.type is not None:
        known = old.get(a.path)
        parts.append(
            f"{_type(known)} -> {_type(str(a.type))}" if isinstance(known, str) else f"-> {_type(str(a.type))}"
        )
    if a.nullable is not None:
        parts.append("nullable" if a.nullable else "not null")
    return Line(f"~ column {safe(a.path)}", ": ", ", ".join(parts))


def _type(text: str) -> str:
    return safe(bounded(text, LONGEST_TYPE))


def _index(start: str, index: Index) -> Line:
    params = _params(index.params)
    what = f"{index.type} on {safe(index.column)}" + (f" ({params})" if params else "")
    return Line(f"{start}{safe(index.name)}", ": ", f"{what}{_keeps(index)}")


def _params(params: Mapping[str, Param]) -> str:
    return ", ".join(f"{safe(k)}={quoted(v)}" for k, v in sorted(params.items()))


def _keeps(index: Index) -> str:
    """What the step takes over from the live index."""
    return f"; keeps {_params(index.kept)} (not declared)" if index.kept else ""
