"""(o) the checksum of columns of each kind, against BLAKE2b of their bytes, in processor time of one thread. With the
path of another version of the module against that too: `git show REVISION:reconciler/pipeline/checksum.py > PATH`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from timing import table

from reconciler.pipeline import checksum

ROWS_AT_A_TIME = 8192
"""As Lance scans them."""
TIMES = 7


def columns() -> Iterator[tuple[str, Any]]:
    dice = np.random.default_rng(1)
    count = 2_000_000
    yield "int64", pa.array(dice.integers(0, 2**62, count))
    yield "int64, a tenth null", pa.array(dice.integers(0, 2**62, count), mask=dice.random(count) < 0.1)
    yield "int32", pa.array(dice.integers(0, 2**31, count, np.int32))
    yield "float64", pa.array(dice.random(count))
    yield "decimal128", pa.array(range(count // 8)).cast(pa.decimal128(19, 0))
    yield "string, 16", pa.array([f"{n:016x}" for n in dice.integers(0, 2**62, count // 4).tolist()])
    yield "string, 11 to 17", pa.array(np.char.add("row number ", np.arange(count // 4).astype(str)))
    yield "string, 1 to 200", pa.array(["x" * n for n in dice.integers(1, 200, count // 20).tolist()])
    yield "dictionary", pa.array([f"v{n}" for n in dice.integers(0, 100, count // 4).tolist()]).dictionary_encode()
    for size in (4, 64, 768):
        items = pa.array(dice.random(6_000_000 // size * size, np.float32))
        yield f"float32[{size}]", pa.FixedSizeListArray.from_arrays(items, size)
    lists = [list(range(n)) for n in dice.integers(0, 20, count // 20).tolist()]
    yield "list of int32", pa.array(lists, pa.list_(pa.int32()))
    yield "list of strings", pa.array([[f"item {n}" for n in items[:5]] for items in lists])
    yield "struct", pa.array([{"x": n, "y": f"t{n}"} for n in range(count // 20)])


def of(module: ModuleType, rows: Any) -> Callable[[], object]:
    def run() -> None:
        sums = (0, 0)
        for batch in rows.to_batches(max_chunksize=ROWS_AT_A_TIME):
            sums = module.add_rows(sums, batch)

    return run


def digest(rows: Any) -> Callable[[], object]:
    buffers = [b for c in rows.columns for chunk in c.chunks for b in chunk.buffers() if b is not None]
    return lambda: [hashlib.blake2b(b, digest_size=16).digest() for b in buffers]


def in_turn(*actions: Callable[[], object]) -> list[float]:
    """The least of each."""
    least = [float("inf")] * len(actions)
    for _ in range(TIMES):
        for number, action in enumerate(actions):
            start = time.thread_time()
            action()
            least[number] = min(least[number], time.thread_time() - start)
    return least


def loaded(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("other_checksum", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    other = loaded(sys.argv[1]) if len(sys.argv) > 1 else None
    shown = []
    for name, column in columns():
        rows = pa.table({"c": column})
        versions = [of(m, rows) for m in (checksum, other) if m is not None]
        ours, *others, plain = in_turn(*versions, digest(rows))
        ratios = [f"{plain / ours:.2f}", *(f"{ours / t:.2f}" for t in others)]
        shown.append([name, *(f"{rows.nbytes / 1e6 / t:.0f}" for t in (ours, *others)), *ratios])
    versions_shown = [checksum.VERSION, *([other.VERSION] if other is not None else [])]
    head = ["", *(f"{v}, MB/s" for v in versions_shown), "faster than BLAKE2b", *(["time, new/old"] if other else [])]
    table(head, shown)


if __name__ == "__main__":
    main()
