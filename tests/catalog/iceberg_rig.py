"""Apache's own REST server behind a proxy that counts and disturbs, and the way of a run on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from contract.lake import Doc, namespace, table
from contract.outsider_iceberg import IcebergOutsider
from iceberg_support import open_catalog
from servers.iceberg_rest import IcebergRest, iceberg_rest
from servers.proxy import Proxy

from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.registry import capabilities_of
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan, scope_of
from reconciler.engine.execute import execute
from reconciler.engine.observe import observe
from reconciler.manifest.load import load
from reconciler.model.plan import Plan
from reconciler.model.report import Report

__all__ = ["Rig", "iceberg_rest", "rig"]


class Rig:
    def __init__(self, servers: IcebergRest, folder: Path, files: bool = False, root: str | None = None) -> None:
        """`files`: a server that writes its metadata to the tables' locations."""
        self.folder = folder
        self.written = 0
        self.root = root or str(folder / "data")
        self.server = servers.new(files)
        self.proxy = Proxy(self.server.endpoint)
        self.outsider = IcebergOutsider(folder / "data", self.server.endpoint, "wh")
        self.catalog = self.open()

    def open(self, **options: str) -> EntryCatalog:
        return open_catalog(self.proxy.endpoint, root=self.root, max_retries="3", **options)

    def manifests(self, tables: int = 1, **properties: str) -> str:
        """One namespace and so many tables, as a file of documents."""
        names = [("wh", "n", f"t{i}") for i in range(tables)]
        return self.write(
            namespace(("wh", "n"), properties=properties),
            *(table(ident, {"id": "int64"}, properties=properties) for ident in names),
        )

    def write(self, *docs: Doc) -> str:
        spec = {"type": "iceberg", "endpoint": self.proxy.endpoint, "warehouse": "wh"}
        spec |= {"root": self.root, "management": {"owner": "team-a"}}
        catalog = {**docs[0], "kind": "Catalog", "metadata": {"name": "lake"}, "spec": spec}
        self.written += 1
        file = self.folder / f"m{self.written}.yaml"
        file.write_text(yaml.safe_dump_all([catalog, *docs]))
        return str(file)

    def close(self) -> None:
        self.catalog.close()
        self.proxy.close()
        self.server.close()

    def plan(self, file: str, **options: Any) -> Plan:
        desired = load([file], capabilities_of=capabilities_of).desired
        spec = desired.catalogs["lake"]
        capabilities = capabilities_of(spec)
        assert capabilities is not None
        snapshot = observe(self.catalog, scope_of(desired, "lake"))
        return make_plan(desired, {"lake": snapshot}, {"lake": capabilities}, PlanOptions(**options))

    def apply(self, plan: Plan) -> Report:
        return execute(plan, {"lake": self.catalog}, sleep=lambda seconds: None)

    def run(self, file: str) -> Report:
        return self.apply(self.plan(file))


@pytest.fixture
def rig(iceberg_rest: IcebergRest, tmp_path: Path) -> Iterator[Rig]:
    made = Rig(iceberg_rest, tmp_path)
    yield made
    made.close()
