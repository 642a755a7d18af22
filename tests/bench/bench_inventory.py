"""(i) fleet diff on Spark of N tables, 1 % of which differ, against `make_plan` in one process on the same states.

Nothing is read from a real catalog: an executor makes the rows of the listing, the live states and the declared tables
(four columns each) from their numbers. Measured is what `pipeline inventory --diff` does with them: fingerprints, join,
comparison, the second look at what differs, and the plan of it; without the start of the session. Memory is that of
the driver's Python process. Arguments: the sizes, 10000 100000 1000000 by default.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from timing import in_fresh_process, measured, table

from reconciler.app import PlanOptions, Session
from reconciler.catalog.directory_capabilities import directory_capabilities
from reconciler.core.fingerprint import fingerprint
from reconciler.core.fleet import in_doubt, settled_print, watch, without_location
from reconciler.core.planner import make_plan, scope_of
from reconciler.engine.observe import observe
from reconciler.model.arrow import Field, parse_type
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.ident import Ident
from reconciler.model.observed import Observation, Present, Scope
from reconciler.model.state import DatasetState, Marks, NamespaceState, TableState
from reconciler.pipeline import fleet, fleet_task
from reconciler.pipeline.fleet import DECLARED
from reconciler.pipeline.fleet_task import LISTED, READ, CatalogTask, key_of
from reconciler.pipeline.package import add_package
from reconciler.pipeline.session import SparkOptions, session
from reconciler.verbs.fleet_diff import looked_at

PER_NAMESPACE = 1000
MOST_IN_PROCESS = 100_000
"""With ten times as many it takes gigabytes."""
SPEC = CatalogSpec("lake", "dir", {"path": "/nowhere"}, Management(owner="b"), Source("m.yaml", 1, 1))
RULES = directory_capabilities({"path": "/nowhere"})
TYPES = {"id": "int64", "label": "string", "score": "float32", "embedding": "fixed_size_list<float32>[64]"}
FIELDS = tuple(Field(name, parse_type(text)) for name, text in TYPES.items())


def ident(number: int) -> Ident:
    return f"n{number // PER_NAMESPACE}", f"t{number}"


def wanted(number: int) -> DesiredTable:
    return DesiredTable("lake", ident(number), SPEC.source, {"tier": "gold", "number": str(number)}, fields=FIELDS)


def state(number: int) -> TableState:
    """Every hundredth has another property than its manifest says."""
    properties = {"tier": "gold" if number % 100 else "lead", "number": str(number)}
    applied = tuple(sorted(properties))
    place = f"/nowhere/{'$'.join(ident(number))}"
    return TableState(place, properties, Marks("b", applied=applied), DatasetState(FIELDS, owner="b"), place=place)


class Synthetic:
    """As much of a catalog as a scan needs."""

    capabilities = RULES

    def __init__(self, count: int) -> None:
        self._count = count

    def scan(self, scope: Scope) -> Iterator[Observation]:
        for number in range(0, self._count, PER_NAMESPACE):
            yield Observation("Namespace", ident(number)[:1], Present(NamespaceState({}, Marks("b"))))
        for number in range(self._count):
            yield Observation("Table", ident(number), Present(state(number)))

    def close(self) -> None:
        pass


def opened(_spec: CatalogSpec, options: Mapping[str, str]) -> Any:
    return Synthetic(int(options["count"]))


def rows_of(layout: str, make: Any) -> Any:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield from fleet_task.row_batches((make(n) for n in batch.column(0).to_pylist()), layout)

    return run


def listed(number: int) -> tuple[Any, ...]:
    return "lake", key_of(ident(number)), "Table", True, False, None, False


def declared(number: int) -> tuple[Any, ...]:
    return "lake", key_of(ident(number)), settled_print(SPEC, wanted(number), RULES), None


def read(rows: Iterable[Any]) -> Iterator[Any]:
    """In the place of `fleet_task.reading`: the same rows, from states that are made and not read."""
    names = [part.split()[0] for part in READ.split(", ")]
    for batch in rows:
        yield from fleet_task.row_batches((_read_row(names, row) for row in batch.to_pylist()), READ)


def _read_row(names: list[str], row: dict[str, Any]) -> tuple[Any, ...]:
    live = state(int(json.loads(row["key"])[1][1:]))
    out: dict[str, Any] = dict.fromkeys(names)
    prints = [fingerprint(Present(live)), fingerprint(without_location(live))]
    out |= {n: row[n] for n in ("kind", "catalog", "key", "declared")}
    out |= {"state_hash": prints[0], "recorded": True, "place": live.place}
    out["doubt"] = in_doubt(row["desired_hash"], prints, row["declared"], row["ours"])
    return tuple(out.values())


def desired(numbers: Iterable[int], count: int) -> Desired:
    spaces = {ident(n)[:1]: DesiredNamespace("lake", ident(n)[:1], SPEC.source) for n in range(0, count, PER_NAMESPACE)}
    return Desired({"lake": SPEC}, {"lake": spaces}, {"lake": {ident(n): wanted(n) for n in numbers}})


def diff(spark: Any, count: int) -> int:
    """As `inventory --diff`, with the three rows of functions above in the place of catalogs and manifests."""
    tasks = [CatalogTask("lake", "dir", {"count": str(count)}, frozenset(), "b", connect=opened)]
    parts = fleet.few_tasks(spark)
    numbers = spark.range(0, count, 1, parts)
    both = fleet.joined(
        numbers.mapInArrow(rows_of(LISTED, listed), LISTED), numbers.mapInArrow(rows_of(DECLARED, declared), DECLARED)
    )
    rows = both.repartition(parts).mapInArrow(read, READ).persist()
    found = list(fleet.doubts(rows, several=False))
    rows.unpersist()
    smaller = desired((int(d.ident[1][1:]) for d in found), count)
    watched = {"lake": watch(smaller, "lake")}
    return len(looked_at(spark, found, smaller, watched, tasks, PlanOptions(), Session()).steps)


def on_spark(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, session(SparkOptions()) as spark:
        add_package(spark, Path(folder))
        diff(spark, 1000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        steps = diff(spark, count)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert steps == count // 100, steps
    return {"seconds": seconds, "before": before / 1024, "peak": peak / 1024}


def in_process(count: int) -> dict[str, float]:
    start = time.perf_counter()
    wants = desired(range(count), count)
    snapshot = observe(Synthetic(count), scope_of(wants, "lake"))
    plan = make_plan(wants, {"lake": snapshot}, {"lake": RULES}, PlanOptions())
    seconds = time.perf_counter() - start
    assert len(plan.steps) == count // 100, len(plan.steps)
    return {"seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    inner = measured()
    if inner is not None:
        how, size = inner
        print(json.dumps({"spark": on_spark, "process": in_process}[how](int(size))))
        return
    sizes = [int(a) for a in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    rows, times = [], []
    for size in sizes:
        ours = in_fresh_process(__file__, "spark", str(size))
        alone = in_fresh_process(__file__, "process", str(size)) if size <= MOST_IN_PROCESS else None
        times.append(ours["seconds"])
        shown = [f"{size}", f"{ours['seconds']:.1f}", f"{ours['peak']:.0f} (+{ours['peak'] - ours['before']:.0f})"]
        rows.append([*shown, *([f"{alone['seconds']:.1f}", f"{alone['peak']:.0f}"] if alone else ["-", "-"])])
    table(["tables", "s on Spark", "driver MB", "s in one process", "MB"], rows)
    for (one, other), (before, after) in zip(pairs(sizes), pairs(times), strict=True):
        print(f"exponent from {one} to {other}: {math.log(after / before) / math.log(other / one):.2f}")


def pairs(values: list[Any]) -> list[tuple[Any, Any]]:
    return [*pairwise(values), *([(values[0], values[-1])] if len(values) > 2 else [])]


if __name__ == "__main__":
    main()
