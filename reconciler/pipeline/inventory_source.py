"""The history of a fleet as a table of Spark: `spark.read.format("reconciler_inventory").option("history", URI)`.

The version is pinned when the table is named, so that all the processes that plan and read it agree. Conditions on
`catalog`, `run`, `kind` and `id` (also prefixes of it) are left to Lance. The module stands alone: Spark carries it by
value to processes that have pylance and nothing of this program.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    In,
    InputPartition,
    StringStartsWith,
)

NAME = "reconciler_inventory"
PUSHED = ("catalog", "run", "kind", "id")
MOST_PARTITIONS = 32


def register(spark: Any, storage_options: Mapping[str, str] | None = None) -> None:
    """Makes the format known to a session, and lets Spark hand conditions to it. The storage options travel with the
    code: what is given as an option of the format, Spark shows in plans and logs."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(type("Source", (InventorySource,), {"storage": dict(storage_options or {})}))


@dataclass
class Part(InputPartition):
    fragments: Sequence[int]

    def __init__(self, fragments: Sequence[int]) -> None:
        super().__init__(None)
        self.fragments = fragments


class InventorySource(DataSource):
    """Options: `history`, and `version` for an older one."""

    storage: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        if "history" not in options:
            raise ValueError('say where the history is: .option("history", URI)')
        self._uri: str = options["history"]
        self._storage = dict(self.storage)
        self._version: int = _opened(self._uri, self._storage, options.get("version")).version

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_opened(self._uri, self._storage, self._version).schema)

    def reader(self, schema: Any) -> Reader:
        return Reader(self._uri, self._storage, self._version, [*schema.fieldNames()])


class Reader(DataSourceReader):
    def __init__(self, uri: str, storage: dict[str, str], version: int, columns: list[str]) -> None:
        self._where = (uri, storage, version)
        self._columns = columns
        self.pushed: list[str] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for one in filters:
            text = condition(one)
            if text is None:
                yield one
            else:
                self.pushed.append(text)

    def partitions(self) -> Sequence[InputPartition]:
        ids = [f.fragment_id for f in _opened(*self._where).get_fragments()]
        count = min(len(ids), MOST_PARTITIONS)
        return [Part(ids[number::count]) for number in range(count)] or [Part([])]

    def read(self, partition: Any) -> Iterator[Any]:
        dataset = _opened(*self._where)
        fragments = [dataset.get_fragment(i) for i in partition.fragments]
        if fragments:
            chosen = " AND ".join(f"({text})" for text in self.pushed) or None
            yield from dataset.scanner(self._columns, filter=chosen, fragments=fragments).to_batches()


def condition(of: Filter) -> str | None:
    """In the words of Lance; None when Spark has to look itself."""
    path: tuple[str, ...] = getattr(of, "attribute", ())
    column = path[0] if len(path) == 1 else ""
    if column not in PUSHED:
        return None
    match of:
        case EqualTo(value=str(value)):
            return f"{column} = {_quoted(value)}"
        case StringStartsWith(value=str(value)):
            return f"starts_with({column}, {_quoted(value)})"
        case In(value=values) if values and all(isinstance(v, str) for v in values):
            return f"{column} IN ({', '.join(_quoted(v) for v in values)})"
    return None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _opened(uri: str, storage: dict[str, str], version: Any) -> Any:
    import lance

    return lance.dataset(uri, version=None if version is None else int(version), storage_options=storage or None)
