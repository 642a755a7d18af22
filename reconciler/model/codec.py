"""States and their parts as JSON and back. Defaults are left out, so that the text stays short and stable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reconciler.model.arrow import ArrowType, Dictionary, Field, ListOf, MapOf, Struct, parse_type
from reconciler.model.data import DataRecord, ExternalRows
from reconciler.model.errors import Code
from reconciler.model.observed import Detached, Finding, Gap, Present, Snapshot, Unreadable, Unsupported
from reconciler.model.plan import Json
from reconciler.model.state import UNKNOWN, BuildRecord, Column, DatasetState, Index, Marks, NamespaceState, TableState


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `object_pairs_hook`. Of two equal keys one reader takes the first and another one the last: ValueError."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"an object has the key {twice[:80]!r} twice")
    return made


def canonical(value: Json) -> str:
    """One text per value: sorted keys, no spaces."""
    return _encode(value)


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def type_json(type_: ArrowType) -> Json:
    """The type's text, or an object where nested fields carry more than a type."""
    if not _annotated(type_):
        return str(type_)
    match type_:
        case Struct(fields):
            return {"struct": [field_json(f) for f in fields]}
        case ListOf(name, item, nullable, size):
            return {"list": name, "item": type_json(item), "item_nullable": nullable, "size": size}
        case MapOf(key, value, nullable):
            return {"map": type_json(key), "value": type_json(value), "value_nullable": nullable}
        case _:
            return str(type_)


def type_from(value: Any) -> ArrowType:
    if isinstance(value, str):
        return parse_type(value)
    if "struct" in value:
        return Struct(tuple(field_from(f) for f in value["struct"]))
    if "list" in value:
        return ListOf(value["list"], type_from(value["item"]), value["item_nullable"], value["size"])
    return MapOf(type_from(value["map"]), type_from(value["value"]), value["value_nullable"])


def _annotated(type_: ArrowType) -> bool:
    match type_:
        case Struct(fields):
            return any(_says_more(f) or _annotated(f.type) for f in fields)
        case ListOf():
            return _annotated(type_.item)
        case MapOf():
            return _annotated(type_.key) or _annotated(type_.value)
        case Dictionary():
            return _annotated(type_.value)
        case _:
            return False


def _says_more(f: Field) -> bool:
    """An empty comment is a comment."""
    return f.comment is not None or bool(f.metadata) or f.renamed_from is not None or f.filled


def field_json(f: Field) -> dict[str, Json]:
    out: dict[str, Json] = {"name": f.name, "type": type_json(f.type)}
    if not f.nullable:
        out["nullable"] = False
    if f.comment is not None:
        out["comment"] = f.comment
    if f.metadata:
        out["metadata"] = dict(f.metadata)
    if f.renamed_from is not None:
        out["renamed_from"] = f.renamed_from
    if f.default is not None:
        out["default"] = f.default
    if f.function is not None:
        out["function"] = f.function
    return out


def field_from(value: Mapping[str, Any]) -> Field:
    return Field(
        value["name"],
        type_from(value["type"]),
        value.get("nullable", True),
        value.get("comment"),
        dict(value.get("metadata", {})),
        value.get("renamed_from"),
        value.get("default"),
        value.get("function"),
    )


def index_json(index: Index) -> dict[str, Json]:
    """`params` of a live index are what was read from it; `unread` names those that cannot be read.
    `kept`: of an index that a step builds, what it takes over from the live one."""
    out: dict[str, Json] = {"name": index.name, "column": index.column, "type": index.type}
    if index.params:
        out["params"] = dict(index.params)
    if index.kept:
        out["kept"] = dict(index.kept)
    if index.unread:
        out["unread"] = [*sorted(index.unread)]
    if index.record is not None:
        record: dict[str, Json] = {"declared": dict(index.record.params)}
        if index.record.rows is not None:
            record["rows"] = index.record.rows
        if index.record.current:
            record["current"] = True
        if index.record.again:
            record["again"] = index.record.again
        if index.record.kept:
            record["kept"] = dict(index.record.kept)
        out["record"] = record
    return out


def index_from(value: Mapping[str, Any]) -> Index:
    record = value.get("record")
    return Index(
        value["name"],
        value["column"],
        value["type"],
        dict(value.get("params", {})),
        frozenset(value.get("unread", ())),
        None
        if record is None
        else BuildRecord(
            dict(record["declared"]),
            record.get("rows"),
            record.get("current", False),
            record.get("again", 0),
            dict(record.get("kept", {})),
        ),
        value.get("rows"),
        value.get("indexed_rows"),
        value.get("untrained"),
        dict(value.get("kept", {})),
        value.get("external", False),
    )


def marks_json(marks: Marks) -> dict[str, Json]:
    out: dict[str, Json] = {}
    if marks.owner is not None:
        out["owner"] = marks.owner
    if marks.protect:
        out["protect"] = True
    if marks.applied:
        out["applied"] = list(marks.applied)
    return out


def marks_from(value: Mapping[str, Any]) -> Marks:
    return Marks(value.get("owner"), value.get("protect", False), tuple(value.get("applied", ())))


def namespace_json(state: NamespaceState) -> dict[str, Json]:
    return {"properties": dict(state.properties), "marks": marks_json(state.marks)}


def dataset_json(state: DatasetState) -> dict[str, Json]:
    out: dict[str, Json] = {"fields": [field_json(f) for f in state.fields]}
    if state.schema_metadata:
        out["schema_metadata"] = dict(state.schema_metadata)
    if state.config:
        out["config"] = dict(state.config)
    if state.indexes:
        out["indexes"] = [index_json(i) for i in sorted(state.indexes, key=lambda i: i.name)]
    if state.owner is not None:
        out["owner"] = state.owner
    if state.applied:
        out["applied"] = list(state.applied)
    if state.data is not None:
        out["data"] = _record_json(state.data)
    if not state.empty:
        out["empty"] = False
    return out


def _record_json(record: DataRecord) -> dict[str, Json]:
    """Without what is never compared."""
    out: dict[str, Json] = {
        "digest": record.digest,
        "files": dict(record.files),
        "lost": record.lost,
        "noted": record.noted,
    }
    if record.purged is not None:
        out["purged"] = record.purged
    return out


def _record_from(value: Mapping[str, Any]) -> DataRecord:
    external = ExternalRows(**value["external"]) if "external" in value else None
    return DataRecord(**{**value, "external": external})


def dataset_from(value: Mapping[str, Any]) -> DatasetState:
    return DatasetState(
        tuple(field_from(f) for f in value["fields"]),
        dict(value.get("schema_metadata", {})),
        dict(value.get("config", {})),
        tuple(index_from(i) for i in value.get("indexes", ())),
        value.get("owner"),
        tuple(value.get("applied", ())),
        value.get("version"),
        _record_from(value["data"]) if "data" in value else None,
        value.get("empty", True),
    )


def column_json(column: Column) -> dict[str, Json]:
    out: dict[str, Json] = {"name": column.name, "type": column.type}
    if not column.nullable:
        out["nullable"] = False
    if column.comment is not None:
        out["comment"] = column.comment
    return out


def column_from(value: Mapping[str, Any]) -> Column:
    return Column(value["name"], value["type"], value.get("nullable", True), value.get("comment"))


def table_json(state: TableState) -> dict[str, Json]:
    out: dict[str, Json] = {"properties": dict(state.properties), "marks": marks_json(state.marks)}
    out["location"] = {"unknown": "server"} if state.location is UNKNOWN else state.location
    if state.dataset is None:
        out["dataset"] = None
    elif isinstance(state.dataset, DatasetState):
        out["dataset"] = dataset_json(state.dataset)
    if state.columns is not None:
        out["columns"] = [column_json(c) for c in state.columns]
    return out


def table_from(value: Mapping[str, Any]) -> TableState:
    location = value.get("location")
    dataset = value.get("dataset", UNKNOWN)
    columns = value.get("columns")
    return TableState(
        location if isinstance(location, str) else UNKNOWN,
        dict(value.get("properties", {})),
        marks_from(value.get("marks", {})),
        dataset if dataset is None or dataset is UNKNOWN else dataset_from(dataset),
        None if columns is None else tuple(column_from(c) for c in columns),
    )


def finding_json(finding: Finding) -> dict[str, Json]:
    match finding:
        case Present(NamespaceState() as state):
            return {"present": namespace_json(state)}
        case Present(TableState() as state):
            return {"present": table_json(state)}
        case Detached(location, dataset):
            return {"detached": {"location": location, "dataset": dataset_json(dataset)}}
        case Unreadable(code, message, foreign, owner):
            said: dict[str, Json] = {"code": int(code), "message": message}
            said |= {"foreign": True} if foreign else {}
            return {"unreadable": said | ({"owner": owner} if owner is not None else {})}
        case _:
            return {"absent": True}


def namespace_from(value: Mapping[str, Any]) -> NamespaceState:
    marks = marks_from(value.get("marks", {}))
    container = bool(value.get("container"))
    return NamespaceState(dict(value.get("properties", {})), marks, container, value.get("lasting"), value.get("level"))


def snapshot_from(value: Mapping[str, Any]) -> Snapshot:
    """Reads the `live.json` of a golden case: `{"namespaces": {"a.b": …}, "tables": {…}, "gaps": […],
    "unsupported": […]}`; the keys are dotted or JSON lists."""

    def ident(text: str) -> tuple[str, ...]:
        return tuple(json.loads(text)) if text.startswith("[") else tuple(text.split("."))

    namespaces: dict[tuple[str, ...], Present | Unreadable] = {}
    tables: dict[tuple[str, ...], Present | Detached | Unreadable] = {}
    for text, v in value.get("namespaces", {}).items():
        namespaces[ident(text)] = _unreadable(v["unreadable"]) if "unreadable" in v else Present(namespace_from(v))
    for text, v in value.get("tables", {}).items():
        if "unreadable" in v:
            tables[ident(text)] = _unreadable(v["unreadable"])
        elif "detached" in v:
            tables[ident(text)] = Detached(v["detached"]["location"], dataset_from(v["detached"]["dataset"]))
        else:
            tables[ident(text)] = Present(table_from(v))
    gaps = tuple(Gap(tuple(g["ident"]), Code(g["code"]), g["message"]) for g in value.get("gaps", ()))
    lacks = tuple(Unsupported(tuple(u["ident"]), u["change"], u["reason"]) for u in value.get("unsupported", ()))
    return Snapshot(namespaces, tables, gaps, unsupported=lacks)


def _unreadable(value: Mapping[str, Any]) -> Unreadable:
    return Unreadable(Code(value["code"]), value["message"], bool(value.get("foreign")), value.get("owner"))
