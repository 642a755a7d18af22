"""Rules inside one document: columns and property keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.manifest.look_alikes import column_look_alikes
from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.reserved_keys import check_reserved
from reconciler.model.arrow import ArrowType, Field, ListOf, Scalar, Struct, is_speakable, names_inside
from reconciler.model.state import DESCRIPTION_KEY


def check_properties(spec: Any, problems: list[Problem]) -> None:
    properties = spec.properties or {}
    check_reserved(properties, ("spec", "properties"), problems)
    if DESCRIPTION_KEY in properties and "description" in spec.model_fields_set:
        problems.append(
            Problem(
                "M431",
                ("spec", "properties", DESCRIPTION_KEY),
                "the description is given twice: `spec.description` is the property `description`",
                "remove one of them",
                at_key=True,
            )
        )


def check_schema(fields: Sequence[Field], docs: Sequence[Any], problems: list[Problem]) -> None:
    _check_level(fields, docs, ("spec", "schema"), problems)


_LANCE_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)


def _is_impossible(name: str) -> bool:
    return name in _LANCE_COLUMNS or not is_speakable(name)


def _impossible(name: str) -> tuple[str, str]:
    """Why a column cannot have this name, and what to do."""
    if name in _LANCE_COLUMNS:
        return f"the column name {name!r} belongs to Lance itself", "choose another name"
    sign = "a dot" if "." in name else "a backtick"
    return f"the column name {name!r} contains {sign}", "Lance needs it to write paths of columns: choose another name"


def _check_level(fields: Sequence[Field], docs: Sequence[Any], path: Path, problems: list[Problem]) -> None:
    names: dict[str, int] = {}
    renames = False
    for index, field in enumerate(fields):
        name = field.name
        if name in names:
            problems.append(
                Problem(
                    "M420",
                    (*path, index, "name"),
                    f"the column {name!r} is already declared as item {names[name] + 1} of this list",
                    "rename or remove one of them",
                )
            )
        else:
            names[name] = index
        if _is_impossible(name):
            problems.append(Problem("M421", (*path, index, "name"), *_impossible(name)))
        renames = renames or field.renamed_from is not None
        if field.type.__class__ is not Scalar:
            children = getattr(docs[index], "fields", None)
            if children:
                inner = _struct_in(field.type)
                if inner is not None and len(inner.fields) == len(children):
                    _check_level(inner.fields, children, (*path, index, "fields"), problems)
            else:
                inside = sorted({name for name in names_inside(field.type) if _is_impossible(name)})
                for name in inside:
                    problems.append(Problem("M421", (*path, index, "type"), *_impossible(name)))
    problems += column_look_alikes([f.name for f in fields], path)
    if renames:
        _check_renames(fields, names, path, problems)


def _struct_in(type_: ArrowType) -> Struct | None:
    """The struct whose fields are written out below the column."""
    match type_:
        case Struct():
            return type_
        case ListOf(item=item):
            return _struct_in(item)
        case _:
            return _struct_in(type_.value) if hasattr(type_, "value") else None


def _check_renames(fields: Sequence[Field], names: dict[str, int], path: Path, problems: list[Problem]) -> None:
    taken: dict[str, str] = {}
    for index, field in enumerate(fields):
        old = field.renamed_from
        if old is None:
            continue
        place = (*path, index, "renamedFrom")
        if old == field.name:
            problems.append(Problem("M422", place, f"the column {old!r} is renamed from itself", "remove renamedFrom"))
        elif old in names:
            problems.append(
                Problem(
                    "M422",
                    place,
                    f"the column {old!r} is declared too, as item {names[old] + 1}",
                    "a rename needs the old column to be gone from the manifest",
                )
            )
        elif old in taken:
            problems.append(
                Problem(
                    "M422",
                    place,
                    f"the column {taken[old]!r} is renamed from {old!r} too",
                    "one column can become one other only",
                )
            )
        taken.setdefault(old, field.name)
