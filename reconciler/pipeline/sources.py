"""What a source is right now, without reading its rows: its files or its version, and a digest of that. No Spark.

Objects are listed with obstore, which knows the storage options by Lance's names and shows etags (pyarrow shows only
times, to the second); folders on a disk with the operating system, whose times are exact. What cannot be listed is an
error, never an empty source.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from reconciler.catalog.lance_dataset import check_versions
from reconciler.catalog.lance_files import check_rows
from reconciler.catalog.storage_objects import connect
from reconciler.model.data import FILE_FORMATS
from reconciler.model.errors import CatalogError
from reconciler.pipeline.file_reader import FileError, Listed, schema_of
from reconciler.pipeline.listing import Found, SourceError, first_words, listed, need_own

STORAGE = "storage."
LOOKED_AT = 64
"""Files of a source whose columns a plan reads. The step that fills the table looks at every file."""
READERS = 8
Source = Mapping[str, Any]
"""`spec.data.source`, its references resolved. Of a Lance table in a catalog, `path` is its location."""
_SHAPE = ("delimiter", "header", "quote", "nullValues")
"""What decides, besides the files, which rows there are."""
_COMMIT = re.compile(r"(\d{20})\.(json|checkpoint\b.*)")
_STATED = {"jdbc": ("table", "query"), "iceberg": ("table", "path"), "sql": ("sql",)}


@dataclass(frozen=True, slots=True)
class SourceFile:
    uri: str
    """An absolute path, or `scheme://bucket/key` with the key as it is, nothing escaped."""
    size: int
    stamp: str
    """The time of its last change in nanoseconds, or its etag."""
    name: str = field(compare=False)
    """Its path below the folder that the source names, or below what comes before the first wildcard."""
    inode: int | None = field(default=None, compare=False)
    """On a disk. No part of what the source is: a copy that kept its times is the same."""

    real: str | None = field(default=None, compare=False)
    """On a disk: where links on the way to it lead."""

    @property
    def listed(self) -> Listed:
        return Listed(self.size, self.stamp, self.inode)


@dataclass(frozen=True, slots=True)
class Listing:
    digest: str
    """`sha256:` of what the rows depend on: of files their names, sizes and stamps, of Lance the fragments, of Delta
    the newest commit, of all others what is asked for and `token`. Where it all is does not count: a source that moved
    with its times or etags is the same. Neither do storage options, users and passwords."""
    files: tuple[SourceFile, ...] = ()
    """By URI. Only of parquet, csv and json."""
    version: int | None = None
    """Of Lance and Delta: what is to be read."""
    views: Mapping[str, Listing] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Of sql: what each view is to be read from."""


def storage_of(source: Source) -> dict[str, str]:
    return {key.removeprefix(STORAGE): value for key, value in source.items() if key.startswith(STORAGE)}


def opening(source: Source, storage_options: Mapping[str, str]) -> dict[str, str]:
    """What opens its store: its own options, or those of the catalog of its table."""
    return storage_of(source) or dict(storage_options)


def list_source(source: Source, storage_options: Mapping[str, str], untrusted: bool = False) -> Listing:
    """Raises SourceError. `storage_options`: those of the source (`storage_of`), or of the catalog of its table.
    `untrusted`: links in its folders may be a stranger's."""
    match source["format"]:
        case "lance":
            if untrusted:
                need_own(source["path"])
            return _lance(source, storage_options)
        case "delta":
            return _delta(source, storage_options, untrusted)
        case format_ if format_ in FILE_FORMATS:
            return _files(source, storage_options, untrusted)
        case _:
            return _stated(source, storage_options, untrusted)


def source_schema(listing: Listing, source: Source, storage_options: Mapping[str, str]) -> Any:
    """A pyarrow schema: of parquet that of the first file, of csv the names with the type `null`. None when nothing is
    known before the rows are read. Raises SourceError."""
    if source["format"] == "lance":
        return _dataset(source, storage_options, listing.version).schema
    if not listing.files:
        return None
    return _schema(listing.files[0], source, storage_options)


def source_schemas(
    listing: Listing, source: Source, storage_options: Mapping[str, str]
) -> Iterator[tuple[SourceFile, Any]]:
    """Of the first file, the last and some between, each as `source_schema` says. A Lance table counts as one file."""
    if source["format"] == "lance":
        yield SourceFile(source["path"], 0, "", ""), source_schema(listing, source, storage_options)
        return
    step = max(1, -(-len(listing.files) // LOOKED_AT))
    chosen = list(dict.fromkeys([*listing.files[::step], *listing.files[-1:]]))
    with ThreadPoolExecutor(READERS, thread_name_prefix="schema") as pool:
        found = pool.map(lambda file: _schema(file, source, storage_options), chosen)
        yield from zip(chosen, found, strict=True)


def _schema(file: SourceFile, source: Source, storage_options: Mapping[str, str]) -> Any:
    try:
        return schema_of(file.uri, source["format"], source, storage_options, file.listed)
    except FileError as error:
        raise SourceError(str(error)) from error


# files


def _files(source: Source, storage_options: Mapping[str, str], untrusted: bool) -> Listing:
    given = source["path"]
    files: dict[str, SourceFile] = {}
    for path in [given] if isinstance(given, str) else given:
        for found in _found(path, storage_options, untrusted):
            file = SourceFile(found.uri, found.size, found.stamp, found.name, found.inode, found.real)
            files.setdefault(found.uri, file)
    ordered = tuple(files[uri] for uri in sorted(files))
    shape = {key: source[key] for key in _SHAPE if key in source}
    return Listing(digest([source["format"], shape, sorted([f.name, f.size, f.stamp] for f in ordered)]), ordered)


def _found(path: str, storage_options: Mapping[str, str], untrusted: bool) -> Sequence[Found]:
    """Never empty."""
    try:
        found = listed(path, lambda url: connect(url, storage_options), untrusted)
    except CatalogError as error:
        raise SourceError(f"{path}: {error.message}") from error
    if not found:
        raise SourceError(f"{path}: there is no file; names that start with . or _ do not count")
    return found


# Lance and Delta


def _lance(source: Source, storage_options: Mapping[str, str]) -> Listing:
    """Its files have names of their own, so that a table that was made anew is another one, whatever its version; one
    that was only indexed, tagged or configured is the same."""
    from lance.schema import schema_to_json

    dataset = _dataset(source, storage_options, source.get("version"))
    fragments = [json.dumps(f.metadata.to_json(), sort_keys=True, default=str) for f in dataset.get_fragments()]
    return Listing(digest(["lance", schema_to_json(dataset.schema), sorted(fragments)]), version=dataset.version)


def _dataset(source: Source, storage_options: Mapping[str, str], version: int | str | None) -> Any:
    import lance

    if isinstance(version, str) and version.isdecimal():
        version = int(version)
    uri = source["path"]
    try:
        check_versions(uri)
        check_rows(uri)
    except CatalogError as error:
        raise SourceError(error.message) from error
    try:
        return lance.dataset(uri, version=version, storage_options=dict(storage_options) or None)
    except (ValueError, OSError, RuntimeError) as error:
        what = f" at version {version}" if version is not None else ""
        raise SourceError(f"{uri}: there is no Lance table{what} that can be read: {first_words(error)}") from error


def _delta(source: Source, storage_options: Mapping[str, str], untrusted: bool) -> Listing:
    """The newest commit of its log, or the one that `versionAsOf` asks for."""
    commits: dict[int, Found] = {}
    for found in _found(f"{source['path'].rstrip('/')}/_delta_log", storage_options, untrusted):
        name = _COMMIT.fullmatch(found.name)
        if name is not None and (name.group(2) == "json" or int(name.group(1)) not in commits):
            commits[int(name.group(1))] = found
    if not commits:
        raise SourceError(f"{source['path']}: there is no commit in _delta_log, so it is no Delta table")
    options = {key.lower(): value for key, value in (source.get("options") or {}).items()}
    asked = options.get("versionasof", "")
    version = int(asked) if asked.isdecimal() else max(commits)
    commit = commits.get(version)
    stamp = [commit.size, commit.stamp] if commit is not None else []
    return Listing(digest(["delta", version, stamp, options.get("timestampasof")]), version=version)


def _stated(source: Source, storage_options: Mapping[str, str], untrusted: bool) -> Listing:
    stated = {key: source[key] for key in (*_STATED[source["format"]], "token") if key in source}
    views = {
        name: list_source(view, opening(view, storage_options), untrusted)
        for name, view in sorted((source.get("views") or {}).items())
    }
    digests = {name: found.digest for name, found in views.items()}
    return Listing(digest([source["format"], stated, digests]), views=views)


def changes(listing: Listing, source: Source, storage_options: Mapping[str, str]) -> list[str]:
    """What of the listing is another thing by now, or gone, by name. What came since does not count. Raises
    SourceError."""
    match source["format"]:
        case format_ if format_ in FILE_FORMATS:
            there = {file.uri: file.listed for file in list_source(source, storage_options).files}
            return [file.uri for file in listing.files if there.get(file.uri) != file.listed]
        case "lance":
            again = list_source({**source, "version": listing.version}, storage_options)
            return [] if again.digest == listing.digest else [f"version {listing.version} of {source['path']}"]
        case _:
            pairs = [(found, source["views"][name]) for name, found in listing.views.items()]
            return [what for found, view in pairs for what in changes(found, view, opening(view, storage_options))]


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
