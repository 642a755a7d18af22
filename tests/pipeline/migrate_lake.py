"""Two catalogs, a table in the first, and a manifest that moves it to the second."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import yaml
from contract.backends import Site, dir_site
from contract.outsider_dir import LocalFiles

from reconciler import app
from reconciler.catalog.base import DataPlace
from reconciler.engine.execute import execute
from reconciler.model.ident import Ident
from reconciler.model.plan import Plan
from reconciler.model.report import Report
from reconciler.pipeline.data_plane import Running, SparkDataPlane
from reconciler.pipeline.origin import source_place
from reconciler.session import Session

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), 2))])
COLUMNS = [
    {"name": "id", "type": "int64"},
    {"name": "text", "type": "string"},
    {"name": "vector", "type": "fixed_size_list<float32>[2]"},
]
ROWS = 40


def row(number: int) -> dict[str, Any]:
    return {"id": number, "text": f"row {number}", "vector": [number, number + 0.5]}


@dataclass
class Move:
    folder: Path
    source: Site
    target: Site
    running: Running
    spec: dict[str, Any] = field(default_factory=lambda: {"schema": COLUMNS})
    verify: str = "checksum"
    home: Ident = ("m",)
    """Where the new table is."""

    @property
    def old(self) -> Ident:
        return (*self.source.container, "n", "events")

    @property
    def new(self) -> Ident:
        return (*self.target.container, *self.home, "moved")

    # the source

    def fill(self) -> None:
        """By somebody else: two fragments, a deleted row, an index, a key of the configuration, a tag."""
        self.source.outsider.create_namespace(self.old[:-1])
        self.source.outsider.create_table(self.old, SCHEMA, [row(n) for n in range(ROWS // 2)])
        dataset = self.dataset("old", self.old)
        dataset = dataset.insert(pa.Table.from_pylist([row(n) for n in range(ROWS // 2, ROWS)], SCHEMA)) or dataset
        dataset.create_scalar_index("id", "BTREE", name="by_id")
        dataset.update_config({"lance.auto_cleanup.interval": "30"})
        dataset.delete("id = 5")
        dataset.tags.create("kept-there", dataset.version)

    def place(self, name: str, ident: Ident) -> DataPlace:
        site = self.source if name == "old" else self.target
        return source_place(site.open(), name, ident, lambda secrets: None)

    def dataset(self, name: str, ident: Ident) -> Any:
        place = self.place(name, ident)
        return lance.dataset(place.uri, storage_options=dict(place.storage_options) or None)

    # the manifest

    def write(self) -> str:
        management = {"owner": "us"}
        path = self.folder / "m.yaml"
        migration = {"from": {"catalog": "old", "id": list(self.old)}, "verify": self.verify}
        documents = [
            _document("Catalog", {"name": "old"}, dict(self.source.options)),
            _document("Catalog", {"name": "new"}, {**self.target.options, "management": management}),
            *([_document("Namespace", {"catalog": "new", "id": list(self.new[:-1])}, {})] if self.home else []),
            _document("Table", {"catalog": "new", "id": list(self.new)}, {**self.spec, "migration": migration}),
        ]
        path.write_text(yaml.safe_dump_all(documents))
        return str(path)

    def plan(self, at: Session | None = None) -> Plan:
        return app.plan(app.Request((self.write(),)), at or Session())[0]

    def apply(self, plan: Plan | None = None, before: Callable[[Running], None] = lambda running: None) -> Report:
        at = Session()
        made = self.plan(at)
        self.running.catalogs = at.catalogs
        before(self.running)
        return execute(plan or made, at.catalogs, data=SparkDataPlane(self.running), max_retries={"new": 0})

    # what came of it

    def moved(self) -> None:
        """All rows, the index at work, the configuration; owned; nothing left to do; nothing left behind."""
        dataset = self.dataset("new", self.new)
        table = dataset.to_table().sort_by("id")
        assert table.to_pylist() == [row(n) for n in range(ROWS) if n != 5]
        assert "ScalarIndexQuery" in dataset.scanner(filter="id = 7").explain_plan()
        assert dataset.scanner(filter="id = 7").to_table().num_rows == 1
        assert dataset.config()["lance.auto_cleanup.interval"] == "30"
        assert dataset.metadata["reconciler.owner"] == "us"
        assert json.loads(dataset.metadata["reconciler.data"])["digest"].startswith("migrated:")
        assert dataset.tags.list() == {}
        assert self.plan().steps == ()


def statuses(report: Report) -> dict[str, str]:
    return {r.step.action: r.status for r in report.steps}


def errors(report: Report) -> list[str]:
    return [r.error.message for r in report.steps if r.error is not None]


def local(folder: Path, running: Running) -> Move:
    """From one folder to another, with the source filled."""
    folder.mkdir(exist_ok=True)
    move = opened(folder, running)
    move.fill()
    return move


def opened(folder: Path, running: Running) -> Move:
    sites = [dir_site(LocalFiles(folder / name), {}) for name in ("old", "new")]
    return Move(folder, sites[0], sites[1], running)


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def beside(names: Iterable[str]) -> list[str]:
    """What a run of ours should not leave behind."""
    return [n for n in names if "/.tmp-" in n or n.rpartition("/")[2] == ".reconciler-migration" or "_versions/d" in n]


def _document(kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "reconciler.lance/v1", "kind": kind, "metadata": metadata, "spec": spec}
