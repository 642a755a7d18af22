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
from reconciler.catalog.lance_dataset import FILE_VERSION, Datasets, dump_keys
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.lance_index import INDEXES_KEY, create_index, dump_record, load_record
from reconciler.model.change import (
    AddColumns,
    AdoptTable,
    AlterColumns,
    CreateDataset,
    CreateIndex,
    DropColumns,
    DropIndex,
    UpdateDataset,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import APPLIED_BY_KEY, APPLIED_KEY, OWNER_KEY, Index

DatasetChange = UpdateDataset | AddColumns | AlterColumns | DropColumns | CreateIndex | DropIndex


def create_dataset(datasets: Datasets, uri: str, change: CreateDataset, context: WriteContext) -> Written:
    """The empty dataset, then config and our notes in one commit. A dataset that is there already is only finished
    when it is exactly what an interrupted attempt leaves: version 1, no rows, this schema."""
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
                transaction_properties=_properties(context),
                session=datasets.session,
            )
            datasets.stats.count("writes")
        except OSError as error:
            if "already exists" not in str(error):
                raise
            dataset = _unfinished(datasets, uri, schema)
        done = _commit(
            dataset,
            datasets,
            context,
            config=dict(change.config),
            notes={OWNER_KEY: change.owner, APPLIED_KEY: dump_keys(change.applied)},
        )
    _verify(done, uri, schema, change)
    return Written(None, done.version)


def _unfinished(datasets: Datasets, uri: str, schema: Any) -> Any:
    dataset = datasets.open(uri)
    if dataset.version == 1 and dataset.count_rows() == 0 and _same_schema(dataset.schema, schema):
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
    with (
        _no_tag_for_nothing(dataset, context.tag),
        translated(f"{_named(change)} of {uri}", write=True),
    ):
        keep_version(dataset, context.tag)
        may_write()
        match change:
            case UpdateDataset():
                dataset = _update(dataset, datasets, change, context)
            case AddColumns():
                _add_columns(dataset, change)
            case AlterColumns():
                dataset.alter_columns(*(_alteration(c) for c in change.columns))
            case DropColumns():
                _need_data_left(dataset, change.paths)
                dataset.drop_columns(list(change.paths))
            case CreateIndex():
                if any(i.name == change.index.name for i in dataset.describe_indices()):
                    raise CatalogError(Code.TABLE_INDEX_ALREADY_EXISTS, f"index {change.index.name} exists already")
                # The record first: without its index it is not seen, so the index appears complete or not at all.
                dataset = _note_index(datasets, uri, change.index, context)
                may_write()
                create_index(dataset, change.index)
            case DropIndex():
                noted = load_record(dataset.metadata.get(INDEXES_KEY)).get(change.name)
                dataset.drop_index(change.name)
                dataset = _forget_index(datasets, uri, change.name, noted, context)
        datasets.stats.count("writes")
        if isinstance(change, AddColumns | AlterColumns | DropColumns):
            _sign(datasets, uri, context)
        return Written(before, dataset.latest_version)


def _sign(datasets: Datasets, uri: str, context: WriteContext) -> None:
    """Commits that lance makes of column changes hold no notes, so the run's name follows in one of its own. The change
    has landed: that it cannot be signed is no failure."""
    if context.applied_by:
        with contextlib.suppress(Exception):
            _commit(datasets.open(uri), datasets, context)


def _named(change: DatasetChange) -> str:
    """For messages: with the columns whose values may be the reason."""
    columns = f" {', '.join(c.path for c in change.columns)}" if isinstance(change, AlterColumns) else ""
    return change.action.replace("_", " ") + columns


def keep_version(dataset: Any, tag: str | None, version: int | None = None) -> None:
    """Tags the version before the change. A tag of that name stays: it holds the version before the first attempt."""
    if tag is None or tag in dataset.tags.list():
        return
    may_write()
    try:
        dataset.tags.create(tag, dataset.version if version is None else version)
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
                known = dataset.tags.list().get(tag)
                if known is not None and known["version"] == dataset.latest_version:
                    may_write()
                    dataset.tags.delete(tag)
        raise


def _update(dataset: Any, datasets: Datasets, change: UpdateDataset, context: WriteContext) -> Any:
    notes: dict[str, str | None] = {OWNER_KEY: change.owner, APPLIED_KEY: dump_keys(change.applied)}
    if change.indexes is not None:
        notes[INDEXES_KEY] = dump_record(change.indexes)
    ids = field_ids(dataset) if change.fields else {}
    fields = {_only(ids, path, dataset.uri): dict(values) for path, values in change.fields.items() if values}
    return _commit(dataset, datasets, context, dict(change.config), notes, dict(change.schema_metadata), fields)


def adopt_dataset(datasets: Datasets, uri: str, change: AdoptTable, context: WriteContext) -> Written:
    """Our notes in the dataset's metadata; no commit when they are there already."""
    dataset = datasets.open(uri)
    before = dataset.version
    notes: dict[str, str | None] = {OWNER_KEY: change.marks.owner, APPLIED_KEY: dump_keys(change.applied)}
    known = dataset.metadata
    if change.indexes or INDEXES_KEY in known:
        notes[INDEXES_KEY] = dump_record(change.indexes)
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
    from lance import LanceDataset, LanceOperation
    from lance.dataset import Transaction

    if context.applied_by:
        notes = {**(notes or {}), APPLIED_BY_KEY: context.applied_by}
    update = LanceOperation.UpdateMap
    operation = LanceOperation.UpdateConfig(
        config_updates=update(dict(config)) if config else None,
        table_metadata_updates=update(dict(notes)) if notes else None,
        schema_metadata_updates=update(dict(schema)) if schema else None,
        field_metadata_updates={i: update(dict(values)) for i, values in fields.items()} if fields else None,
    )
    transaction = Transaction(
        read_version=dataset.version, operation=operation, transaction_properties=_properties(context)
    )
    datasets.stats.count("writes")
    may_write()
    return LanceDataset.commit(dataset, transaction, storage_options=datasets.storage_options)


def _note_index(datasets: Datasets, uri: str, index: Index, context: WriteContext) -> Any:
    dataset = datasets.open(uri)
    record = {**load_record(dataset.metadata.get(INDEXES_KEY)), index.name: index}
    return _commit(dataset, datasets, context, notes={INDEXES_KEY: dump_record(record.values())})


def _forget_index(datasets: Datasets, uri: str, name: str, noted: Index | None, context: WriteContext) -> Any:
    """`noted`: of the index that was dropped. Anything else under its name is another run's, which is about to make the
    index anew."""
    dataset = datasets.open(uri)
    record = load_record(dataset.metadata.get(INDEXES_KEY))
    if noted is None or record.get(name) != noted:
        return dataset
    del record[name]
    return _commit(dataset, datasets, context, notes={INDEXES_KEY: dump_record(record.values())})


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
