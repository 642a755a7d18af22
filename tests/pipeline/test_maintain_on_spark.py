"""`pipeline maintain` on Spark, on the session of all tests: local, in a bucket, through a service;
while others read and write; and after the driver was killed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pytest
from cli.cli_runs import REPO, catalog, environment, reconciler, table, write
from pipeline.maintain_lake import (
    ALL,
    INDEX,
    SCHEMA,
    append,
    decided,
    lake,
    later,
    maintain,
    outcomes,
    parts,
    path,
    state,
)
from pipeline.one_session import one_session
from pipeline.spark_lake import only_progress
from pipeline.test_checksum import of_dataset
from servers.moto import Moto
from servers.rest_adapter import RestServers

__all__ = ["one_session"]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")]
PAGE = REPO / "docs" / "data.md"
SMALL = INDEX + ALL.replace("targetRowsPerFragment: 1000", "targetRowsPerFragment: 20")
"""Several compaction tasks for a table."""


def test_several_tables_and_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "a", "b", spec=SMALL, fragments=9)
    before = of_dataset(path(tmp_path, "a")), of_dataset(path(tmp_path, "b"))
    lance.dataset(str(path(tmp_path, "a"))).tags.create("prod", 6)
    tagged = lance.dataset(str(path(tmp_path, "a")), version="prod").to_table()
    later(monkeypatch, 20)
    foreseen = maintain(tmp_path, "--dry-run", "--format", "json")
    run = maintain(tmp_path, "--format", "json")
    assert run.code == 0
    assert only_progress(run.err)
    assert decided(run) == decided(foreseen)
    for name in ("a", "b"):
        assert outcomes(run, name) == ["done", "done", "done"]
        assert parts(run, name)["compact"]["after"]["fragments"] == 4, "as many as there were tasks"
    assert (of_dataset(path(tmp_path, "a")), of_dataset(path(tmp_path, "b"))) == before
    assert lance.dataset(str(path(tmp_path, "a")), version="prod").to_table() == tagged
    assert tagged.num_rows == 20


def test_others_read_and_append_all_the_while(tmp_path: Path) -> None:
    lake(tmp_path, "t", spec=SMALL, fragments=20)
    before = of_dataset(path(tmp_path))
    pinned = lance.dataset(str(path(tmp_path))).version
    stop, seen, problems = threading.Event(), [], []

    def read() -> None:
        while not stop.is_set():
            try:
                whole = lance.dataset(str(path(tmp_path))).to_table(filter="id < 200", columns=["id"]).num_rows
                seen.append((lance.dataset(str(path(tmp_path)), version=pinned).to_table().num_rows, whole))
            except Exception as error:
                problems.append(error)

    def write_more() -> None:
        start = 1000
        while not stop.is_set():
            append(path(tmp_path), 1, start)
            start += 10
            stop.wait(0.05)

    threads = [threading.Thread(target=read), threading.Thread(target=write_more)]
    for thread in threads:
        thread.start()
    try:
        run = maintain(tmp_path, "--format", "json")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert problems == []
    assert set(seen) == {(200, 200)}
    assert outcomes(run) == ["done", "done", None]
    dataset = lance.dataset(str(path(tmp_path)))
    found = sorted(dataset.to_table()["id"].to_pylist())
    assert found[:200] == list(range(200))
    assert found[200:] == list(range(1000, 1000 + len(found) - 200)), "every append is there, once"
    dataset.delete("id >= 1000")
    assert of_dataset(path(tmp_path)) == before


def test_a_bucket_and_its_secrets(tmp_path: Path, moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = moto.make_bucket("pipeline-maintain")
    options = {f"storage__{k}": v for k, v in moto.storage_options.items()}
    write(tmp_path, catalog(path=f"{bucket}/lake", **options), table("t", schema=SCHEMA, spec=SMALL))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    append(f"{bucket}/lake/t.lance", 6, options=moto.storage_options)
    later(monkeypatch, 20)
    foreseen = maintain(tmp_path, "--dry-run", "--format", "json")
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run), decided(run)) == (0, ["done", "done", "done"], decided(foreseen))
    dataset = lance.dataset(f"{bucket}/lake/t.lance", storage_options=moto.storage_options)
    assert (dataset.count_rows(), len(dataset.get_fragments())) == (60, 3)
    for secret in ("test-secret-canary", "test-key"):
        assert secret not in run.out + run.err + foreseen.out + maintain(tmp_path).out


def test_a_rest_catalog(tmp_path: Path, rest_adapter: RestServers) -> None:
    endpoint = rest_adapter.serve(tmp_path / "served")
    head = catalog().replace("type: dir\n  path: ./lake", f"type: rest\n  uri: {endpoint}")
    space = "---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: lake, id: [ns]}\n"
    write(tmp_path, head, space, table("ns", "t", schema=SCHEMA, spec=SMALL))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    (place,) = (tmp_path / "served").glob("*ns$t*")
    append(place, 6)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (0, ["done", "done", None])
    assert len(lance.dataset(str(place)).get_fragments()) == 3


def test_a_job_that_spark_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(unit: dict[str, Any]) -> Iterator[Any]:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
        yield unit

    lake(tmp_path, "t", spec=SMALL)
    before = state(path(tmp_path))
    monkeypatch.setattr("reconciler.pipeline.maintain_task.rewrite", killed)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (5, ["unknown", "not_run", None])
    assert parts(run)["compact"]["detail"].startswith("a Spark job failed: ")
    assert state(path(tmp_path)) == before


KILLED = """
import os, signal, sys
from reconciler.pipeline import maintain
from reconciler.cli import run

def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

maintain._committed = killed
sys.exit(run(["pipeline", "maintain", "m.yaml", "--master", "local[2,4]"]))
"""


def test_the_driver_is_killed_before_the_commit(tmp_path: Path) -> None:
    """The files of the tasks are there, and nobody refers to them."""
    lake(tmp_path, "t", spec=SMALL)
    before, version = state(path(tmp_path)), lance.dataset(str(path(tmp_path))).version
    files = set((path(tmp_path) / "data").iterdir())
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, env=environment(), capture_output=True, timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(set((path(tmp_path) / "data").iterdir()) - files) == 3
    assert (state(path(tmp_path)), lance.dataset(str(path(tmp_path))).version) == (before, version)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (0, ["done", "done", None])
    assert state(path(tmp_path))[2] == before[2]


def test_the_readme_shows_what_it_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text()
    (manifest,) = (block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "maintenance:" in block)
    shown = re.search(r"<!-- maintain:begin -->\n```console\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    (tmp_path / "lake.yaml").write_text(manifest)
    assert reconciler(tmp_path, "apply", "lake.yaml", "--yes").code == 0
    for name in ("events", "labels"):
        append(path(tmp_path, name), 40 if name == "events" else 3)
    lance.dataset(str(path(tmp_path, "events"))).tags.create("training-2026-10", 12)
    later(monkeypatch, 20)
    printed = "\n".join(
        f"$ {line}\n{reconciler(tmp_path, *line.split()[1:]).out}"
        for line in re.findall(r"^\$ (.*)$", shown.group(1), re.MULTILINE)
    )
    sizes = re.compile(r"[\d.]+ [kM]?B\b")
    assert sizes.sub("size", printed) == sizes.sub("size", shown.group(1))
