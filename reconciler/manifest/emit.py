"""Live state -> manifests. What is written here loads back equal; what cannot be written becomes a comment.

A location is written only where no rule leads to it and a manifest may give it. The owner is the catalog document's,
and our own marks are not emitted, except `protect: true`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from reconciler.core.storage_keys import credentials_in
from reconciler.core.taken_away import TakenAway, taken_away
from reconciler.core.uris import canonical_location, holds_userinfo
from reconciler.manifest.columns import Columns
from reconciler.manifest.convert import convert
from reconciler.manifest.documents import API_VERSION
from reconciler.manifest.emit_columns import Doc, column
from reconciler.manifest.emit_secrets import Clean, Secrets, cleaner, with_references
from reconciler.manifest.ignore_paths import check_ignore_differences
from reconciler.manifest.index_rules import check_indexes
from reconciler.manifest.problem import Problem
from reconciler.manifest.schema_check import accepts
from reconciler.manifest.schema_files import schema
from reconciler.manifest.unread_documents import unread_comment, unread_document
from reconciler.manifest.variables import escaped
from reconciler.manifest.yaml_write import as_block
from reconciler.model.arrow import ArrowType, Field
from reconciler.model.capabilities import is_container
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
    default_index_name,
)

TypeProblem = Callable[[ArrowType], str | None]
IdentProblem = Callable[[Kind, Ident], str | None]
PropertyProblem = Callable[[Kind, str, str], str | None]
SchemaProblem = Callable[[Sequence[Field]], str | None]


@dataclass(frozen=True, slots=True)
class Part:
    """One object."""

    kind: Kind
    ident: Ident
    comments: str = ""
    document: Doc | None = None
    """Before `${` in values is escaped; None when it cannot be written, and the comments say why."""
    warnings: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    """Paths of `ignoreDifferences`: what is live there is secret, and whatever a manifest says there stays."""
    references: tuple[str, ...] = ()
    """Values of the document that are not to be escaped."""
    taken_away: tuple[TakenAway, ...] = ()
    """What others took away of what we had set. The document leaves to them what it can."""
    unread: bool = False
    """It is live and could not be read: the document, if there is one, says no more than that it is there."""

    @property
    def text(self) -> str:
        if self.document is None:
            return self.comments
        return self.comments + as_block(with_references(escaped(self.document), self.references))


@dataclass(frozen=True, slots=True)
class Emitted:
    text: str
    warnings: tuple[str, ...]
    """What is live and not in the text, one line each."""


def emit(catalog: CatalogSpec, snapshot: Snapshot) -> str:
    """The text alone, with no rules of the backend."""
    return export(catalog, snapshot).text


def export(
    catalog: CatalogSpec,
    snapshot: Snapshot,
    type_problem: TypeProblem | None = None,
    ident_problem: IdentProblem | None = None,
    property_problem: PropertyProblem | None = None,
    schema_problem: SchemaProblem | None = None,
    *,
    with_catalog: bool = True,
) -> Emitted:
    """One YAML text: the Catalog document (unless it is elsewhere), then namespaces and tables by identifier.

    The functions are the backend's: what `validate` would refuse is left out here, so that one odd table does not
    make the whole file invalid.
    """
    parts = [as_block(catalog_document(catalog))] if with_catalog else []
    warnings: list[str] = []
    rules = Rules(
        type_problem or _no_problem,
        ident_problem or _no_problem,
        property_problem or _no_problem,
        schema_problem or _no_problem,
    )
    for part in objects(catalog.name, snapshot, rules):
        parts.append(part.text)
        warnings += part.warnings
    return Emitted("---\n".join(p for p in parts if p), tuple(warnings))


@dataclass(frozen=True, slots=True)
class Rules:
    """The backend's."""

    type_problem: TypeProblem
    ident_problem: IdentProblem
    property_problem: PropertyProblem
    schema_problem: SchemaProblem
    clean: Clean | None = None
    """Takes out what is known to be secret. Not the backend's. None: everything may be written."""
    owner: str | None = None
    """Whose manifests they are. What others took away of what this owner had set is left to them by name."""


def objects(catalog: str, snapshot: Snapshot, rules: Rules) -> Iterator[Part]:
    """Namespaces, then tables, by identifier."""
    writer = _Writer(catalog, rules)
    for ident, found in sorted(snapshot.namespaces.items()):
        if not is_container(rules.ident_problem, ident, found):
            yield writer.object("Namespace", ident, found)
    for ident, table in sorted(snapshot.tables.items()):
        yield writer.object("Table", ident, table, snapshot.chosen_places.get(ident))


def _no_problem(*_: object) -> None:
    return None


def catalog_document(catalog: CatalogSpec) -> Doc:
    spec: Doc = {"type": catalog.type, **catalog.options}
    if catalog.management_written:
        spec["management"] = dict(catalog.management_written)
    if catalog.require_environment:
        spec["requireEnvironment"] = True
    return {"apiVersion": API_VERSION, "kind": "Catalog", "metadata": {"name": catalog.name}, "spec": spec}


class _Writer:
    def __init__(self, catalog: str, rules: Rules) -> None:
        self.catalog = catalog
        self.type_problem = rules.type_problem
        self.ident_problem = rules.ident_problem
        self.property_problem = rules.property_problem
        self.schema_problem = rules.schema_problem
        self.owner = rules.owner
        clean = cleaner(rules.clean)
        self.clean = clean or str
        self.secrets = Secrets(catalog, clean)
        self.used: set[str] = set()

    def object(
        self, kind: Kind, ident: Ident, found: Present | Detached | Unreadable, location: str | None = None
    ) -> Part:
        name = f"{kind.lower()} {dotted(ident)}"
        if isinstance(found, Unreadable):
            return self._unread(kind, ident, name, found)
        if isinstance(found, Detached):
            told = f"{name} is not in the catalog; its data is at {found.location}"
            return Part(kind, ident, _comment(self.clean(told)))
        state, withheld = self.secrets.taken_out(ident, found.state)
        notes = _Notes(withheld.notes)
        spec = self._common_spec(kind, state, notes)
        if location is not None:
            self._location(location, spec, notes)
        if isinstance(state, TableState):
            self._table_spec(state, spec, notes)
        elif state.level == "catalog":
            spec["level"] = state.level  # A name does not tell it from a database.
        gone = tuple(taken_away(self.owner, found.state)) if self.owner is not None else ()
        ignored = sorted({*withheld.ignored, *self._left_to_others(kind, gone, found.state)})
        if ignored:
            spec["ignoreDifferences"] = ignored
        document = _document(kind, self.catalog, ident, spec)
        reason = self.ident_problem(kind, ident) or self._secret_name(document) or _why_not(document)
        if reason is not None:
            return self._missing(kind, ident, f"{name} cannot be written as a manifest: {reason}")
        warnings = tuple(_line(self.clean(f"{name}: {n}")) for n in notes.warnings)
        comments = "".join(_comment(self.clean(f"{name}: {n}")) for n in (*notes.warnings, *notes.remarks))
        kept_back = (tuple(withheld.paths), tuple(withheld.references))
        return Part(kind, ident, comments, document, warnings, *kept_back, gone)

    def _left_to_others(
        self, kind: Kind, gone: Sequence[TakenAway], live: NamespaceState | TableState
    ) -> Iterator[str]:
        """Paths of `ignoreDifferences`, as far as a manifest can have them."""
        paths = [one.path for one in gone if not one.ambiguous and self.clean(one.path) == one.path]
        dataset = live.dataset if isinstance(live, TableState) else None
        problems: list[Problem] = []
        check_ignore_differences(paths, kind, dataset.fields if isinstance(dataset, DatasetState) else None, problems)
        wrong = {problem.path[-1] for problem in problems}
        return (path for number, path in enumerate(paths) if number not in wrong)

    def _unread(self, kind: Kind, ident: Ident, name: str, found: Unreadable) -> Part:
        """What was read and is none of our kind gets no document: nothing could ever be said about it in one."""
        told = _line(self.clean(f"{name} could not be read: {found.code.title}: {found.message}"))
        if found.foreign:
            return self._missing(kind, ident, told)
        document = unread_document(kind, self.catalog, ident)
        reason = self.ident_problem(kind, ident) or self._secret_name(document) or _why_not(document)
        if reason is not None:
            why = self.clean(f"{name} cannot be written as a manifest: {reason}")
            return Part(kind, ident, _comment(told) + _comment(why), None, (told, _line(why)), unread=True)
        return Part(kind, ident, unread_comment(told), document, (told,), unread=True)

    def _missing(self, kind: Kind, ident: Ident, text: str) -> Part:
        text = self.clean(text)
        return Part(kind, ident, _comment(text), None, (_line(text),))

    def _secret_name(self, value: Doc) -> str | None:
        text = json.dumps(value, ensure_ascii=False)
        return "a name or comment in it holds a secret" if self.clean(text) != text else None

    def _common_spec(self, kind: Kind, state: NamespaceState | TableState, notes: _Notes) -> Doc:
        spec: Doc = {}
        properties = _unreserved(state.properties)
        for key in credentials_in(properties):
            notes.warnings.append(f"the property {key!r} is left out: credentials belong in the Catalog document")
            del properties[key]
        for key, value in list(properties.items()):
            if problem := self.property_problem(kind, key, value):
                notes.warnings.append(f"the property {key!r} is left out: {problem}")
                del properties[key]
        if DESCRIPTION_KEY in properties:
            spec["description"] = properties.pop(DESCRIPTION_KEY)
        if properties:
            spec["properties"] = properties
        if state.marks.protect:
            spec["protect"] = True
        return spec

    def _location(self, location: str, spec: Doc, notes: _Notes) -> None:
        """Once per place: two tables of a catalog at one place would make the file invalid."""
        if holds_userinfo(location):
            notes.warnings.append("the location is left out: it holds a user name or a password")
        elif self.clean(location) != location:
            notes.warnings.append("the location is left out: it holds a secret")
        elif canonical_location(location) in self.used:
            notes.warnings.append("the location is left out: another table has the same")
        else:
            self.used.add(canonical_location(location))
            spec["location"] = location

    def _table_spec(self, state: TableState, spec: Doc, notes: _Notes) -> None:
        dataset = state.dataset
        if not isinstance(dataset, DatasetState):
            return
        kept = self._columns(dataset.fields, spec, notes)
        for key, mapping in (("schemaMetadata", dataset.schema_metadata), ("config", dataset.config)):
            if unreserved := _unreserved(mapping):
                spec[key] = unreserved
        indexes = [d for i in dataset.indexes if (d := _index(i, kept, notes)) is not None]
        if indexes:
            spec["indexes"] = indexes

    def _columns(self, fields: Sequence[Field], spec: Doc, notes: _Notes) -> list[Field] | None:
        """Writes the columns that a manifest can say. The others stay as they are: `schemaMode: at_least`."""
        kept: list[Field] = []
        docs: list[Doc] = []
        for field in fields:
            keys: list[str] = []
            doc = column(field, keys)
            problem = self._column_problem(field, doc)
            if problem is not None:
                shown = str(field.type)[:80]
                notes.warnings.append(f"the column {field.name!r} ({shown}) is left out: {problem}")
                continue
            if keys:
                notes.remarks.append(f"metadata of the column {field.name!r} is not managed: {', '.join(keys)}")
            kept.append(field)
            docs.append(doc)
        if docs and (problem := self.schema_problem(kept)):
            notes.warnings.append(f"the columns are left out: {problem}")
            return []
        if not docs:
            return None
        spec["schema"] = docs
        if len(docs) < len(fields):
            spec["schemaMode"] = "at_least"
        return kept

    def _column_problem(self, field: Field, doc: Doc) -> str | None:
        if not field.name:
            return "it has no name"
        return self.type_problem(field.type) or self._secret_name(doc) or _why_not(_probe({"schema": [doc]}))


@dataclass(slots=True)
class _Notes:
    warnings: list[str] = dataclass_field(default_factory=list)
    remarks: list[str] = dataclass_field(default_factory=list)
    """For the reader of the file only: nothing is missing from it."""


def _document(kind: Kind, catalog: str, ident: Ident, spec: Doc) -> Doc:
    document: Doc = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"catalog": catalog, "id": list(ident)}}
    if spec or kind == "Table":
        document["spec"] = spec
    return document


def _probe(spec: Doc) -> Doc:
    return _document("Table", "c", ("t",), spec)


def _why_not(document: Doc) -> str | None:
    """Emitted text must load: what the schema or a rule refuses is said in a comment instead."""
    if _mentions_in_key(document):
        return "a key contains ${"
    if not accepts(document):
        return "a name or value has a form that manifests do not allow"
    problems: list[Problem] = []
    convert(document, Source("-"), Columns(), problems)
    return next((p.message for p in problems if p.severity == "error"), None)


def _mentions_in_key(value: object) -> bool:
    if isinstance(value, dict):
        return any("${" in k or _mentions_in_key(v) for k, v in value.items())
    return isinstance(value, list) and any(_mentions_in_key(v) for v in value)


def _unreserved(mapping: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in sorted(mapping.items()) if not k.startswith(RESERVED_PREFIX)}


def _index(index: Index, fields: list[Field] | None, notes: _Notes) -> Doc | None:
    doc: Doc = {"column": index.column, "type": index.type}
    if index.name != default_index_name(index.column):
        doc["name"] = index.name
    known = _known_params(index.type)
    params = {k: v for k, v in sorted(index.params.items()) if k in known}
    if params:
        doc["params"] = params
    why = "its parameters are not known"
    if accepts(_probe({"indexes": [doc]})):
        problems: list[Problem] = []
        check_indexes((index,), fields, problems)
        if not problems:
            return doc
        missing = problems[0].code == "M425"
        why = "its column is not in the manifest" if missing else problems[0].message
    notes.warnings.append(f"the index {index.name} ({index.type} on {index.column}) is left out, {why}")
    return None


def _known_params(type_: str) -> frozenset[str]:
    definitions = schema("manifest")["$defs"]
    for rule in definitions["index"]["allOf"]:
        if type_ in rule["if"]["properties"]["type"]["enum"]:
            name = rule["then"]["properties"]["params"]["$ref"].removeprefix("#/$defs/")
            return frozenset(definitions[name]["properties"])
    return frozenset()


def _line(text: str) -> str:
    """On one line, and harmless on a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))


def _comment(text: str) -> str:
    return f"# {_line(text)}\n"
