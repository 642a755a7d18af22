"""Live state -> manifests. What is written here loads back equal; what cannot be written becomes a comment.

The catalog chooses locations (they are not written), the owner is the catalog document's, and our own marks are not
emitted, except `protect: true`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.manifest.columns import Columns
from reconciler.manifest.convert import convert, default_index_name
from reconciler.manifest.problem import Problem
from reconciler.manifest.schema_check import accepts
from reconciler.manifest.schema_files import schema
from reconciler.model.arrow import ArrowType, Dictionary, Field, ListOf, MapOf, Struct
from reconciler.model.desired import CatalogSpec
from reconciler.model.diagnostic import Source
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.observed import Detached, Present, Snapshot, Unreadable
from reconciler.model.state import (
    DESCRIPTION_KEY,
    RESERVED_PREFIX,
    DatasetState,
    Index,
    NamespaceState,
    TableState,
)

Doc = dict[str, Any]
API_VERSION = "reconciler.lance/v1"


def emit(catalog: CatalogSpec, snapshot: Snapshot) -> str:
    """One YAML text: the Catalog document, then namespaces and tables by identifier."""
    parts = [_dump(catalog_document(catalog))]
    for ident, found in sorted(snapshot.namespaces.items()):
        parts.append(_object("Namespace", catalog.name, ident, found))
    for ident, table in sorted(snapshot.tables.items()):
        parts.append(_object("Table", catalog.name, ident, table))
    return "---\n".join(p for p in parts if p)


def catalog_document(catalog: CatalogSpec) -> Doc:
    spec: Doc = {"type": catalog.type, **catalog.options}
    if catalog.management_written:
        spec["management"] = dict(catalog.management_written)
    return {"apiVersion": API_VERSION, "kind": "Catalog", "metadata": {"name": catalog.name}, "spec": spec}


def _object(kind: Kind, catalog: str, ident: Ident, found: Present | Detached | Unreadable) -> str:
    name = f"{kind.lower()} {dotted(ident)}"
    if isinstance(found, Unreadable):
        return _comment(f"{name} could not be read: {found.code.title}: {found.message}")
    if isinstance(found, Detached):
        return _comment(f"{name} is not in the catalog; its data is at {found.location}")
    notes: list[str] = []
    spec = _table_spec(found.state, notes) if isinstance(found.state, TableState) else _namespace_spec(found.state)
    document: Doc = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"catalog": catalog, "id": list(ident)}}
    if spec or kind == "Table":
        document["spec"] = spec
    reason = _why_not(document)
    if reason is not None:
        return _comment(f"{name} cannot be written as a manifest: {reason}")
    return _comment("".join(f"{name}: {n}\n" for n in notes)) + _dump(_escape(document))


def _why_not(document: Doc) -> str | None:
    """Emitted text must load: what the schema or a rule refuses is said in a comment instead."""
    if _mentions_in_key(document):
        return "a key contains ${"
    if not accepts(document):
        return "a name or value has a form that manifests do not allow"
    problems: list[Problem] = []
    convert(document, Source("-"), Columns(), problems)
    return problems[0].message if problems else None


def _mentions_in_key(value: object) -> bool:
    if isinstance(value, dict):
        return any("${" in k or _mentions_in_key(v) for k, v in value.items())
    return isinstance(value, list) and any(_mentions_in_key(v) for v in value)


def _namespace_spec(state: NamespaceState | TableState) -> Doc:
    spec: Doc = {}
    properties = _unreserved(state.properties)
    if DESCRIPTION_KEY in properties:
        spec["description"] = properties.pop(DESCRIPTION_KEY)
    if properties:
        spec["properties"] = properties
    if state.marks.protect:
        spec["protect"] = True
    return spec


def _unreserved(mapping: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in sorted(mapping.items()) if not k.startswith(RESERVED_PREFIX)}


def _table_spec(state: TableState, notes: list[str]) -> Doc:
    spec = _namespace_spec(state)
    dataset = state.dataset
    if not isinstance(dataset, DatasetState):
        return spec
    if dataset.fields:
        spec["schema"] = [column(f) for f in dataset.fields]
    for key, mapping in (("schemaMetadata", dataset.schema_metadata), ("config", dataset.config)):
        if kept := _unreserved(mapping):
            spec[key] = kept
    indexes = [d for i in dataset.indexes if (d := _index(i, notes)) is not None]
    if indexes:
        spec["indexes"] = indexes
    return spec


def column(field: Field) -> Doc:
    """Nested fields that carry a comment or metadata are written out; a type string cannot hold those."""
    doc: Doc = {"name": field.name}
    inner = _struct_to_write(field.type)
    if inner is None:
        doc["type"] = str(field.type)
    else:
        text = _with_hole(field.type, inner)
        if text != "struct":
            doc["type"] = text
    if not field.nullable:
        doc["nullable"] = False
    if field.comment is not None:
        doc["comment"] = field.comment
    if field.metadata:
        doc["metadata"] = dict(sorted(field.metadata.items()))
    if inner is not None:
        doc["fields"] = [column(f) for f in inner.fields]
    return doc


def _struct_to_write(type_: ArrowType) -> Struct | None:
    """The struct to write out: the outermost one on the way to a nested comment or metadata."""
    match type_:
        case Struct(fields):
            return (
                type_ if any(f.comment is not None or f.metadata or _struct_to_write(f.type) for f in fields) else None
            )
        case ListOf(item=item):
            return _struct_to_write(item)
        case MapOf(key=key, value=value):
            return _struct_to_write(value) or _struct_to_write(key)
        case Dictionary(value=value):
            return _struct_to_write(value)
        case _:
            return None


def _with_hole(type_: ArrowType, hole: Struct) -> str:
    if type_ is hole:
        return "struct"
    match type_:
        case ListOf():
            inner = _with_hole(type_.item, hole) + ("" if type_.item_nullable else " not null")
            return f"{type_.name}<{inner}>" + (f"[{type_.size}]" if type_.size is not None else "")
        case MapOf():
            value = _with_hole(type_.value, hole) + ("" if type_.value_nullable else " not null")
            return f"map<{_with_hole(type_.key, hole)}, {value}>"
        case _:
            return str(type_)


def _index(index: Index, notes: list[str]) -> Doc | None:
    doc: Doc = {"column": index.column, "type": index.type}
    if index.name != default_index_name(index.column):
        doc["name"] = index.name
    known = _known_params(index.type)
    params = {k: v for k, v in sorted(index.params.items()) if k in known}
    if params:
        doc["params"] = params
    probe: Doc = {
        "apiVersion": API_VERSION,
        "kind": "Table",
        "metadata": {"catalog": "c", "id": ["t"]},
        "spec": {"indexes": [doc]},
    }
    if accepts(probe):
        return doc
    notes.append(f"the index {index.name} ({index.type} on {index.column}) is left out, its parameters are not known")
    return None


def _known_params(type_: str) -> frozenset[str]:
    definitions = schema("manifest")["$defs"]
    for rule in definitions["index"]["allOf"]:
        if type_ in rule["if"]["properties"]["type"]["enum"]:
            name = rule["then"]["properties"]["params"]["$ref"].removeprefix("#/$defs/")
            return frozenset(definitions[name]["properties"])
    return frozenset()


def _escape(value: Any) -> Any:
    """`${` in live values is text, not a reference."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {k: _escape(v) for k, v in value.items()}
    return [_escape(v) for v in value] if isinstance(value, list) else value


def _comment(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    printable = ("".join(c if c.isprintable() else "\ufffd" for c in line) for line in lines if line)
    return "".join(f"# {line}\n" for line in printable)


def _dump(document: Doc) -> str:
    import yaml

    class Dumper(yaml.CSafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(
        document, Dumper=Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=1_000_000
    )
    return text
