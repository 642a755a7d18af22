"""New columns with values for the rows that exist, and columns written anew in another type.

Fragments are worked on in parallel; the new columns are files beside the old ones, and one Merge commit shows them all.
Lance refuses that commit when anybody changed the rows meanwhile, and refuses theirs when ours was first. Then only the
fragments that are not as they were are done again. In a rewrite the old column's values stay in the files, without a
name, until the table is compacted.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reconciler.catalog.arrow_convert import from_arrow_schema, to_arrow_field
from reconciler.catalog.base import DataPlace, WriteContext, Written
from reconciler.catalog.lance_cast import need_only, temporary_names
from reconciler.catalog.lance_errors import to_catalog_error, translated
from reconciler.catalog.lance_files import check_rows
from reconciler.catalog.schema_protos import extended, replaced
from reconciler.core.fields import plain
from reconciler.model.arrow import Field
from reconciler.model.change import BackfillColumns, RewriteColumns
from reconciler.model.errors import CatalogError, Code
from reconciler.model.spark import Runner
from reconciler.pipeline import column_casts, evolve_task, sql_overflow
from reconciler.pipeline.claims import Clock, Held, claimed, opened
from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.functions import carry, columns_given, load_function
from reconciler.pipeline.jobs import TASKS_PER_CORE, answers
from reconciler.pipeline.sql_operations import operations
from reconciler.pipeline.table_task import THREADS
from reconciler.pipeline.way_back import tagged, version_before

ATTEMPTS = 10
"""To commit before somebody else changes the rows."""
Source = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """What is to be written: the columns as they will be, under temporary names where the old ones are still there."""

    schema: Any
    sources: list[Source]
    finals: dict[str, str]
    """Temporary name -> name."""


@dataclass(frozen=True)
class Done:
    """A fragment with its new columns. `of`: the print of the fragment and the table's schema without them."""

    of: str
    meta: str
    schema: tuple[str, ...]


def evolve(
    running: Running, change: BackfillColumns | RewriteColumns, place: DataPlace, context: WriteContext
) -> Written:
    """Nothing is written, not even a claim, when the columns are as wanted or cannot become so. Raises CatalogError."""
    dataset = opened(place)
    if _recipe(dataset, change) is None:
        return Written(dataset.version, dataset.version, False)
    check_rows(place.uri)
    with claimed(place, context, Clock(stopped=running.stopped)) as held:
        return _evolved(running, change, held, context)


def _evolved(running: Running, change: BackfillColumns | RewriteColumns, held: Held, context: WriteContext) -> Written:
    from lance import LanceOperation

    tag = context.tag
    known: dict[int, Done] = {}
    for _ in range(ATTEMPTS):
        recipe = _recipe(held.dataset, change)
        if recipe is None:
            return Written(held.version, held.version, False)
        metas, schema = _merged(running, context.runner, recipe, held, known)
        running.need_time()
        _need_known_indexes(opened(held.place), change, recipe)
        before = version_before(held)
        try:
            with tagged(held.dataset, tag, before):
                after = held.commit(LanceOperation.Merge(metas, replaced(schema, recipe.finals)))
            return Written(before, after.version, tag is not None)
        except CatalogError as error:
            if error.code != Code.CONCURRENT_MODIFICATION:
                raise
            held.pin_again()
    raise CatalogError(
        Code.CONCURRENT_MODIFICATION,
        f"the rows of {held.place.uri} were changed {ATTEMPTS} times while the new columns were written: nothing was "
        "committed; apply again when there is less going on",
    )


def _recipe(dataset: Any, change: BackfillColumns | RewriteColumns) -> Recipe | None:
    """None when everything is as wanted already. Raises CatalogError for what cannot be done."""
    live = {f.name: f for f in from_arrow_schema(dataset.schema)[0]}
    wanted = [plain(f) for f in change.fields]
    if all(live.get(f.name) == f for f in wanted):
        return None
    if isinstance(change, BackfillColumns):
        if taken := [f.name for f in wanted if f.name in live]:
            message = f"there is a column {taken[0]} in {dataset.uri} already, but it is not as declared"
            raise CatalogError(Code.TABLE_SCHEMA_VALIDATION_ERROR, message)
        sources = [_source(f, dataset, list(live)) for f in change.fields]
        recipe = Recipe(pa.schema([to_arrow_field(f) for f in wanted]), sources, {})
    else:
        if lost := [f.name for f in wanted if f.name not in live]:
            raise CatalogError(Code.TABLE_COLUMN_NOT_FOUND, f"there is no column {lost[0]} in {dataset.uri} any more")
        recipe = _rewritten([f for f in wanted if live[f.name] != f], live)
        _need_known_indexes(dataset, change, recipe)
    _need_casts(dataset, recipe)
    return recipe


def _source(f: Field, dataset: Any, there: Sequence[str]) -> Source:
    if f.function is None:
        found = sql_overflow.of_integers(dataset, operations(f.default or ""))
        return {"column": f.name, "sql": f.default, "operations": found}
    function = load_function(f.function)
    return {"column": f.name, "function": function, "columns": columns_given(f.function, function, there)}


def _rewritten(fields: Sequence[Field], taken: Mapping[str, object]) -> Recipe:
    finals = temporary_names([f.name for f in fields], taken)
    schema = [to_arrow_field(f).with_name(name) for f, name in zip(fields, finals, strict=True)]
    return Recipe(pa.schema(schema), [{"column": f.name, "sql": evolve_task.quoted(f.name)} for f in fields], finals)


def _need_casts(dataset: Any, recipe: Recipe) -> None:
    """Before anything is written: the SQL is understood, and what it gives can be cast to what is declared."""
    with translated(f"compute {_names(recipe)} of {dataset.uri}", write=False):
        found = evolve_task.scanned(dataset, recipe.sources).projected_schema
        for number, source in enumerate(recipe.sources):
            if "sql" in source:
                type_ = evolve_task.value_type(found, number)
                try:
                    column_casts.need_cast(source["column"], type_, recipe.schema.field(number).type)
                except column_casts.Misfit as error:
                    raise CatalogError(Code.UNSUPPORTED, f"{dataset.uri}: {error}") from error


def _names(recipe: Recipe) -> str:
    return ", ".join(source["column"] for source in recipe.sources)


def _need_known_indexes(dataset: Any, change: BackfillColumns | RewriteColumns, recipe: Recipe) -> None:
    if isinstance(change, RewriteColumns):
        need_only(dataset, set(recipe.finals.values()), change.loses)


def _merged(
    running: Running, runner: Runner, recipe: Recipe, held: Held, known: dict[int, Done]
) -> tuple[list[Any], Any]:
    """All fragments of the pinned version with the new columns, and the schema that they have then. `known`: those that
    were done for an earlier version; they are still good while the fragment and the schema are the same."""
    from lance.fragment import FragmentMetadata
    from lance.schema import LanceSchema

    columns = evolve_task.packed(held.dataset.lance_schema)
    fragments = {f.fragment_id: _print(f.metadata, columns) for f in held.dataset.get_fragments()}
    if not fragments:
        return [], extended(held.dataset.lance_schema, recipe.schema)
    todo = [number for number, of in fragments.items() if number not in known or known[number].of != of]
    known.update(_computed(running, runner, recipe, held, {number: fragments[number] for number in todo}))
    if len({known[number].schema for number in fragments}) > 1:  # Ids that are no longer in any file are given again.
        known.update(_computed(running, runner, recipe, held, fragments))
    metadata, *fields = known[next(iter(fragments))].schema
    schema = LanceSchema._from_protos(metadata, *(base64.b64decode(field) for field in fields))
    return [FragmentMetadata.from_json(known[number].meta) for number in fragments], schema


def _print(metadata: Any, columns: Sequence[str]) -> str:
    whole = json.dumps([metadata.to_json(), *columns], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _computed(
    running: Running, runner: Runner, recipe: Recipe, held: Held, fragments: dict[int, str]
) -> dict[int, Done]:
    if not fragments:
        return {}
    running.need_time()
    done: dict[int, Done] = {}
    nulls: dict[str, int] = {}
    for answer in _answers(running, runner, recipe, held, list(fragments)):
        _need_answer(answer, recipe, held.place)
        for name, count in answer.get("nulls", {}).items():
            nulls[name] = nulls.get(name, 0) + count
        for number, meta in answer.get("fragments", {}).items():
            done[int(number)] = Done(fragments[int(number)], json.dumps(meta), tuple(answer["schema"]))
        running.show(_line(recipe, len(done), len(fragments)))
    if nulls:
        told = ", ".join(f"{name} has no value in {count} rows" for name, count in sorted(nulls.items()))
        raise CatalogError(
            Code.TABLE_SCHEMA_VALIDATION_ERROR,
            f"{held.place.uri}: {told}, but it is declared NOT NULL: nothing was committed",
        )
    return done


def _answers(
    running: Running, runner: Runner, recipe: Recipe, held: Held, numbers: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Of the same tasks, wherever they run."""
    if runner == "local":
        yield from running.here(_units(recipe, held, numbers, 1), evolve_task.evolve)
        return
    spark, slots = running.spark()
    _carry(recipe)
    yield from answers(spark, _units(recipe, held, numbers, slots), slots, evolve_task.evolve, stopped=running.stopped)


def _line(recipe: Recipe, done: int, of: int) -> Any:
    return lambda seconds: f"{_names(recipe)}: {done}/{of} fragments, {seconds:.0f} s"


def _carry(recipe: Recipe) -> None:
    from pyspark import cloudpickle

    for module in (column_casts, sql_overflow):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    for source in recipe.sources:
        if "function" in source:
            carry(source["function"])


def _units(recipe: Recipe, held: Held, numbers: Sequence[int], slots: int) -> list[dict[str, Any]]:
    """Some for each thread of each task: many small fragments wait for their storage together."""
    job = {
        "uri": held.place.uri,
        "options": dict(held.place.storage_options),
        "version": held.version,
        "schema": recipe.schema.serialize().to_pybytes(),
        "sources": recipe.sources,
    }
    count = min(len(numbers), slots * TASKS_PER_CORE * THREADS)
    return [{"job": job, "fragments": list(numbers[start::count])} for start in range(count)]


def _need_answer(answer: dict[str, Any], recipe: Recipe, place: DataPlace) -> None:
    if "misfit" in answer:
        message = f"{place.uri}: {answer['misfit']}; nothing was committed"
        raise CatalogError(Code.TABLE_SCHEMA_VALIDATION_ERROR, message)
    if "error" in answer:
        raise to_catalog_error(RuntimeError(answer["error"]), f"write {_names(recipe)} of {place.uri}", write=False)
