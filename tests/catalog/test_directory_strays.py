"""A table that somebody else deregistered comes back to its data, not to an empty dataset beside it."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace
from lance_namespace import DeregisterTableRequest, DescribeTableRequest

from reconciler.app import Request, RunOptions, Session, apply, plan

MANIFEST = """
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: %s, management: {owner: us}}
---
apiVersion: reconciler.lance/v1
kind: Namespace
metadata: {catalog: lake, id: [a]}
---
apiVersion: reconciler.lance/v1
kind: Table
metadata: {catalog: lake, id: [a, "%s"]}
spec: {schema: [{name: id, type: int64}]}
"""


def run(folder: Path, name: str) -> list[tuple[str, str]]:
    """Plans and applies; the steps as (action, verdict)."""
    (folder / "m.yaml").write_text(MANIFEST % (folder / "lake", name))
    session = Session()
    made, _ = plan(Request((str(folder / "m.yaml"),)), session)
    assert apply(made, RunOptions(journal=folder / "journal"), session).outcome in ("applied", "no_changes", "refused")
    return [(s.action, s.verdict) for s in made.steps]


def location(folder: Path, name: str) -> str:
    peer = DirectoryNamespace(root=str(folder / "lake"))
    return str(peer.describe_table(DescribeTableRequest(id=["a", name])).location)


def deregister(folder: Path, name: str) -> str:
    """As a colleague would, with plain pylance. Gives the place of the data."""
    place = location(folder, name)
    DirectoryNamespace(root=str(folder / "lake")).deregister_table(DeregisterTableRequest(id=["a", name]))
    return place


@pytest.mark.parametrize("name", ["t", "odd name%"])
def test_its_rows_are_there_again(tmp_path: Path, name: str) -> None:
    run(tmp_path, name)
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), location(tmp_path, name), mode="append")
    place = deregister(tmp_path, name)
    assert run(tmp_path, name) == [("declare_table", "allowed")]
    assert location(tmp_path, name) == place
    assert lance.dataset(place).count_rows() == 3
    assert run(tmp_path, name) == []


def test_data_without_an_owner_is_not_taken(tmp_path: Path) -> None:
    run(tmp_path, "t")
    place = deregister(tmp_path, "t")
    lance.dataset(place).update_metadata({"reconciler.owner": None})
    assert run(tmp_path, "t") == [("declare_table", "allowed"), ("create_dataset", "allowed")]
    assert location(tmp_path, "t") != place


def test_data_of_another_owner_is_not_taken(tmp_path: Path) -> None:
    run(tmp_path, "t")
    place = deregister(tmp_path, "t")
    lance.dataset(place).update_metadata({"reconciler.owner": "them"})
    assert run(tmp_path, "t") == [("declare_table", "blocked")]


def test_two_that_claim_the_name_are_not_chosen_from(tmp_path: Path) -> None:
    run(tmp_path, "t")
    place = Path(deregister(tmp_path, "t").removeprefix("file://"))
    copy = lance.dataset(str(place)).to_table()
    twin = lance.write_dataset(copy, str(place.with_name("00000000_a$t")))
    twin.update_metadata({"reconciler.owner": "us", "reconciler.applied-keys": json.dumps([])})
    assert run(tmp_path, "t") == [("update_table", "blocked")]
