"""One dataset in two catalogs is known by its place, not by how its location is written."""

from __future__ import annotations

from reconciler.catalog.memory import MemoryCapabilities
from reconciler.core.shared import followers, left_to_others
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.observed import Present, Snapshot
from reconciler.model.state import UNKNOWN, DatasetState, TableState

HERE = Source("m.yaml")
T = ("t",)


def both_read(one: TableState, two: TableState) -> bool:
    """Is the second catalog's dataset compared too?"""
    catalogs = {n: CatalogSpec(n, "dir", {}, Management(), HERE) for n in ("a", "b")}
    desired = Desired(catalogs, {}, {n: {T: DesiredTable(n, T, HERE)} for n in catalogs})
    snapshots = {"a": Snapshot({}, {T: Present(one)}), "b": Snapshot({}, {T: Present(two)})}
    everything = dict.fromkeys(catalogs, lambda _: True)
    follows = followers(desired, snapshots, dict.fromkeys(catalogs, MemoryCapabilities()), everything)
    found = left_to_others(desired, snapshots, follows)["b"].tables[T]
    assert isinstance(found, Present)
    assert isinstance(found.state, TableState)
    return found.state.dataset is not UNKNOWN


def table(location: str, place: str | None = None) -> TableState:
    return TableState(location, dataset=DatasetState(()), place=place)


def test_one_place_under_two_spellings_is_one_dataset() -> None:
    assert not both_read(table("./lake/t", "/data/lake/t"), table("/data/lake/t", "/data/lake/t"))
    assert not both_read(table("file:///data/t/"), table("/data/t"))


def test_one_spelling_below_two_roots_is_two_datasets() -> None:
    assert both_read(table("photos", "/one/photos"), table("photos", "/two/photos"))
