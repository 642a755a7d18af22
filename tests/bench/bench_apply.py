"""(e) apply of 1000 new tables against a plain serial pylance loop that does the same work by hand.

The loop declares each table in the namespace and writes its empty dataset. Ours is the whole command: validate, plan,
journal, every write verified, owner marks and record included.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lance
import pyarrow as pa
from bench_plan import write_manifests
from lance.namespace import DirectoryNamespace
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from timing import table

TABLES = 1000
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("label", pa.string()), ("score", pa.float32()),
     ("embedding", pa.list_(pa.float32(), 64))]
)  # fmt: skip


def ours(parallelism: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        manifests = Path(folder) / "manifests"
        manifests.mkdir()
        write_manifests(manifests, TABLES)
        command = [sys.executable, "-m", "reconciler", "apply", str(manifests), "--yes", "--format", "json"]
        start = time.perf_counter()
        done = subprocess.run(
            [*command, "--parallelism", str(parallelism)], cwd=folder, check=True, capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
        assert json.loads(done.stdout)["outcome"] == "applied"
    return seconds


def loop() -> float:
    with tempfile.TemporaryDirectory() as root:
        start = time.perf_counter()
        namespace = DirectoryNamespace(root=root)
        namespace.create_namespace(CreateNamespaceRequest(id=["n0"], properties={"team": "b"}))
        for i in range(TABLES):
            declared = namespace.declare_table(DeclareTableRequest(id=["n0", f"t{i}"], properties={"tier": "gold"}))
            lance.write_dataset([], declared.location, schema=SCHEMA, mode="create")
        return time.perf_counter() - start


if __name__ == "__main__":
    theirs = loop()
    rows = []
    for parallelism in (1, 8, 16):
        seconds = ours(parallelism)
        rows.append(
            [str(parallelism), f"{seconds:.1f} s", f"{TABLES / seconds:.0f}/s", f"{theirs:.1f} s",
             f"{TABLES / theirs:.0f}/s", f"{theirs / seconds:.1f}x"]
        )  # fmt: skip
    table(["parallelism", "ours", "tables", "pylance loop", "tables", "loop/ours"], rows)
