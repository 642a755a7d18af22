"""(a) validate + plan of N objects, against an octoDNS dry run of N records and the bare C YAML parse of our files.

Everything is to be created, as in octoDNS with an empty target. An object is either small (a declared table with one
property: about as much text as a DNS record) or a table with four columns. CPU seconds of one process each, imports
included. Arguments: the sizes, 1000 10000 100000 by default.
"""

from __future__ import annotations

import io
import json
import logging
import math
import sys
import tempfile
import time
from pathlib import Path

from timing import in_fresh_process, measured, table

PER_FILE = 1000
SMALL = """apiVersion: reconciler.lance/v1
kind: Table
metadata: {{catalog: lake, id: [n{group}, t{i}]}}
spec: {{properties: {{tier: gold}}}}
---
"""
COLUMNS = """apiVersion: reconciler.lance/v1
kind: Table
metadata: {{catalog: lake, id: [n{group}, t{i}]}}
spec:
  properties: {{tier: gold}}
  schema:
    - {{name: id, type: int64, nullable: false}}
    - {{name: label, type: string}}
    - {{name: score, type: float32}}
    - {{name: embedding, type: "fixed_size_list<float32>[64]"}}
---
"""


def write_manifests(root: Path, count: int, document: str = COLUMNS) -> None:
    head = "apiVersion: reconciler.lance/v1\nkind: {}\nmetadata: {}\n"
    catalog = (
        head.format("Catalog", "{name: lake}") + f"spec: {{type: dir, path: {root}/lake, management: {{owner: b}}}}\n"
    )
    (root / "catalog.yaml").write_text(catalog)
    for start in range(0, count, PER_FILE):
        group = start // PER_FILE
        text = head.format("Namespace", f"{{catalog: lake, id: [n{group}]}}") + "---\n"
        text += "".join(document.format(group=group, i=i) for i in range(start, min(start + PER_FILE, count)))
        (root / f"tables{group}.yaml").write_text(text)


def ours(count: int, document: str) -> dict[str, float]:
    from reconciler.app import Request, Session, plan

    with tempfile.TemporaryDirectory() as folder:
        write_manifests(Path(folder), count, document)
        start = time.process_time()
        made, _ = plan(Request((folder,)), Session())
        seconds = time.process_time() - start
        assert made.summary.create == count + math.ceil(count / PER_FILE), made.summary
    return {"seconds": seconds, "mb": _peak_mb()}


def bare(count: int, document: str) -> dict[str, float]:
    import yaml

    with tempfile.TemporaryDirectory() as folder:
        write_manifests(Path(folder), count, document)
        texts = [p.read_text() for p in sorted(Path(folder).glob("*.yaml"))]
        start = time.process_time()
        for text in texts:
            list(yaml.load_all(text, Loader=yaml.CSafeLoader))
        loaded = time.process_time() - start
        start = time.process_time()
        for text in texts:
            for _ in yaml.parse(text, Loader=yaml.CSafeLoader):
                pass
        return {"load": loaded, "events": time.process_time() - start}


def octodns(count: int, _: str) -> dict[str, float]:
    from octodns.manager import Manager

    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "source").mkdir()
        (root / "target").mkdir()
        records = "".join(
            f"r{i:06d}:\n  type: A\n  value: 10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}\n" for i in range(count)
        )
        (root / "source" / "example.com.yaml").write_text("---\n" + records)
        provider = "class: octodns.provider.yaml.YamlProvider\n    directory: "
        (root / "config.yaml").write_text(
            f"providers:\n  source:\n    {provider}{root}/source\n  target:\n    {provider}{root}/target\n"
            "manager:\n  plan_outputs:\n    json:\n      class: octodns.provider.plan.PlanJson\n"
            "zones:\n  example.com.:\n    sources: [source]\n    targets: [target]\n"
        )
        output = io.StringIO()
        start = time.process_time()
        Manager(str(root / "config.yaml")).sync(dry_run=True, plan_output_fh=output)
        seconds = time.process_time() - start
    assert output.getvalue().count('"create"') == count, output.getvalue()[:200]
    return {"seconds": seconds}


def _peak_mb() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(sizes: list[int]) -> None:
    rows: list[list[str]] = []
    for name in ("small", "columns"):
        seconds = {}
        for count in sizes:
            us = in_fresh_process(__file__, "ours", str(count), name)
            yaml = in_fresh_process(__file__, "bare", str(count), name)
            peer = in_fresh_process(__file__, "octodns", str(count), name)
            seconds[count] = us["seconds"]
            rows.append(
                [name, str(count), f"{us['seconds']:.2f} s", f"{us['mb']:.0f} MB", f"{peer['seconds']:.2f} s",
                 f"{peer['seconds'] / us['seconds']:.2f}x", f"{yaml['load']:.2f} s",
                 f"{us['seconds'] / yaml['load']:.2f}x", f"{yaml['events']:.2f} s",
                 f"{us['seconds'] / yaml['events']:.2f}x"]
            )  # fmt: skip
        if len(sizes) > 1:
            low, high = min(sizes), max(sizes)
            exponent = math.log(seconds[high] / seconds[low]) / math.log(high / low)
            print(f"{name}: growth exponent {low} -> {high}: {exponent:.2f}")
    header = ["objects", "count", "ours", "peak", "octoDNS", "octoDNS/ours", "YAML load", "ours/load", "YAML events"]
    table([*header, "ours/events"], rows)


if __name__ == "__main__":
    inner = measured()
    if inner:
        measure = {"ours": ours, "bare": bare, "octodns": octodns}[inner[0]]
        print(json.dumps(measure(int(inner[1]), {"small": SMALL, "columns": COLUMNS}[inner[2]])))
    else:
        main([int(a) for a in sys.argv[1:]] or [1000, 10_000, 100_000])
