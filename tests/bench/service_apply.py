"""The whole `reconciler apply` of new tables on each backend, with local datasets and a server on the same machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml
from service_hosts import hosted

HERE = "reconciler.lance/v1"
Spec = Callable[[Path], dict[str, Any]]
Fresh = Callable[[], AbstractContextManager[tuple[Spec, list[str]]]]
KEYS = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}


@contextmanager
def _dir() -> Iterator[tuple[Spec, list[str]]]:
    yield (lambda folder: {"type": "dir", "path": str(folder / "lake")}), ["n"]


@contextmanager
def _rest() -> Iterator[tuple[Spec, list[str]]]:
    with hosted("rest") as endpoint:
        yield (lambda folder: {"type": "rest", "uri": endpoint}), ["n"]


@contextmanager
def _iceberg() -> Iterator[tuple[Spec, list[str]]]:
    with hosted("iceberg") as endpoint:
        yield (lambda folder: {"type": "iceberg", "endpoint": endpoint, "root": str(folder / "lake")}), ["wh", "n"]


@contextmanager
def _unity() -> Iterator[tuple[Spec, list[str]]]:
    with hosted("unity") as endpoint:
        httpx.post(f"{endpoint}/api/2.1/unity-catalog/catalogs", json={"name": "lake"}).raise_for_status()
        yield (
            (lambda folder: {"type": "unity", "endpoint": endpoint, "catalog": "lake", "root": str(folder / "lake")}),
            ["lake", "n"],
        )


@contextmanager
def _glue() -> Iterator[tuple[Spec, list[str]]]:
    with hosted("glue") as endpoint:
        yield (lambda folder: {"type": "glue", "endpoint": endpoint, "root": str(folder / "lake"), **KEYS}), ["n"]


def backends() -> list[tuple[str, Fresh]]:
    return [("dir", _dir), ("rest", _rest), ("iceberg", _iceberg), ("unity", _unity), ("glue", _glue)]


def seconds_to_apply(site: tuple[Spec, list[str]], folder: Path, tables: int, parallelism: int) -> float:
    spec, home = site
    documents: list[dict[str, Any]] = [
        {"apiVersion": HERE, "kind": "Catalog", "metadata": {"name": "lake"}, "spec": spec(folder)},
        {"apiVersion": HERE, "kind": "Namespace", "metadata": {"catalog": "lake", "id": home}},
    ]
    schema = [{"name": "id", "type": "int64"}, {"name": "embedding", "type": "fixed_size_list<float32>[64]"}]
    for number in range(tables):
        ident = [*home, f"t{number}"]
        document = {"apiVersion": HERE, "kind": "Table", "metadata": {"catalog": "lake", "id": ident}}
        documents.append({**document, "spec": {"schema": schema, "properties": {"tier": "gold"}}})
    (folder / "m.yaml").write_text(yaml.safe_dump_all(documents))
    command = [sys.executable, "-m", "reconciler", "apply", "m.yaml", "--yes", "--format", "json"]
    start = time.perf_counter()
    done = subprocess.run([*command, "--parallelism", str(parallelism)], cwd=folder, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcome"] == "applied"
    return seconds
