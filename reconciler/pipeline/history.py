"""The history of a fleet: a Lance table with one row for each table and run, and one for each catalog and run.

A run is in it once or not at all: tasks write files, the driver makes one commit that carries the run's id, and looks
for that id before it commits and after an answer that was lost. The table is created with compare-and-swap.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.pipeline.fleet_task import READ, arrow_schema
from reconciler.pipeline.jobs import done

RUN_KEY = "reconciler.run"
COLUMNS = "run string, at timestamp, drift long, " + READ[: READ.index(", key string")]
"""`kind` is Catalog or Table. `error` of a Catalog: why it was not listed completely. `drift`: of a Catalog, and only
when it was compared: how many objects are not as declared."""
TRIES = 5
Row = Mapping[str, Any]


class HistoryError(Exception):
    """The history cannot be used: what, and what to do."""


@dataclass(frozen=True)
class History:
    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def version(self) -> int | None:
        """None: it is not there yet. Raises HistoryError when what is there is something else."""
        dataset = self._opened()
        return None if dataset is None else int(dataset.version)

    def create(self) -> int:
        """Unless it is there. Of two that do it at once, one does."""
        import lance
        from lance import LanceDataset, LanceOperation

        found = self.version()
        if found is not None:
            return found
        operation = LanceOperation.Overwrite(arrow_schema(COLUMNS), [])
        made = lance.Transaction(read_version=0, operation=operation)
        try:
            LanceDataset.commit(self.uri, made, storage_options=self._options, max_retries=0)
        except Exception as error:
            if self.version() is None:
                raise HistoryError(f"the history {self.uri} cannot be created: {error}") from error
        found = self.version()
        assert found is not None
        return found

    def write(self, frame: Any, tasks: int) -> list[str]:
        """The rows of the frame as files that no version refers to yet. Raises SparkError."""
        job = _writing(self.uri, dict(self.options), COLUMNS)
        return [row[0] for row in done(frame.coalesce(tasks).mapInArrow(job, "fragment string").collect)]

    def write_here(self, rows: Sequence[Row]) -> list[str]:
        import pyarrow as pa

        schema = arrow_schema(COLUMNS)
        whole = [{name: row.get(name) for name in schema.names} for row in rows]
        batches = pa.Table.from_pylist(whole, schema).to_batches()
        return [b.column(0)[0].as_py() for b in _writing(self.uri, dict(self.options), COLUMNS)(batches)]

    def commit(self, run: str, fragments: Sequence[str], since: int) -> int:
        """The version that has the run. `since`: the version before the run began; it cannot be in an older one.
        Raises HistoryError: then it is not in the history, or nobody can say."""
        import lance
        from lance import LanceDataset, LanceOperation
        from lance.fragment import FragmentMetadata

        added_here = [FragmentMetadata.from_json(text) for text in fragments]
        self._need_files(added_here)
        operation = LanceOperation.Append(added_here)
        added = lance.Transaction(read_version=since, operation=operation, transaction_properties={RUN_KEY: run})
        problem: Exception | None = None
        for attempt in range(TRIES):
            time.sleep(0.2 * attempt)
            try:
                found = self.find(run, since)
                if found is not None:
                    return found
                return int(LanceDataset.commit(self.uri, added, storage_options=self._options).version)
            except Exception as error:
                problem = error
        raise HistoryError(f"run {run} may not be in the history {self.uri}: {problem}") from problem

    def _need_files(self, fragments: Sequence[Any]) -> None:
        """A version must not refer to files on the disks of executors."""
        for name in (file.path for fragment in fragments for file in fragment.files):
            if "://" not in self.uri and not os.path.exists(os.path.join(self.uri, "data", name)):
                raise HistoryError(f"the executors wrote elsewhere: the history {self.uri} has to be on shared storage")

    def find(self, run: str, since: int) -> int | None:
        """The version whose commit carries the run's id."""
        dataset = self._opened()
        if dataset is None:
            return None
        newest = int(dataset.version)
        for back, transaction in enumerate(dataset.get_transactions(max(1, newest - since))):
            if transaction is not None and transaction.transaction_properties.get(RUN_KEY) == run:
                return newest - back
        return None

    def _opened(self) -> Any:
        import lance

        try:
            dataset = lance.dataset(self.uri, storage_options=self._options)
        except ValueError as error:
            if "was not found" in str(error):
                return None
            raise HistoryError(f"the history {self.uri} cannot be read: {error}") from error
        except Exception as error:
            raise HistoryError(f"the history {self.uri} cannot be read: {error}") from error
        missing = [f.name for f in arrow_schema(COLUMNS) if f not in [*dataset.schema]]
        if missing:
            raise HistoryError(
                f"{self.uri} is not a history of this version: {missing[0]} is missing or of another type; give "
                "another place with --history"
            )
        return dataset

    @property
    def _options(self) -> dict[str, str] | None:
        return dict(self.options) or None


def _writing(uri: str, options: dict[str, str], layout: str) -> Any:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from lance.fragment import write_fragments

        schema = arrow_schema(layout)
        some = (batch.select(schema.names).cast(schema) for batch in batches if batch.num_rows)
        first = next(some, None)
        if first is None:
            return
        reader = pa.RecordBatchReader.from_batches(schema, _chained(first, some))
        made: Any = write_fragments(reader, uri, schema=schema, mode="append", storage_options=options or None)
        texts = [json.dumps(f.to_json()) for f in made]
        yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["fragment"])

    return run


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
