"""What one backend says about the objects declared in it, offline: at file:line, never as a surprise of apply."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core.uris import holds_userinfo
from reconciler.manifest.registry import Entry
from reconciler.model.arrow import ArrowType
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import DeclareTable
from reconciler.model.desired import DesiredNamespace, DesiredTable
from reconciler.model.ident import Ident, dotted
from reconciler.model.state import DESCRIPTION_KEY, Marks

_ID = ("metadata", "id")


def check_backend(capabilities: Capabilities, entries: list[Entry]) -> None:
    verdicts: dict[ArrowType, str | None] = {}
    levels = {e.declared.ident: e.declared.level for e in entries if isinstance(e.declared, DesiredNamespace)}
    for entry in entries:
        declared = entry.declared
        problem = capabilities.ident_problem(entry.kind, declared.ident)
        if problem:
            entry.error("M408", _ID, f"{dotted(declared.ident)}: {problem}")
        _level(capabilities, entry, levels)
        _properties(capabilities, entry)
        _allowed_in_vain(capabilities, entry)
        if isinstance(declared, DesiredTable):
            _location(capabilities, entry, declared, refused=problem is not None)
            _columns(capabilities, entry, declared, verdicts)


def _level(capabilities: Capabilities, entry: Entry, levels: Mapping[Ident, str | None]) -> None:
    """What is inside a namespace has to fit the kind that its manifest says. Of all others the plan knows."""
    declared, above = entry.declared, entry.declared.ident[:-1]
    if not capabilities.levels:
        if isinstance(declared, DesiredNamespace) and declared.level is not None:
            problem = f"in a catalog of type {capabilities.type} all namespaces are alike"
            entry.error("M408", ("spec", "level"), problem, "remove the key")
        return
    upper, lower = capabilities.levels[0], capabilities.levels[-1]
    if entry.kind == "Table" and levels.get(above) == upper:
        problem = f"{dotted(declared.ident)}: {dotted(above)} is a {upper}, which holds namespaces only"
        entry.error("M408", _ID, problem, f"put a {lower} between them: [{', '.join(above)}, {lower}, table]")
    if entry.kind == "Namespace" and levels.get(above) == lower:
        problem = f"{dotted(declared.ident)}: {dotted(above)} is a {lower}, which holds tables only"
        entry.error("M408", _ID, problem, f"remove `level: {lower}` from {dotted(above)}, or move this one")


def _properties(capabilities: Capabilities, entry: Entry) -> None:
    for key, value in entry.declared.properties.items():
        problem = capabilities.property_problem(entry.kind, key, value)
        if problem:
            described = key == DESCRIPTION_KEY
            entry.error("M418", ("spec", "description") if described else ("spec", "properties", key), problem)


def _location(capabilities: Capabilities, entry: Entry, declared: DesiredTable, *, refused: bool) -> None:
    if declared.location is not None:
        if not holds_userinfo(declared.location):
            problem = capabilities.location_problem(declared.ident, declared.location)
            if problem:
                entry.error("M414", ("spec", "location"), problem)
        return
    if refused or declared.absent or not capabilities.chooses_location:
        return
    # A warning: the table may be live already, and then it has a place.
    problem = capabilities.refuses(DeclareTable(declared.ident, {}, Marks()))
    if problem:
        which = "has no location" if capabilities.location_of(declared.ident) is None else "cannot be made"
        entry.warning("M419", _ID, f"{dotted(declared.ident)} {which}: {problem}", "add spec.location")


def _columns(
    capabilities: Capabilities, entry: Entry, declared: DesiredTable, verdicts: dict[ArrowType, str | None]
) -> None:
    fields = declared.fields or ()
    for index, field in enumerate(fields):
        if field.type not in verdicts:
            verdicts[field.type] = capabilities.type_problem(field.type)
        problem = verdicts[field.type]
        if problem:
            entry.error("M423", ("spec", "schema", index, "type"), f"column {field.name!r}: {problem}")
    problem = capabilities.schema_problem(fields) if fields else None
    if problem:
        entry.error("M428", ("spec", "schema"), problem)


def _allowed_in_vain(capabilities: Capabilities, entry: Entry) -> None:
    """A warning: the manifest asks for something that this catalog will never do, and should not be trusted to."""
    for index, word in enumerate(entry.declared.allow):
        why = _in_vain(capabilities, entry, word)
        if why is not None:
            message = f"`{word}` has no effect in a catalog of type {capabilities.type}: {why}"
            entry.warning("M436", ("spec", "allow", index), message, "remove the word")


def _stays_filled(table: DesiredTable) -> bool:
    return table.data is not None and table.data.mode != "replace-if-changed"


def _appends(table: DesiredTable) -> bool:
    return table.data is not None and table.data.mode == "append"


def _in_vain(capabilities: Capabilities, entry: Entry, word: str) -> str | None:
    match word:
        case "purge_data" if not isinstance(entry.declared, DesiredTable) or entry.declared.data is None:
            return "it lets `data` replace rows that did not come from there, and nothing else"
        case "mix_rows" if not isinstance(entry.declared, DesiredTable) or not _stays_filled(entry.declared):
            return "it lets other writers change the rows of `data` with `mode: append` or `once`, and nothing else"
        case "skip_files" | "add_files" if not isinstance(entry.declared, DesiredTable) or not _appends(entry.declared):
            return "it says what files are that `data` with `mode: append` may have taken already, and nothing else"
        case "replace_table" if not capabilities.replaces_tables:
            return "tables are altered in place there"
        case "replace_table" if entry.kind != "Table":
            return "it stands on a table"
        case "recreate" if entry.kind != "Table":
            return "a namespace holds no data that could be gone"
        case "drop_namespace" if not capabilities.drop_needs_allow:
            return "an empty namespace is dropped without it, any other one never"
        case "drop_namespace" if entry.kind != "Namespace":
            return "it stands on a namespace"
        case _:
            return None
