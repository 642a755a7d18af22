"""Indexes of a Lance dataset: how their parameters are read, how they are built, and what we record about the build.

Parameters come from the live index only: most are in what Lance describes, the number of partitions is in the index
itself, and an index that was never trained has none. Our record in the dataset's metadata says which segments we built
and what was declared then. It never stands for a live value.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.catalog.lance_files import check_folder, check_rows
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import VECTOR_INDEXES, BuildRecord, Index, Param

INDEXES_KEY = "reconciler.indexes"
PARTITIONS = "num_partitions"
MOST_SEGMENTS = 4
"""Builds of one definition that are remembered: runs side by side record theirs before one of them wins."""

_TOO_FEW = re.compile(r"cannot train (\d+) centroids with (\d+) vectors")
_UNTRAINABLE = {
    "cannot train": "Lance finds no vector to train it on",
    "Not enough rows to train": "Lance finds too few vectors to train it on",
    "null partition ID": "a vector has numbers whose squares float32 does not hold, and Lance indexes none of the rows "
    "then",
}
"""What Lance answers to a build, and what that means."""
_NOT_A_NUMBER = " that has only numbers"
_SKIPPED = {
    "cosine": " that has only numbers and is not zero",
    "l2": " that has only numbers whose squares float32 can hold",
}
"""Which vectors count, by metric."""
_TYPES = {"btree", "bitmap", "label_list", "inverted", "ngram", "zonemap", "bloomfilter"} | VECTOR_INDEXES
_DESCRIBED = {"labellist": "label_list", "fts": "inverted"}
_RENAMED = {"max_connections": "m", "construction_ef": "ef_construction"}
_GROUPS = ("compression", "hnsw")
_NOT_PARAMS = frozenset({"type", "runtime_hints", "metric_type"})


@dataclass(frozen=True, slots=True)
class LastBuild:
    """What the last build by `apply` was made of: if it covers no row, another one over the same rows is in vain."""

    segment: str
    data: str
    """See `_data_of`."""
    why: str = ""
    """Lance could not train it."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An index as we built it. `segments`, oldest first: uuid -> rows of the table when it was built, and how often the
    definition had been built in place of itself."""

    column: str
    type: str
    params: Mapping[str, Param]
    segments: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    last: LastBuild | None = None
    kept: Mapping[str, Param] = field(default_factory=dict)
    """See `BuildRecord`."""
    earlier: tuple[str, ...] = ()
    """The segments of definitions before this one: one of them is live until the new index is swapped in."""

    def is_of(self, live: Iterable[str]) -> bool:
        """Did we build any of these segments?"""
        return any(segment in self.segments or segment in self.earlier for segment in live)

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
        known, segments = record.get(name), {str(s.uuid) for s in description.segments}
        built = _record_of(known, kind, segments)
        external = known is None or not (known.is_of(segments) or (known.column, known.type) == (column, kind))
        index = Index(name, column, kind, params, unread, built, rows, covered, external=external)
        if rows and not covered:
            why = _untrained(dataset, index) if kind in VECTOR_INDEXES else None
            index = replace(index, untrained=why or _in_vain(dataset, known, segments))
        found.append(index)
    return tuple(sorted(found, key=lambda index: index.name))


def partitions_of(dataset: Any, name: str, segments: Iterable[str] = ()) -> int | None:
    """Of a trained vector index; None when its files do not show any. `index_stats` has the number too, but spells out
    every centroid: half a second for 2,000 of them, where the model takes five milliseconds."""
    try:
        for segment in segments:
            check_folder(dataset.uri, f"_indices/{segment}")
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


def _untrained(dataset: Any, index: Index) -> str | None:
    """Why Lance leaves the index empty: product quantization takes a vector for each of its codes (2 to the power of
    `num_bits`), the others take one. Nulls, vectors that are not a number and, with cosine, zeros do not count; the
    scan ends as soon as there are enough."""
    bits = index.params.get("num_bits", 8) if index.type in ("ivf_pq", "ivf_hnsw_pq") else 0
    needed = 2 ** int(bits)
    check_rows(dataset.uri)
    try:
        vectors, others = _count_vectors(dataset, index.column, index.params.get("metric"), needed)
    except Exception:  # A name that SQL cannot spell: not known, so building it is tried.
        return None
    if vectors >= needed:
        return None
    what = f"{needed} vectors" if needed > 1 else "a vector"
    there = f"only {vectors}" if vectors else "none"
    skipped = _SKIPPED.get(str(index.params.get("metric")), _NOT_A_NUMBER) if others else ""
    return f"Lance needs {what} to train {index.type}, and the table has {there}{skipped}"


def _in_vain(dataset: Any, known: Recorded | None, live: Container[str]) -> str | None:
    """Why the index is not built again, if the live one is our last build, and is of the rows that are there now."""
    last = known.last if known is not None else None
    if last is None or last.segment not in live or last.data != _data_of(dataset):
        return None
    return last.why or "it was built over these very rows, and Lance took none of them in"


def _data_of(dataset: Any) -> str:
    """The same for every version with the same rows in the same files."""
    parts = [
        (f.id, f.physical_rows, f.num_deletions, str(f.deletion_file), [file.path for file in f.files])
        for f in (fragment.metadata for fragment in dataset.get_fragments())
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _count_vectors(dataset: Any, column: str, metric: Param | None, most: int) -> tuple[int, int]:
    """Up to `most` that Lance trains on, and those met on the way that it does not. Nulls are neither."""
    import pyarrow as pa

    path = ".".join(f"`{name}`" for name in column.split("."))
    few = {"batch_size": 1024, "batch_readahead": 1, "fragment_readahead": 1}
    scanner = dataset.scanner(columns={"v": path}, filter=f"{path} IS NOT NULL", **few)
    found = out = 0
    for batch in scanner.to_batches():
        values, width = batch.column(0).flatten(), getattr(batch.column(0).type, "list_size", None)
        bad = _unusable(values, width, metric) if width and pa.types.is_floating(values.type) else 0
        found, out = found + batch.num_rows - bad, out + bad
        if found >= most:
            break
    return min(found, most), out


def _unusable(values: Any, width: int, metric: Param | None) -> int:
    """How many vectors Lance does not train on. It reckons l2 in float32, and cosine in the vector's own type: a number
    whose square is infinite there is too large, and a vector is zero if the squares of all its numbers are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    single = metric == "l2" or pa.types.is_float16(values.type)
    numbers = values.cast(pa.float32(), safe=False) if single else values
    squares = pc.multiply(numbers, numbers)
    bad = pc.invert(pc.fill_null(pc.is_finite(squares if metric == "l2" else numbers), False))
    out = pc.unique(pc.divide(pc.indices_nonzero(bad), width))
    if metric != "cosine":
        return len(out)
    vectors = pa.array(range(len(values) // width), pa.uint64())
    there = pc.unique(pc.divide(pc.indices_nonzero(pc.greater(squares, 0)), width))
    return len(vectors.filter(pc.or_(pc.is_in(vectors, out), pc.invert(pc.is_in(vectors, there)))))


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
    if built is None:
        return BuildRecord(recorded.params, kept=recorded.kept)
    return BuildRecord(recorded.params, built[0], True, built[1], recorded.kept)


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
                LastBuild(*map(str, e["last"])) if "last" in e else None,
                dict(e.get("kept", {})),
                tuple(map(str, e.get("earlier", ()))),
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
    last = recorded.last
    return {
        "column": recorded.column,
        "type": recorded.type,
        "params": dict(recorded.params),
        "segments": segments,
        **({} if last is None else {"last": [last.segment, last.data, last.why]}),
        **({"kept": dict(recorded.kept)} if recorded.kept else {}),
        **({"earlier": [*recorded.earlier]} if recorded.earlier else {}),
    }


def recorded_in(dataset: Any) -> dict[str, Recorded]:
    return load_record(dataset.metadata.get(INDEXES_KEY))


def with_build(
    record: Record, index: Index, segment: str, rows: int, again: int, last: LastBuild | None = None
) -> dict[str, Recorded]:
    """The record with one more build. Earlier builds of the same definition stay known."""
    new = replace(_recorded(index, {segment: (rows, again)}), last=last)
    old = record.get(index.name)
    if old is not None and old.same_definition(new):
        kept = [*old.segments.items()][-(MOST_SEGMENTS - 1) :]
        new = replace(new, segments={**dict(kept), **new.segments}, earlier=old.earlier)
    elif old is not None:
        new = replace(new, earlier=(*old.earlier, *old.segments)[-MOST_SEGMENTS:])
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
    return Recorded(index.column, index.type, dict(index.params), segments, kept=dict(index.kept))


def build(dataset: Any, index: Index) -> tuple[Any, LastBuild | None]:
    """The files of a new index over all rows of this version, without a commit: its metadata, for `swap`. Built under
    a name of its own, because Lance refuses a name that is taken by an index on another column."""
    params: dict[str, Any] = index.built_with
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    if index.type in VECTOR_INDEXES and dataset.count_rows() == 0:
        params.setdefault(PARTITIONS, 1)  # lance wants a number when there is no data to derive one from
    name = f"{index.name}-{uuid.uuid4().hex}"
    made, why = _built(dataset, index, name, {**params, "fragment_ids": fragments})
    if index.type == "inverted" and fragments:
        # The segment of a text index is in parts until it is merged, even when it is the only one.
        made = dataset.merge_existing_index_segments([made])
    return made, LastBuild(str(made.uuid), _data_of(dataset), why) if fragments else None


def _built(dataset: Any, index: Index, name: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Where Lance cannot train it, the index comes without any row and with the reason, as Lance itself does it while
    there are too few vectors for product quantization: a declared index is there, and the next plan says why it covers
    nothing. One that covers rows stays instead."""
    try:
        return dataset.create_index_uncommitted(index.column, index.type.upper(), name=name, **options), ""
    except (RuntimeError, ValueError) as error:
        few = _TOO_FEW.search(str(error))
        if few and 0 < int(few[2]) < int(few[1]):  # Lance itself takes fewer partitions only because of nulls.
            return _built(dataset, index, name, {**options, PARTITIONS: int(few[2])})
        why = next((told for sign, told in _UNTRAINABLE.items() if sign in str(error)), None)
        if why is None or index.type not in VECTOR_INDEXES:
            raise
        if _covers_rows(dataset, index):
            raise CatalogError(Code.UNSUPPORTED, f"index {index.name} stays as it is: {why}") from error
        options = {PARTITIONS: 1, **options, "train": False}
        return dataset.create_index_uncommitted(index.column, index.type.upper(), name=name, **options), why


def _covers_rows(dataset: Any, index: Index) -> bool:
    """Is there an index of this name that answers the same queries, whatever its partitions?"""
    for d in dataset.describe_indices():
        if d.name == index.name and d.num_rows_indexed:
            metric = _described(d.details or {}).get("metric")
            same = str(index.built_with.get("metric", metric)).lower() == str(metric)
            return same and [*d.field_names] == [index.column] and str(d.index_type).lower() == index.type
    return False


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
