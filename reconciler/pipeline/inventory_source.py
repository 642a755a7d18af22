"""The history of a fleet as a table of Spark: `spark.read.format("reconciler_inventory").option("history", URI)`.

The version is pinned when the table is named, so that all the processes that plan and read it agree. The module stands
alone: Spark carries it by value to processes that have pylance and nothing of this program.

What to read is chosen by options. Filters of a query are pushed down only on request (`pushdown`): Spark 4.3 keeps the
filters of one use of a table for its other uses, in the same query even, and gives wrong rows then (`SELECT … WHERE a
UNION ALL SELECT … WHERE b` reads one of the two). Who asks for it uses what was loaded once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, InputPartition, StringStartsWith

NAME = "reconciler_inventory"
MOST_PARTITIONS = 8


def register(spark: Any, storage_options: Mapping[str, str] | None = None) -> None:
    """Makes the format known to a session. The storage options travel with the code: what is given as an option of
    the format, Spark shows in plans and logs."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.dataSource.register(type("Source", (InventorySource,), {"storage": dict(storage_options or {})}))


@dataclass
class Part(InputPartition):
    fragments: Sequence[int]

    def __init__(self, fragments: Sequence[int]) -> None:
        super().__init__(None)
        self.fragments = fragments


class InventorySource(DataSource):
    """Options: `history`; `version` for an older one; `catalog`, `run` and `prefix` (of identifiers) for a part: Lance
    reads no more than that. `pushdown=true` finds such a part in the query's own filters; the session needs
    spark.sql.python.filterPushdown.enabled for it, as ours has."""

    storage: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        if "history" not in options:
            raise ValueError('say where the history is: .option("history", URI)')
        self._uri: str = options["history"]
        self._storage = dict(self.storage)
        self._filter = chosen(options.get("catalog"), options.get("run"), options.get("prefix"))
        self._pushes = str(options.get("pushdown", "false")).lower() == "true"
        self._version: int = _opened(self._uri, self._storage, options.get("version")).version

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_opened(self._uri, self._storage, self._version).schema)

    def reader(self, schema: Any) -> Reader:
        kind = PushingReader if self._pushes else Reader
        return kind((self._uri, self._storage, self._version), [*schema.fieldNames()], self._filter)


class Reader(DataSourceReader):
    def __init__(self, where: tuple[str, dict[str, str], int], columns: list[str], chosen: str | None) -> None:
        self._where = where
        self._columns = columns
        self._filter = chosen

    def partitions(self) -> Sequence[InputPartition]:
        ids = [f.fragment_id for f in _opened(*self._where).get_fragments()]
        count = min(len(ids), MOST_PARTITIONS)
        return [Part(ids[number::count]) for number in range(count)] or [Part([])]

    def read(self, partition: Any) -> Iterator[Any]:
        dataset = _opened(*self._where)
        fragments = [dataset.get_fragment(i) for i in partition.fragments]
        if fragments:
            yield from dataset.scanner(self._columns, filter=self._filter, fragments=fragments).to_batches()


class PushingReader(Reader):
    def pushFilters(self, filters: Sequence[Filter]) -> Iterator[Filter]:
        """Takes equality of the catalog, the run and the identifier, and beginnings of the identifier; gives back the
        rest, for Spark to do."""
        for one in filters:
            told = _in_lance(one)
            if told is None:
                yield one
            else:
                self._filter = told if self._filter is None else f"{self._filter} AND {told}"


def _in_lance(one: Filter) -> str | None:
    match one:
        case EqualTo(attribute=(("catalog" | "run" | "id") as name,), value=str() as value):
            return f"{name} = {_quoted(value)}"
        case StringStartsWith(attribute=("id",), value=str() as value):
            return f"starts_with(id, {_quoted(value)})"
        case _:
            return None


def chosen(catalog: str | None, run: str | None, prefix: str | None) -> str | None:
    """In the words of Lance. The row of a catalog has no identifier, and no prefix finds it."""
    parts = [f"{name} = {_quoted(value)}" for name, value in (("catalog", catalog), ("run", run)) if value is not None]
    if prefix is not None:
        parts.append(f"starts_with(id, {_quoted(prefix)})")
    return " AND ".join(parts) or None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _opened(uri: str, storage: dict[str, str], version: Any) -> Any:
    import lance

    return lance.dataset(uri, version=None if version is None else int(version), storage_options=storage or None)
