"""A table that the program fills from files, in any kind of catalog, and what others do to its rows with plain
pylance. Tasks run in this process unless a test brings a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from cli.cli_runs import Run, reconciler
from contract.backends import BACKENDS, Site
from pipeline.in_process import InProcess

from reconciler.catalog.base import DataPlace
from reconciler.model.observed import Present, Scope
from reconciler.model.state import TableState
from reconciler.pipeline import data_plane
from reconciler.verbs import tables

MAKE = {backend.name: backend for backend in BACKENDS}
EACH = 10
APPEND, REPLACE, ONCE = "append", "replace-if-changed", "once"
COLUMNS = [{"name": "id", "type": "int64"}, {"name": "text", "type": "string"}]


def rows(start: int, count: int = EACH, text: str = "row") -> pa.Table:
    ids = list(range(start, start + count))
    return pa.table({"id": ids, "text": [f"{text} {n}" for n in ids]})


@dataclass
class FilledTable:
    folder: Path
    site: Site
    home: tuple[str, ...]
    mode: str = APPEND
    spec: dict[str, Any] = field(default_factory=dict)
    columns: list[dict[str, Any]] = field(default_factory=lambda: [dict(c) for c in COLUMNS])
    session: Callable[[Any], Any] | None = lambda _options: nullcontext(InProcess())
    """None: the sessions of the program itself."""

    @property
    def ident(self) -> tuple[str, ...]:
        return (*self.site.container, *self.home, "t")

    def source(self, *numbers: int) -> None:
        (self.folder / "raw").mkdir(exist_ok=True)
        for number in numbers:
            pq.write_table(rows(number * EACH), self.folder / "raw" / f"{number}.parquet")

    def write(self) -> None:
        def document(kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
            return {"apiVersion": "reconciler.lance/v1", "kind": kind, "metadata": metadata, "spec": spec}

        data = {"source": {"format": "parquet", "path": str(self.folder / "raw")}, "mode": self.mode}
        spec = {"schema": self.columns, "data": data, **self.spec}
        at = list(self.ident[:-1])
        documents = [
            document("Catalog", {"name": "lake"}, {**self.site.options, "management": {"owner": "us"}}),
            *([document("Namespace", {"catalog": "lake", "id": at}, {})] if self.home else []),
            document("Table", {"catalog": "lake", "id": list(self.ident)}, spec),
        ]
        (self.folder / "m.yaml").write_text(yaml.safe_dump_all(documents))

    # the program

    def run(self, *words: str) -> Run:
        self.write()
        with ExitStack() as patches:
            for module in (data_plane, tables) if self.session is not None else ():
                patches.enter_context(patch.object(module, "session", self.session))
            return reconciler(self.folder, *words)

    def apply(self, *more: str, code: int = 0) -> Run:
        done = self.run("apply", "m.yaml", "--yes", *more)
        assert done.code == code, done.out + done.err
        return done

    def plan(self, *more: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.run("plan", "m.yaml", "--format", "json", *more).json["steps"]
        return found

    def blocked(self, *more: str) -> tuple[str, str]:
        """By what, and why: the one step that is left to do."""
        (step,) = (s for s in self.plan(*more) if s["plane"] == "data")
        assert (step["action"], step["verdict"]) == ("materialize_table", "blocked"), step
        return step["blocked_by"], step["reason"]

    def origin(self) -> tuple[bool, str] | None:
        """What `verify` says of it."""
        found = self.run("pipeline", "verify", "m.yaml", "--format", "json")
        (table,) = found.json["tables"]
        checks = {c["name"]: c for c in table["checks"]}
        if "origin" not in checks:
            return None
        assert found.code == (0 if table["ok"] else 2)
        return checks["origin"]["ok"], checks["origin"]["detail"]

    def need_settled(self) -> None:
        assert self.plan() == [], self.run("plan", "m.yaml").out
        assert self.origin() == (True, "")

    # everybody else

    @property
    def place(self) -> DataPlace:
        catalog = self.site.open()
        scope = Scope(detail=frozenset([self.ident]), namespaces=frozenset([self.ident[:-1]]))
        (seen,) = catalog.read([("Table", self.ident)], scope)
        assert isinstance(seen.finding, Present)
        assert isinstance(seen.finding.state, TableState)
        return catalog.data_place(self.ident, seen.finding.state)

    def dataset(self, version: int | None = None) -> Any:
        place = self.place
        return lance.dataset(place.uri, version=version, storage_options=dict(place.storage_options) or None)

    def ids(self) -> list[int]:
        return sorted(self.dataset().to_table(columns=["id"]).column("id").to_pylist())

    def append(self, *starts: int) -> None:
        for start in starts:
            self._put(rows(start, text="theirs"), "append")

    def overwrite(self, start: int) -> None:
        self._put(rows(start, text="theirs"), "overwrite")

    def _put(self, table: pa.Table, mode: str) -> None:
        live = self.dataset()
        options = dict(self.place.storage_options) or None
        lance.write_dataset(table.select(live.schema.names[:2]), live.uri, mode=mode, storage_options=options)


Make = Callable[..., FilledTable]


def declared(
    folder: Path,
    fixture: Callable[[str], Any],
    name: str = "dir-v1",
    mode: str = APPEND,
    files: Sequence[int] = (0, 1),
    on_spark: bool = False,
    **spec: Any,
) -> FilledTable:
    """Not applied yet."""
    backend = MAKE[name]
    (folder / "site").mkdir()
    table = FilledTable(folder, backend.make(folder / "site", fixture), backend.home, mode, spec)
    if on_spark:
        table.session = None
    table.source(*files)
    return table


def filled(
    folder: Path,
    fixture: Callable[[str], Any],
    name: str = "dir-v1",
    mode: str = APPEND,
    files: Sequence[int] = (0, 1),
    on_spark: bool = False,
    **spec: Any,
) -> FilledTable:
    """Applied once, and as declared."""
    table = declared(folder, fixture, name, mode, files, on_spark, **spec)
    table.apply()
    assert table.ids() == [n for f in files for n in range(f * EACH, (f + 1) * EACH)]
    return table
