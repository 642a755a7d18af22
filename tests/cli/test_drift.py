"""`drift` answers 0 only when everything was seen and is as declared."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalog.iceberg_support import Scripted, error, loaded, scripted
from cli.cli_runs import Run, reconciler, write

__all__ = ["scripted"]
LAKE = """
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {{name: lake}}
spec: {{type: iceberg, endpoint: "{endpoint}", warehouse: wh, max_retries: 0, root: ./data}}
"""


def drift(scripted: Scripted, folder: Path) -> Run:
    write(folder, LAKE.format(endpoint=scripted.endpoint))
    return reconciler(folder, "drift", "m.yaml")


@pytest.fixture(autouse=True)
def one_table(scripted: Scripted) -> None:
    """`n.t`, which no manifest has."""
    scripted.on(r"GET /v1/namespaces$", lambda call: (200, {"namespaces": [] if "parent" in call.query else [["n"]]}))
    scripted.on(r"GET /v1/namespaces/n$", (200, {"namespace": ["n"], "properties": {}}))
    scripted.on(r"GET /v1/namespaces/n/tables$", (200, {"identifiers": [{"namespace": ["n"], "name": "t"}]}))
    scripted.on(r"GET /v1/namespaces/n/tables/t$", (200, loaded()))


def test_what_others_have_is_no_drift(scripted: Scripted, tmp_path: Path) -> None:
    run = drift(scripted, tmp_path)
    assert (run.code, run.out) == (0, "No changes. The live catalogs match the manifests.\n")


@pytest.mark.parametrize("status", [400, 403, 503])
def test_a_table_that_cannot_be_read_may_be_an_orphan(scripted: Scripted, tmp_path: Path, status: int) -> None:
    scripted.on(r"GET /v1/namespaces/n/tables/t$", (status, error(status, "SomeException", "not today")))
    run = drift(scripted, tmp_path)
    assert run.code == 2
    assert "incomplete: wh.n.t cannot be read: " in run.out
    assert "not today" in run.out
    assert "match the manifests" not in run.out


def test_a_listing_that_fails_is_no_agreement(scripted: Scripted, tmp_path: Path) -> None:
    scripted.on(r"GET /v1/namespaces/n/tables$", (503, error(503, "ServiceUnavailableException")))
    run = drift(scripted, tmp_path)
    assert run.code == 2
    assert "match the manifests" not in run.out
