"""Reads tables on Spark: small ones whole, many in a task; large ones by groups of fragments, in a second round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.catalog.base import DataPlace
from reconciler.catalog.lance_files import check_rows
from reconciler.core.text import speed
from reconciler.core.verdicts import tasks_of, without_column
from reconciler.model.arrow import Field
from reconciler.model.checks import NO_CHECKS, Checks
from reconciler.model.errors import CatalogError
from reconciler.pipeline import checksum, table_task
from reconciler.pipeline.jobs import TASKS_PER_CORE, answers, cores, repeated_keys
from reconciler.pipeline.session import SparkError
from reconciler.pipeline.table_task import Unit

SPLIT_BYTES = 64 * 2**20
"""A table with more than this in its files is read by several tasks."""


@dataclass(frozen=True)
class Source:
    """A table at the version that was pinned when its schema was read."""

    place: DataPlace
    version: int
    fields: tuple[Field, ...]
    checks: Checks = NO_CHECKS
    refused: Mapping[str, str] = field(default_factory=dict)
    """By the name of a check: why its SQL is not given to an executor, which it might end."""

    def cannot(self, task: Mapping[str, Any]) -> str | None:
        """Why a check cannot be made on this table, or None."""
        return self.refused.get(task["name"]) or without_column(task, self.fields)


@dataclass
class Reading:
    """What is known of a table. `error`: why it could not be read; nothing else counts then."""

    rows: int = 0
    bytes: int = 0
    sums: tuple[int, int] = (0, 0)
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: str | None = None

    @property
    def checksum(self) -> str:
        return checksum.shown(self.sums)

    def add(self, answer: Mapping[str, Any]) -> None:
        if "error" in answer:
            self.error = self.error or str(answer["error"])
            return
        self.rows += answer["rows"]
        self.bytes += answer["bytes"]
        first, second = answer["sums"]
        self.sums = checksum.added(self.sums, (int(first, 16), int(second, 16)))
        for name, seen in answer["found"].items():
            self.found[name] = _together(self.found.get(name), seen)


def _together(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    if one is None or "error" in other:
        return other
    if "error" in one:
        return one
    if "newest" in one:
        return {"newest": max((t for t in (one["newest"], other["newest"]) if t is not None), default=None)}
    return {"bad": one["bad"] + other["bad"]}


@dataclass(frozen=True)
class Pace:
    """How far it is, for a progress line."""

    tables: int
    of: int
    rows: int
    bytes: int
    parts: int = 0
    """Groups of fragments of large tables, done and of how many."""
    of_parts: int = 0

    def line(self, seconds: float) -> str:
        parts = f", {self.parts}/{self.of_parts} parts of large ones" if self.of_parts else ""
        return f"{self.tables}/{self.of} tables{parts}, {self.rows} rows{speed(self.bytes, seconds)}, {seconds:.0f} s"


def read_tables(
    spark: Any, sources: Sequence[Source], show: Callable[[Pace], None] = lambda pace: None, split: int = SPLIT_BYTES
) -> list[Reading]:
    """One reading for each source, in their order. Raises SparkError when Spark itself fails."""
    slots = cores(spark)
    readings = [Reading(error=_unreadable(source)) for source in sources]
    units = {n: _unit(n, source, split) for n, source in enumerate(sources) if readings[n].error is None}
    large: dict[int, list[list[int]]] = {}
    read = len(sources) - len(units)
    for answer in answers(spark, list(units.values()), slots, table_task.verify):
        number = answer["key"]
        if "fragments" in answer:
            large[number] = answer["fragments"]
            continue
        readings[number].add(answer)
        read += 1
        show(_pace(read, readings))
    parts = [unit for number, fragments in sorted(large.items()) for unit in _parts(units[number], fragments, slots)]
    waiting = {number: sum(1 for u in parts if u["key"] == number) for number in large}
    for done, answer in enumerate(answers(spark, parts, slots, table_task.verify), 1):
        readings[answer["key"]].add(answer)
        waiting[answer["key"]] -= 1
        whole = read + sum(1 for left in waiting.values() if not left)
        show(replace(_pace(whole, readings), parts=done, of_parts=len(parts)))
    for number in sorted(large):
        _unique(spark, sources[number], [u for u in parts if u["key"] == number], slots, readings[number])
    for source, reading in zip(sources, readings, strict=True):
        _not_made(source, reading)
    return readings


def _unreadable(source: Source) -> str | None:
    """Why no task is to read it: it would wait for ever."""
    try:
        check_rows(source.place.uri)
    except CatalogError as error:
        return error.message
    return None


def _pace(read: int, readings: Sequence[Reading]) -> Pace:
    return Pace(read, len(readings), sum(r.rows for r in readings), sum(r.bytes for r in readings))


def _unit(number: int, source: Source, split: int) -> Unit:
    checks = [t for t in tasks_of(source.checks) if source.cannot(t) is None]
    return {
        "key": number,
        "uri": source.place.uri,
        "options": dict(source.place.storage_options),
        "version": source.version,
        "fragments": None,
        "split": split,
        "checks": checks,
    }


def _not_made(source: Source, reading: Reading) -> None:
    for task in tasks_of(source.checks):
        reason = source.cannot(task)
        if reason is not None:
            reading.found[task["name"]] = {"error": reason}


def _parts(unit: Unit, fragments: Sequence[Sequence[int]], slots: int) -> Iterator[Unit]:
    """Groups of fragments of about one size. Uniqueness is a matter of all of them together, and comes after."""
    checks = [c for c in unit["checks"] if c["kind"] != "unique"]
    groups: list[tuple[int, list[int]]] = [(0, []) for _ in range(min(len(fragments), slots * TASKS_PER_CORE))]
    for ident, size in sorted(fragments, key=lambda f: -f[1]):
        smallest = min(range(len(groups)), key=lambda i: groups[i][0])
        groups[smallest] = (groups[smallest][0] + size, [*groups[smallest][1], ident])
    for _, ids in groups:
        yield {**unit, "fragments": sorted(ids), "checks": checks}


def _unique(spark: Any, source: Source, parts: Sequence[Unit], slots: int, reading: Reading) -> None:
    """By a shuffle of the keys' hashes: a key may be anywhere in the table."""
    for task in tasks_of(source.checks):
        if task["kind"] != "unique" or source.cannot(task) is not None or reading.error:
            continue
        units = [{**part, "columns": task["columns"]} for part in parts]
        try:
            reading.found[task["name"]] = {"bad": repeated_keys(spark, units, slots)}
        except SparkError as error:
            reading.found[task["name"]] = {"error": str(error)}
