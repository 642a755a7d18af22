"""A foreign writer beside us, on real files: datasets of pylance, and a catalog whose entries anybody can edit.

He makes datasets with and without entries, points entries of ours at them, writes over data, and makes it anew, at
locations that are nested, linked and spelled in many ways. Whatever the manifests say, the files of every dataset that
does not carry our mark are the same before and after an apply, byte by byte, and no new dataset is inside another.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
import yaml
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.core.options import PlanOptions
from reconciler.core.planner import PlanError, make_plan, scope_of
from reconciler.engine.execute import execute
from reconciler.engine.observe import observe
from reconciler.manifest.load import load
from reconciler.manifest.plugin_options import PluginTypes
from reconciler.model.diagnostic import has_errors

TOY = Path(__file__).parents[1] / "plugin" / "toy"
US = "us"
NAMES = st.sampled_from(["t1", "t2", "t3", "t4", "t5"])
PLACES = ["a", "b", "a/data/in", "a/x", "b/_indices/y", "ab", "deep/er/c", "deep"]
DECLARED = st.sampled_from([None, None, None, *PLACES])
SPELLINGS = st.sampled_from(["{}", "{}/", "file://{}", "FILE://{}", "./../{base}/{rest}", "link/{rest}"])
COLUMNS = {"one": ["id"], "two": ["id", "name"], "three": ["id", "name", "note"]}


class Files(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        sys.path.insert(0, str(TOY))
        self.home = Path(tempfile.mkdtemp(prefix="foreign-"))
        self.area = self.home / "area"
        self.area.mkdir()
        (self.home / "link").symlink_to(self.area)
        self.file = self.home / "catalog.json"
        self.file.write_text(json.dumps({"namespaces": {'["n"]': {}}, "tables": {}, "detached": {}}))
        self.tables: dict[str, dict[str, Any]] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.home)
        sys.path.remove(str(TOY))

    @initialize()
    def begins(self) -> None:
        """Two tables of ours, where the rules put them, and two datasets of somebody else."""
        self.declares("t1", None, "{}", "two")
        self.declares("t2", None, "{}", "one")
        self.apply(False, "a", "t1")
        self.makes_a_dataset("a", "three", False)
        self.makes_a_dataset("deep/er/c", "two", True)

    # -- the team ----------------------------------------------------------------------------------------------------

    @rule(
        name=NAMES,
        place=st.sampled_from([None, None, None, *PLACES]),
        spelling=SPELLINGS,
        columns=st.sampled_from([*COLUMNS]),
    )
    def declares(self, name: str, place: str | None, spelling: str, columns: str) -> None:
        spec: dict[str, Any] = {"schema": [{"name": c, "type": "int64"} for c in COLUMNS[columns]]}
        spec["allow"] = ["drop_column"]
        if place is not None:
            spec["location"] = self._spelled(place, spelling)
        self.tables[name] = spec

    @rule(name=NAMES, place=st.sampled_from(PLACES), spelling=SPELLINGS)
    def declares_and_applies(self, name: str, place: str, spelling: str) -> None:
        self.declares(name, place, spelling, "one")
        self.apply(False, place, name)

    @rule(name=NAMES)
    def removes(self, name: str) -> None:
        self.tables[name] = {"state": "absent"}

    # -- the foreign writer ------------------------------------------------------------------------------------------

    @rule(place=st.sampled_from(PLACES), columns=st.sampled_from([*COLUMNS]), entry=st.booleans())
    def makes_a_dataset(self, place: str, columns: str, entry: bool) -> None:
        where = self.area / place
        if not where.exists():
            lance.write_dataset(_rows(columns), str(where))
        if entry:
            with self._entries() as tables:
                tables.setdefault('["n", "theirs"]', {"location": str(where), "properties": {}})

    @rule(name=NAMES, place=st.sampled_from(PLACES))
    def points_an_entry(self, name: str, place: str) -> None:
        with self._entries() as tables:
            if (found := tables.get(f'["n", "{name}"]')) is not None:
                found["location"] = str(self.area / place)

    @rule(place=st.sampled_from(PLACES), columns=st.sampled_from([*COLUMNS]))
    def writes_over(self, place: str, columns: str) -> None:
        """The mark that is there stays."""
        if (self.area / place / "_versions").is_dir():
            lance.write_dataset(_rows(columns), str(self.area / place), mode="overwrite")

    @rule(place=st.sampled_from(PLACES), columns=st.sampled_from([*COLUMNS]))
    def makes_it_anew(self, place: str, columns: str) -> None:
        """The mark that was there is gone."""
        where = self.area / place
        if (where / "_versions").is_dir():
            shutil.rmtree(where)
            lance.write_dataset(_rows(columns), str(where))

    # -- us ----------------------------------------------------------------------------------------------------------

    @rule(stale=st.booleans(), place=st.sampled_from(PLACES), name=NAMES)
    def apply(self, stale: bool, place: str, name: str) -> None:
        """`stale`: something happens between the plan and the apply."""
        loaded = self._loaded()
        if has_errors(loaded.diagnostics):
            return
        catalog = self._open()
        try:
            snapshot = observe(catalog, scope_of(loaded.desired, "lake"))
            rules = {"lake": catalog.capabilities}
            plan = make_plan(loaded.desired, {"lake": snapshot}, rules, PlanOptions(data_plane="no Spark here"))
        except PlanError:
            return
        if stale:
            self.points_an_entry(name, place)
            self.makes_a_dataset(place, "three", False)
        before, nested = self._foreign(), self._nested()
        execute(plan, {"lake": catalog}, sleep=lambda seconds: None)
        assert self._foreign() == before
        assert self._nested() <= nested

    # -- what is there -----------------------------------------------------------------------------------------------

    def _open(self) -> EntryCatalog:
        from reconciler_jsonfile.store import open_catalog

        opened: EntryCatalog = open_catalog({"file": str(self.file), "root": str(self.home / "root")})
        return opened

    def _loaded(self) -> Any:
        from reconciler_jsonfile import backend

        kind = {"apiVersion": "reconciler.lance/v1"}
        spec = {"type": "jsonfile", "file": str(self.file), "root": str(self.home / "root")}
        docs: list[dict[str, Any]] = [
            {**kind, "kind": "Catalog", "metadata": {"name": "lake"}, "spec": {**spec, "management": {"owner": US}}}
        ]
        for name, table in self.tables.items():
            docs.append({**kind, "kind": "Table", "metadata": {"catalog": "lake", "id": ["n", name]}, "spec": table})
        file = self.home / "m.yaml"
        file.write_text(yaml.safe_dump_all(docs))
        plugins = PluginTypes(lambda: ["jsonfile"], lambda type_: backend.options)
        return load([str(file)], capabilities_of=lambda spec: backend.capabilities(spec.options), plugins=plugins)

    def _spelled(self, place: str, spelling: str) -> str:
        if spelling.startswith("link"):
            return f"{self.home}/link/{place}"
        if spelling.startswith("./"):
            return f"{self.area}/./../{self.area.name}//{place}"
        return spelling.format(self.area / place)

    def _entries(self) -> Any:
        return _Edited(self.file)

    def _datasets(self) -> list[Path]:
        return sorted(Path(folder) for folder, names, _ in os.walk(self.home) if "_versions" in names)

    def _foreign(self) -> dict[str, str]:
        """Every file of every dataset without our mark, but for the datasets inside it that are ours."""
        marked = {d: lance.dataset(str(d)).metadata.get("reconciler.owner") == US for d in self._datasets()}
        ours = [d for d, is_ours in marked.items() if is_ours]
        found: dict[str, str] = {}
        for dataset in (d for d, is_ours in marked.items() if not is_ours):
            for folder, _, names in os.walk(dataset):
                if not any(Path(folder).is_relative_to(one) and one != dataset for one in ours):
                    files = (Path(folder, name) for name in names)
                    found |= {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        return found

    def _nested(self) -> set[tuple[Path, Path]]:
        all_ = self._datasets()
        return {(one, other) for one in all_ for other in all_ if one != other and other.is_relative_to(one)}


class _Edited:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> dict[str, Any]:
        self.data = json.loads(self.file.read_text())
        tables: dict[str, Any] = self.data["tables"]
        return tables

    def __exit__(self, *error: object) -> None:
        self.file.write_text(json.dumps(self.data))


def _rows(columns: str) -> pa.Table:
    return pa.table({name: [1, 2, 3] for name in COLUMNS[columns]})


@pytest.mark.slow
class TestFiles(Files.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=15)
