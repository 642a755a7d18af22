"""Writes to Lance datasets, shared by every backend. One change is one commit wherever lance allows it.

Every commit that can carry them has the plan and step id in its transaction properties. Nothing here ever overwrites.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from reconciler.catalog.arrow_convert import (
    from_arrow_schema,
    to_arrow_field,
    to_arrow_schema,
    to_arrow_type,
)
from reconciler.catalog.base import WriteContext, Written
from reconciler.catalog.fence import may_write
from reconciler.catalog.lance_data import renewed_record
from reconciler.catalog.lance_dataset import FILE_VERSION, Datasets, begun_by, dump_keys
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.lance_files import check_rows
from reconciler.catalog.lance_index import (
    INDEXES_KEY,
    Recorded,
    build,
    built_again,
    built_only_over_rows,
    dump_record,
    known_type,
    last_again,
    moved_builds,
    recorded_in,
    swap,
    with_build,
)
from reconciler.model.change import (
    AddColumns,
    AdoptTable,
    AlterColumns,
    CreateDataset,
    CreateIndex,
    DropColumns,
    DropIndex,
    RefreshIndex,
    ReplaceIndex,
    UpdateDataset,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import APPLIED_BY_KEY, APPLIED_KEY, OWNER_KEY, Index

DatasetChange = (
    UpdateDataset | AddColumns | AlterColumns | DropColumns | CreateIndex | ReplaceIndex | RefreshIndex | DropIndex
)


def create_dataset(datasets: Datasets, uri: str, change: CreateDataset, context: WriteContext) -> Written:
    """The empty dataset, then config and our notes in one commit. A dataset that is there already is only finished
    when it is exactly what an interrupted attempt of this owner leaves: version 1, no rows, this schema."""
    import lance

    schema = to_arrow_schema(change.fields, change.schema_metadata)
    with translated(f"create the dataset {uri}", write=True):
        may_write()
        try:
            dataset = lance.write_dataset(
                [],
                uri,
                schema=schema,
                mode="create",
                data_storage_version=FILE_VERSION,
                storage_options=datasets.storage_options,
                transaction_properties={**_properties(context), OWNER_KEY: change.owner},
                session=datasets.session,
            )
            datasets.stats.count("writes")
        except OSError as error:
            if "already exists" not in str(error):
                raise
            dataset = _unfinished(datasets, uri, schema, change.owner)
        done = _commit(
            dataset,
            datasets,
            context,
            config=dict(change.config),
            notes={OWNER_KEY: change.owner, APPLIED_KEY: dump_keys(change.applied)},
        )
    _verify(done, uri, schema, change)
    return Written(None, done.version)


def _unfinished(datasets: Datasets, uri: str, schema: Any, owner: str) -> Any:
    dataset = datasets.open(uri)
    if begun_by(dataset) in ("", owner) and _same_schema(dataset.schema, schema):
        return dataset
    raise CatalogError(Code.TABLE_ALREADY_EXISTS, f"there is a dataset at {uri} already; it is left as it is")


def _same_schema(live: Any, wanted: Any) -> bool:
    return from_arrow_schema(live) == from_arrow_schema(wanted)


def _verify(dataset: Any, uri: str, schema: Any, change: CreateDataset) -> None:
    notes, config = dataset.metadata, dataset.config()
    kept = all(config.get(k) == v for k, v in change.config.items())
    if not (_same_schema(dataset.schema, schema) and kept and notes.get(OWNER_KEY) == change.owner):
        raise CatalogError(
            Code.INTERNAL, f"the dataset at {uri} is not what was asked for after it was created: compare it by hand"
        )


def apply_to_dataset(datasets: Datasets, uri: str, change: DatasetChange, context: WriteContext) -> Written:
    """Opens the latest version, tags it if asked, makes the change."""
    dataset = datasets.open(uri)
    before = dataset.version
    ours = (change.owner,) if isinstance(change, UpdateDataset) else ()
    context.need_mark(dataset.metadata.get(OWNER_KEY), uri, *ours)
    with (
        _no_tag_for_nothing(dataset, context.tag),
        translated(f"{_named(change)} of {uri}", write=True),
    ):
        if isinstance(change, AlterColumns | CreateIndex | ReplaceIndex | RefreshIndex):
            check_rows(uri)
        columns = isinstance(change, AlterColumns | DropColumns)
        known = {i.name for i in dataset.describe_indices()} if columns else set()
        keep_version(dataset, context.tag, context.begun)
        may_write()
        match change:
            case UpdateDataset():
                dataset = _update(dataset, datasets, change, context)
            case AddColumns():
                _add_columns(dataset, change)
            case AlterColumns():
                dataset = _alter(dataset, datasets, change, context)
            case DropColumns():
                _need_data_left(dataset, change.paths)
                dataset.drop_columns(list(change.paths))
            case CreateIndex():
                if _has_index(dataset, change.index.name):
                    raise CatalogError(Code.TABLE_INDEX_ALREADY_EXISTS, f"index {change.index.name} exists already")
                dataset = put_index(dataset, datasets, uri, change.index, context)
            case ReplaceIndex() | RefreshIndex():
                if not _has_index(dataset, change.index.name):
                    raise CatalogError(Code.TABLE_INDEX_NOT_FOUND, f"there is no index {change.index.name}")
                live = built_again(dataset, change.index)
                again = change.again if isinstance(change, ReplaceIndex) else live or 0
                # Another run of this replace may have been faster.
                if isinstance(change, RefreshIndex) or live != change.again:
                    dataset = put_index(dataset, datasets, uri, change.index, context, again)
            case DropIndex():
                noted = recorded_in(dataset).get(change.name)
                dataset.drop_index(change.name)
                dataset = _forget_index(datasets, uri, change.name, noted, context)
        datasets.stats.count("writes")
        if isinstance(change, AddColumns | AlterColumns | DropColumns):
            _sign(datasets, uri, known, int(dataset.version), context)
        return Written(before, dataset.latest_version)


def _alter(dataset: Any, datasets: Datasets, change: AlterColumns, context: WriteContext) -> Any:
    from reconciler.catalog.lance_cast import merge_of_cast, need_finite

    need_finite(dataset, change)
    if not change.writes_anew:
        dataset.alter_columns(*(_alteration(c) for c in change.columns))
        return dataset
    return _committed(dataset, datasets, context, merge_of_cast(dataset, change), dataset.metadata.get(OWNER_KEY))


def _sign(datasets: Datasets, uri: str, known: set[str], made: int, context: WriteContext) -> None:
    """Commits that lance makes of column changes hold no notes, as that of version `made`: the run's name follows in
    one of its own, with the record of the rows, which have other files now, and without what we noted of indexes that
    went with a column. The change has landed: that it cannot be signed is no failure."""
    with contextlib.suppress(Exception):
        dataset = datasets.open(uri)
        notes = {**renewed_record(dataset, {made}), **_indexes_left(dataset, known)}
        if context.applied_by or notes:
            _commit(dataset, datasets, context, notes=notes)


def _indexes_left(dataset: Any, known: set[str]) -> dict[str, str]:
    """Our record without the indexes of `known` that are gone, where it has any of them."""
    gone = known - {i.name for i in dataset.describe_indices()} if known else known
    record = recorded_in(dataset) if gone else {}
    kept = {name: index for name, index in record.items() if name not in gone}
    return {INDEXES_KEY: dump_record(kept)} if len(kept) < len(record) else {}


def _named(change: DatasetChange) -> str:
    """For messages: with the columns whose values may be the reason."""
    columns = f" {', '.join(c.path for c in change.columns)}" if isinstance(change, AlterColumns) else ""
    return change.action.replace("_", " ") + columns


def keep_version(dataset: Any, tag: str | None, begun: bool) -> None:
    """Tags the version before the change. `begun`: a tag of that name stays, because it holds the version before the
    first attempt."""
    if tag is not None and not (begun and _tagged(dataset, tag) is not None):
        set_tag(dataset, tag, dataset.version)


def set_tag(dataset: Any, tag: str, version: int) -> None:
    """A tag of that name may be of an earlier time that the same plan was applied: what it held gets a tag of its own,
    and expires in its time."""
    known = _tagged(dataset, tag)
    if known == version:
        return
    may_write()
    if known is None:
        _create_tag(dataset, tag, version)
    else:
        _create_tag(dataset, f"{tag}-v{known}", known)
        dataset.tags.update(tag, version)


def _tagged(dataset: Any, tag: str) -> int | None:
    """The version of one tag. A listing reads all of them, and another run may delete one meanwhile."""
    try:
        return int(dataset.tags.get_version(tag))
    except ValueError as error:
        if "not found" not in str(error).lower():
            raise
        return None


def _create_tag(dataset: Any, tag: str, version: int) -> None:
    try:
        dataset.tags.create(tag, version)
    except ValueError as error:
        if "already exists" not in str(error):
            raise


@contextmanager
def _no_tag_for_nothing(dataset: Any, tag: str | None) -> Iterator[None]:
    """Takes the tag away again after a change that failed for sure, if the tagged version is still the latest: there is
    nothing to come back from, and a tag keeps lance from cleaning up. Its name says that it is this step's own."""
    try:
        yield
    except CatalogError as error:
        if tag is not None and not error.unknown_outcome:
            with contextlib.suppress(Exception):  # The failure itself is what has to be told.
                if _tagged(dataset, tag) == dataset.latest_version:
                    may_write()
                    dataset.tags.delete(tag)
        raise


def _update(dataset: Any, datasets: Datasets, change: UpdateDataset, context: WriteContext) -> Any:
    notes: dict[str, str | None] = {OWNER_KEY: change.owner, APPLIED_KEY: dump_keys(change.applied)}
    ids = field_ids(dataset) if change.fields else {}
    fields = {_only(ids, path, dataset.uri): dict(values) for path, values in change.fields.items() if values}
    return _commit(dataset, datasets, context, dict(change.config), notes, dict(change.schema_metadata), fields)


def adopt_dataset(datasets: Datasets, uri: str, change: AdoptTable, context: WriteContext) -> Written:
    """Our notes in the dataset's metadata; no commit when they are there already."""
    dataset = datasets.open(uri)
    before = dataset.version
    context.need_mark(dataset.metadata.get(OWNER_KEY), uri, change.marks.owner or "")
    notes: dict[str, str | None] = {OWNER_KEY: change.marks.owner, APPLIED_KEY: dump_keys(change.applied)}
    known = dataset.metadata
    with translated(f"adopt {uri}", write=True):
        if any(known.get(key) != value for key, value in notes.items()):
            dataset = _commit(dataset, datasets, context, notes=notes)
    return Written(before, dataset.version)


def _commit(
    dataset: Any,
    datasets: Datasets,
    context: WriteContext,
    config: Mapping[str, str | None] | None = None,
    notes: Mapping[str, str | None] | None = None,
    schema: Mapping[str, str | None] | None = None,
    fields: Mapping[int, Mapping[str, str | None]] | None = None,
) -> Any:
    """Config, dataset metadata, schema metadata and field metadata in one commit; None removes a key."""
    from lance import LanceOperation

    if context.applied_by:
        notes = {**(notes or {}), APPLIED_BY_KEY: context.applied_by}
    update = LanceOperation.UpdateMap
    operation = LanceOperation.UpdateConfig(
        config_updates=update(dict(config)) if config else None,
        table_metadata_updates=update(dict(notes)) if notes else None,
        schema_metadata_updates=update(dict(schema)) if schema else None,
        field_metadata_updates={i: update(dict(values)) for i, values in fields.items()} if fields else None,
    )
    datasets.stats.count("writes")
    return _committed(dataset, datasets, context, operation)


def _committed(
    dataset: Any, datasets: Datasets, context: WriteContext, operation: Any, owner: str | None = None
) -> Any:
    from lance import LanceDataset
    from lance.dataset import Transaction

    properties = {**_properties(context), **({OWNER_KEY: owner} if owner is not None else {})}
    transaction = Transaction(read_version=dataset.version, operation=operation, transaction_properties=properties)
    may_write()
    return LanceDataset.commit(dataset, transaction, storage_options=datasets.storage_options)


def _has_index(dataset: Any, name: str) -> bool:
    return any(description.name == name for description in dataset.describe_indices())


def put_index(dataset: Any, datasets: Datasets, uri: str, index: Index, context: WriteContext, again: int = 0) -> Any:
    """Builds the index, records the build, and swaps it in for the one of its name, if there is one. The record comes
    first: it names a segment that is not live yet, so it says nothing until the swap."""
    known_type(index)
    if built_only_over_rows(dataset, index):
        dataset = _put_over_nothing(dataset, datasets, uri, index)
        segments = [str(s.uuid) for d in dataset.describe_indices() if d.name == index.name for s in d.segments]
        record = with_build(recorded_in(dataset), index, segments[0], 0, again)
        return _commit(dataset, datasets, context, notes={INDEXES_KEY: dump_record(record)})
    made, last = build(dataset, index)
    latest = datasets.open(uri)
    record = with_build(recorded_in(latest), index, str(made.uuid), dataset.count_rows(), again, last)
    _commit(latest, datasets, context, notes={INDEXES_KEY: dump_record(record)})
    may_write()
    return swap(dataset, index.name, made, _properties(context), datasets.storage_options)


def _put_over_nothing(dataset: Any, datasets: Datasets, uri: str, index: Index) -> Any:
    """Lance replaces an index in one commit only on the same column. On another one it goes first: it covers no row."""
    if any(d.name == index.name and [*d.field_names] != [index.column] for d in dataset.describe_indices()):
        may_write()
        dataset.drop_index(index.name)
        dataset = datasets.open(uri)
    may_write()
    dataset.create_scalar_index(index.column, index.type.upper(), name=index.name, replace=True, **index.built_with)
    return dataset


def record_builds(datasets: Datasets, uri: str, builds: Mapping[str, tuple[Index, Sequence[str]]]) -> None:
    """Of indexes that were built elsewhere, and are live: name -> definition and segments."""
    if not builds:
        return
    with translated(f"record the indexes of {uri}", write=True):
        dataset = datasets.open(uri)
        record = recorded_in(dataset)
        for index, live in builds.values():
            record = with_build(record, index, live[0], dataset.count_rows(), last_again(record, index))
        _commit(dataset, datasets, WriteContext(), notes={INDEXES_KEY: dump_record(record)})


def carry_over_builds(datasets: Datasets, uri: str, before: Any) -> None:
    """After a compaction, which gives an index other segments: what is recorded about those of `before` is about the
    same index."""
    with translated(f"record the indexes of {uri}", write=True):
        dataset = datasets.open(uri)
        record = recorded_in(dataset)
        moved = moved_builds(record, before, dataset)
        if moved != record:
            _commit(dataset, datasets, WriteContext(), notes={INDEXES_KEY: dump_record(moved)})


def _forget_index(datasets: Datasets, uri: str, name: str, noted: Recorded | None, context: WriteContext) -> Any:
    """`noted`: of the index that was dropped. Anything else under its name is another run's, which is about to make the
    index anew."""
    dataset = datasets.open(uri)
    record = recorded_in(dataset)
    if noted is None or record.get(name) != noted:
        return dataset
    del record[name]
    return _commit(dataset, datasets, context, notes={INDEXES_KEY: dump_record(record)})


def _add_columns(dataset: Any, change: AddColumns) -> None:
    for field in change.fields:
        if not field.nullable:
            raise CatalogError(
                Code.TABLE_SCHEMA_VALIDATION_ERROR,
                f"column {field.name!r} cannot be added as NOT NULL: existing rows would have no value",
            )
        if field.name in dataset.schema.names:
            raise CatalogError(Code.TABLE_SCHEMA_VALIDATION_ERROR, f"there is a column {field.name!r} already")
    dataset.add_columns([to_arrow_field(f) for f in change.fields])


def _alteration(column: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"path": column.path}
    if column.rename is not None:
        result["name"] = column.rename
    if column.type is not None:
        result["data_type"] = to_arrow_type(column.type)
    if column.nullable is not None:
        result["nullable"] = column.nullable
    return result


def _need_data_left(dataset: Any, paths: Sequence[str]) -> None:
    """Lance cannot read rows of which no data file is left: a column that was only ever null has none."""
    ids = field_ids(dataset)
    gone = {i for path in ids if any(path == p or path.startswith(p + ".") for p in paths) for i in ids[path]}
    kept = {i for several in ids.values() for i in several} - gone
    for fragment in dataset.get_fragments():
        if not any(kept.intersection(file.fields) for file in fragment.data_files()):
            raise CatalogError(
                Code.UNSUPPORTED,
                f"dropping {', '.join(paths)} would leave rows of {dataset.uri} without any stored value, which Lance "
                "cannot read: keep one of these columns, or fill another one first",
            )


def field_ids(dataset: Any) -> dict[str, frozenset[int]]:
    """Field ids by dotted path: more than one where a name has a dot in it. The item of a list is written out
    (`a.item.b`), or left out (`a.b`) where no field has that path itself."""
    exact: dict[str, frozenset[int]] = {}
    short: dict[str, frozenset[int]] = {}

    def walk(fields: Any, prefix: str, ids: dict[str, frozenset[int]]) -> None:
        for field in fields:
            path = prefix + field.name()
            ids[path] = ids.get(path, frozenset()) | {field.id()}
            children = field.children()
            walk(children, path + ".", ids)
            for child in children:
                if child.name() in ("item", "entries"):
                    walk(child.children(), path + ".", short)

    walk(dataset.lance_schema.fields(), "", exact)
    return {**short, **exact}


def _only(ids: Mapping[str, frozenset[int]], path: str, uri: str) -> int:
    found = ids.get(path, frozenset())
    if len(found) > 1:
        raise CatalogError(
            Code.UNSUPPORTED,
            f"{path!r} means {len(found)} fields of {uri}: one has a dot in its name, and has to get another one first",
        )
    if not found:
        raise CatalogError(Code.TABLE_COLUMN_NOT_FOUND, f"there is no column {path!r} in {uri}")
    return next(iter(found))


def _properties(context: WriteContext) -> dict[str, str]:
    named = {"reconciler.plan": context.plan_id, "reconciler.step": context.step_id}
    return {key: value for key, value in named.items() if value}
