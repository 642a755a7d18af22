"""Ignored tables are not reported, but where they are is not forgotten: their data is not another table's."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.catalog.memory import MemoryCatalog
from reconciler.engine.observe import observe
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident
from reconciler.model.observed import Detached, Gap, Observation, Occupied, Present, Scope, Snapshot, Unreadable
from reconciler.model.state import DatasetState, NamespaceState, TableState

SPACE = Present(NamespaceState())


class Listing(MemoryCatalog):
    """What a service lists, as it is."""

    def __init__(self, *found: Observation | Gap | Occupied) -> None:
        super().__init__()
        self.found = found

    def scan(self, scope: Scope) -> Iterator[Observation | Gap | Occupied]:  # type: ignore[override]
        yield from self.found


def table(*ident: str, location: str | None = None) -> Observation:
    finding = Present(TableState(location)) if location else Unreadable(Code.INTERNAL, "no")
    return Observation("Table", ident, finding)


def unread(*found: Observation | Gap | Occupied) -> frozenset[Ident]:
    return observe(Listing(*found), Scope(ignore=("x.**", "x"))).hidden_unread


def test_where_an_ignored_table_is_stays_known() -> None:
    space = Observation("Namespace", ("x",), SPACE)
    snapshot = observe(Listing(space, table("x", "t", location="s3://l/t")), Scope(ignore=("x.**", "x")))
    assert snapshot.hidden_places == {("x", "t"): "s3://l/t"}
    assert snapshot.hidden_unread == frozenset()
    assert snapshot.tables == {}


def test_an_ignored_object_that_was_not_read_may_be_anywhere() -> None:
    assert unread(table("x", "t")) == {("x", "t")}
    assert unread(Occupied(("x", "t"))) == {("x", "t")}
    assert unread(Gap(("x",), Code.INTERNAL, "no")) == {("x",)}
    assert unread(Observation("Namespace", ("x",), SPACE)) == {("x",)}, "not looked into"


def test_what_is_no_table_has_no_place() -> None:
    assert unread(Occupied(("a", "volume"))) == frozenset()
    assert (
        unread(Observation("Table", ("x", "v"), Unreadable(Code.INVALID_INPUT, "a view", foreign=True))) == frozenset()
    )
    assert unread(Observation("Table", ("x", "t"), Unreadable(Code.INVALID_INPUT, "answered 400"))) == {("x", "t")}


class Shy(Listing):
    """A service that is not asked about what is ignored: it names `x` and does not look inside."""

    def __init__(self, *inside: Observation | Gap | Occupied | CatalogError) -> None:
        super().__init__()
        self.inside = inside

    def scan(self, scope: Scope) -> Iterator[Observation | Gap | Occupied]:  # type: ignore[override]
        if scope.ignore:
            yield from (Occupied(("x",)), Observation("Table", ("a",), Detached("s3://l/a", DatasetState(()))))
            return
        assert not scope.detail
        for found in self.inside:
            if isinstance(found, CatalogError):
                raise found
            yield found


def looked_again(*inside: Observation | Gap | Occupied | CatalogError) -> Snapshot:
    return observe(Shy(*inside), Scope(frozenset({("a",)}), ignore=("x.**", "x")))


def test_where_ignored_tables_are_is_asked_when_data_is_to_be_given_back() -> None:
    space = Observation("Namespace", ("x",), SPACE)
    snapshot = looked_again(space, table("x", "t", location="s3://l/t"), Occupied(("x", "volume")))
    assert (snapshot.hidden_places, snapshot.hidden_unread) == ({("x", "t"): "s3://l/t"}, frozenset())
    assert looked_again(space).hidden_unread == frozenset(), "it holds nothing"
    assert set(snapshot.tables) == {("a",)}
    assert snapshot.hidden == {("x",)}


def test_what_still_could_not_be_read_may_be_anywhere() -> None:
    gap = Gap((), Code.INTERNAL, "no")
    assert looked_again(table("x", "t")).hidden_unread == {("x", "t")}
    assert looked_again(gap).hidden_unread == {()}
    assert looked_again(CatalogError(Code.INTERNAL, "no")).hidden_unread == {("x",)}
