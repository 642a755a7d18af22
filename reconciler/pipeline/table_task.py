"""What an executor does for one table, or for some fragments of it: read every row once, sum it up, count what breaks a
check. Answers are plain values; what goes wrong with a table is an answer too, so that Spark repeats nothing in vain.

The module stands alone, as `checksum` does: Spark carries both to executors that do not have this program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.pipeline import checksum

THREADS = 8
"""In one task: tables wait for their storage more than they compute."""
BATCH_BYTES = 32 * 2**20
"""Of rows at a time: a table of large blobs must not fill the memory of an executor."""
KEY_BYTES = 256 * 2**20
"""Of keys that are compared at a time; a table with more of them is read again for the rest."""
Unit = dict[str, Any]
"""uri, options, version, fragments (ids, or None for the whole table), split (bytes), checks; `key` names it."""


def job(tasks: Sequence[Sequence[Unit]], work: Callable[[Unit], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """A function for mapInArrow over the numbers of the tasks."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        missing = _missing()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                if missing:
                    yield _rows([json.dumps({"missing": missing})])
                    continue
                with ThreadPoolExecutor(THREADS) as pool:
                    for answers in pool.map(lambda unit: list(work(unit)), tasks[number]):
                        yield from answers

    return run


def _missing() -> str | None:
    try:
        import lance  # noqa: F401
    except ImportError as error:
        return str(error)
    return None


def _rows(texts: Sequence[str]) -> Any:
    return pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["answer"])


def verify(unit: Unit) -> Iterator[Any]:
    """One answer, as JSON. A whole table that is too large is not read: its fragments are the answer."""
    try:
        dataset, fragments = _opened(unit)
        parts = _fragments(dataset, unit) if fragments is None else None
        answer = {"fragments": parts} if parts else _read(dataset, fragments, unit)
    except Exception as error:
        answer = {"error": _told(error)}
    yield _rows([json.dumps({"key": unit["key"], **answer})])


def keys(unit: Unit) -> Iterator[Any]:
    """The hashes of the key columns `unit["columns"]`, one row for each row that has no null there."""
    dataset, fragments = _opened(unit)
    for batch in _scan(dataset, fragments, _top(unit["columns"])):
        hashes, _ = _keys(batch, unit["columns"])
        yield pa.RecordBatch.from_arrays([pa.array(hashes.view(np.int64))], ["hash"])


def key_values(unit: Unit) -> Iterator[Any]:
    """The keys of the rows whose hash is one of `unit["met"]` (sorted; None: of all), with counts."""
    dataset, fragments = _opened(unit)
    for batch in _scan(dataset, fragments, _top(unit["columns"])):
        found = _counted(batch, unit["columns"], unit["met"])
        arrays = [pa.array(list(found), pa.binary()), pa.array(list(found.values()), pa.int64())]
        yield pa.RecordBatch.from_arrays(arrays, ["key", "rows"])


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _opened(unit: Unit) -> tuple[Any, list[Any] | None]:
    import lance

    dataset = lance.dataset(unit["uri"], version=unit["version"], storage_options=unit["options"] or None)
    ids = unit["fragments"]
    return dataset, None if ids is None else [dataset.get_fragment(i) for i in ids]


def _fragments(dataset: Any, unit: Unit) -> list[list[int]] | None:
    """[id, size] of each when the table is worth more than one task; None otherwise."""
    parts = [[f.fragment_id, _size(f)] for f in dataset.get_fragments()]
    return parts if len(parts) > 1 and sum(size for _, size in parts) > unit["split"] else None


def _size(fragment: Any) -> int:
    sizes = [file.file_size_bytes for file in fragment.metadata.files]
    return sum(sizes) if all(sizes) else int(fragment.metadata.physical_rows) * 100


def _scan(dataset: Any, fragments: list[Any] | None, columns: list[str] | None = None) -> Iterator[Any]:
    scanner = dataset.scanner(
        columns=list(dict.fromkeys(columns)) if columns is not None else None,
        fragments=fragments,
        blob_handling="all_binary",
        batch_size_bytes=BATCH_BYTES,
        scan_in_order=False,
    )
    yield from scanner.to_batches()


def _read(dataset: Any, fragments: list[Any] | None, unit: Unit) -> dict[str, Any]:
    checks = unit["checks"]
    counts = [_Count(check) for check in checks if check["kind"] != "expression"]
    sums, rows, size = (0, 0), 0, 0
    for batch in _scan(dataset, fragments):
        sums = checksum.add_rows(sums, batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        for count in counts:
            count.add(batch)
    found = {c.name: c.result(lambda columns: _scan(dataset, fragments, columns)) for c in counts}
    for check in checks:
        if check["kind"] == "expression":
            found[check["name"]] = _expression(dataset, fragments, check["sql"])
    return {"rows": rows, "sums": [f"{s:x}" for s in sums], "bytes": size, "found": found}


def _expression(dataset: Any, fragments: list[Any] | None, sql: str) -> dict[str, Any]:
    """The rows where it is false."""
    try:
        scanner = dataset.scanner(filter=f"NOT (\n{sql}\n)", columns=[], with_row_id=True, fragments=fragments)
        return {"bad": scanner.count_rows()}
    except Exception as error:
        return {"error": _told(error)}


class _Count:
    """One check over the batches. What it cannot do, such as find its column, is its result."""

    def __init__(self, check: dict[str, Any]) -> None:
        self.name: str = check["name"]
        self._check = check
        self._bad = 0
        self._newest: int | None = None
        self._hashes: list[Any] = []
        self._size = 0
        self._error: str | None = None

    def add(self, batch: Any) -> None:
        if self._error is None:
            try:
                getattr(self, f"_{self._check['kind']}")(batch)
            except Exception as error:
                self._error = _told(error)

    def result(self, scan: Callable[[list[str]], Iterable[Any]]) -> dict[str, Any]:
        """`scan` reads some columns once more."""
        if self._error is None:
            try:
                self._bad += self._repeated(scan)
            except Exception as error:
                self._error = _told(error)
        if self._error is not None:
            return {"error": self._error}
        return {"newest": self._newest} if self._check["kind"] == "freshness" else {"bad": self._bad}

    def _not_null(self, batch: Any) -> None:
        self._bad += _column(batch, self._check["column"]).null_count

    def _accepted(self, batch: Any) -> None:
        column = _column(batch, self._check["column"])
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        known = pc.is_in(column, value_set=pa.array(self._check["values"], column.type))
        self._bad += len(column) - column.null_count - (pc.sum(known).as_py() or 0)

    def _freshness(self, batch: Any) -> None:
        times = _column(batch, self._check["column"]).cast(pa.timestamp("us"), safe=False)
        newest = pc.max(times.cast(pa.int64())).as_py()
        self._newest = newest if self._newest is None else max(self._newest, newest or self._newest)

    def _unique(self, batch: Any) -> None:
        hashes, picked = _keys(batch, self._check["columns"])
        self._hashes.append(hashes)
        self._size += picked.nbytes

    def _repeated(self, scan: Callable[[list[str]], Iterable[Any]]) -> int:
        """How many rows have a key that another row before them has. Equal keys have one hash; whether keys with one
        hash are equal is asked of the keys themselves, of no more of them at a time than memory is meant to hold."""
        if not self._hashes:
            return 0
        hashes, counts = np.unique(np.concatenate(self._hashes), return_counts=True)
        met, rows = hashes[counts > 1], counts.sum()
        each = max(1, KEY_BYTES // (self._size // max(1, int(rows)) + _KEY_COST))
        return sum(self._equal(scan, met[n : n + each]) for n in range(0, len(met), each))

    def _equal(self, scan: Callable[[list[str]], Iterable[Any]], met: Any) -> int:
        columns, rows = self._check["columns"], 0
        seen: set[bytes] = set()
        for batch in scan(_top(columns)):
            found = _counted(batch, columns, met)
            rows += sum(found.values())
            seen.update(found)
        return rows - len(seen)


_KEY_COST = 200
"""Bytes that Python takes for a key beside its value."""


def _top(columns: Sequence[str]) -> list[str]:
    return [c.partition(".")[0] for c in columns]


def _keys(batch: Any, columns: Sequence[str]) -> tuple[Any, Any]:
    """The rows that have no null in these columns: a hash for each, and the columns."""
    picked = pa.RecordBatch.from_arrays([_column(batch, c) for c in columns], list(columns))
    nulls = [column.is_null().to_numpy(zero_copy_only=False) for column in picked.columns]
    if (null := np.logical_or.reduce(nulls)).any():
        picked = picked.filter(pa.array(~null))
    return checksum.row_hashes(picked)[0], picked


def _counted(batch: Any, columns: Sequence[str], met: Any) -> dict[bytes, int]:
    """How often each key is in a batch, for the keys whose hash is one of `met`. By value; a key is text that no other
    key has."""
    hashes, picked = _keys(batch, columns)
    if met is not None:
        place = np.minimum(np.searchsorted(met, hashes), len(met) - 1)
        picked = picked.filter(pa.array(met[place] == hashes))
    coded = [checksum.coded(column) for column in picked.columns]
    whole, *others = (codes for codes, _ in coded)
    for codes in others:
        whole = np.unique(whole, return_inverse=True)[1] * (len(hashes) + 1) + codes
    _, first, counts = np.unique(whole, return_index=True, return_counts=True)
    parts = [[values[code] for code in codes[first].tolist()] for codes, values in coded]
    return {repr(key).encode(): count for *key, count in zip(*parts, counts.tolist(), strict=True)}


def _column(batch: Any, path: str) -> Any:
    """By dotted path through structs. What is below a null is null."""
    first, *rest = path.split(".")
    if first not in batch.schema.names:
        raise KeyError(f"the table has no column {first}")
    column = batch.column(first)
    for name in rest:
        column = pc.struct_field(column, [name])
    return column
