"""A source as a plan sees it: its files as hashes, which stand in plans and ledgers, and whether it fits the table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from reconciler.core.source_files import FilesBySight, by_sight
from reconciler.model.arrow import Field
from reconciler.model.data import FILE_FORMATS, TEXTS, DataSpec, SourceState
from reconciler.pipeline.conform import Rules, lacking, lost_fields, missing_fields, unused_fields
from reconciler.pipeline.file_reader import ANY_KEY, FileError, KeyPath, is_local, json_keys, local_path
from reconciler.pipeline.listing import SourceError
from reconciler.pipeline.source_fit import fits
from reconciler.pipeline.sources import Listing, SourceFile, digest, list_source, source_schemas, storage_of

_UNSHOWN = "with --catalogs-from it is not shown what is in it: plan without it, in a checkout of your own"
_NO_UNITS: Mapping[str, str] = MappingProxyType({})

_PIECE, _PIECES = 2**16, 16
"""Bytes, and how many of them are read of a file to know its content again."""
HEAD = 8 * 2**20
"""Bytes of JSON that a plan reads to learn the keys; the step itself reads on."""


def look(
    source: Mapping[str, Any],
    spec: DataSpec,
    fields: Sequence[Field],
    storage: Mapping[str, str],
    taken: Mapping[str, str] | None = None,
) -> SourceState:
    """`source` with its secrets; `storage` opens it when it says nothing of its own; `taken`: the files that are in
    already (`files_of`), which nobody reads again. Raises nothing that a source did: that is its state."""
    options = storage_of(source) or dict(storage)
    try:
        listing = list_source(source, options, spec.untrusted)
        files = files_of(listing)
        also = _also(listing, files, taken or {})
        if spec.mode == "append":
            files = _looked_into(listing, files, by_sight(files, also, taken or {}), taken or {})
        new = by_sight(files, also, taken or {}).new
        unread = tuple(file for key, file in keyed(listing).items() if key in new)
        problems, unused = _fitted(replace(listing, files=unread), source, options, fields, spec)
    except SourceError as error:
        return SourceState(problem=f"the source cannot be read: {error}")
    problem = f"the source does not fit the table: {'; '.join(problems)}" if problems else None
    names = {key: file.uri for key, file in keyed(listing).items()}
    digest = digest_of(listing, spec.columns, sorted(spec.casts), spec.units)
    return SourceState(digest, files, names, _told(listing, source), problem, tuple(unused), also)


def _fitted(
    listing: Listing, source: Mapping[str, Any], storage: Mapping[str, str], fields: Sequence[Field], spec: DataSpec
) -> tuple[list[str], list[str]]:
    """As `_fit`. Of files that may be a stranger's, or what a link of his leads to, nothing that is in them is told."""
    if not spec.untrusted:
        return _fit(listing, source, storage, fields, spec)
    try:
        problems, _ = _fit(listing, source, storage, fields, spec)
    except SourceError as error:
        raise SourceError(f"a file is no {source['format']} that can be read; {_UNSHOWN}") from error
    return [f"its columns are not those that are declared, or of other types; {_UNSHOWN}"] if problems else [], []


def files_of(listing: Listing) -> dict[str, str]:
    """Hash of a place -> hash of what the file is; nothing for a source that is not a matter of files. The inode is no
    part of it: a copy of a disk that kept the times has the same files."""
    return {key: hashed(f"{f.size} {f.stamp}") for key, f in keyed(listing).items()}


def _looked_into(
    listing: Listing, files: Mapping[str, str], seen: FilesBySight, taken: Mapping[str, str]
) -> dict[str, str]:
    """With the content of files on a disk that the ledger does not know: a copy has another time, and only that tells
    it. In a store the etag does. Of what earlier versions took no content is noted, so a file that is in is looked into
    where a new one has its size. Raises SourceError."""
    there = {key: file for key, file in keyed(listing).items() if is_local(file.uri) and file.size}
    unsure = {**seen.new, **seen.questions}
    sizes = {file.size for key, file in there.items() if key in unsure}
    noted = {key for key, stamp in taken.items() if "." in stamp}
    looked = [k for k, file in there.items() if k in unsure or (file.size in sizes and k not in noted)]
    return dict(files) | {key: f"{files[key]}.{_content(there[key])}" for key in looked}


def _content(file: SourceFile) -> str:
    """Of large files some pieces: two that differ elsewhere alone are a question too many, and no copy is missed."""
    count = min(_PIECES, -(-file.size // _PIECE))
    step = (file.size - _PIECE) / max(1, count - 1)
    digest = hashlib.sha256(str(file.size).encode())
    try:
        with open(local_path(file.uri), "rb", buffering=0, opener=_at_once) as opened:
            for number in range(count):
                opened.seek(max(0, int(number * step)))
                digest.update(opened.read(_PIECE))
    except OSError as error:
        raise SourceError(f"{file.uri}: {error.strerror or error}") from error
    return digest.hexdigest()[:16]


def _at_once(path: str, flags: int) -> int:
    """Were it a pipe by now, opening it would wait."""
    return os.open(path, flags | os.O_NONBLOCK)


def keyed(listing: Listing) -> dict[str, SourceFile]:
    """By the hash of the place, whatever the source's path says: another pattern finds the same files."""
    return {hashed(f.uri): f for f in listing.files}


def _also(listing: Listing, files: Mapping[str, str], taken: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """See `SourceState.also`. Earlier versions noted a file under its path below the folder before the first wildcard:
    whatever that was, it is an end of the whole path."""
    found: dict[str, tuple[str, ...]] = {}
    for key, file in keyed(listing).items():
        others = [hashed(file.real)] if file.real is not None else []
        if taken and taken.get(key) != files[key]:
            others += [end for end in map(hashed, _ends(file.uri)) if end in taken]
        if others:
            found[key] = tuple(others)
    return found


def _ends(uri: str) -> Iterator[str]:
    path = uri.partition("://")[2].partition("/")[2] if "://" in uri else uri.lstrip("/")
    parts = path.split("/")
    return ("/".join(parts[start:]) for start in range(len(parts)))


def digest_of(
    listing: Listing, columns: Mapping[str, str], casts: Sequence[str], units: Mapping[str, str] = _NO_UNITS
) -> str:
    """Of what decides about the rows; the layout does not."""
    more = [list(casts), dict(units)] if units else [list(casts)] if casts else []
    return digest([listing.digest, dict(columns), *more])


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _fit(
    listing: Listing, source: Mapping[str, Any], storage: Mapping[str, str], fields: Sequence[Field], spec: DataSpec
) -> tuple[list[str], list[str]]:
    """What keeps the source from filling the table, before any byte is written, and its columns that nobody reads. What
    only Spark can read is looked at by the step itself, and so is every file beyond the first few."""
    import pyarrow as pa

    from reconciler.catalog.arrow_convert import to_arrow_field

    format_ = source["format"]
    if format_ not in (*FILE_FORMATS, "lance"):
        return [], []
    rules = rules_for(format_, spec.casts, (f.name for f in fields if spec.may_lack(f.name)), spec.units)
    if format_ == "json":
        kept = [f for f in fields if not f.filled]
        found, problems = json_columns(listing, source, storage, kept, spec.columns, rules, HEAD)
        return problems, _unused(found, fields, spec.columns)
    unused: list[str] = []
    for file, found in source_schemas(listing, source, storage):
        names = found.names if found is not None else [f.name for f in fields]
        asked = [f for f in fields if not f.filled or spec.columns.get(f.name, f.name) in names]
        problems = fits(found, pa.schema([to_arrow_field(f) for f in asked]), spec.columns, format_, rules)
        if problems:
            return [why if format_ == "lance" else f"{file.uri}: {why}" for why in problems], []
        extra = [*_unused(names, fields, spec.columns), *_unused_inside(found, fields, spec.columns)]
        unused += [name for name in extra if name not in unused]
    return [], unused


def rules_for(format_: str, casts: Iterable[str], nulls: Iterable[str], units: Mapping[str, str] = _NO_UNITS) -> Rules:
    return Rules(format_ not in TEXTS, frozenset(casts), frozenset(nulls), tuple(sorted(units.items())))


def json_columns(
    listing: Listing,
    source: Mapping[str, Any],
    storage: Mapping[str, str],
    fields: Sequence[Field],
    columns: Mapping[str, str],
    rules: Rules,
    limit: int | None,
) -> tuple[list[str], list[str]]:
    """The keys that rows of the files have, and what keeps them from filling the table: types that JSON cannot hold,
    and keys that no row has, also inside of objects. A key that some row has is no missing column. Nothing is said
    about keys when `limit` bytes did not decide it."""
    import pyarrow as pa

    from reconciler.catalog.arrow_convert import to_arrow_field

    target = [to_arrow_field(f) for f in fields]
    wanted = [path for f in target for path in _key_paths(f.type, (columns.get(f.name, f.name),))]
    found: dict[KeyPath, None] = {}
    rows, decided = False, True
    for file in listing.files:
        asked = [path for path in wanted if path not in found]
        if not asked:
            break
        try:
            keys, whole = json_keys(file.uri, storage, file.listed, asked, limit)
        except FileError as error:
            raise SourceError(str(error)) from error
        found |= dict.fromkeys(sorted(keys))
        rows = rows or whole is not None
        if whole is False and limit is not None:
            decided = False
            break
        if limit is not None:
            limit -= file.size
    have = [path[0] for path in found if len(path) == 1]
    read = [f for f in target if columns.get(f.name, f.name) in have or not rules.may_lack(f)]
    if (problems := fits(None, pa.schema(read), columns, "json", rules)) or not (rows and decided):
        return have, problems
    if lacks := missing_fields(have, target, columns, rules):
        return have, [lacking(lacks, have, columns)]
    return have, [
        f"column {f.name!r}: {why}"
        for f in target
        if (why := _lost_keys(f.type, (columns.get(f.name, f.name),), found, f.name in rules.nulls))
    ]


def _key_paths(type_: Any, at: KeyPath) -> Iterator[KeyPath]:
    """The keys that a column of the type is made of."""
    yield at
    for path, fields in _objects(type_, at):
        yield (*path, ANY_KEY)
        yield from ((*path, field.name) for field in fields)


def _objects(type_: Any, at: KeyPath) -> Iterator[tuple[KeyPath, Sequence[Any]]]:
    """The structs in a type, with their fields."""
    import pyarrow as pa

    if pa.types.is_struct(type_):
        yield at, list(type_)
        for field in type_:
            yield from _objects(field.type, (*at, field.name))
    elif pa.types.is_nested(type_) and not pa.types.is_map(type_):
        yield from _objects(type_.value_type, at)


def _lost_keys(type_: Any, at: KeyPath, found: Iterable[KeyPath], lackable: bool) -> str | None:
    for path, fields in _objects(type_, at):
        if (*path, ANY_KEY) not in found:
            continue  # No row has an object there.
        have = [p[-1] for p in found if p[:-1] == path and p[-1] != ANY_KEY]
        lacks = [f for f in fields if f.name not in have]
        if len(lacks) < len(fields):
            lacks = [f for f in lacks if not (lackable and f.nullable)]
        if lacks:
            return lost_fields(lacks, have)
    return None


def _unused(have: Iterable[str], fields: Sequence[Field], columns: Mapping[str, str]) -> list[str]:
    used = {columns.get(f.name, f.name) for f in fields}
    return [name for name in have if name not in used]


def _unused_inside(found: Any, fields: Sequence[Field], columns: Mapping[str, str]) -> list[str]:
    from reconciler.catalog.arrow_convert import to_arrow_field

    names = {f.name: columns.get(f.name, f.name) for f in fields}
    pairs = [(names[f.name], f) for f in fields if found is not None and names[f.name] in found.names]
    return [n for name, f in pairs for n in unused_fields(found.field(name).type, to_arrow_field(f).type, name)]


def _told(listing: Listing, source: Mapping[str, Any]) -> str:
    if source["format"] in FILE_FORMATS:
        count = len(listing.files)
        return f"{count} {'file' if count == 1 else 'files'}, {_size(sum(f.size for f in listing.files))}"
    return str(source["format"])


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"
