"""Moves a table: the files of one version of the source are copied to where the new table is declared, looked at, and
shown by putting the file of that version last; then the dataset is marked as ours. The source is only read.

Every part can be cut and run again. A note beside the files says what is being copied; a file is there complete or not
at all; of two runs that copy at a time, the first to put the version shows it, and both find it. The native clone of
lance is not used: it writes over whatever is there and shows the copy before anybody can look at it. What it is good
for, that no byte leaves the store, holds here too where source and target are one store (`copy_task`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.catalog.base import DataPlace, WriteContext, Written
from reconciler.catalog.lance_data import (
    CLAIM_KEY,
    PLAN_PROPERTY,
    RECORD_KEY,
    STEP_PROPERTY,
    dump_record,
    load_record,
)
from reconciler.catalog.lance_dataset import dump_keys, state_of
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.lance_files import check_rows
from reconciler.catalog.lance_remains import COPYING, Copying, copying, has_versions, is_shown, shown_as
from reconciler.catalog.lance_rows import row_state
from reconciler.catalog.storage import Storage, open_storage
from reconciler.core.fingerprint import fingerprint
from reconciler.core.migrated import as_copied, as_marked
from reconciler.core.text import speed
from reconciler.model.change import MigrateTable
from reconciler.model.data import DataRecord, RowState, migrated_from
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import dotted
from reconciler.model.observed import Detached
from reconciler.model.state import APPLIED_BY_KEY, APPLIED_KEY, OWNER_KEY, DatasetState
from reconciler.pipeline import copy_task
from reconciler.pipeline.claims import committed, opened
from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.jobs import answers
from reconciler.pipeline.manifest_file import (
    detached_name,
    detached_number,
    indexes_in,
    names_of,
    transactions_in,
    with_number,
)
from reconciler.pipeline.origin import source_place
from reconciler.pipeline.session import SparkError
from reconciler.pipeline.verify import Reading, Source, read_tables

ATTEMPTS = 5


def migrate(running: Running, change: MigrateTable, place: DataPlace, context: WriteContext) -> Written:
    folder = open_storage(place.uri, place.storage_options)
    if not has_versions(folder):
        _show(running, change, place, folder)
    return _mark(change, place, folder, context)


def _digest(change: MigrateTable) -> str:
    return migrated_from(change.from_catalog, change.from_ident)


def _show(running: Running, change: MigrateTable, place: DataPlace, folder: Storage) -> None:
    """The copy, complete and looked at; the file of its version comes last."""
    catalog = running.catalogs.get(change.from_catalog)
    origin = source_place(catalog, change.from_catalog, change.from_ident, running.hide)
    dataset, begun = _pinned(change, origin, folder)
    source = open_storage(origin.uri, origin.storage_options)
    try:
        name, manifest = _manifest(source, begun.version)
        _copy(running, _files(source, dataset, manifest), origin, place, begun.doubted)
        if change.checksum:
            _compare(running, Source(origin, begun.version, ()), place, folder, manifest, begun)
    except (CatalogError, SparkError) as error:
        if _is_gone(origin, begun.version):
            raise _removed(change, begun.version) from error
        raise
    running.need_time()
    if not has_versions(folder):  # Another run may have come to its end, with an earlier version.
        folder.replace(COPYING, replace(begun, shown=shown_as(name, manifest)).dumped())
        folder.create(f"_versions/{name}", manifest)  # False: one was quicker this moment, with the same.


# the source


def _pinned(change: MigrateTable, origin: DataPlace, folder: Storage) -> tuple[Any, Copying]:
    """The version that is copied, noted before the first file. A run that goes on, or that runs beside another, takes
    the version that is noted already, as long as the source has it."""
    for _ in range(ATTEMPTS):
        begun = copying(folder)
        known = _still_there(change, origin, begun) if begun is not None else None
        if known is not None and begun is not None:
            return known, begun
        latest = opened(origin)
        _need_as_planned(change, origin, latest)
        new = Copying(_digest(change), int(latest.version))
        if begun is not None:
            folder.replace(COPYING, new.dumped())
        elif not folder.create(COPYING, new.dumped()):
            continue
        return latest, new
    raise CatalogError(Code.CONCURRENT_MODIFICATION, f"other runs begin to copy to {folder.root} all the time")


def _still_there(change: MigrateTable, origin: DataPlace, begun: Copying) -> Any:
    if begun.digest != _digest(change):
        return None
    try:
        dataset = opened(origin, begun.version)
        _need_as_planned(change, origin, dataset)
    except CatalogError:
        return None
    return dataset


def _is_gone(origin: DataPlace, version: int) -> bool:
    try:
        opened(origin, version)
    except CatalogError as error:
        return error.code == Code.TABLE_NOT_FOUND
    return False


def _removed(change: MigrateTable, version: int) -> CatalogError:
    return CatalogError(
        Code.CONCURRENT_MODIFICATION,
        f"version {version} of {change.from_catalog} {dotted(change.from_ident)} was removed while it was copied: old "
        "versions were cleaned up there. The table does not show the copy. Apply again: it copies the newest version; "
        "a tag on that one keeps it meanwhile",
    )


def _need_as_planned(change: MigrateTable, origin: DataPlace, dataset: Any) -> None:
    told = f"{change.from_catalog} {dotted(change.from_ident)}"
    check_rows(origin.uri)
    with translated(f"read the dataset {origin.uri}"):
        claimed, bases = CLAIM_KEY in dataset.metadata, dataset.base_paths()
    if claimed:
        raise CatalogError(
            Code.CONCURRENT_MODIFICATION,
            f"a run is filling {told}, or was cut while it did: it is copied when that has ended, or was ended by "
            "applying the manifest of that table again",
        )
    if bases:
        raise CatalogError(
            Code.UNSUPPORTED,
            f"{told} uses files of other datasets (it is a shallow clone or a branch): copy it with lance's deep_clone "
            "first, and move that",
        )
    if _print(state_of(dataset, origin.uri)) != _print(as_copied(change)):
        raise CatalogError(
            Code.CONCURRENT_MODIFICATION, f"{told} has changed since the plan was made. Make a new plan."
        )


def _print(state: DatasetState) -> str:
    """Of what we noted about its rows only the source counts."""
    data = DataRecord(state.data.digest) if state.data is not None else None
    return fingerprint(Detached("", replace(state, data=data)))


def _manifest(source: Storage, version: int) -> tuple[str, bytes]:
    for name in names_of(version):
        manifest = source.read(f"_versions/{name}")
        if manifest is not None:
            return name, manifest
    raise CatalogError(
        Code.UNSUPPORTED, f"{source.root} does not keep its versions beside its data: version {version} is not there"
    )


def _files(source: Storage, dataset: Any, manifest: bytes) -> list[str]:
    """Everything that this version uses, and nothing else. Large files first: they are what takes time."""
    with translated(f"list the files of {source.root}"):
        fragments = [f.metadata for f in dataset.get_fragments()]
        data = [(f, f.file_size_bytes or 0) for m in fragments for f in (*m.files, *(o.data_file for o in m.overlays))]
    sizes = {f.path: size for f, size in data}
    deletions = {m.deletion_file.path(m.id) for m in fragments if m.deletion_file is not None}
    # What stands in a folder named as a data file is that file's: large values that it does not hold itself.
    beside = {path.removesuffix(".lance") for path in sizes}
    there = source.list("data")
    lost = sorted(set(sizes) - set(there.files))
    if lost:
        raise CatalogError(Code.INVALID_TABLE_STATE, f"{source.root} is damaged: data/{lost[0]} is missing")
    found = [f"data/{path}" for path in sorted(sizes, key=lambda p: (-sizes[p], p))]
    found += [f"data/{n}/{p}" for n in sorted(beside & set(there.folders)) for p in source.list_deep(f"data/{n}")]
    found += sorted(deletions)
    used = indexes_in(manifest, source.list("_indices").folders)
    found += [
        f"_indices/{name}/{path}" for name in sorted(used) for path in sorted(source.list_deep(f"_indices/{name}"))
    ]
    history = transactions_in(manifest) & set(source.list("_transactions").files)
    return found + [f"_transactions/{name}" for name in sorted(history)]


# the copy


def _copy(running: Running, files: list[str], origin: DataPlace, place: DataPlace, anew: bool) -> None:
    spark, slots = running.spark()
    sides = {"source": _side(origin), "target": _side(place)}
    units = [{"key": number, "path": path, "anew": anew, **sides} for number, path in enumerate(files)]
    size = 0
    errors = []
    for done, answer in enumerate(answers(spark, units, slots, copy_task.copy, stopped=running.stopped), 1):
        running.need_time()
        if "error" in answer:
            errors.append(str(answer["error"]))
            continue
        size += int(answer["bytes"])
        running.show(_pace(done, len(files), size))
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise CatalogError(Code.INVALID_TABLE_STATE, f"{sorted(errors)[0]}{more}")


def _side(place: DataPlace) -> dict[str, Any]:
    return {"uri": place.uri, "options": dict(place.storage_options)}


def _pace(done: int, of: int, size: int) -> Any:
    return lambda seconds: f"{done}/{of} files{speed(size, seconds)}, {seconds:.0f} s"


def _compare(
    running: Running, source: Source, place: DataPlace, folder: Storage, manifest: bytes, begun: Copying
) -> None:
    """Reads both, row by row. The copy is opened as a version that no reader of the table sees."""
    spark, _ = running.spark()
    number = detached_number()
    path = f"_versions/{detached_name(number)}"
    folder.create(path, with_number(manifest, number))
    try:
        want, got = read_tables(spark, [source, Source(place, number, ())], lambda pace: running.show(pace.line))
    finally:
        folder.delete(path)
    if want.error is not None:
        raise CatalogError(Code.INVALID_TABLE_STATE, f"the source {source.place.uri} cannot be read: {want.error}")
    if got.error is None and (got.rows, got.checksum) == (want.rows, want.checksum):
        return
    folder.replace(COPYING, Copying(begun.digest, begun.version, doubted=True).dumped())
    raise CatalogError(
        Code.INVALID_TABLE_STATE,
        f"the copy differs from the source, and the table does not show it: {_told(want)} in {source.place.uri}, "
        f"{_told(got)} in {place.uri}; applying again copies every file anew",
    )


def _told(reading: Reading) -> str:
    return reading.error or f"{reading.rows} rows with checksum {reading.checksum}"


# the marks


def _mark(change: MigrateTable, place: DataPlace, folder: Storage, context: WriteContext) -> Written:
    """One commit, and then the note that a copy was under way goes. Who finds the marks has nothing to do."""
    digest = _digest(change)
    for _ in range(ATTEMPTS):
        begun = copying(folder)  # Before the dataset is opened: it goes when the marks are there.
        dataset = opened(place)
        record = dataset.metadata.get(RECORD_KEY)
        if record is not None and load_record(record).digest == digest:
            folder.delete(COPYING)
            return Written(None, int(dataset.version), False)
        if begun is None or begun.digest != digest or not is_shown(folder, begun):
            raise CatalogError(
                Code.TABLE_ALREADY_EXISTS, f"there is a dataset at {place.uri} already; it is left as it is"
            )
        _commit(place, dataset, _notes(change, dataset, _shown_rows(place, begun.version)), context)
    raise CatalogError(Code.CONCURRENT_MODIFICATION, f"{place.uri} is being written to all the time: apply again")


def _shown_rows(place: DataPlace, version: int) -> RowState | None:
    """Of the version that was copied: others may have added rows since it is shown. None when it is not there."""
    try:
        return row_state(opened(place, version))
    except CatalogError as error:
        if error.code != Code.TABLE_NOT_FOUND:
            raise
        return None


def _notes(change: MigrateTable, dataset: Any, rows: RowState | None) -> dict[str, str | None]:
    record = as_marked(change).data
    assert isinstance(record, DataRecord)
    record = replace(record, rows=rows)
    notes: dict[str, str | None] = {RECORD_KEY: dump_record(record), OWNER_KEY: change.owner}
    if change.applied or APPLIED_KEY in dataset.metadata:
        notes[APPLIED_KEY] = dump_keys(change.applied)
    return notes


def _commit(place: DataPlace, dataset: Any, notes: Mapping[str, str | None], context: WriteContext) -> None:
    """What came of it is read again: another run may have been quicker, an answer may be lost."""
    from lance import LanceOperation

    if context.applied_by:
        notes = {**notes, APPLIED_BY_KEY: context.applied_by}
    operation = LanceOperation.UpdateConfig(table_metadata_updates=LanceOperation.UpdateMap(dict(notes)))
    names = {PLAN_PROPERTY: context.plan_id, STEP_PROPERTY: context.step_id}
    try:
        with translated(f"mark {place.uri} as ours", write=True):
            committed(place, operation, int(dataset.version), names)
    except CatalogError as error:
        if error.code != Code.CONCURRENT_MODIFICATION and not error.unknown_outcome:
            raise
