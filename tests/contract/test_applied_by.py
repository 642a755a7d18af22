"""Which run wrote an object last: noted with the write itself, and never a reason for one."""

from __future__ import annotations

from contract.lake import Doc, Lake, table
from contract.outsider import Ident
from contract.sample import FOREIGN
from reconciler.engine.observe import observe
from reconciler.model.observed import Present, Scope
from reconciler.model.run_context import LONGEST
from reconciler.model.state import DatasetState, TableState

FIRST, SECOND, THIRD = ('{"at":"%d"}'.ljust(LONGEST, "x") % n for n in (1, 2, 3))
"""As long as it may get."""


def applied(lake: Lake, docs: list[Doc], run: str, **options: object) -> None:
    plan = lake.plan(docs, **options)
    assert lake.apply(plan, applied_by=run).outcome in ("applied", "no_changes")
    assert lake.plan(docs, **options).steps == ()


def seen(lake: Lake) -> dict[Ident, Present]:
    catalog = lake.site.open()
    tables = frozenset(observe(catalog, Scope(namespaces=frozenset({lake.at}))).tables)
    snapshot = observe(catalog, Scope(detail=tables, namespaces=frozenset({lake.at})))
    found = {**snapshot.namespaces, **snapshot.tables}
    return {i: f for i, f in found.items() if len(i) > len(lake.site.container) and isinstance(f, Present)}


def runs(lake: Lake) -> dict[Ident, set[str | None]]:
    """What each object says: a table says it in its entry and in its dataset."""
    out: dict[Ident, set[str | None]] = {}
    for ident, found in seen(lake).items():
        out[ident] = {found.state.marks.applied_by}
        if isinstance(found.state, TableState) and isinstance(found.state.dataset, DatasetState):
            out[ident].add(found.state.dataset.applied_by)
    return out


def test_it_is_written_with_a_change_and_never_alone(lake: Lake) -> None:
    docs = [*lake.home(), table(lake.t("a"), {"id": "int64"}), table(lake.t("b"), {"id": "int64"})]
    applied(lake, docs, FIRST)
    everything = {lake.t("a"), lake.t("b"), *([lake.at] if lake.at else [])}
    assert {ident: said - {None} for ident, said in runs(lake).items()} == {i: {FIRST} for i in everything}
    lake.unchanged_by(lambda: applied(lake, docs, SECOND))

    wider = [*lake.home(), docs[-2], table(lake.t("b"), {"id": "int64", "more": "string"})]
    applied(lake, wider, SECOND)
    after = runs(lake)
    assert all(said - {None} == {FIRST} for ident, said in after.items() if ident != lake.t("b"))
    assert SECOND in after[lake.t("b")] or not lake.backend.rows  # In memory there is no dataset to say it.


def test_a_changed_property_renews_it(lake: Lake) -> None:
    if not lake.changes_tables:
        return
    docs = [*lake.home(), table(lake.t("t"), {"id": "int64"}, properties={"a": "1"})]
    applied(lake, docs, FIRST)
    applied(lake, [*lake.home(), table(lake.t("t"), {"id": "int64"}, properties={"a": "2"})], SECOND)
    assert SECOND in runs(lake)[lake.t("t")]
    entry = lake.outsider.state().tables[lake.t("t")]
    assert entry.properties == {"a": "2"}


def test_adopting_says_who_did_it(lake: Lake) -> None:
    lake.make_home()
    lake.outsider.create_table(lake.t("t"), FOREIGN)
    applied(lake, [*lake.home(), table(lake.t("t"), {"id": "int64"})], THIRD, adopt=True)
    assert all(THIRD in said for said in runs(lake).values())
    assert lake.t("t") in runs(lake)
