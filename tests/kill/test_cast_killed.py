"""A cast of an indexed column by a process that is SIGKILLed right before any of its writes: the column is never in its
old type without its index, and the next run ends where an undisturbed one does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from reconciler.cli import run as reconciler

pytestmark = pytest.mark.slow
HEAD = """apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: ./lake, management: {owner: us}}
---
apiVersion: reconciler.lance/v1
kind: Table
metadata: {catalog: lake, id: [t]}
spec:
  schema: [{name: id, type: int64}, {name: n, type: %s}, {name: v, type: "fixed_size_list<%s>[4]"}]
  indexes: [{column: n, type: btree}, {column: id, type: btree}, {column: v, type: ivf_flat}]
"""
KILLED = """
import os, signal, sys
from reconciler.engine import run_step
fenced, writes = run_step.fenced, 0

def counted(guard, *more):
    def asked():
        global writes
        writes += 1
        if writes == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        return guard()
    return fenced(asked, *more)

run_step.fenced = counted
from reconciler.cli import run
sys.exit(run(["apply", "m.yaml", "--yes", "--lock-timeout", "0"]))
"""
MOST = 40


def test_killed_before_every_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    start(tmp_path)
    original = (tmp_path / "lake").rename(tmp_path / "original")
    for write in range(1, MOST):
        subprocess.run(["rm", "-rf", "lake"], check=True)
        subprocess.run(["cp", "-a", str(original), "lake"], check=True)
        ended = subprocess.run([sys.executable, "-c", KILLED, str(write)], capture_output=True, text=True, timeout=120)
        for version in lance.dataset("lake/t.lance").versions():
            need_index(lance.dataset("lake/t.lance", version=version["version"]))
        assert reconciler(["apply", "m.yaml", "--yes"]) == 0
        assert finished() == [("int64", "double"), ["id_idx", "n_idx", "v_idx"], 300], write
        assert reconciler(["plan", "m.yaml", "--detailed-exitcode"]) == 0
        if ended.returncode == 0:
            assert write > 5, "there were writes to be killed before"
            return
        assert ended.returncode == -9, ended.stderr
    pytest.fail("the run never ended")


def start(folder: Path) -> None:
    (folder / "m.yaml").write_text(HEAD % ("int32", "float32"))
    assert reconciler(["apply", "m.yaml", "--yes"]) == 0
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i % 7) for i in range(1200)], pa.float32()), 4)
    rows = pa.table({"id": pa.array(range(300)), "n": pa.array(range(300), pa.int32()), "v": vectors})
    lance.write_dataset(rows, "lake/t.lance", mode="append")
    (folder / "m.yaml").write_text(HEAD % ("int64", "float64"))


def need_index(dataset: Any) -> None:
    """Those of other columns in every version, that of a column until it has its new type."""
    if dataset.count_rows() == 0:
        return
    names = {i.name for i in dataset.describe_indices()}
    assert "id_idx" in names
    assert "n_idx" in names or str(dataset.schema.field("n").type) == "int64"
    assert "v_idx" in names or "double" in str(dataset.schema.field("v").type)


def finished() -> list[Any]:
    dataset = lance.dataset("lake/t.lance")
    types = (str(dataset.schema.field("n").type), str(dataset.schema.field("v").type.value_type))
    return [types, sorted(i.name for i in dataset.describe_indices()), dataset.count_rows()]
