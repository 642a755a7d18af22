"""What `spec.data` may say. A source stands in plans as it is written, so no secret may be written out in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.core.index_fit import sortable
from reconciler.core.secret_names import names_secret
from reconciler.core.uris import holds_userinfo, is_signed
from reconciler.manifest.index_rules import broken
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.source_sql import check_sql, other_tables
from reconciler.model.arrow import ArrowType, Field, ListOf, MapOf, Scalar, Struct, Temporal
from reconciler.model.data import FILE_FORMATS, TEXTS, DataSpec

PLACE: Path = ("spec", "data")
SOURCE: Path = (*PLACE, "source")
Source = Mapping[str, Any]

_REFERENCES = re.compile(r"(\$\{(env|file):[^}:]+\})+")
_IN_URL = re.compile(r"[?;&,(]\s*\w*(password|passwd|pwd|secret|token)\w*\s*=\s*[^&;,)\s]", re.IGNORECASE)
_ORACLE = re.compile(r"jdbc:oracle:\w+:[^@/:]+/[^@]+@", re.IGNORECASE)
_HALF = Scalar("float16")
"""pyarrow has no order for it."""
_TOKEN_HINT = "add `token: …` to the source and change it whenever the rows have changed, for example with ${var:NAME}"


def check_data(data: DataSpec, fields: Sequence[Field] | None, absent: bool, problems: list[Problem]) -> None:
    if absent:
        message = "a table that is to be `state: absent` is not filled"
        problems.append(Problem("M478", PLACE, message, "remove data, or state: absent", at_key=True))
    if fields is None:
        message = "the table has `data` but no `schema`, so that nothing says what its columns are"
        problems.append(Problem("M477", PLACE, message, "declare the columns in `schema`", at_key=True))
    else:
        _columns(data, fields, problems)
    _mode(data, problems)
    for path, source in each_source(data.source):
        _secrets(source, path, problems)
        if source["format"] == "lance" and "table" in source:
            _no_storage(source, path, problems)
    if data.format == "sql":
        check_sql(data.source, SOURCE, problems)


def each_source(source: Source) -> Iterator[tuple[Path, Source]]:
    """The source, and those of its views."""
    yield SOURCE, source
    for name, view in (source.get("views") or {}).items():
        yield (*SOURCE, "views", name), view


def _columns(data: DataSpec, fields: Sequence[Field], problems: list[Problem]) -> None:
    known = {f.name: f for f in reversed(fields)}
    for number, name in enumerate(data.order_by):
        place: Path = (*PLACE, "orderBy", number)
        if name not in known:
            _unknown(name, known, place, problems, at_key=False)
        elif name in data.order_by[:number]:
            problems.append(Problem("M471", place, f"the rows are sorted by {name!r} already", "name it once"))
        elif not broken(known[name].type) and (not sortable(known[name].type) or known[name].type == _HALF):
            message = f"rows cannot be sorted by {name!r} ({known[name].type})"
            problems.append(Problem("M471", place, message, "sort by a column of plain values"))
    for name in sorted({*data.columns, *data.casts, *data.nulls, *data.units}):
        if name not in known:
            _unknown(name, known, (*PLACE, "columns", name), problems, at_key=True)
    for name in sorted(data.nulls & known.keys()):
        if not known[name].nullable:
            message = f"the column {name!r} is NOT NULL: it cannot be null where the source lacks it"
            hint = "remove missing, or give the column a `default` or `backfill`"
            problems.append(Problem("M488", (*PLACE, "columns", name, "missing"), message, hint, at_key=True))
    for name in sorted(data.units.keys() & known.keys()):
        if not broken(known[name].type) and not _of_time(known[name].type):
            message = f"the column {name!r} ({known[name].type}) is no time that numbers could count"
            place = (*PLACE, "columns", name, "unit")
            problems.append(Problem("M497", place, message, "remove unit", at_key=True))
    if data.format in TEXTS:
        for name in sorted(data.casts & known.keys()):
            message = f"texts of {data.format} become the declared type anyway: `cast` has nothing to do"
            problems.append(Problem("M489", (*PLACE, "columns", name, "cast"), message, "remove cast", at_key=True))


def _of_time(type_: ArrowType) -> bool:
    match type_:
        case Temporal():
            return True
        case ListOf():
            return _of_time(type_.item)
        case MapOf():
            return _of_time(type_.value) or _of_time(type_.key)
        case Struct():
            return any(_of_time(f.type) for f in type_.fields)
    return False


def _unknown(name: str, known: Mapping[str, Field], place: Path, problems: list[Problem], at_key: bool) -> None:
    near = nearest(name, known.keys())
    hint = f"did you mean {near}?" if near else "name a column of `schema`"
    problems.append(Problem("M470", place, f"the table has no column {name!r}", hint, at_key=at_key))


def _mode(data: DataSpec, problems: list[Problem]) -> None:
    place: Path = (*PLACE, "mode")
    if data.mode == "append" and data.format not in FILE_FORMATS:
        message = f"a source of format {data.format} has no files of which each could be appended once"
        problems.append(Problem("M472", place, message, "write once or replace-if-changed"))
    if data.mode == "replace-if-changed":
        why = _not_listed(data.source)
        if why is not None:
            problems.append(Problem("M473", place, f"nothing tells when {why} changed", _TOKEN_HINT))


def _not_listed(source: Source) -> str | None:
    """What cannot be listed, so that a text has to stand for its state; None when all can, or has such a text."""
    if "token" in source:
        return None
    if source["format"] in ("jdbc", "iceberg"):
        return f"a source of format {source['format']} has"
    if source["format"] != "sql":
        return None
    views = source.get("views") or {}
    found = next((name for name, view in views.items() if _not_listed(view) is not None), None)
    if found is not None:
        return f"the view {found!r} has"
    others = other_tables(source)
    if others:
        return f"the table {others[0]} of Spark's catalogs has"
    return None if views else "the result of the SQL has"


def _secrets(source: Source, path: Path, problems: list[Problem]) -> None:
    for key, value in source.items():
        place: Path = (*path, key)
        if key == "password" or (key.startswith("storage.") and names_secret(key)):
            _written_out(key, value, place, problems)
        elif key == "options":
            for name, text in value.items():
                if names_secret(name):
                    _written_out(name, text, (*place, name), problems)
                else:
                    _password(f"options.{name}", text, (*place, name), problems)
        elif key in ("path", "url"):
            for number, text in enumerate(value if isinstance(value, list) else [value]):
                _password(key, text, (*place, number) if isinstance(value, list) else place, problems)


def _written_out(key: str, value: str, place: Path, problems: list[Problem]) -> None:
    if _REFERENCES.fullmatch(value):
        return
    message = f"`{key}` is a secret and is written out: the source would stand so in every plan"
    problems.append(Problem("M474", place, message, "write ${env:NAME} or ${file:PATH}, without a default"))


def _holds_password(text: str) -> bool:
    text = _REFERENCES.sub("", text)
    if _ORACLE.match(text) or (text.startswith("jdbc:") and _IN_URL.search(text)):
        return True
    userinfo = text.partition("://")[2].partition("/")[0].rpartition("@")[0]
    return holds_userinfo(text) and userinfo != ":"


def _password(key: str, text: str, place: Path, problems: list[Problem]) -> None:
    if _holds_password(text):
        message = f"`{key}` holds a user name or a password"
        hint = "give them in keys of their own, as ${env:NAME}: user and password, or storage.*"
        problems.append(Problem("M417", place, message, hint))
    elif is_signed(_REFERENCES.sub("", text)):
        message = f"`{key}` holds a signature or a token, which lets in whoever reads a plan"
        problems.append(Problem("M417", place, message, "write the address without it, and storage.* as ${env:NAME}"))


def _no_storage(source: Source, path: Path, problems: list[Problem]) -> None:
    for key in source:
        if key.startswith("storage."):
            message = "a table of a catalog is opened with the storage options of that catalog"
            problems.append(Problem("M479", (*path, key), message, "remove it", at_key=True))
