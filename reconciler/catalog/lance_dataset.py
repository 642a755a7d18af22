"""Reads of Lance datasets, shared by every backend: the dataset is the schema of record."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from reconciler.catalog.lance_data import PLAN_PROPERTY, record_of
from reconciler.catalog.lance_errors import is_missing_dataset, to_catalog_error
from reconciler.catalog.lance_index import read_indexes, recorded_in
from reconciler.catalog.lance_remains import LARGEST_VERSION
from reconciler.catalog.locations import lance_uri
from reconciler.catalog.stats import Stats
from reconciler.catalog.storage import VERSIONS
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import APPLIED_BY_KEY, APPLIED_KEY, OWNER_KEY, RESERVED_PREFIX, DatasetState
from reconciler.regular_files import NotRegular, check_regular, kind_of

FILE_VERSION: Final = "2.2"
"""The data file version of what we create: the first that holds every type of the grammar."""


_MANIFEST = ".manifest"
_REFS, _KINDS_OF_REFS = "_refs", ("tags", "branches")
LARGEST_REF = 1 << 20
_DIGITS = 20


class Datasets:
    """Opens datasets with one shared Session: a second open of an unchanged dataset costs a tenth of a millisecond."""

    def __init__(self, storage_options: Mapping[str, str] | None = None, stats: Stats | None = None) -> None:
        self.storage_options = dict(storage_options) if storage_options else None
        self.stats = stats or Stats()

    @cached_property
    def session(self) -> Any:
        import lance

        return lance.Session()  # type: ignore[attr-defined]

    @cached_property
    def _open(self) -> Any:
        import lance

        return lance.dataset

    def open(self, uri: str) -> Any:
        """The latest version. TABLE_NOT_FOUND when there is no dataset: the caller lists before it believes that."""
        self.stats.count("opens")
        check_versions(uri)
        try:
            return self._open(uri, storage_options=self.storage_options, session=self.session)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            raise open_error(error, uri) from error

    def state(self, uri: str) -> DatasetState:
        """Raises CatalogError: TABLE_NOT_FOUND as in `open`, anything else when the dataset cannot be understood."""
        return state_of(self.open(uri), uri)


def check_versions(uri: str) -> None:
    """Of a dataset on a local disk: what lance reads first, and its tags, are regular files within a bound.
    It would wait for ever for the writer of a pipe, and read a file of any size. Types come with the listing. Raises
    CatalogError."""
    place = lance_uri(uri)
    if "://" in place:
        return
    folder = f"{place}/{VERSIONS}"
    try:
        if os.path.isdir(f"{place}/{_REFS}"):  # Most tables have no tags.
            for kind in _KINDS_OF_REFS:
                _check_refs(f"{place}/{_REFS}/{kind}")
        with os.scandir(folder) as entries:
            newest = _newest(entry.name for entry in entries if _is_version(entry))
        for name in newest:
            check_regular(f"{folder}/{name}", os.stat(f"{folder}/{name}"), LARGEST_VERSION)
    except (NotRegular, IsADirectoryError) as error:
        raise CatalogError(Code.INVALID_TABLE_STATE, f"the dataset {uri} cannot be read: {error}") from error
    except OSError:
        return  # No versions, or none that this user may see: lance has the words for that.


def _check_refs(folder: str) -> None:
    """Lance reads all of them whenever one is asked for."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.endswith(".json"):
                continue
            with suppress(FileNotFoundError):  # Removed meanwhile.
                check_regular(entry.path, entry.stat(), LARGEST_REF)


def _is_version(entry: os.DirEntry[str]) -> bool:
    if entry.is_file():
        return entry.name.endswith(_MANIFEST)
    try:
        kind = kind_of(os.stat(entry.path).st_mode)
    except FileNotFoundError:
        if not entry.is_symlink():
            return False  # Removed meanwhile.
        kind = "a link to nothing"
    raise NotRegular(entry.path, f"it is {kind}, not the file of a version")


def _newest(names: Iterable[str]) -> set[str]:
    """Lance counts versions down from the largest number, in twenty digits; earlier it counted up."""
    stems = [name[: -len(_MANIFEST)] for name in names]
    down = [stem for stem in stems if len(stem) == _DIGITS]
    up = [stem for stem in stems if stem.isdecimal() and len(stem) < _DIGITS]
    found = {min(down)} if down else set()
    return {stem + _MANIFEST for stem in found | ({max(up, key=int)} if up else set())}


def open_error(error: BaseException, uri: str) -> CatalogError:
    if is_missing_dataset(error):
        return CatalogError(Code.TABLE_NOT_FOUND, f"there is no Lance dataset at {uri}")
    text = str(error).lower()
    if "upgrade" in text or "feature flag" in text or "newer version" in text or "format version" in text:
        return CatalogError(
            Code.UNSUPPORTED,
            f"{uri} was written by a newer version of Lance than this one reads: upgrade pylance",
        )
    translated_error = to_catalog_error(error, f"open the dataset {uri}", write=False)
    if translated_error.code in (Code.TABLE_SCHEMA_VALIDATION_ERROR, Code.TABLE_NOT_FOUND):
        translated_error.code = Code.INTERNAL
    return translated_error


def state_of(dataset: Any, uri: str) -> DatasetState:
    """The dataset as the planner compares it; our own notes are taken out of the user's maps."""
    from reconciler.catalog.arrow_convert import from_arrow_schema

    try:
        fields, schema_metadata = from_arrow_schema(dataset.schema)
        notes = dataset.metadata
        descriptions = dataset.describe_indices()
        rows = dataset.count_rows()
        return DatasetState(
            fields=fields,
            schema_metadata=_users(schema_metadata),
            config=_users(dataset.config()),
            indexes=read_indexes(dataset, descriptions, recorded_in(dataset), rows) if descriptions else (),
            owner=notes.get(OWNER_KEY),
            applied=load_keys(notes.get(APPLIED_KEY)),
            version=dataset.version,
            begun_by=begun_by(dataset) if OWNER_KEY not in notes else None,
            data=record_of(dataset, notes),
            empty=rows == 0,
            rows=rows,
            bytes=_file_bytes(dataset),
            applied_by=notes.get(APPLIED_BY_KEY),
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise to_catalog_error(error, f"read the dataset {uri}", write=False) from error


def _file_bytes(dataset: Any) -> int | None:
    """From the summary of the version, which an early Lance did not write."""
    size = dataset.get_version()["metadata"].get("total_files_size")
    return int(size) if size is not None else None


def begun_by(dataset: Any) -> str | None:
    """The owner whose run wrote this dataset and was cut before it marked it: version 1, no rows, and a transaction
    that names a plan of ours. Empty when the transaction does not name the owner, as in earlier releases."""
    if dataset.version != 1 or dataset.count_rows() != 0:
        return None
    written = next(iter(dataset.get_transactions(1)), None)
    properties = (written.transaction_properties if written is not None else None) or {}
    return str(properties.get(OWNER_KEY, "")) if PLAN_PROPERTY in properties else None


def _users(values: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in values.items() if not k.startswith(RESERVED_PREFIX)} if values else {}


def load_keys(text: str | None) -> tuple[str, ...]:
    """Unreadable counts as none: we then remove nothing that we might not have set."""
    if not text or text == "[]":
        return ()
    try:
        keys = json.loads(text)
    except ValueError:
        return ()
    return tuple(sorted(k for k in keys if isinstance(k, str))) if isinstance(keys, list) else ()


def dump_keys(keys: tuple[str, ...]) -> str:
    return json.dumps(sorted(keys), separators=(",", ":"), ensure_ascii=False)
