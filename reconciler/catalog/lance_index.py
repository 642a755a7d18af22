"""Indexes of a Lance dataset: how their parameters are read, how they are built, and what we record about the build.

Parameters come from the live index only: most are in what Lance describes, the number of partitions is in the index
itself, and an index that was never trained has none. Our record in the dataset's metadata says which segments we built
and what was declared then. It never stands for a live value.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.catalog.locations import lance_uri
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import VECTOR_INDEXES, BuildRecord, Index, Param
from reconciler.regular_files import NotRegular

INDEXES_KEY = "reconciler.indexes"
PARTITIONS = "num_partitions"
MOST_SEGMENTS = 4
"""Builds of one definition that are remembered: runs side by side record theirs before one of them wins."""

_TYPES = {"btree", "bitmap", "label_list", "inverted", "ngram", "zonemap", "bloomfilter"} | VECTOR_INDEXES
_DESCRIBED = {"labellist": "label_list", "fts": "inverted"}
_RENAMED = {"max_connections": "m", "construction_ef": "ef_construction"}
_GROUPS = ("compression", "hnsw")
_MAGIC = b"LANC"
_LANCE_FILES = (".idx", ".lance")
_NOT_PARAMS = frozenset({"type", "runtime_hints", "metric_type"})


@dataclass(frozen=True, slots=True)
class Recorded:
    """An index as we built it. `segments`, oldest first: uuid -> rows of the table when it was built, and how often the
    definition had been built in place of itself."""

    column: str
    type: str
    params: Mapping[str, Param]
    segments: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def built(self, live: Container[str]) -> tuple[int, int] | None:
        """Of the build that is live; None when somebody else's is."""
        return next((build for segment, build in self.segments.items() if segment in live), None)

    def same_definition(self, other: Recorded) -> bool:
        return self.type == other.type and dict(self.params) == dict(other.params)


Record = Mapping[str, Recorded]


def read_indexes(dataset: Any, descriptions: Iterable[Any], record: Record, rows: int) -> tuple[Index, ...]:
    """The live indexes by name. Costs a read only for a trained vector index, whose partitions are not described."""
    found = []
    for description in descriptions:
        name = description.name
        if name.startswith("__lance"):  # lance's own bookkeeping
            continue
        lowered = str(description.index_type).lower()
        kind = _DESCRIBED.get(lowered, lowered)
        params = _described(description.details or {})
        covered = min(int(description.num_rows_indexed or 0), rows)
        unread: frozenset[str] = frozenset()
        if kind in VECTOR_INDEXES:
            partitions = partitions_of(dataset, name, [str(s.uuid) for s in description.segments]) if covered else None
            if partitions is None:
                unread = frozenset({PARTITIONS})
            else:
                params[PARTITIONS] = partitions
        column = ".".join(description.field_names[:1])
        built = _record_of(record.get(name), kind, {str(s.uuid) for s in description.segments})
        index = Index(name, column, kind, params, unread, built, rows, covered)
        if rows and not covered and kind in VECTOR_INDEXES:
            index = replace(index, untrained=_untrained(dataset, index))
        found.append(index)
    return tuple(sorted(found, key=lambda index: index.name))


def partitions_of(dataset: Any, name: str, segments: Iterable[str] = ()) -> int | None:
    """Of a trained vector index; None when its files do not show any. `index_stats` has the number too, but spells out
    every centroid: half a second for 2,000 of them, where the model takes five milliseconds."""
    try:
        for segment in segments:
            _check_files(dataset, f"_indices/{segment}", footer=True)
        try:
            model = dataset.get_ivf_model(name)
        except RuntimeError:  # pylance 14 does not find the model of an index on a nested column.
            stats: Any = dataset.stats.index_stats(name)
            return next((int(i["num_partitions"]) for i in stats["indices"] if "num_partitions" in i), None)
    except OSError as error:
        if "not found" in str(error).lower():
            return None
        raise OSError(f"index {name} (drop it, and apply builds it again): {error}") from error
    centroids = None if model is None else model.centroids
    return None if centroids is None else len(centroids)


def _check_files(dataset: Any, folder: str, footer: bool = False) -> None:
    """Of a dataset on a local disk: what lance is about to read are regular files, and with `footer` they end as its
    files do. It would wait for ever for the writer of a pipe, and search a file of another kind to its end. Raises
    OSError."""
    where = lance_uri(dataset.uri)
    if "://" in where:
        return
    with suppress(FileNotFoundError), os.scandir(f"{where}/{folder}") as entries:
        for entry in entries:
            if not entry.is_file() and os.path.lexists(entry.path):
                raise NotRegular(entry.path, "it is not a regular file")
            if footer and entry.name.endswith(_LANCE_FILES) and not _ends_as_lance(entry.path):
                raise NotRegular(entry.path, "it is not a file of Lance")


def _ends_as_lance(path: str) -> bool:
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - len(_MAGIC)))
        return file.read() == _MAGIC


def _untrained(dataset: Any, index: Index) -> str | None:
    """Why Lance leaves the index empty: product quantization takes a vector for each of its codes (2 to the power of
    `num_bits`), the others take one. Nulls and vectors that are not a number do not count; the scan ends as soon as
    there are enough."""
    bits = index.params.get("num_bits", 8) if index.type in ("ivf_pq", "ivf_hnsw_pq") else 0
    needed = 2 ** int(bits)
    _check_files(dataset, "data")
    try:
        vectors = _finite_vectors(dataset, index.column, needed)
    except Exception:  # A name that SQL cannot spell: not known, so building it is tried.
        return None
    if vectors >= needed:
        return None
    what = f"{needed} vectors" if needed > 1 else "a vector"
    there = f"only {vectors}" if vectors else "none"
    return f"Lance needs {what} to train {index.type}, and the table has {there}"


def _finite_vectors(dataset: Any, column: str, most: int) -> int:
    """Up to `most`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    path = ".".join(f"`{name}`" for name in column.split("."))
    few = {"batch_size": 1024, "batch_readahead": 1, "fragment_readahead": 1}
    scanner = dataset.scanner(columns={"v": path}, filter=f"{path} IS NOT NULL", **few)
    found = 0
    for batch in scanner.to_batches():
        values, width = batch.column(0).flatten(), getattr(batch.column(0).type, "list_size", None)
        if not width or not pa.types.is_floating(values.type):
            found += batch.num_rows
        else:
            wide = values.cast(pa.float32()) if pa.types.is_float16(values.type) else values
            bad = pc.indices_nonzero(pc.invert(pc.fill_null(pc.is_finite(wide), False))).to_pylist()
            found += batch.num_rows - len({i // width for i in bad})
        if found >= most:
            return most
    return found


def _described(details: Mapping[str, Any]) -> dict[str, Param]:
    params: dict[str, Param] = {}
    for group in (details, *(details.get(g) or {} for g in _GROUPS)):
        for key, value in group.items():
            if key not in _NOT_PARAMS and isinstance(value, (str, int, float, bool)):
                params[_RENAMED.get(key, key)] = value
    if isinstance(metric := details.get("metric_type"), str):
        params["metric"] = metric.lower()
    return params


def _record_of(recorded: Recorded | None, kind: str, live: set[str]) -> BuildRecord | None:
    """A record of another kind of index says nothing about this one."""
    if recorded is None or recorded.type != kind:
        return None
    built = recorded.built(live)
    return BuildRecord(recorded.params) if built is None else BuildRecord(recorded.params, built[0], True, built[1])


def load_record(text: str | None) -> dict[str, Recorded]:
    """A record that cannot be read counts as none."""
    try:
        entries = json.loads(text or "{}")
        return {
            name: Recorded(
                str(e["column"]),
                str(e["type"]),
                dict(e["params"]),
                {str(segment): (int(rows), int(again)) for segment, rows, again in e.get("segments", ())},
            )
            for name, e in entries.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def dump_record(record: Record) -> str:
    entries = {name: _entry(recorded) for name, recorded in record.items()}
    return json.dumps(entries, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _entry(recorded: Recorded) -> dict[str, object]:
    segments = [[segment, *build] for segment, build in recorded.segments.items()]
    return {
        "column": recorded.column,
        "type": recorded.type,
        "params": dict(recorded.params),
        "segments": segments,
    }


def recorded_in(dataset: Any) -> dict[str, Recorded]:
    return load_record(dataset.metadata.get(INDEXES_KEY))


def with_build(record: Record, index: Index, segment: str, rows: int, again: int) -> dict[str, Recorded]:
    """The record with one more build. Earlier builds of the same definition stay known."""
    new = _recorded(index, {segment: (rows, again)})
    old = record.get(index.name)
    if old is not None and old.same_definition(new):
        kept = [*old.segments.items()][-(MOST_SEGMENTS - 1) :]
        new = replace(new, segments={**dict(kept), **new.segments})
    return {**record, index.name: new}


def built_again(dataset: Any, index: Index) -> int | None:
    """If the live index is a build of this definition that we recorded: its number (see `BuildRecord.again`)."""
    recorded = recorded_in(dataset).get(index.name)
    if recorded is None or not recorded.same_definition(_recorded(index, {})):
        return None
    for description in dataset.describe_indices():
        if description.name == index.name and [*description.field_names] == [index.column]:
            built = recorded.built({str(s.uuid) for s in description.segments})
            return None if built is None else built[1]
    return None


def last_again(record: Record, index: Index) -> int:
    """The number of the last build of this definition: one that only covers more rows keeps it."""
    known = record.get(index.name)
    if known is None or not known.same_definition(_recorded(index, {})):
        return 0
    return next((again for _, again in reversed([*known.segments.values()])), 0)


def moved_builds(record: Record, before: Any, after: Any) -> dict[str, Recorded]:
    """The record, in which a build that was live in `before` is known by the first segment that it has in `after`."""
    was = {d.name: {str(s.uuid) for s in d.segments} for d in before.describe_indices()}
    out = dict(record)
    for description in after.describe_indices():
        known, now = record.get(description.name), [str(s.uuid) for s in description.segments]
        build = known.built(was.get(description.name, set())) if known is not None else None
        if known is not None and build is not None and now and known.built(now) is None:
            kept = [*known.segments.items()][-(MOST_SEGMENTS - 1) :]
            out[description.name] = replace(known, segments={**dict(kept), now[0]: build})
    return out


def _recorded(index: Index, segments: Mapping[str, tuple[int, int]]) -> Recorded:
    return Recorded(index.column, index.type, dict(index.params), segments)


def build(dataset: Any, index: Index) -> Any:
    """The files of a new index over all rows of this version, without a commit: its metadata, for `swap`. Built under
    a name of its own, because Lance refuses a name that is taken by an index on another column."""
    params: dict[str, Any] = dict(index.params)
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    if index.type in VECTOR_INDEXES and dataset.count_rows() == 0:
        params.setdefault(PARTITIONS, 1)  # lance wants a number when there is no data to derive one from
    name = f"{index.name}-{uuid.uuid4().hex}"
    made = _built(dataset, index, name, {**params, "fragment_ids": fragments})
    # The segment of a text index is in parts until it is merged, even when it is the only one.
    return dataset.merge_existing_index_segments([made]) if index.type == "inverted" and fragments else made


def _built(dataset: Any, index: Index, name: str, options: Mapping[str, Any]) -> Any:
    """Where there is no vector to train on, the index comes without any row, as Lance itself does it while there are
    too few for product quantization: a declared index is there, and the next plan says why it covers nothing."""
    try:
        return dataset.create_index_uncommitted(index.column, index.type.upper(), name=name, **options)
    except RuntimeError as error:
        if index.type not in VECTOR_INDEXES or "cannot train" not in str(error):
            raise
        options = {PARTITIONS: 1, **options, "train": False}
        return dataset.create_index_uncommitted(index.column, index.type.upper(), name=name, **options)


def swap(dataset: Any, name: str, made: Any, properties: Mapping[str, str], storage: Mapping[str, str] | None) -> Any:
    """One commit: the new index comes and every segment of the old one by its name goes, so that no version is without
    it. Refused by Lance if the indexes or the indexed rows were changed since `dataset` was opened; rows that came
    meanwhile are not covered yet."""
    from lance import LanceDataset, LanceOperation
    from lance.dataset import Index as Segment
    from lance.dataset import Transaction

    gone = [
        Segment(s.uuid, name, list(d.fields), s.dataset_version_at_last_update, s.fragment_ids, s.index_version)
        for d in dataset.describe_indices()
        if d.name == name
        for s in d.segments
    ]
    operation = LanceOperation.CreateIndex(new_indices=[replace(made, name=name)], removed_indices=gone)
    transaction = Transaction(dataset.version, operation, transaction_properties=dict(properties))
    return LanceDataset.commit(dataset, transaction, storage_options=dict(storage) if storage else None)


def known_type(index: Index) -> None:
    if index.type not in _TYPES:
        raise CatalogError(Code.INVALID_INPUT, f"unknown index type {index.type!r}: one of {', '.join(sorted(_TYPES))}")


def built_only_over_rows(dataset: Any, index: Index) -> bool:
    """Lance builds a bitmap without a commit only where there are rows."""
    return index.type == "bitmap" and dataset.count_rows() == 0
