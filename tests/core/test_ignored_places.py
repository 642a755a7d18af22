"""Ignored tables are not reported, but where they are is not forgotten: their data is not another table's."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.catalog.memory import MemoryCatalog
from reconciler.engine.observe import observe
from reconciler.model.errors import Code
from reconciler.model.ident import Ident
from reconciler.model.observed import Gap, Observation, Occupied, Present, Scope, Unreadable
from reconciler.model.state import NamespaceState, TableState

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
    assert unread(Observation("Table", ("x", "v"), Unreadable(Code.INVALID_INPUT, "a view"))) == frozenset()
