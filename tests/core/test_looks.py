"""What a second look missed is gone only where its listing was complete."""

from __future__ import annotations

from reconciler.core.globs import reaches
from reconciler.core.looks import in_full
from reconciler.model.errors import Code
from reconciler.model.observed import Gap, Present, Snapshot, Unreadable
from reconciler.model.state import NamespaceState, TableState


def test_below_a_failed_listing_it_is_unread() -> None:
    spaces = {("a",): Present(NamespaceState({})), ("a", "b"): Present(NamespaceState({}))}
    tables = {(n, "t"): Present(TableState()) for n in ("a", "z", "left")}
    second = Snapshot({("a",): spaces["a",]}, {}, (Gap(("a",), Code.SERVICE_UNAVAILABLE, "503"),))
    found = in_full(Snapshot(spaces, tables), second, lambda ident: ident[0] != "left")
    assert found.namespaces == spaces
    assert found.tables == {("a", "t"): Unreadable(Code.SERVICE_UNAVAILABLE, "503")}


def test_globs_that_reach_below_a_name() -> None:
    globs = ("**", "a.**", "a.b", "?.b", "*", "a", "b.c", "**.x")
    assert [g for g in globs if reaches(g, ("a",))] == ["**", "a.**", "a.b", "?.b", "**.x"]
    assert [g for g in globs if reaches(g, ())] == [*globs]
