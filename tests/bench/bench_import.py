"""Import of 10,000 tables of a folder, in one file and in a file each; again, with nothing new; beside pylance's list
and describe of a sample of them, and beside the bare YAML dump of the same documents."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import lance
import pyarrow as pa
import yaml
from lance.namespace import DirectoryNamespace
from lance_namespace import DescribeTableRequest, ListTablesRequest
from timing import best, in_fresh_process, measured, table

from reconciler.cli import run

TABLES, SAMPLE = 10_000, 300
SCHEMA = pa.schema([("id", pa.int64()), ("label", pa.string()), ("embedding", pa.list_(pa.float32(), 64))])


def make(folder: Path) -> None:
    first = folder / "lake" / "t00000.lance"
    lance.write_dataset(SCHEMA.empty_table(), str(first))
    for number in range(1, TABLES):
        shutil.copytree(first, folder / "lake" / f"t{number:05}.lance")
    (folder / "c.yaml").write_text(
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\n"
        f"spec: {{type: dir, path: {folder}/lake}}\n"
    )


def measure(folder: str, output: str, *flags: str) -> None:
    """In a process of its own, so that the memory is of this import alone."""
    started = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert run(["import", f"{folder}/c.yaml", "-o", f"{folder}/{output}", *flags]) == 0
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def described(folder: Path) -> float:
    namespace = DirectoryNamespace(root=str(folder / "lake"))
    names = namespace.list_tables(ListTablesRequest(id=[])).tables[:SAMPLE]

    def sample() -> None:
        for name in names:
            found = namespace.describe_table(DescribeTableRequest(id=[name], load_detailed_metadata=True))
            assert found.var_schema is not None

    return best(sample, 2) * TABLES / SAMPLE


def dumped(folder: Path) -> float:
    text = (folder / "one" / "lake" / "root-tables.yaml").read_text()
    documents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    assert len(documents) == TABLES
    return best(lambda: yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False), 1)


def _row(what: str, figures: dict[str, float], describe: float, dump: float) -> list[str]:
    took = figures["seconds"]
    return [what, f"{took:.1f} s", f"{figures['mb']:.0f} MB", f"{describe / took:.1f}x", f"{took / dump:.1f}x"]


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder)
        runs = {
            "first import, one file": ("one",),
            "again, nothing new": ("one",),
            "first import, a file per table": ("many", "--split", "table"),
            "again, nothing new, a file per table": ("many", "--split", "table"),
        }
        found = {what: in_fresh_process(__file__, place, *words) for what, words in runs.items()}
        describe, dump = described(folder), dumped(folder)
        rows = [_row(what, found[what], describe, dump) for what in runs]
        print(f"{TABLES} tables; list + describe by pylance {describe:.1f} s (from {SAMPLE}); YAML dump {dump:.1f} s")
        table(["what", "ours", "peak", "describe/ours", "ours/dump"], rows)


if __name__ == "__main__":
    inner = measured()
    measure(*inner) if inner is not None else main()
    sys.exit(0)
