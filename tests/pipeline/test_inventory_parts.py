"""The parts of an inventory that need no Spark."""

from __future__ import annotations

import datetime
import io
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import catalog, namespace, reconciler, table, write

from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import CatalogError, Code, ReadError
from reconciler.model.observed import Gap, Observation, Present, Scope, Unreadable
from reconciler.model.state import NamespaceState, TableState
from reconciler.pipeline import fleet_task, package
from reconciler.pipeline.fleet_task import LISTED, CatalogTask, ident_of, key_of
from reconciler.pipeline.history import RUN_KEY, History, HistoryError
from reconciler.pipeline.inventory_source import InventorySource, chosen
from reconciler.pipeline.parcel import packed, unpacked
from reconciler.render.inventory import size
from reconciler.render.inventory_chart import Point, bars, line
from reconciler.render.inventory_page import inventory_page, when

NOW = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)


def row(run: str, **more: Any) -> dict[str, Any]:
    return {"run": run, "at": NOW, "kind": "Catalog", "catalog": "lake", "id": "", "path": [], **more}


def rows(history: History) -> list[str]:
    found: list[str] = lance.dataset(history.uri).to_table()["run"].to_pylist()
    return found


def test_a_run_is_in_the_history_once(tmp_path: Path) -> None:
    history = History(str(tmp_path / "h.lance"))
    assert history.version() is None
    since = history.create()
    assert history.create() == since, "it is there"
    files = history.write_here([row("r1")])
    assert rows(history) == [], "files alone are nothing"
    version = history.commit("r1", files, since)
    assert history.commit("r1", files, since) == version, "found, not repeated"
    assert rows(history) == ["r1"]
    assert lance.dataset(history.uri).read_transaction(version).transaction_properties == {RUN_KEY: "r1"}
    history.commit("r2", history.write_here([row("r2")]), since)
    assert history.commit("r1", files, since) == version, "also when others came after it"
    assert sorted(rows(history)) == ["r1", "r2"]


def test_a_lost_answer_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(str(tmp_path / "h.lance"))
    since = history.create()
    files = history.write_here([row("r1")])
    real, calls = lance.LanceDataset.commit, []

    def lost(*args: Any, **more: Any) -> Any:
        calls.append(real(*args, **more).version)
        raise OSError("the connection was closed")

    monkeypatch.setattr(lance.LanceDataset, "commit", staticmethod(lost))
    assert [history.commit("r1", files, since)] == calls
    assert rows(history) == ["r1"]


def test_two_that_create_it_at_once(tmp_path: Path) -> None:
    history, made = History(str(tmp_path / "h.lance")), []
    gate = threading.Barrier(4)

    def create() -> None:
        gate.wait()
        made.append(history.create())

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] * 4


def test_a_place_that_is_something_else(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"run": [1]}), tmp_path / "other.lance")
    with pytest.raises(HistoryError, match="is not a history of this version: run is missing or of another type"):
        History(str(tmp_path / "other.lance")).version()
    write(tmp_path, catalog(), table("t"))
    run = reconciler(tmp_path, "pipeline", "inventory", "m.yaml", "--history", "other.lance")
    assert run.code == 1
    assert "is not a history of this version" in run.err
    assert lance.dataset(tmp_path / "other.lance").version == 1


def test_files_that_are_elsewhere_are_not_committed(tmp_path: Path) -> None:
    here, there = History(str(tmp_path / "a.lance")), History(str(tmp_path / "b.lance"))
    since = here.create()
    there.create()
    with pytest.raises(HistoryError, match="has to be on shared storage"):
        here.commit("r1", there.write_here([row("r1")]), since)
    assert rows(here) == []


def test_a_dry_run_lists_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    write(tmp_path, catalog(), namespace("a"), table("a", "t"), table("u"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    words = ("pipeline", "inventory", "m.yaml", "--history", "h.lance")
    run = reconciler(tmp_path, *words, "--dry-run")
    assert (run.code, run.out) == (0, "lake: 2 tables\ndry run: nothing is written to h.lance\n")
    told = reconciler(tmp_path, *words, "--dry-run", "--format", "json", "--target", "a.*").json
    assert (told["run"], told["catalogs"][0]["tables"]) == (None, 1)
    assert not (tmp_path / "h.lance").exists()
    assert "Spark needs Java 17" in reconciler(tmp_path, *words).err
    (tmp_path / "lake").rename(tmp_path / "away")
    (tmp_path / "lake").write_text("")
    run = reconciler(tmp_path, *words, "--dry-run")
    assert run.code == 1
    assert "not complete: InvalidInput (13): " in run.out
    (listed,) = reconciler(tmp_path, *words, "--dry-run", "--format", "json").json["catalogs"]
    planned = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    assert [(p["code"], p["name"]) for p in listed["problems"]] == [(13, "InvalidInput")]
    assert planned["error"]["message"].endswith(listed["problems"][0]["message"])
    write(tmp_path, catalog().replace("path: ./lake", "path: '${env:NOT_SET}'"), table("u"))
    (unknown,) = reconciler(tmp_path, *words, "--dry-run", "--format", "json").json["catalogs"][0]["problems"]
    assert (unknown["code"], unknown["name"]) == (None, None), "no catalog said that"
    assert "NOT_SET" in unknown["message"]


def test_wrong_command_lines(tmp_path: Path) -> None:
    write(tmp_path, catalog(), table("u"))
    words = ("pipeline", "inventory", "m.yaml")
    run = reconciler(tmp_path, *words, "--history", "h", "--report", "nosuch/x.html")
    assert "create the folder nosuch first" in run.err
    run = reconciler(tmp_path, *words, "--history", "h", "--history-option", "token=${env:NOT_SET}", "--dry-run")
    assert run.code == 1
    assert "NOT_SET" in run.err


class Listing:
    """A catalog that says these things."""

    def __init__(self, found: list[Any]) -> None:
        self._found = found

    def scan(self, _scope: Scope) -> Iterator[Any]:
        for one in self._found:
            if isinstance(one, Exception):
                raise one
            yield one

    def close(self) -> None:
        pass


def task(*found: Any, **more: Any) -> CatalogTask:
    def opened(_spec: CatalogSpec, _options: Mapping[str, str]) -> Any:
        return Listing([*found])

    return CatalogTask("lake", "dir", {}, frozenset({"s3cr3t"}), "team", connect=opened, **more)


def listed(of: CatalogTask) -> list[dict[str, Any]]:
    numbers = pa.RecordBatch.from_pydict({"id": [0]})
    batches = fleet_task.listing([of], [], [])([numbers])
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_listing_that_breaks_off_is_a_gap_without_secrets() -> None:
    table_ = Observation("Table", ("a", "t"), Present(TableState()))
    gap = Gap(("b",), Code.INTERNAL, "no page 2 for s3cr3t")
    found = listed(task(table_, gap, CatalogError(Code.SERVICE_UNAVAILABLE, "s3cr3t went away")))
    assert [(r["kind"], r["key"]) for r in found] == [("Table", '["a","t"]'), ("Gap", '["b"]'), ("Gap", "[]")]
    assert "s3cr3t" not in str(found)
    assert [fleet_task.gap_error(r["error"]) for r in found[1:]] == [
        ReadError(Code.INTERNAL, "the listing of b failed: no page 2 for ***"),
        ReadError(Code.SERVICE_UNAVAILABLE, "*** went away"),
    ]
    (only,) = listed(task(ValueError("a mistake of ours with s3cr3t")))
    assert only["kind"] == "Gap"
    assert fleet_task.gap_error(only["error"]) == ReadError(None, "ValueError: a mistake of ours with ***")


def test_what_is_ignored_or_no_lance_table_is_no_row_of_the_history() -> None:
    view = Observation("Table", ("v",), Unreadable(Code.INVALID_INPUT, "a view", foreign=True))
    mine = Observation("Table", ("scratch", "t"), Present(TableState()))
    space = Observation("Namespace", ("scratch",), Present(NamespaceState()))
    (only,) = listed(task(view, mine, space, Gap(("scratch",), Code.INTERNAL, "?"), ignore=("scratch.**", "scratch")))
    assert (only["key"], only["strange"]) == ('["v"]', True)


def test_a_folder_that_executors_do_not_see_is_no_empty_catalog(tmp_path: Path) -> None:
    (only,) = listed(task(folders=(str(tmp_path / "nosuch"),)))
    assert only["kind"] == "Gap"
    assert "the executors do not see" in only["error"]
    spec = CatalogTask("lake", "dir", {}, frozenset(), start=str(tmp_path / "nosuch"))
    with pytest.raises(CatalogError, match="do not see"):
        spec.opened()


def test_relative_paths_count_from_where_the_driver_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here" / "lake").mkdir(parents=True)
    (tmp_path / "executor").mkdir()
    monkeypatch.chdir(tmp_path / "executor")
    monkeypatch.setattr(sys, "path", [*sys.path])
    opened = CatalogTask("lake", "dir", {"path": "./lake"}, frozenset(), start=str(tmp_path / "here")).opened()
    assert str(tmp_path / "here" / "lake") == opened.storage.root  # type: ignore[attr-defined]
    assert Path.cwd() == tmp_path / "executor"


@pytest.mark.parametrize("ident", [("a",), ("a.b", 'c"'), ("ü", ""), ("'", "\u2028", "\\")])
def test_keys_are_one_to_one(ident: tuple[str, ...]) -> None:
    assert ident_of(key_of(ident)) == ident


def test_parcels_keep_everything() -> None:
    state = TableState("x", MappingProxyType({"a": "b"}), place="/x")
    again = unpacked(packed(Observation("Table", ("t",), Present(state))))
    assert again.finding.state == state
    assert again.finding.state.place == "/x"
    spec = CatalogSpec("c", "dir", {}, Management(), Source("f"))
    assert unpacked(packed(spec)) == spec


def test_layouts_name_types_that_arrow_has() -> None:
    assert fleet_task.arrow_schema(LISTED).field("strange").type == pa.bool_()


def test_the_package_is_whole_and_the_same_each_time(tmp_path: Path) -> None:
    (tmp_path / "2").mkdir()
    first, second = package._zipped(tmp_path), package._zipped(tmp_path / "2")
    assert first.name == second.name
    names = zipfile.ZipFile(io.BytesIO(first.read_bytes())).namelist()
    assert {"reconciler/__init__.py", "reconciler/catalog/glue.py", "reconciler/pipeline/fleet_task.py"} <= {*names}


def test_conditions_of_the_source() -> None:
    assert chosen(None, None, None) is None
    assert chosen("it's", "r", "a.") == "catalog = 'it''s' AND run = 'r' AND starts_with(id, 'a.')"
    with pytest.raises(ValueError, match="say where the history is"):
        InventorySource({})


RUN = {"run": "r", "at": NOW.timestamp(), "catalog": "l", "error": None, "drift": None, "unreadable": 0, "changed": 0,
       "tables": 1, "rows": 1, "bytes": 1, "fragments": 1, "small_fragments": 1}  # fmt: skip
HOSTILE = "</style></title><script>alert(1)</script><img src=x onerror='alert(1)'>\u202egnp\"&"


def test_hostile_names_stay_text() -> None:
    last = {**RUN, "catalog": HOSTILE, "error": HOSTILE, "at": NOW.timestamp() + 60}
    named = {"catalog": HOSTILE, "id": HOSTILE, "rows": 1, "bytes": 1, "fragments": 1, "small_fragments": 1}
    growing = {**named, "days": 0.5, "now": 2}
    lists = {"biggest": [named], "small": [named], "growing": [growing], "uncovered": [{**named, "unindexed_rows": 1}]}
    page = inventory_page({"runs": [RUN, last], **lists})
    assert page.count("<script") == page.count("<img") == page.count("\u202e") == 0
    assert page.count("<style") == page.count("</style>") == page.count("</title>\n") == 1
    assert "in the last run: &lt;/style&gt;" in page
    assert "http" not in page.replace("http-equiv", "").replace(HOSTILE, "")


def test_a_run_that_read_a_part_is_a_gap_and_no_value() -> None:
    def page(*runs: dict[str, Any]) -> str:
        timed = [{**run, "at": NOW.timestamp() + 60 * number} for number, run in enumerate(runs)]
        return inventory_page({"runs": timed, "biggest": [], "small": [], "growing": [], "uncovered": []})

    whole, part = {**RUN, "tables": 7, "drift": 3}, {**RUN, "tables": 0, "drift": 0, "error": "only x.* was read"}
    shown = page(whole, part)
    assert [shown.count(f'<p class="big">{number}</p>') for number in (7, 3, 0)] == [1, 1, 1], "0: changed"
    assert "Only partly read in the last run: only x.* was read; the figures are those of 2026-01-02 03:04" in shown
    assert shown.count("<title>2026-01-02 03:05: only partly read</title>") == 6
    assert "2026-01-02 03:05: 0" not in shown
    assert "partly" not in page(part, whole).partition("Dashed lines")[0].replace(": only partly read</title>", "")
    assert page({**part, "tables": 2}).count('<p class="big">at least 2</p>') == 1


def test_indexes_that_lack_rows_are_on_the_page() -> None:
    def page(*tables: dict[str, Any]) -> str:
        return inventory_page({"runs": [RUN], "biggest": [], "small": [], "growing": [], "uncovered": tables})

    empty = {"catalog": "l", "id": "n.t", "rows": 4_000_000, "unindexed_rows": 4_000_000}
    nearly = {"catalog": "l", "id": "n.u", "rows": 4_000_000, "unindexed_rows": 1}
    shown = page(empty, nearly).partition("Indexes that do not cover all rows")[2]
    assert "<td>l:n.t</td><td>0 %</td><td>4 000 000</td><td>4 000 000</td>" in shown
    assert "<td>l:n.u</td><td>99.9 %</td><td>1</td><td>4 000 000</td>" in shown
    assert page().partition("Indexes that do not cover all rows")[2].startswith("</h2><p>None.</p>")


def test_a_page_about_nothing() -> None:
    page = inventory_page({"runs": [], "biggest": [], "small": [], "growing": [], "uncovered": []})
    assert "0 runs, nothing recorded yet" in page


def test_pictures_of_one_point_of_zeros_and_of_gaps() -> None:
    assert line([Point(1.0, 0.0)], size, when).count("<circle") == 1
    broken = line([Point(1.0, 5.0), Point(2.0, 4.0), Point(3.0, None), Point(4.0, 5.0)], size, when)
    assert [broken.count(f"<{kind} ") for kind in ("polyline", "circle", "path")] == [2, 3, 1]
    assert line([Point(1.0, None)], size, when).count("<circle") == 0
    assert bars([Point(1.0, 0.0), Point(9.0, 2e12)], size, when).count("<rect") == 2
    assert [size(n) for n in (0, 999, 1000, 123456, 5e15)] == ["0 B", "999 B", "1.0 kB", "123 kB", "5.0 PB"]
