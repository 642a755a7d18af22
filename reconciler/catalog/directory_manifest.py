"""`__manifest`: read in one scan, written by compare-and-swap.

Edits of concurrent callers are committed together by whichever caller comes first (group commit): one fresh scan, the
conditions of every edit checked against it in turn, one commit of the whole table that fails if anybody else committed
since that scan. So every condition (parent exists, name is free, namespace is empty) holds at the moment of the commit,
also against other processes. pylance writes `__manifest` in the same way. Rows that nobody edited are carried over as
they are, columns we do not know included.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.catalog.directory_rows import Row, Rows
from reconciler.catalog.fence import may_write
from reconciler.catalog.lance_dataset import FILE_VERSION, Datasets
from reconciler.catalog.lance_errors import clean, is_conflict, to_catalog_error, translated
from reconciler.catalog.lance_remains import had_versions, has_data, has_versions
from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError, Code

MANIFEST = "__manifest"
_COLUMNS = ("object_id", "object_type", "location", "metadata")
_ATTEMPTS = 12
_BIRTH = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds to wait, in turn, for the first version of a `__manifest` that already has data files."""

_NO_WAY = (Code.PERMISSION_DENIED, Code.UNAUTHENTICATED)

Edit = Callable[[dict[str, Row]], None]
"""Changes the rows in place, or raises CatalogError and leaves them as they are."""


@dataclass(slots=True)
class _Pending:
    edit: Edit
    done: bool = False
    error: CatalogError | None = None


@dataclass(slots=True)
class _Scan:
    """One scan that callers wait for together."""

    rows: Rows = field(default_factory=dict)
    error: CatalogError | None = None
    finished: bool = False


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A version of `__manifest`, taken apart. Data files have random names, so a version of the same number in a
    `__manifest` that somebody made anew is never taken for this one."""

    version: int
    files: tuple[str, ...]
    table: Any
    rows: dict[str, Row]


class Manifest:
    def __init__(self, storage: Storage, datasets: Datasets) -> None:
        self._storage = storage
        self._datasets = datasets
        self._uri = storage.uri(MANIFEST)
        self._pending: list[_Pending] = []
        self._writing = False
        self._waiting: _Scan | None = None
        self._scanning = False
        self._changed = threading.Condition()
        self._last: _Loaded | None = None

    def rows(self) -> Rows:
        """All rows now. A scan that starts after this call serves every caller that waits, an older one nobody."""
        with self._changed:
            if self._waiting is None:
                self._waiting = _Scan()
            mine = self._waiting
            while not mine.finished and self._scanning:
                self._changed.wait()
            if not mine.finished:
                self._scanning, self._waiting = True, None
        if not mine.finished:
            self._run(mine)
        if mine.error is not None:
            raise mine.error
        return mine.rows

    def _run(self, scan: _Scan) -> None:
        try:
            scan.rows = self._load()[2]
        except CatalogError as error:
            scan.error = error
        except BaseException as error:
            scan.error = to_catalog_error(error, f"read {self._uri}", write=False)
        finally:
            with self._changed:
                scan.finished = True
                self._scanning = False
                self._changed.notify_all()

    def _load(self, again: bool = False) -> tuple[Any, Any, dict[str, Row]]:
        """The dataset (None: there is none yet), its table, its rows by id. The latest version is always asked for;
        what is in it is only read again when it is another one than last time."""
        self._storage.check_open(MANIFEST)
        try:
            dataset = self._datasets.open(self._uri)
            self._datasets.stats.count("opens", -1)
        except CatalogError as error:
            self._datasets.stats.count("opens", -1)
            if error.retryable or error.code in _NO_WAY:
                raise  # The way to it is broken, not the folder.
            if error.code is not Code.TABLE_NOT_FOUND:
                raise CatalogError(error.code, self._broken(error.message)) from error
            if again:
                raise CatalogError(Code.INTERNAL, self._broken("no version of it can be opened")) from error
            self._datasets.stats.count("manifest_scans")
            return self._none()
        files = _files(dataset)
        last = self._last
        if last is not None and (last.version, last.files) == (dataset.version, files):
            return dataset, last.table, last.rows
        self._datasets.stats.count("manifest_scans")
        for folder in ("data", "_deletions"):
            self._storage.check_files(f"{MANIFEST}/{folder}")
        try:
            table = dataset.to_table()
            columns = [table.column(name).to_pylist() for name in _COLUMNS]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            failed = to_catalog_error(error, f"read {self._uri}", write=False)
            if failed.retryable or failed.code in _NO_WAY:
                raise failed from error  # The way to it is broken, not the folder.
            raise CatalogError(Code.INTERNAL, self._broken(clean(str(error)))) from error
        rows = {key: Row(key, kind, place, notes, key) for key, kind, place, notes in zip(*columns, strict=True)}
        self._last = _Loaded(dataset.version, files, table, rows)
        return dataset, table, rows

    def _none(self) -> tuple[Any, Any, dict[str, Row]]:
        """No version. That is a `__manifest` nobody finished making (a first write under way, or one that was killed),
        and the catalog is empty, unless there are traces of rows: then the versions may just be coming, or are lost."""
        if not self._storage.list(MANIFEST).folders:
            return None, None, {}
        for wait in (*_BIRTH, None):
            traces = had_versions(self._storage, MANIFEST) or has_data(self._storage, MANIFEST)
            if has_versions(self._storage, MANIFEST):
                return self._load(again=True)
            if not traces:
                return None, None, {}
            if wait is not None:
                time.sleep(wait)
        raise CatalogError(
            Code.INTERNAL, self._broken("the folder holds data files or transactions, but no dataset version")
        )

    def _broken(self, why: str) -> str:
        return (
            f"{self._uri} cannot be read: {why}. Nothing can be said about this catalog until it is repaired: "
            "restore the folder from a backup, or check out an older version of it with pylance"
        )

    def edit(self, edit: Edit) -> None:
        """Returns when the edit is committed. Raises what the edit raises, or why the commit failed."""
        mine = _Pending(edit)
        with self._changed:
            self._pending.append(mine)
            while not mine.done and self._writing:
                self._changed.wait()
            if not mine.done:
                self._writing = True
                batch, self._pending = self._pending, []
        if not mine.done:
            self._lead(batch)
        if mine.error is not None:
            raise mine.error

    def _lead(self, batch: list[_Pending]) -> None:
        failure: CatalogError | None = None
        try:
            self._commit_batch(batch)
        except CatalogError as error:
            failure = error
        except BaseException as error:
            failure = to_catalog_error(error, f"write {self._uri}", write=True)
            failure.unknown_outcome = True
        finally:
            with self._changed:
                for pending in batch:
                    if pending.error is None:
                        pending.error = failure
                    pending.done = True
                self._writing = False
                self._changed.notify_all()

    def _commit_batch(self, batch: list[_Pending]) -> None:
        for attempt in range(_ATTEMPTS):
            dataset, table, before = self._load()
            rows = dict(before)
            for pending in batch:
                pending.error = None
                try:
                    pending.edit(rows)
                except CatalogError as error:
                    pending.error = error
            if rows == before:
                return
            try:
                self._commit(dataset, table, before, rows)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                if not is_conflict(error) and "already exists" not in str(error):
                    raise to_catalog_error(error, f"write {self._uri}", write=True) from error
                time.sleep(random.uniform(0, 0.005 * 2 ** min(attempt, 6)))
                continue
            return
        raise CatalogError(
            Code.CONCURRENT_MODIFICATION, f"{self._uri} is being changed by others all the time: run again"
        )

    def _commit(self, dataset: Any, table: Any, before: Rows, rows: Rows) -> None:
        """The whole table, accepted by lance only if `dataset` is still the latest version."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from lance import LanceDataset, LanceOperation
        from lance.fragment import write_fragments

        if dataset is None:
            dataset = self._create()
            table = dataset.schema.empty_table()
        changed = [row for key, row in rows.items() if before.get(key) != row]
        gone = [key for key in before if rows.get(key) != before[key]]
        kept = table.filter(pc.invert(pc.is_in(table["object_id"], pa.array(gone, pa.string())))) if gone else table
        if kept.num_rows + len(changed) != table.num_rows - len(gone) + len(changed):
            raise CatalogError(Code.INTERNAL, f"{self._uri} has two rows with one object_id: repair it first")
        new = pa.Table.from_pylist(_values(changed, table, set(gone)), schema=table.schema)
        options = self._datasets.storage_options
        whole = pa.concat_tables([kept, new]).combine_chunks()
        fragments = write_fragments(
            whole,
            self._uri,
            schema=table.schema,
            mode="overwrite",
            data_storage_version=dataset.data_storage_version,
            storage_options=options,
        )
        may_write()
        done = LanceDataset.commit(
            dataset,
            LanceOperation.Overwrite(table.schema, fragments),
            read_version=dataset.version,
            max_retries=0,
            storage_options=options,
        )
        self._datasets.stats.count("writes")
        origins = {key: replace(row, origin=key) for key, row in rows.items() if before.get(key) is not row}
        self._last = _Loaded(done.version, _files(done), whole, {**rows, **origins})

    def _create(self) -> Any:
        import lance

        may_write()
        with translated(f"create {self._uri}", write=True):
            return lance.write_dataset(
                [],
                self._uri,
                schema=manifest_schema(),
                mode="create",
                data_storage_version=FILE_VERSION,
                storage_options=self._datasets.storage_options,
            )


def _files(dataset: Any) -> tuple[str, ...]:
    return tuple(file.path for fragment in dataset.get_fragments() for file in fragment.data_files())


def _values(changed: list[Row], table: Any, gone: set[str]) -> list[dict[str, Any]]:
    """Changed rows keep their values in columns that are not ours."""
    foreign = [name for name in table.column_names if name not in _COLUMNS]
    old: dict[str, dict[str, Any]] = {}
    if foreign and gone:
        for row in table.select(["object_id", *foreign]).to_pylist():
            if row["object_id"] in gone:
                old[row.pop("object_id")] = row
    empty = dict.fromkeys(foreign)
    return [
        {
            "object_id": row.object_id,
            "object_type": row.object_type,
            "location": row.location,
            "metadata": row.metadata,
            **old.get(row.origin or "", empty),
        }
        for row in changed
    ]


def manifest_schema() -> Any:
    """As pylance 14 writes it."""
    import pyarrow as pa

    key = {"lance-schema:unenforced-primary-key:position": "0"}
    return pa.schema(
        [
            pa.field("object_id", pa.string(), nullable=False, metadata=key),
            pa.field("object_type", pa.string(), nullable=False),
            pa.field("location", pa.string()),
            pa.field("metadata", pa.string()),
            pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
        ]
    )
