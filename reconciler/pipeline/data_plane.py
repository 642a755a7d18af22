"""The steps of a plan that move rows, on Spark. The session starts with the first of them and serves all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from reconciler.catalog.base import Catalog, DataPlace, WriteContext, Written
from reconciler.catalog.lance_errors import clean, system_error
from reconciler.model.change import BackfillColumns, DataChange, MaterializeTable, MigrateTable, RewriteColumns
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import OWNER_KEY, DatasetState, TableState
from reconciler.pipeline.jobs import Work, answers_here, cores
from reconciler.pipeline.session import GaveUp, SparkError, SparkOptions, session
from reconciler.pipeline.table_task import Unit

Line = Callable[[float], str]
"""Of the progress display, from the seconds since the start."""


@dataclass
class Running:
    """One session, for any number of steps at a time. Only DataFrame calls are made on it."""

    options: SparkOptions
    show: Callable[[Line], None] = lambda line: None
    stopped: Callable[[], bool] = lambda: False
    """The run is to stop: a step that has not committed yet gives up."""
    resolve: Callable[[Mapping[str, object]], Mapping[str, Any]] = dict
    """A source as written -> with its secrets; raises CatalogError."""
    storage: Callable[[str], Mapping[str, str]] = lambda catalog: {}
    """What opens the stores of a catalog, for a source that says nothing of its own."""
    hide: Callable[[Iterable[str]], None] = lambda secrets: None
    """Values that no output may show."""
    catalogs: Mapping[str, Catalog] = field(default_factory=dict)
    """By name: also those that tables are only copied from."""
    saved: bool = False
    """The plan was read from a file: it is for the rows that it was made on."""
    views: threading.Lock = field(default_factory=threading.Lock)
    """Held while a query has views: they are names in the one session."""
    _open: ExitStack = field(default_factory=ExitStack)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _spark: Any = None
    _slots: int = 0

    def spark(self) -> tuple[Any, int]:
        """And how many tasks run at a time. Raises SparkError."""
        with self._lock:
            if self._spark is None:
                self.show(lambda seconds: "starting Spark")
                self._spark = self._open.enter_context(session(self.options))
                self._slots = cores(self._spark)
            return self._spark, self._slots

    def here(self, units: Sequence[Unit], work: Work) -> Iterator[dict[str, Any]]:
        """The answers of tasks that run in this process. Raises SparkError."""
        return answers_here(units, work, self.stopped)

    def need_time(self) -> None:
        if self.stopped():
            raise CatalogError(Code.INTERNAL, "the run is to stop: nothing of this step was committed", gave_up=True)

    def close(self) -> None:
        self._open.close()


class SparkDataPlane:
    def __init__(self, running: Running) -> None:
        self._running = running

    def moved(self, catalog: str, change: DataChange) -> str | None:
        if not isinstance(change, MaterializeTable):
            return None
        from reconciler.pipeline.materialize import moved

        try:
            return moved(self._running, change, self._running.storage(catalog))
        except CatalogError as error:
            return error.message

    def rows_changed(self, catalog: Catalog, change: MaterializeTable, state: TableState) -> str | None:
        from reconciler.pipeline.materialize import rows_changed

        try:
            place = catalog.data_place(change.ident, state)
            self._running.hide(place.storage_options.values())
            return rows_changed(change, place, saved=self._running.saved)
        except CatalogError as error:
            return error.message

    def apply(self, catalog: Catalog, change: DataChange, state: TableState, context: WriteContext) -> Written:
        place = catalog.data_place(change.ident, state)
        self._running.hide(place.storage_options.values())
        if isinstance(state.dataset, DatasetState):
            from reconciler.pipeline.claims import opened

            context.need_mark(opened(place).metadata.get(OWNER_KEY), place.uri)
        try:
            return self._run(change, place, context)
        except SparkError as error:
            raise _told(error) from error

    def _run(self, change: DataChange, place: DataPlace, context: WriteContext) -> Written:
        match change:
            case MaterializeTable():
                from reconciler.pipeline.materialize import materialize

                return materialize(self._running, change, place, context)
            case BackfillColumns() | RewriteColumns():
                from reconciler.pipeline.evolve import evolve

                return evolve(self._running, change, place, context)
            case MigrateTable():
                from reconciler.pipeline.migrate import migrate

                return migrate(self._running, change, place, context)

    def close(self) -> None:
        self._running.close()


def _told(error: SparkError) -> CatalogError:
    """What is wrong with the data, where a task had no other way to say it; anything else Spark has tried again."""
    text = str(error)
    changed = "file_reader.FileChangedError: "
    if changed in text:
        return CatalogError(Code.INVALID_TABLE_STATE, f"{text.partition(changed)[2]}; nothing was committed")
    for kind in ("file_reader.FileError: ", "conform.ValueProblem: "):
        if kind in text:
            return CatalogError(Code.INVALID_INPUT, f"the source does not fit the table: {text.partition(kind)[2]}")
    if isinstance(error, GaveUp):
        return CatalogError(Code.INTERNAL, text, gave_up=True)
    return system_error(text, "read or write the files of the rows") or CatalogError(Code.INTERNAL, clean(text))
