"""Many writers on one catalog: threads, processes, and pylance itself."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import lance
import lance_namespace as ln
import pytest
from dir_support import (
    CONTEXT,
    DEFAULT,
    V1,
    V2,
    create_namespace,
    declare,
    detail,
    find,
    make_table,
    open_catalog,
    peer,
    run,
    scanned,
    table,
)

from reconciler.catalog import directory_manifest
from reconciler.catalog.directory import DirectoryCatalog
from reconciler.catalog.directory_inventory import Inventory
from reconciler.model.change import Change, DeregisterTable, DropNamespace, RenameTable, UpdateNamespace
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Present
from reconciler.model.state import Marks, NamespaceState, TableState

THREADS = 8


def outcome(catalog: DirectoryCatalog, change: Change) -> Code | None:
    try:
        catalog.apply(change, CONTEXT)
    except CatalogError as error:
        return error.code
    return None


@pytest.mark.parametrize("layout", [DEFAULT, V2], ids=["default", "v2"])
def test_threads_declare_different_tables_together(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    run(catalog, create_namespace("n"))
    catalog.stats.reset()
    idents = [("n", f"t{i}") for i in range(80)]
    with ThreadPoolExecutor(THREADS) as pool:
        assert set(pool.map(lambda i: outcome(catalog, declare(*i)), idents)) == {None}
    assert {i for kind, i in scanned(catalog) if kind == "Table"} == set(idents)
    assert catalog.stats.writes < len(idents)  # commits are shared


@pytest.mark.parametrize("layout", [DEFAULT, V2, V1], ids=["default", "v2", "v1"])
def test_one_name_goes_to_one_thread(layout: dict[str, str], tmp_path: Path) -> None:
    catalogs = [open_catalog(tmp_path, **layout) for _ in range(THREADS)]
    for number in range(5):
        ready = threading.Barrier(THREADS)

        def attempt(i: int, number: int = number, ready: threading.Barrier = ready) -> Code | None:
            ready.wait()
            return outcome(catalogs[i], declare(f"t{number}"))

        with ThreadPoolExecutor(THREADS) as pool:
            codes = list(pool.map(attempt, range(THREADS)))
        assert codes.count(None) == 1, codes
        assert set(codes) <= {None, Code.TABLE_ALREADY_EXISTS}
        assert table(catalogs[0], f"t{number}").marks.owner == "team-a"


def test_a_drop_and_a_declare_inside_never_both_win(tmp_path: Path) -> None:
    for number in range(12):
        name = f"n{number}"
        one, two = open_catalog(tmp_path), open_catalog(tmp_path)
        run(one, create_namespace(name))
        ready = threading.Barrier(2)

        def attempt(catalog: DirectoryCatalog, change: Change, ready: threading.Barrier = ready) -> Code | None:
            ready.wait()
            return outcome(catalog, change)

        with ThreadPoolExecutor(2) as pool:
            dropped = pool.submit(attempt, one, DropNamespace((name,)))
            declared = pool.submit(attempt, two, declare(name, "t"))
        assert {dropped.result(), declared.result()} in (
            {None, Code.NAMESPACE_NOT_FOUND},
            {None, Code.NAMESPACE_NOT_EMPTY},
        )
        there = isinstance(find(one, name, kind="Namespace"), Present)
        assert there == (find(one, name, "t") != Absent())


def right_before_the_commit(monkeypatch: pytest.MonkeyPatch, root: Path, *changes: Change) -> None:
    """Another run does this once, after ours has read and before it commits."""
    left = [*changes]

    def meanwhile() -> None:
        todo, left[:] = left[:], []
        run(open_catalog(root), *todo)

    monkeypatch.setattr(directory_manifest, "may_write", meanwhile)


@pytest.mark.parametrize("child", [create_namespace("n", "m"), declare("n", "t")], ids=["namespace", "table"])
def test_a_child_that_appears_right_before_the_commit_of_a_drop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: Change
) -> None:
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"))
    right_before_the_commit(monkeypatch, tmp_path, child)
    assert outcome(catalog, DropNamespace(("n",))) is Code.NAMESPACE_NOT_EMPTY
    assert {("Namespace", ("n",)), (child.kind, child.ident)} <= set(scanned(open_catalog(tmp_path)))


def test_a_table_that_is_replaced_right_before_it_is_deregistered_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row has the name and leads to data of which this run has read nothing."""
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"), declare("n", "t"), declare("n", "u"))
    other = table(catalog, "n", "u").location
    right_before_the_commit(
        monkeypatch, tmp_path, RenameTable(("n", "moved"), ("n", "t")), RenameTable(("n", "t"), ("n", "u"))
    )
    assert outcome(catalog, DeregisterTable(("n", "t"))) is Code.CONCURRENT_MODIFICATION
    assert table(open_catalog(tmp_path), "n", "t").location == other


@pytest.mark.parametrize("layout", [DEFAULT, V1], ids=["default", "v1"])
def test_a_table_that_is_made_between_two_looks_of_a_scan_is_none_that_is_gone(
    layout: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder was not there yet, and its record says that it was declared."""
    make_table(open_catalog(tmp_path, **layout), "other")
    monkeypatch.setattr(Inventory, "files", right_before(Inventory.files, lambda: open_catalog(tmp_path, **layout)))
    found = scanned(open_catalog(tmp_path, **layout), detail(("t",)))["Table", ("t",)]
    assert isinstance(found, Present), found
    assert isinstance(found.state, TableState)
    assert found.state.marks.owner == "team-a"


def right_before(look: Callable[[Inventory], frozenset[str]], opened: Callable[[], DirectoryCatalog]) -> object:
    made = []

    def meanwhile(inventory: Inventory) -> frozenset[str]:
        if not made:
            made.append(1)
            make_table(opened(), "t")
        return look(inventory)

    return meanwhile


def test_updates_of_one_row_are_all_kept(tmp_path: Path) -> None:
    catalogs = [open_catalog(tmp_path) for _ in range(4)]
    run(catalogs[0], create_namespace("n"))
    changes = [UpdateNamespace(("n",), {f"k{i}": str(i)}, (), Marks("team-a")) for i in range(24)]
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda i: outcome(catalogs[i % 4], changes[i]), range(24))) == {None}
    found = find(catalogs[0], "n", kind="Namespace")
    assert isinstance(found, Present)
    assert isinstance(found.state, NamespaceState)
    assert set(found.state.properties) == {f"k{i}" for i in range(24)}


def test_readers_never_get_an_older_state_than_their_call(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)

    def write_then_read(number: int) -> bool:
        run(catalog, create_namespace(f"n{number}"))
        return isinstance(find(catalog, f"n{number}", kind="Namespace"), Present)

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(write_then_read, range(60)))


WRITER = """
import sys
sys.path[:0] = [{path!r}, {tests!r}]
from dir_support import create_namespace, declare, open_catalog, run
catalog = open_catalog({root!r})
sys.stdin.readline()
for i in range(20):
    run(catalog, create_namespace("{name}" + str(i)), declare("{name}" + str(i), "t"))
"""


@pytest.mark.slow
def test_two_processes_and_pylance_lose_nothing(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    here = Path(__file__).parent
    run(open_catalog(root), create_namespace("first"))
    processes = []
    for name in ("a", "b"):
        code = WRITER.format(path=str(here.parents[1]), tests=str(here), root=str(root), name=name)
        processes.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True))
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.close()
    theirs, made = peer(root), []
    for i in range(20):
        # pylance gives up under contention, and says so
        with suppress(ln.ConcurrentModificationError):
            theirs.create_namespace(ln.CreateNamespaceRequest(id=[f"p{i}"]))
            made.append(f"p{i}")
    assert [process.wait(120) for process in processes] == [0, 0]
    namespaces = {i[0] for kind, i in scanned(open_catalog(root)) if kind == "Namespace"}
    assert namespaces == {"first", *made, *(f"{n}{i}" for n in "ab" for i in range(20))}
    rows = lance.dataset(str(root / "__manifest")).to_table().column("object_id").to_pylist()
    assert len(rows) == len(set(rows)) == len(namespaces) + 40


def test_threads_create_whole_tables(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"))
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda i: make_table(catalog, "n", f"t{i}"), range(24)))
    for i in range(24):
        assert table(catalog, "n", f"t{i}").dataset is not None
