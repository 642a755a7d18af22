"""A table that is not where its name would put it keeps its place when it is imported."""

from __future__ import annotations

import pytest
import yaml

from reconciler.catalog.memory import MemoryCapabilities, MemoryCatalog
from reconciler.core.world import World
from reconciler.engine.observe import observe
from reconciler.manifest.emit import Emitted, export
from reconciler.model.arrow import Field, parse_type
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.ident import Ident
from reconciler.model.observed import Present, Scope, Snapshot
from reconciler.model.state import DatasetState, TableState

CATALOG = CatalogSpec("lake", "memory", {}, Management(), Source("x"))
CHOOSES = MemoryCapabilities(chooses_location=True, root="s3://lake")


def imported(kind: MemoryCapabilities, **locations: str) -> Emitted:
    dataset = DatasetState((Field("id", parse_type("int64")),))
    tables: dict[Ident, Present] = {(n,): Present(TableState(at, dataset=dataset)) for n, at in locations.items()}
    catalog = MemoryCatalog(World(Snapshot({}, tables)), kind)
    return export(CATALOG, observe(catalog, Scope(detail=frozenset(tables))), with_catalog=False)


def written(found: Emitted) -> dict[str, str | None]:
    return {d["metadata"]["id"][0]: d["spec"].get("location") for d in yaml.safe_load_all(found.text)}


def test_a_location_is_written_where_no_rule_leads_to_it() -> None:
    found = imported(CHOOSES, by_rule="s3a://lake/by_rule/", other="s3://else/x", dollar="s3://else/${y}")
    assert written(found) == {"by_rule": None, "other": "s3://else/x", "dollar": "s3://else/$${y}"}
    assert found.warnings == ()


def test_where_only_the_server_knows_the_place_it_is_written() -> None:
    assert written(imported(MemoryCapabilities(chooses_location=True), t="s3://x/t")) == {"t": "s3://x/t"}


def test_no_location_is_written_where_the_catalog_chooses() -> None:
    assert written(imported(MemoryCapabilities(), t="s3://x/t")) == {"t": None}


@pytest.mark.parametrize(
    ("locations", "kept", "why"),
    [
        ({"t": "s3://user:hush@x/t"}, {"t": None}, "a user name or a password"),
        ({"t": "s3://x/t", "u": "s3a://x/t/"}, {"t": "s3://x/t", "u": None}, "another table has the same"),
    ],
)
def test_a_location_that_no_manifest_may_give_is_left_out(
    locations: dict[str, str], kept: dict[str, str | None], why: str
) -> None:
    found = imported(CHOOSES, **locations)
    assert written(found) == kept
    assert len(found.warnings) == 1
    assert why in found.warnings[0]
    assert "hush" not in found.text
