"""One file of a source -> record batches of exactly the table's schema. A value that would change on the way is an
error that names the file, the column and the value.

The module stands alone but for `conform` and `csv_text`, as `table_task` does: Spark carries them to executors that do
not have this program. They have pylance, so that files that are not on a disk are read through Lance's own object
store: with the storage options as Lance names them, whatever the store.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.pipeline import column_casts, csv_text
from reconciler.pipeline.conform import TEXT, Rules, ValueProblem, conform, need_columns

BATCH_BYTES = 32 * 2**20
"""Of rows at a time, so that a task's memory does not grow with its files."""
_MOST_ROWS = 2**20
FIRST_ROWS = 100
"""Of a JSON file, whose keys are looked at one by one."""
_PLACE = re.compile(r",? ?/\S+\.rs:\d+(:\d+)?")
"""Where in its own code Lance met an error."""
CSV_BLOCK = BATCH_BYTES // 4
_SHOWN = 80
_IN_COLUMN = re.compile(r"CSV column #(\d+)")
_VALUE = re.compile(r"(?:invalid value|zone offset in) '(.*)'", re.DOTALL)
_EXPECTED = re.compile(r"Expected (\d+) columns, got ")
Again = Callable[[], AbstractContextManager[Any]]
KeyPath = tuple[str, ...]
"""A key of a JSON row, or of an object in it, or of the objects of a list in it."""
ANY_KEY = "\0any"
"""After a path: the object there has a key, whichever."""
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""As manifests name them."""
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
Ranges = Callable[[int, int], bytes]
"""The bytes from a place on, so many."""
Options = Mapping[str, Any]
"""The keys of the source: `delimiter`, `header`, `quote`, `nullValues` of csv."""


class FileError(ValueError):
    """The file, the column and the value are in the message."""


class FileChangedError(FileError):
    """The file is not the one that was listed: what was read of it may be of both."""


class Listed(NamedTuple):
    """A file as the listing saw it: reads are bound to that. Without a size nothing is known."""

    size: int | None = None
    stamp: str | None = None
    """On a disk the time of the last change, of an object its etag."""
    inode: int | None = None


UNSEEN = Listed()


def read_batches(
    uri: str,
    format_: str,
    options: Options,
    storage_options: Mapping[str, str] | None,
    target: Any,
    columns: Mapping[str, str],
    *,
    size: int | None = None,
    stamp: str | None = None,
    inode: int | None = None,
    row_groups: Sequence[int] | None = None,
    rules: Rules = TEXT,
) -> Iterator[Any]:
    """`columns`: column of the table -> column of the file, where they differ. Further columns are left out. `size`,
    `stamp` and `inode` are those of the listing: a file that is another before the first batch or after the last is
    an error, and one that is not on a disk cannot be read without its size. `row_groups`: of parquet, these alone.
    `rules`: what the file may differ in."""
    with _told(uri):
        wanted = {field.name: columns.get(field.name, field.name) for field in target}
        with _opened(uri, format_, storage_options, Listed(size, stamp, inode)) as file:
            if format_ == "csv":
                again = partial(_opened, uri, format_, storage_options, Listed(size, stamp, inode))
                yield from _csv(uri, file, again, options, target, wanted, rules)
                return
            if format_ == "parquet":
                found = _parquet(file, target, wanted, row_groups, rules)
            else:
                found = _json(file, target, wanted, rules)
            for batch in found:
                yield conform(batch, target, wanted, rules)


def row_group_sizes(uri: str, storage_options: Mapping[str, str] | None, listed: Listed) -> list[int]:
    """Of a parquet file, in bytes as stored."""
    import pyarrow.parquet as pq

    with _told(uri), _opened(uri, "parquet", storage_options, listed) as file:
        metadata = pq.ParquetFile(file).metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        return [sum(g.column(i).total_compressed_size for i in range(g.num_columns)) for g in groups]


def schema_of(
    uri: str, format_: str, options: Options, storage_options: Mapping[str, str] | None, listed: Listed = UNSEEN
) -> Any:
    """What is known of a file before it is read: of parquet all, of csv the names in its header (as `null`: any type
    can come of them), otherwise None."""
    with _told(uri):
        if format_ == "parquet":
            import pyarrow.parquet as pq

            with _opened(uri, format_, storage_options, listed) as file:
                return pq.ParquetFile(file).schema_arrow
        if format_ == "csv" and options.get("header", True):
            with _opened(uri, format_, storage_options, listed) as file:
                return pa.schema([(name, pa.null()) for name in _header(file, options)])
        return None


def json_keys(
    uri: str,
    storage_options: Mapping[str, str] | None,
    listed: Listed,
    wanted: Collection[KeyPath],
    limit: int | None = None,
) -> tuple[set[KeyPath], bool | None]:
    """The keys that rows of a JSON file have: those of its first rows, and of `wanted` all that any row has. Ends once
    all of them were seen, or after `limit` bytes. Then: True when the file was read to its end, False when it was not,
    None when it has no row."""
    import json

    spelt = {path: path[-1] if path[-1] != ANY_KEY else path[-2] for path in wanted}
    forms = {path: {json.dumps(name, ensure_ascii=a).encode() for a in (True, False)} for path, name in spelt.items()}
    inside = {path[:-1] for path in wanted if len(path) > 1}
    keys: set[KeyPath] = set()
    read = rows = 0
    with _told(uri), _opened(uri, "json", storage_options, listed) as file:
        for line in io.BufferedReader(_Stream(file), 2**20):
            read += len(line)
            open_ = [path for path in wanted if path not in keys]
            if limit is not None and read > limit:
                return keys, False
            if not line.strip():
                continue
            rows += 1
            if rows > FIRST_ROWS and not open_:
                return keys, False
            if rows <= FIRST_ROWS or any(form in line for path in open_ for form in forms[path]):
                keys.update(_key_paths(json.loads(line, object_pairs_hook=_Pairs), (), inside, wanted))
    return keys, True if rows else None


class _Pairs(list[tuple[str, Any]]):
    """An object as it is written: a key may be there twice."""


def _key_paths(value: Any, at: KeyPath, inside: Collection[KeyPath], wanted: Collection[KeyPath]) -> Iterator[KeyPath]:
    """The keys of an object, or of the objects of a list; of those `inside` also their own. Raises ValueError when an
    object has one of the `wanted` twice."""
    if isinstance(value, _Pairs):
        if at and value:
            yield (*at, ANY_KEY)
        seen: set[str] = set()
        for key, child in value:
            path = (*at, key)
            if key in seen and path in wanted:
                raise ValueError(f"a row has more than one value of the column {'.'.join(path)!r}: rename one of them")
            seen.add(key)
            yield path
            if path in inside:
                yield from _key_paths(child, path, inside, wanted)
    elif isinstance(value, list) and at:
        for item in value:
            yield from _key_paths(item, at, inside, wanted)


class _Stream(io.RawIOBase):
    """A pyarrow stream, packed or not, for Python's own readers of lines."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def _told(uri: str) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except (pa.ArrowException, ValueError, OSError, ImportError) as error:
        raise FileError(f"{uri}: {_PLACE.sub('', str(error))}") from error


def is_local(uri: str) -> bool:
    return "://" not in uri or uri.lower().startswith("file://")


def local_path(uri: str) -> str:
    return unquote(urlsplit(uri).path) if "://" in uri else uri


def stamp_of(status: os.stat_result) -> str:
    return str(status.st_mtime_ns)


def _changed(uri: str) -> FileChangedError:
    return FileChangedError(
        f"{uri}: the file has changed since the source was listed: let its writer finish, then make a new plan"
    )


@contextmanager
def _unchanged(uri: str, file: Any, listed: Listed) -> Iterator[None]:
    """A file on a disk is the listed one before its first byte is read and after its last. Where reading fails, that it
    is another one by now is the reason, whatever the rest of it looked like."""
    if not is_local(uri) or listed.size is None:
        yield
        return
    _need_listed(uri, os.fstat(file.fileno()), listed)
    try:
        yield
    except (pa.ArrowException, ValueError, OSError):
        _need_listed(uri, _status(uri), listed)
        raise
    _need_listed(uri, _status(uri), listed)


def _status(uri: str) -> os.stat_result:
    try:
        return os.stat(local_path(uri))
    except FileNotFoundError as error:
        raise _changed(uri) from error


def _need_listed(uri: str, found: os.stat_result, listed: Listed) -> None:
    if listed != Listed(
        found.st_size,
        stamp_of(found) if listed.stamp is not None else None,
        found.st_ino if listed.inode is not None else None,
    ):
        raise _changed(uri)


# files


@contextmanager
def _opened(uri: str, format_: str, storage_options: Mapping[str, str] | None, listed: Listed) -> Iterator[Any]:
    """What pyarrow reads from; text files come unpacked."""
    if is_local(uri):
        file = pa.OSFile(local_path(uri))
    elif listed.size is None:
        raise ValueError("the size of a file that is not on a disk has to be given")
    else:
        remote = _Remote(uri, _ranges(uri, storage_options, listed.stamp), listed.size)
        file = pa.PythonFile(io.BufferedReader(remote, 8 * 2**20), "r")
    with file, _unchanged(uri, file, listed):
        codec = _CODECS.get(os.path.splitext(uri)[1].lower()) if format_ != "parquet" else None
        yield pa.CompressedInputStream(file, codec) if codec else file


def _ranges(uri: str, storage_options: Mapping[str, str] | None, stamp: str | None) -> Ranges:
    """What reads a part of an object. Where this program is installed, no part of another object than the listed one
    comes through; Lance alone, on an executor, does not say which one it read: there the driver looks before it
    commits."""
    scheme, _, rest = uri.partition("://")
    if stamp is not None:
        with contextlib.suppress(ImportError):
            from reconciler.pipeline.listed_object import ranges

            return ranges(uri, dict(storage_options or {}), stamp, _changed)
    from lance.file import LanceFileSession

    # As the session's own place every name can be written; below it, Lance would escape what it takes for odd.
    session = LanceFileSession(f"{scheme}://{quote(rest)}", dict(storage_options or {}) or None)
    return lambda start, length: bytes(session.read_range("", start, length))


class _Remote(io.RawIOBase):
    """A file in an object store, read by ranges."""

    def __init__(self, uri: str, ranges: Ranges, size: int) -> None:
        self._uri, self._ranges = uri, ranges
        self._size, self._at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = max(0, min(len(buffer), self._size - self._at))
        data = self._ranges(self._at, length) if length else b""
        if len(data) != length:
            raise _changed(self._uri)
        buffer[:length] = data
        self._at += length
        return length


# formats


def _parquet(
    file: Any, target: Any, wanted: Mapping[str, str], row_groups: Sequence[int] | None, rules: Rules
) -> Iterator[Any]:
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    have = parquet.schema_arrow.names
    need_columns(have, target, wanted, rules)
    names = [name for name in wanted.values() if name in have]
    groups = None if row_groups is None else list(row_groups)
    yield from parquet.iter_batches(_rows_at_a_time(parquet, set(names)), groups, list(dict.fromkeys(names)))


def _rows_at_a_time(parquet: Any, names: set[str]) -> int:
    """By the largest row group, as its pages are before they are compressed."""
    most = 0.0
    for number in range(parquet.metadata.num_row_groups):
        group = parquet.metadata.row_group(number)
        columns = (group.column(i) for i in range(group.num_columns))
        size = sum(c.total_uncompressed_size for c in columns if c.path_in_schema.partition(".")[0] in names)
        most = max(most, size / max(1, group.num_rows))
    return max(1, min(_MOST_ROWS, int(BATCH_BYTES / max(most, 1))))


def _csv(
    uri: str, file: Any, again: Again, options: Options, target: Any, wanted: Mapping[str, str], rules: Rules
) -> Iterator[Any]:
    """As the table has them; what is wrong is told with the line. `again`: opens the file once more."""
    import pyarrow.csv as csv

    numbers = {wanted[f.name]: _number(f, rules) for f in target if _number(f, rules) is not None}
    types = {wanted[f.name]: pa.string() if wanted[f.name] in numbers else _csv_type(f.type) for f in target}
    names = None if options.get("header", True) else list(wanted.values())
    nulls = options.get("nullValues")
    delimiter, quote_ = options.get("delimiter", ","), options.get("quote", '"')
    rows = 0
    try:
        reader = csv.open_csv(
            pa.PythonFile(io.BufferedReader(csv_text.Checked(file, delimiter, quote_), CSV_BLOCK), "r"),
            csv.ReadOptions(block_size=CSV_BLOCK, column_names=names),
            _csv_shape(options),
            csv.ConvertOptions(
                column_types=types,
                null_values=list(nulls) if nulls is not None else [""],
                strings_can_be_null=nulls is not None,
            ),
        )
        need_columns(reader.schema.names, target, wanted, rules)
        for batch in reader:
            yield _conformed(_with_numbers(batch, numbers, nulls or [""], rows), target, wanted, rules, rows)
            rows += batch.num_rows
    except csv_text.TextProblem as problem:
        raise FileError(f"{uri}:{problem.line}: {problem}") from problem
    except _Bad as bad:
        row = bad.row
        line = _line(again, options, lambda number, _: number == row)
        raise FileError(f"{_at(uri, line)}: {bad}") from bad
    except pa.ArrowInvalid as error:
        raise FileError(_told_with_line(uri, str(error), again, options, names)) from error


class _Bad(ValueError):
    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def _conformed(batch: Any, target: Any, wanted: Mapping[str, str], rules: Rules, start: int) -> Any:
    try:
        return conform(batch, target, wanted, rules)
    except ValueProblem as problem:
        if problem.place is None:
            raise
        raise _Bad(start + problem.place, str(problem)) from problem


def _number(field: Any, rules: Rules) -> Any:
    """The numbers that a column is read as, by way of texts: pyarrow's reader takes `0x10` for 16, and `1e400` for
    infinity."""
    if field.name in rules.unit_of:
        return pa.int64()
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return type_ if column_casts.is_number(type_) else None


def _with_numbers(batch: Any, numbers: Mapping[str, Any], nulls: Sequence[str], start: int) -> Any:
    for name, type_ in numbers.items():
        place = batch.schema.get_field_index(name)
        if place < 0:
            continue
        texts = batch.column(place)
        kept = pc.if_else(pc.is_in(texts, pa.array(nulls, pa.string())), pa.scalar(None, pa.string()), texts)
        trimmed = pc.utf8_trim_whitespace(kept)
        try:
            made = column_casts.cast(trimmed, type_)
        except pa.ArrowException as error:
            row = next(column_casts.misfits(trimmed, type_, start))
            shown = repr(trimmed[row - start].as_py())[:_SHOWN]
            raise _Bad(row, f"column {name!r}: {shown} is no {_FLOATS.get(str(type_), type_)}") from error
        batch = batch.set_column(place, name, made)
    return batch


def _told_with_line(uri: str, text: str, again: Again, options: Options, names: Sequence[str] | None) -> str:
    """pyarrow counts columns; people name them. It says which value is wrong, and of a row with too few or too many
    values its number; the line is looked for. Where the file cannot be read again, it is left out."""
    wrong: Callable[[int, list[str]], bool] | None = None
    if found := _IN_COLUMN.search(text):
        place = int(found[1])
        with contextlib.suppress(pa.ArrowException, OSError, ValueError, IndexError):
            if names is None:
                with again() as file:
                    names = _header(file, options)
            text = text.replace(f"CSV column #{place}", f"column {names[place]!r}")
        value = _VALUE.search(text)
        if value is not None:
            wrong = lambda _, values: len(values) > place and values[place].strip() == value[1].strip()  # noqa: E731
    elif expected := _EXPECTED.search(text):
        wrong = lambda _, values: len(values) != int(expected[1])  # noqa: E731
    return f"{_at(uri, _line(again, options, wrong) if wrong is not None else None)}: {text}"


def _line(again: Again, options: Options, wrong: Callable[[int, list[str]], bool]) -> int | None:
    with contextlib.suppress(Exception), again() as file:
        return csv_text.line_of(_Stream(file), options, wrong)
    return None


def _at(uri: str, line: int | None) -> str:
    return uri if line is None else f"{uri}:{line}"


def _csv_shape(options: Options) -> Any:
    import pyarrow.csv as csv

    return csv.ParseOptions(
        delimiter=options.get("delimiter", ","), quote_char=options.get("quote", '"'), newlines_in_values=True
    )


def _header(file: Any, options: Options) -> list[str]:
    import pyarrow.csv as csv

    every = csv.ConvertOptions(default_column_type=pa.string())
    return list(csv.open_csv(file, csv.ReadOptions(block_size=2**20), _csv_shape(options), every).schema.names)


def _csv_type(type_: Any) -> Any:
    """What pyarrow's CSV reader makes directly, and otherwise what the rest is made of."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _json(file: Any, target: Any, wanted: Mapping[str, str], rules: Rules) -> Iterator[Any]:
    """A key that a row does not have is null; `json_keys` tells which keys no row has."""
    import pyarrow.json as json

    types = {f.name: _json_type(f.type, f.name in rules.unit_of) for f in target if in_json(f.type)}
    schema = pa.schema([(wanted[name], type_) for name, type_ in types.items()])
    shape = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        yield from json.open_json(file, json.ReadOptions(block_size=BATCH_BYTES // 4), shape)
    except pa.ArrowInvalid as error:
        if "Empty JSON" not in str(error):
            raise


def in_json(type_: Any) -> bool:
    """What a row of JSON can hold. Columns of other types are read only where no row has them."""
    if isinstance(type_, pa.BaseExtensionType) or pa.types.is_map(type_):
        return False
    nested = pa.types.is_nested(type_)
    return all(in_json(type_.field(number).type) for number in range(type_.num_fields)) if nested else True


def _json_type(type_: Any, counts: bool) -> Any:
    """`counts`: numbers stand for the times in it."""
    types = pa.types
    if types.is_dictionary(type_):
        return _json_type(type_.value_type, counts)
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return pa.list_(_json_type(type_.value_type, counts))
    if types.is_struct(type_):
        return pa.struct([(field.name, _json_type(field.type, counts)) for field in type_])
    if counts and column_casts.is_time(type_):
        return pa.int64()
    if types.is_date(type_) or types.is_time(type_):
        return pa.string()
    if types.is_fixed_size_binary(type_):
        return pa.binary()
    if types.is_float16(type_) or types.is_float32(type_):
        return pa.float64()  # What is too large would be infinite.
    return pa.int64() if types.is_duration(type_) else type_
