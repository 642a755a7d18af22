"""Catalog services against `lance-namespace-impls`, the peer that speaks the same protocols, on the same server.

Snapshot: every table of one namespace with its location and properties. Ours is one scan; the peer lists and then
describes each name. The peer's listings end after the first page of Iceberg and Unity, so it describes the names we
give it. Memory: a scan and a snapshot of 100,000 tables of a made-up server. Apply: new tables per second.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
from lance_namespace import DescribeTableRequest, ListTablesRequest
from service_hosts import hosted
from timing import best, in_fresh_process, measured, table

from reconciler.catalog.base import Catalog
from reconciler.catalog.registry import backend_of
from reconciler.engine.observe import observe
from reconciler.model.observed import Scope

TABLES = 1000
NEW_TABLES = int(os.environ.get("BENCH_TABLES", "500"))
LARGE = 100_000
GLUE_KEYS = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
NAMES = [f"t{n:04}" for n in range(TABLES)]


def connect(kind: str, options: Mapping[str, str]) -> Catalog:
    backend = backend_of(kind)
    assert backend is not None
    return backend.connect(options)


def snapshot(kind: str, options: Mapping[str, str], namespace: tuple[str, ...]) -> Callable[[], None]:
    scope = Scope(namespaces=frozenset({namespace}))

    def run() -> None:
        catalog = connect(kind, options)
        assert len(observe(catalog, scope).tables) == TABLES
        catalog.close()

    return run


def peer(namespace: object, ident: list[str]) -> Callable[[], None]:
    def run() -> None:
        namespace.list_tables(ListTablesRequest(id=ident))  # type: ignore[attr-defined]
        for name in NAMES:
            namespace.describe_table(DescribeTableRequest(id=[*ident, name]))  # type: ignore[attr-defined]

    return run


def row(what: str, ours: Callable[[], None], theirs: Callable[[], None], theirs_times: int = 1) -> list[str]:
    our_seconds, their_seconds = best(ours, 3), best(theirs, theirs_times)
    return [what, f"{our_seconds:.2f} s", f"{their_seconds:.2f} s", f"{their_seconds / our_seconds:.1f}x"]


def iceberg_rows() -> list[list[str]]:
    from lance_namespace_impls.iceberg import IcebergNamespace

    rows = []
    with hosted("iceberg") as endpoint:
        with httpx.Client(base_url=f"{endpoint}/v1", timeout=60) as client:
            client.post("/namespaces", json={"namespace": ["n"], "properties": {}}).raise_for_status()
            dummy = {"type": "struct", "fields": [{"id": 1, "name": "dummy", "required": False, "type": "string"}]}
            for name in NAMES:
                body = {
                    "name": name,
                    "location": f"s3://wh/n/{name}",
                    "schema": dummy,
                    "properties": {"table_type": "lance"},
                }
                client.post("/namespaces/n/tables", json=body).raise_for_status()
        for seconds in (0.0, 0.02):
            with hosted("proxy", endpoint, str(seconds)) as slow:
                there = IcebergNamespace(endpoint=slow, root="/tmp/x")
                options = {"endpoint": slow, "warehouse": "wh", "prefix": "wh", "root": "/tmp/x"}
                what = f"Iceberg, {TABLES} tables, {1000 * seconds:.0f} ms a call"
                rows.append(row(what, snapshot("iceberg", options, ("wh", "n")), peer(there, ["wh", "n"])))
    return rows


def unity_rows() -> list[list[str]]:
    from lance_namespace_impls.unity import UnityNamespace

    with hosted("unity") as endpoint:
        api = f"{endpoint}/api/2.1/unity-catalog"
        with httpx.Client(base_url=api, timeout=60) as client:
            client.post("/catalogs", json={"name": "lake"}).raise_for_status()
            client.post("/schemas", json={"name": "n", "catalog_name": "lake"}).raise_for_status()
            for name in NAMES:
                body = {
                    "name": name,
                    "catalog_name": "lake",
                    "schema_name": "n",
                    "table_type": "EXTERNAL",
                    "data_source_format": "TEXT",
                    "columns": [],
                    "storage_location": f"file:///lake/n/{name}",
                    "properties": {"table_type": "lance"},
                }
                client.post("/tables", json=body).raise_for_status()
        there = UnityNamespace(**{"unity.endpoint": endpoint, "unity.root": "/tmp/x"})
        ours = snapshot("unity", {"endpoint": endpoint, "catalog": "lake", "root": "/tmp/x"}, ("lake", "n"))
        return [row(f"Unity (stand-in), {TABLES} tables", ours, peer(there, ["lake", "n"]))]


def glue_rows() -> list[list[str]]:
    import boto3
    from lance_namespace_impls.glue import GlueNamespace

    with hosted("glue") as endpoint:
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
        client = boto3.client("glue", endpoint_url=endpoint, **keys)
        client.create_database(DatabaseInput={"Name": "n"})
        for name in NAMES:
            client.create_table(
                DatabaseName="n",
                TableInput={
                    "Name": name,
                    "TableType": "EXTERNAL_TABLE",
                    "Parameters": {"table_type": "lance"},
                    "StorageDescriptor": {"Location": f"s3://lake/n/{name}"},
                },
            )
        there = GlueNamespace(endpoint=endpoint, **GLUE_KEYS)
        ours = snapshot("glue", {"endpoint": endpoint, **GLUE_KEYS}, ("n",))
        return [row(f"Glue (moto), {TABLES} tables", ours, peer(there, ["n"]))]


def memory_rows() -> list[list[str]]:
    rows = []
    with hosted("pages", str(LARGE)) as endpoint:
        for how in ("scan", "snapshot"):
            figures = in_fresh_process(__file__, "memory", how, endpoint)
            rows.append([f"{how} of {LARGE:,} tables", f"{figures['megabytes']:.0f} MB", f"{figures['seconds']:.1f} s"])
    return rows


def _measure_memory(how: str, endpoint: str) -> None:
    import json

    options = {"endpoint": endpoint, "catalog": "lake", "root": tempfile.gettempdir()}
    scope = Scope(namespaces=frozenset({("lake", "s")}))
    started = time.perf_counter()
    catalog = connect("unity", options)
    if how == "scan":
        count = sum(1 for found in catalog.scan(scope) if len(getattr(found, "ident", ())) == 3)
    else:
        count = len(observe(catalog, scope).tables)
    assert count == LARGE, count
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"megabytes": peak, "seconds": time.perf_counter() - started}))


def apply_rows() -> list[list[str]]:
    from service_apply import backends, seconds_to_apply

    rows = []
    for name, fresh in backends():
        speeds = []
        for parallelism in (1, 8, 32):
            with fresh() as site, tempfile.TemporaryDirectory() as folder:
                taken = seconds_to_apply(site, Path(folder), NEW_TABLES, parallelism)
            speeds.append(f"{NEW_TABLES / taken:.0f}")
        rows.append([name, *speeds])
    return rows


if __name__ == "__main__":
    if inner := measured():
        _measure_memory(*inner[1:])
        sys.exit()
    parts = {"iceberg": iceberg_rows, "unity": unity_rows, "glue": glue_rows}
    asked = sys.argv[1:]
    rows = [r for name, part in parts.items() if not asked or name in asked for r in part()]
    if rows:
        table(["snapshot", "ours", "lance-namespace-impls", "theirs/ours"], rows)
    if not asked or "memory" in asked:
        table(["memory", "peak", "time"], memory_rows())
    if not asked or "apply" in asked:
        table([f"apply of {NEW_TABLES} tables, tables/s at parallelism", "1", "8", "32"], apply_rows())
