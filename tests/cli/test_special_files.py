"""A pipe, a socket, a device, a folder, a link to nothing or a huge file in the place of a file that is read: nothing
waits, memory stays bounded, and what cannot be read is unreadable, never absent and never unowned.

Every run is a process of its own with a time limit and a limit of its address space, so that a test that would wait for
ever, or fill memory, fails.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli_runs import Run, catalog, command, environment, namespace, reconciler, table, write

HUGE = 3 << 30
MEMORY = 6 << 30
"""Address space, of which a run maps much that it never touches; a file of HUGE and its text do not fit twice."""
LIMIT = 60
"""Seconds, generous: a run that waits for a pipe does not end at all."""


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    short = Path("/tmp") / f"s{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(short))
    shutil.move(str(short), path)


def folder(path: Path) -> None:
    path.mkdir()


def full_folder(path: Path) -> None:
    path.mkdir()
    (path / "x").write_text("x")


def nowhere(path: Path) -> None:
    path.symlink_to("nothing-is-here")


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def linked_pipe(path: Path) -> None:
    other = path.parent.parent / f".pipe-{uuid.uuid4().hex}"
    os.mkfifo(other)
    path.symlink_to(other)


def huge(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(HUGE)


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": pipe, "socket": bound_socket, "folder": folder, "full folder": full_folder, "link to nothing": nowhere,
    "device": device, "link to a pipe": linked_pipe, "3 GB": huge,
}  # fmt: skip


def ran(at: Path, *words: str) -> Run:
    limited = ["sh", "-c", f'ulimit -v {MEMORY // 1024}; exec "$@"', "sh", *command(*words)]
    done = subprocess.run(
        limited, cwd=at, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "internal error" not in done.stderr, done.stderr
    return Run(done.returncode, done.stdout, done.stderr)


def exchange(path: Path, kind: str) -> None:
    assert path.is_file(), path
    path.unlink()
    KINDS[kind](path)


LAYOUTS: dict[str, Any] = {"default": {}, "v1": {"manifest_enabled": False}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A lake of each layout, with a table of ours in the root and one in a namespace."""
    found = {}
    for name, options in LAYOUTS.items():
        home = found[name] = tmp_path_factory.mktemp(name)
        tables = [table("t"), table("u")]
        nested = [namespace("a"), table("a", "t")] if name == "default" else []
        write(home, catalog(**options), *tables, *nested)
        assert reconciler(home, "apply", "m.yaml", "--yes").code == 0
        lance.write_dataset(pa.table({"id": [1]}), home / "lake" / "t.lance", mode="append")
    return found


@pytest.fixture
def lake(made: dict[str, Path], tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    def copied(layout: str) -> Path:
        shutil.copytree(made[layout], tmp_path / "x", symlinks=True)
        shutil.rmtree(tmp_path / "x" / ".reconciler")
        return tmp_path / "x"

    yield copied
    shutil.rmtree(tmp_path, ignore_errors=True)  # Sparse files and pipes are no use to anybody who looks later.


def version_of(dataset: Path) -> Path:
    return min((dataset / "_versions").glob("*.manifest"))


PARTS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "record": ("default", lambda lake: lake / "__reconciler/tables/t.json"),
    "record of v1": ("v1", lambda lake: lake / "__reconciler/tables/t.json"),
    "version": ("default", lambda lake: version_of(lake / "t.lance")),
    "version of v1": ("v1", lambda lake: version_of(lake / "t.lance")),
    "hint": ("default", lambda lake: lake / "t.lance/_versions/latest_version_hint.json"),
}


def steps_of(run: Run, ident: list[str]) -> list[dict[str, Any]]:
    return [s for s in run.json["steps"] if s["object"]["id"] == ident]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_table(lake: Callable[[str], Path], part: str, kind: str) -> None:
    """Its own table is unreadable and blocked; the others are as they were."""
    layout, where = PARTS[part]
    home = lake(layout)
    path = where(home / "lake")
    exchange(path, kind)
    run = ran(home, "plan", "m.yaml", "--format", "json")
    if run.code == 1:  # The listing itself has failed, and says where.
        assert path.name in run.err or path.parent.name in run.err
        return
    assert run.code == 0, run.err
    if part == "hint" and kind == "3 GB":
        return  # Lance reads the beginning of it.
    found = run.json
    (step,) = steps_of(run, ["t"])
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "unreadable")
    assert path.name in step["reason"], step["reason"]
    assert not found["catalogs"]["lake"]["complete"]
    assert found["unowned"] == []
    assert steps_of(run, ["u"]) == []
    if kind in ("pipe", "3 GB"):
        for words in (("apply", "m.yaml", "--yes"), ("status", "m.yaml"), ("import", "m.yaml", "-o", "live")):
            assert ran(home, *words).code in (0, 3, 5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "3 GB", "device", "folder"])
@pytest.mark.parametrize("refs", ["tags", "branches"])
def test_a_tag_of_a_table(lake: Callable[[str], Path], refs: str, kind: str) -> None:
    """Lance reads all tags to find one: `status` counts ours, `apply` sets and expires them."""
    home = lake("default")
    path = home / "lake" / "t.lance" / "_refs" / refs / "mine.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](path)
    run = ran(home, "plan", "m.yaml", "--format", "json")
    (step,) = steps_of(run, ["t"])
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "unreadable")
    assert "mine.json" in step["reason"], step["reason"]
    for words in (("status", "m.yaml"), ("apply", "m.yaml", "--yes")):
        assert ran(home, *words).code in (0, 3, 5)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of ours with a trained vector index: a plan reads the index itself."""
    home = tmp_path_factory.mktemp("vectors")
    schema = "[{name: v, type: 'fixed_size_list<float32>[2]'}]"
    write(home, catalog(), table("t", schema=schema))
    assert reconciler(home, "apply", "m.yaml", "--yes").code == 0
    column = pa.FixedSizeListArray.from_arrays(pa.array([float(i) for i in range(200)], pa.float32()), 2)
    lance.write_dataset(pa.table({"v": column}), home / "lake" / "t.lance", mode="append")
    write(home, catalog(), table("t", schema=schema, spec="indexes: [{column: v, type: ivf_flat}]"))
    assert reconciler(home, "apply", "m.yaml", "--yes").code == 0
    return home


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["index.idx", "auxiliary.idx"])
def test_a_file_of_a_vector_index(vectors: Path, tmp_path: Path, part: str, kind: str) -> None:
    home = tmp_path / "x"
    shutil.copytree(vectors, home)
    (path,) = (home / "lake" / "t.lance" / "_indices").glob(f"*/{part}")
    exchange(path, kind)
    run = ran(home, "plan", "m.yaml", "--format", "json")
    assert run.code == 0, run.err
    (step,) = steps_of(run, ["t"])
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "unreadable")
    assert "index v_idx (drop it, and apply builds it again)" in step["reason"]
    assert part in step["reason"]
    shutil.rmtree(home)


ROWS = "[{name: id, type: int64}, {name: s, type: %s}]"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of ours with rows, of which some are deleted."""
    home = tmp_path_factory.mktemp("filled")
    write(home, catalog(), table("t", schema=ROWS % "string"))
    assert reconciler(home, "apply", "m.yaml", "--yes").code == 0
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["1", "2"]})
    lance.write_dataset(rows, home / "lake" / "t.lance", mode="append").delete("id = 1")
    return home


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe"])
@pytest.mark.parametrize("folder_of", ["data", "_deletions"])
def test_a_file_of_rows(filled: Path, tmp_path: Path, folder_of: str, kind: str) -> None:
    """A step that depends on the values is blocked; one that reads them in any case fails and names the file."""
    home = tmp_path / "x"
    shutil.copytree(filled, home)
    (path,) = (home / "lake" / "t.lance" / folder_of).iterdir()
    exchange(path, kind)
    assert ran(home, "plan", "m.yaml", "--detailed-exitcode").code == 0
    write(home, catalog(), table("t", schema=ROWS % "int32"))
    (step,) = steps_of(ran(home, "plan", "m.yaml", "--format", "json"), ["t"])
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "unreadable")
    assert path.name in step["reason"], step["reason"]
    if kind != "pipe":
        return
    assert ran(home, "status", "m.yaml").code == 0
    more = "[{name: id, type: int64}, {name: s, type: string}, {name: n, type: int64, backfill: {sql: id + 1}}]"
    for schema, spec in (
        (ROWS % "large_string", ""),
        (more, ""),
        (ROWS % "string", "indexes: [{column: s, type: btree}]"),
    ):
        write(home, catalog(), table("t", schema=schema, spec=spec))
        run = ran(home, "apply", "m.yaml", "--yes", "--runner", "local")
        assert run.code in (1, 5), run.out
        assert f"{path.name}: it is not a regular file" in run.out, run.out


@pytest.mark.slow
@pytest.mark.parametrize("folder_of", ["_versions", "data", "_deletions"])
def test_a_file_of_a_lance_source(filled: Path, tmp_path: Path, folder_of: str) -> None:
    shutil.copytree(filled / "lake" / "t.lance", tmp_path / "x.lance")
    whole = tmp_path / "x.lance"
    path = version_of(whole) if folder_of == "_versions" else next((whole / folder_of).iterdir())
    exchange(path, "pipe")
    source = f"data: {{source: {{format: lance, path: {tmp_path}/x.lance}}, mode: once}}"
    write(tmp_path, catalog(), table("t", schema=ROWS % "string", spec=source), table("u"))
    run = ran(tmp_path, "plan", "m.yaml", "--format", "json")
    (step,) = (s for s in steps_of(run, ["t"]) if s["action"] == "materialize_table")
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "source")
    assert path.name in step["reason"], step["reason"]
    assert {s["verdict"] for s in steps_of(run, ["u"])} == {"allowed"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("folder_of", ["_versions", "data"])
def test_a_part_of_the_manifest(lake: Callable[[str], Path], folder_of: str, kind: str) -> None:
    """Nothing can be said of the catalog, and nothing is."""
    home = lake("default")
    whole = home / "lake/__manifest" / folder_of
    path = (
        version_of(whole.parent) if folder_of == "_versions" else max(whole.iterdir(), key=lambda p: p.stat().st_mtime)
    )
    exchange(path, kind)
    run = ran(home, "apply", "m.yaml", "--yes")
    assert run.code == 1, run.out
    assert "__manifest" in run.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_a_lease(lake: Callable[[str], Path], kind: str) -> None:
    """Planted beside the records, or in the place of one: whoever reads leases names the file, `unlock` too."""
    home = lake("default")
    leases = home / "lake/__reconciler/lease"
    number = max(int(p.stem) for p in leases.glob("*.json")) + 1
    path = leases / f"{number:010d}.json"
    KINDS[kind](path)
    for words in (("apply", "m.yaml", "--yes"), ("unlock", "m.yaml")):
        if words[0] == "apply":
            write(home, catalog(), table("t"), table("u"), namespace("a"), table("a", "t"), namespace("new"))
        run = ran(home, *words)
        assert run.code == 1, run.out + run.err
        assert path.name in run.out + run.err
    assert not (home / "lake" / "new.lance").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("folder", "full folder", "link to nothing")])
def test_a_file_in_the_place_of_a_table(lake: Callable[[str], Path], kind: str) -> None:
    home = lake("default")
    write(home, catalog(), table("t"), table("u"), namespace("a"), table("a", "t"), table("other"))
    KINDS[kind](home / "lake" / "other.lance")
    run = ran(home, "plan", "m.yaml", "--format", "json")
    assert {(s["verdict"], s["blocked_by"]) for s in steps_of(run, ["other"])} == {("blocked", "unreadable")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_marker_of_v1(lake: Callable[[str], Path], kind: str) -> None:
    home = lake("v1")
    KINDS[kind](home / "lake/t.lance/.lance-deregistered")
    run = ran(home, "plan", "m.yaml", "--format", "json")
    if kind == "3 GB":  # It is a regular file, and nobody reads it.
        assert run.code == 0
        return
    assert run.code == 1
    assert ".lance-deregistered" in run.err


GIVEN = [k for k in KINDS if k not in ("folder", "full folder")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize(
    "words",
    [
        ("import", "x.yaml", "-o", "live"), ("validate", "in"), ("show", "x.yaml"),
        ("apply", "--plan", "x.yaml", "--yes"), ("plan", "s.yaml"), ("apply", "m.yaml", "--yes", "--journal", "x.yaml"),
    ],
)  # fmt: skip
def test_a_file_that_is_given(tmp_path: Path, words: tuple[str, ...], kind: str) -> None:
    write(tmp_path, catalog(), namespace("a"))
    write(tmp_path, catalog(storage__aws_secret_access_key="${file:x.yaml}"), namespace("a"), name="s.yaml")
    (tmp_path / "in").mkdir()
    KINDS[kind](tmp_path / "x.yaml")
    KINDS[kind](tmp_path / "in" / "y.yaml")
    if "--journal" in words and kind in ("3 GB", "link to nothing", "device"):
        kind = "writable"  # A journal is appended to a file of any size; a device takes it, or says why not.
    run = ran(tmp_path, *words)
    assert kind == "writable" or run.code == 1, run.out
    assert kind == "writable" or "x.yaml" in run.out + run.err or "y.yaml" in run.out + run.err
    for file in tmp_path.rglob("*.yaml"):
        if file.is_file() and file.stat().st_size == HUGE:
            file.unlink()


@pytest.mark.parametrize("what", ["--report", "--metrics-file", "-o"])
def test_a_pipe_that_nobody_reads_gets_nothing(tmp_path: Path, what: str) -> None:
    write(tmp_path, catalog(), namespace("a"))
    os.mkfifo(tmp_path / "pipe")
    words = ("plan", "m.yaml", "-o") if what == "-o" else ("apply", "m.yaml", "--yes", what)
    run = ran(tmp_path, *words, "pipe")
    assert run.code in (1, 5), run.out
    assert "pipe" in run.err


def test_what_the_caller_hands_over_may_be_a_pipe(tmp_path: Path) -> None:
    text = catalog() + namespace("a")
    done = subprocess.run(
        command("validate", "/dev/stdin"), cwd=tmp_path, env=environment(), input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_check_of_versions_costs_nearly_nothing(tmp_path: Path) -> None:
    """One listing and two looks for each dataset without tags: counted, not timed."""
    from unittest.mock import patch

    from reconciler.catalog.lance_dataset import check_versions

    dataset = lance.write_dataset(pa.table({"id": [1]}), tmp_path / "t.lance")
    for number in range(20):
        dataset = lance.write_dataset(pa.table({"id": [number]}), tmp_path / "t.lance", mode="append")
    with patch("os.scandir", wraps=os.scandir) as listed, patch("os.stat", wraps=os.stat) as looked:
        check_versions(str(tmp_path / "t.lance"))
        check_versions(f"file://{tmp_path}/t.lance")
    assert (listed.call_count, looked.call_count) == (2, 4)
    assert json.dumps(dataset.version) == "21"
