"""Do the values of a column fit what is declared? Asked while a plan is made, in this process, without Spark.

Only the column in question is read, and only up to a bound; what is read is judged by the code that the step itself
runs. Whatever cannot be judged here is left to the step, which reads all values before it commits anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.catalog.arrow_convert import from_arrow_schema, to_arrow_type
from reconciler.catalog.base import Catalog, DataPlace
from reconciler.catalog.deadline import answers
from reconciler.catalog.lance_cast import cast_sql
from reconciler.catalog.lance_files import check_rows
from reconciler.core.casts import classify
from reconciler.core.fields import Fields, find, in_list
from reconciler.core.value_checks import Checks
from reconciler.core.world import altered_fields
from reconciler.model.arrow import Dictionary, Scalar
from reconciler.model.change import AlterColumns, ColumnAlteration
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, ObjectKey
from reconciler.model.observed import Present, Snapshot
from reconciler.model.state import TableState
from reconciler.model.values import ValueCheck, ValueFinding
from reconciler.pipeline import column_casts, evolve_task
from reconciler.pipeline.claims import opened

AT_A_TIME = 8
"""Tables."""
MOST_ROWS = 1_000_000
MOST_BYTES = 256 * 2**20
"""Of one column, read for a plan."""
MOST_MISFITS = 1000
"""Counted one by one; a column with more of them is not read any further."""
EXAMPLES = 3
_LANCE_BATCH = 1024
"""Rows that pylance 14 casts at a time."""


def with_findings(
    asked: Mapping[ObjectKey, Checks],
    snapshots: Mapping[str, Snapshot],
    catalogs: Mapping[str, Catalog],
    late: Callable[[ObjectKey], NoReturn],
    clean: Callable[[str], str] = lambda text: text,
) -> dict[str, Snapshot]:
    """The snapshots with what was found, several tables at a time. `clean` takes secrets out of the values shown;
    `late` ends it when the time of the run is over."""

    def look(key: ObjectKey) -> Mapping[ValueCheck, ValueFinding]:
        found = snapshots[key.catalog].tables[key.ident]
        if not isinstance(found, Present) or not isinstance(found.state, TableState):
            return {}
        try:
            place = catalogs[key.catalog].data_place(key.ident, found.state)
        except CatalogError:
            return {}
        return look_at_values(place, asked[key])

    seen = list(zip(asked, answers(look, asked, AT_A_TIME, late, "values"), strict=True))
    values: dict[str, dict[tuple[Ident, ValueCheck], ValueFinding]] = {name: {} for name in snapshots}
    for key, findings in seen:
        for check, finding in findings.items():
            shown = tuple(clean(example) for example in finding.examples)
            unread = clean(finding.unread) if finding.unread is not None else None
            values[key.catalog][key.ident, check] = replace(finding, examples=shown, unread=unread)
    return {name: replace(s, values=values[name]) for name, s in snapshots.items()}


def look_at_values(place: DataPlace, checks: Mapping[ValueCheck, str]) -> dict[ValueCheck, ValueFinding]:
    """`checks` with the path of each column as it is now. What cannot be judged is left out, and so is what lance
    cannot read: the step will say so. It would not come to that where lance waits for a file."""
    try:
        dataset = opened(place)
    except CatalogError:
        return {}
    try:
        check_rows(place.uri)
    except CatalogError as error:
        return dict.fromkeys(checks, ValueFinding(0, False, unread=error.message))
    found = {}
    for check, path in checks.items():
        try:
            found[check] = _found(dataset, check, path)
        except Exception:  # Whatever it is, the step itself will say so before it writes.
            continue
    return {check: finding for check, finding in found.items() if finding is not None}


def _found(dataset: Any, check: ValueCheck, path: str) -> ValueFinding | None:
    fields = from_arrow_schema(dataset.schema)[0]
    live = find(fields, path)
    assert live is not None
    in_place = check.type is not None and classify(live.type, check.type) == "narrow"
    wanted = None if check.type is None else to_arrow_type(check.type)
    if in_place and in_list(fields, path):  # SQL does not reach there.
        path, wanted, in_place = *_whole(fields, path, check), False
    quoted = ".".join(evolve_task.quoted(part) for part in path.split("."))
    sources = [{"sql": quoted}]
    room = None
    if in_place:
        tried = wanted
        if isinstance(check.type, Dictionary):
            room, tried = check.type.room, to_arrow_type(check.type.value)
        sources.append({"sql": cast_sql("arrow_try_cast", path, tried)})
    rows = read = misfits = 0
    examples: list[str] = []
    counted = 0
    total = dataset.count_rows()
    for begins, batch in _batches(dataset, sources, by_fragment=room is not None):
        values = batch.column(evolve_task.value_name(0))
        places = _misfits(values, batch, check, wanted, in_place)
        if room is not None:
            beyond, counted = _too_many(values, room, 0 if begins else counted)
            places = iter(sorted({*places, *beyond}))
        for at in places:
            misfits += 1
            if len(examples) < EXAMPLES:
                examples.append(_example(values.slice(at, 1), rows + at, check))
            if misfits == MOST_MISFITS:
                return ValueFinding(rows + at + 1, False, misfits, tuple(examples))
        rows += batch.num_rows
        read += values.nbytes
        if rows >= MOST_ROWS or read >= MOST_BYTES:
            break
    return ValueFinding(rows, rows >= total, misfits, tuple(examples))


def _batches(dataset: Any, sources: list[dict[str, Any]], *, by_fragment: bool) -> Iterator[tuple[bool, Any]]:
    """With whether a file begins: a dictionary is one of its file."""
    for fragment in dataset.get_fragments() if by_fragment else (None,):
        chosen = None if fragment is None else [fragment]
        begins = True
        for batch in evolve_task.scanned(dataset, sources, chosen).to_batches():
            yield begins, batch
            begins = False


def _whole(fields: Fields, path: str, check: ValueCheck) -> tuple[str, Any]:
    """The column that has the field, and its type afterwards. Arrow judges the numbers in there as Lance does; of the
    other types it refuses what Lance only rounds."""
    assert check.type is not None
    if not isinstance(check.type, Scalar):
        raise LookupError(path)
    head = path.partition(".")[0]
    after = altered_fields(fields, AlterColumns((), (ColumnAlteration(path, type=check.type),)))
    return head, to_arrow_type(next(f for f in after if f.name == head).type)


def _misfits(values: Any, batch: Any, check: ValueCheck, wanted: Any, in_place: bool) -> Iterator[int]:
    """The places in the batch, in order."""
    if check.type is None:
        return _nulls(values)
    if in_place:
        return _lost(values, batch.column(evolve_task.value_name(1)))
    return column_casts.misfits(values, wanted)


def _nulls(values: Any) -> Iterator[int]:
    return (at for at in range(len(values)) if not values[at].is_valid) if values.null_count else iter(())


def _lost(values: Any, cast: Any) -> Iterator[int]:
    """At any depth: a cast that is only tried gives null where it fails, and infinity for a number too large."""
    if _deep_nulls(values) == _deep_nulls(cast) and column_casts.infinities(values) == column_casts.infinities(cast):
        return iter(())
    return (at for at in range(len(values)) if _gone(values[at].as_py(), cast[at].as_py()))


def _too_many(values: Any, room: int, counted: int) -> tuple[set[int], int]:
    """The places of the values for which a dictionary has no room, and how many entries it has then. Lance puts the
    dictionaries of all batches together and may leave a value in there several times; it commits a column that nobody
    can read once the index does not count them. So a value counts once for each batch that it is in."""
    beyond: set[int] = set()
    for start in range(0, len(values), _LANCE_BATCH):
        part = values.slice(start, _LANCE_BATCH)
        encoded = part if pa.types.is_dictionary(part.type) else part.dictionary_encode()
        over = pc.greater_equal(encoded.indices.cast(pa.int64()), room - counted)
        beyond |= {start + at for at in pc.indices_nonzero(over).to_pylist()}
        counted += len(encoded.dictionary)
    return beyond, counted


def _deep_nulls(values: Any) -> int:
    types = pa.types
    count = int(values.null_count)
    if types.is_struct(values.type):
        return count + sum(_deep_nulls(part) for part in values.flatten())
    if types.is_list(values.type) or types.is_large_list(values.type) or types.is_fixed_size_list(values.type):
        return count + _deep_nulls(values.flatten())
    if types.is_dictionary(values.type):
        return int(values.dictionary_decode().null_count)
    return count


def _gone(value: Any, cast: Any) -> bool:
    if isinstance(value, dict) and isinstance(cast, dict):
        return any(_gone(value[key], cast.get(key)) for key in value)
    if isinstance(value, list) and isinstance(cast, list):
        return any(_gone(a, b) for a, b in zip(value, cast, strict=True))
    if isinstance(value, float) and isinstance(cast, float):
        return math.isinf(cast) and math.isfinite(value)
    return value is not None and cast is None


def _example(value: Any, row: int, check: ValueCheck) -> str:
    return f"row {row}" if check.type is None else f"{column_casts.shown(value)} in row {row}"
