"""Columns as written -> model fields: type strings, written-out struct fields, defaults as SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.reserved_keys import check_column_metadata
from reconciler.manifest.type_hints import hint_for
from reconciler.model.arrow import (
    ArrowType,
    Field,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    TypeSyntaxError,
    parse_type,
)
from reconciler.model.state import EMPTY

COMMENT_KEY = "comment"
_BARE_STRUCT = re.compile(r"\bstruct\b(?!\s*<)")
_HOLE_NAME = "\x01"
_HOLE = f'struct<"{_HOLE_NAME}": null>'
_CACHE_LIMIT = 50_000


class Columns:
    """Builds fields. Equal simple columns are one object, which saves time and memory on a large lake."""

    def __init__(self) -> None:
        self._simple: dict[tuple[str, str, bool], Field] = {}

    def fields(self, docs: Sequence[Any], path: Path, problems: list[Problem]) -> tuple[Field, ...]:
        simple = self._simple
        result: list[Field] = []
        for index, doc in enumerate(docs):
            if len(doc.model_fields_set) == 2 or not (doc.model_fields_set - _SIMPLE):
                key = (doc.name, doc.type, doc.nullable)
                found = simple.get(key)
                if found is None:
                    found = self._field(doc, (*path, index), problems)
                    if len(simple) < _CACHE_LIMIT and found is not None and found.type is not BROKEN:
                        simple[key] = found
            else:
                found = self._field(doc, (*path, index), problems)
            result.append(found)
        return tuple(result)

    def _field(self, doc: Any, path: Path, problems: list[Problem]) -> Field:
        nested = getattr(doc, "fields", None)
        type_ = (
            self._nested(doc.type, nested, path, problems) if nested else _parse(doc.type, (*path, "type"), problems)
        )
        metadata = dict(doc.metadata or {})
        if metadata:
            check_column_metadata(metadata, (*path, "metadata"), problems)
        comment = doc.comment if "comment" in doc.model_fields_set else None
        if COMMENT_KEY in metadata:
            # A column's comment is its metadata key `comment`: two spellings of one thing.
            if comment is not None:
                problems.append(
                    Problem(
                        "M434",
                        (*path, "metadata", COMMENT_KEY),
                        f"the comment of column {doc.name!r} is given twice",
                        "keep `comment` and remove `metadata.comment`",
                        at_key=True,
                    )
                )
            comment = metadata.pop(COMMENT_KEY)
        return Field(
            doc.name,
            type_,
            doc.nullable,
            comment,
            MappingProxyType(metadata) if metadata else EMPTY,
            doc.renamedFrom or None,
            default_sql(doc),
            getattr(getattr(doc, "backfill", None), "function", None),
        )

    def _nested(self, text: str, nested: Sequence[Any], path: Path, problems: list[Problem]) -> ArrowType:
        """`type` says where the fields go: `struct`, `list<struct>`, `map<string, struct>`; `list` is a list of it."""
        children = Struct(self.fields(nested, (*path, "fields"), problems))
        text = _spelt_out(text)
        holes = len(_BARE_STRUCT.findall(text))
        if holes != 1:
            message = f"the type {text!r} has the word struct {holes} times; with `fields` it is there once"
            problems.append(Problem("M211", (*path, "type"), message, "write struct, or list<struct>"))
            return BROKEN
        outer = _parse(_BARE_STRUCT.sub(lambda _: _HOLE, text), (*path, "type"), problems)
        return _fill(outer, children)


def _spelt_out(text: str) -> str:
    return f"{text}<struct>" if text in ("list", "large_list") else text


def outer_type(text: str) -> ArrowType | None:
    """The type beside written-out fields, with an empty struct where they go; None when it is not such a type."""
    text = _spelt_out(text)
    if len(_BARE_STRUCT.findall(text)) != 1:
        return None
    try:
        return _fill(parse_type(_BARE_STRUCT.sub(lambda _: _HOLE, text)), Struct(()))
    except TypeSyntaxError:
        return None


_SIMPLE = frozenset({"name", "type", "nullable"})
BROKEN = Scalar("null")
"""The type of a column whose own could not be read; told apart from a real `null` by identity."""


def _parse(text: str, path: Path, problems: list[Problem]) -> ArrowType:
    try:
        return parse_type(text)
    except TypeSyntaxError as error:
        shown = text.replace(_HOLE, "struct")
        hint = hint_for(text, error).replace(_HOLE, "struct")
        problems.append(Problem("M211", path, f"type {shown!r}: {error}", hint, offset=error.position))
        return BROKEN


def _fill(type_: ArrowType, children: Struct) -> ArrowType:
    match type_:
        case Struct((Field(name=name),)) if name == _HOLE_NAME:
            return children
        case Struct(fields):
            return Struct(tuple(replace(f, type=_fill(f.type, children)) for f in fields))
        case ListOf():
            return replace(type_, item=_fill(type_.item, children))
        case MapOf():
            return replace(type_, key=_fill(type_.key, children), value=_fill(type_.value, children))
        case _:
            return type_


def default_sql(doc: Any) -> str | None:
    """The expression for existing rows: a constant as a SQL literal, or `backfill.sql` as written."""
    backfill = getattr(doc, "backfill", None)
    if backfill is not None:
        return getattr(backfill, "sql", None)
    value = getattr(doc, "default", None)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
