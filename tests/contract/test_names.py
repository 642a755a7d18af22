"""Names that hurt: each one works to the end, or validation refuses it; nothing in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contract.lake import Lake, namespace, table
from contract.sample import FOREIGN_ROWS
from reconciler.core.errors import PlanError
from reconciler.model.ident import Ident, Kind, dotted

NAMES = [
    "with space",
    "100%",
    "日本語",
    "it's",
    'say "x"',
    "#hash",
    "with.dots",
    "ünïcödé",
    "e\u0301 combining",
    "%41",
    "a?b&c=d",
    "a+b",
    "[x]{y}",
    "-dash",
    "UPPER",
    "a:b",
    "x" * 200,
    "ü" * 100,
]


def sorted_out(lake: Lake, kind: Kind, ident: Callable[[str], Ident]) -> tuple[list[str], list[str]]:
    """Names that this backend keeps, and those that it refuses."""
    kept = [n for n in NAMES if lake.site.capabilities.ident_problem(kind, ident(n)) is None]
    return kept, [n for n in NAMES if n not in kept]


REFUSED = ["a/b", "a\\b", "a$b", ".", "..", "", "a\tb", "__manifest", ".hidden", "x" * 300]


NFC, NFD = "caf\u00e9", "cafe\u0301"
LOOKS = "looks like the live"


def test_the_plan_says_that_a_live_table_reads_like_a_declared_one(lake: Lake) -> None:
    if any(lake.site.capabilities.ident_problem("Table", lake.t(n)) is not None for n in (NFC, NFD)):
        return
    old, new = table(lake.t(NFD), {"id": "int64"}), table(lake.t(NFC), {"id": "int64"})
    lake.reach([*lake.home(), old])
    for prune in (False, True):
        (note,) = lake.plan([*lake.home(), new], prune=prune).notes
        assert (note.key.ident, note.key.kind) == (lake.t(NFC), "Table")
        assert f"{LOOKS} object {dotted(lake.t(NFD))!a}" in note.message
    told = [[old], [old, new], [table(lake.t(NFD), state="absent"), new], [table(lake.t("plain"), {"id": "int64"})]]
    assert [lake.plan([*lake.home(), *documents]).notes for documents in told] == [()] * 4
    if lake.renames_tables:
        renamed = table(lake.t(NFC), {"id": "int64"}, renamedFrom=[*lake.t(NFD)])
        assert lake.plan([*lake.home(), renamed]).notes == ()


def test_the_plan_says_that_a_live_namespace_reads_like_a_declared_one(lake: Lake) -> None:
    """Once, for all that is declared in it; a plan that is refused because it is not declared says it too."""
    if any(lake.site.capabilities.ident_problem("Namespace", lake.ns(n)) is not None for n in (NFC, NFD)):
        return
    lake.reach([namespace(lake.ns(NFD)), table(lake.ns(NFD, "t"), {"id": "int64"})])
    tables = [table(lake.ns(NFC, name), {"id": "int64"}) for name in ("t", "u")]
    (note,) = lake.plan([namespace(lake.ns(NFC)), *tables], prune=True).notes
    assert note.key.ident == lake.ns(NFC)
    assert f"{LOOKS} object {dotted(lake.ns(NFD))!a}" in note.message
    if not lake.site.capabilities.levels:
        with pytest.raises(PlanError) as refused:
            lake.plan(tables)
        assert f"{dotted(lake.ns(NFD))!a} is live and reads like" in refused.value.diagnostics[0].hint


def test_the_plan_says_that_a_live_column_reads_like_a_declared_one(lake: Lake) -> None:
    def columns(name: str, **more: object) -> list[object]:
        inner = {"name": "s", "type": "struct", "fields": [{"name": name, "type": "int8"}]}
        return [{"name": "id", "type": "int64"}, {"name": name, "type": "string", **more}, inner]

    def planned(schema: list[object]) -> list[str]:
        spec = {"schema": schema, "allow": ["drop_column"]}
        return [n.message for n in lake.plan([*lake.home(), table(lake.t("t"), **spec)]).notes]

    lake.reach([*lake.home(), table(lake.t("t"), schema=columns(NFD))])
    top, inner = planned(columns(NFC))
    assert top.startswith(f"column {NFC} ")
    assert f"{LOOKS} column {NFD!a}" in top
    assert inner.startswith(f"column s.{NFC} ")
    assert f"{LOOKS} column {'s.' + NFD!a}" in inner
    assert planned(columns(NFD)) == []
    assert planned([{"name": NFC, "type": "string", "renamedFrom": NFD}]) == []


@pytest.mark.slow
def test_odd_names_live_a_whole_life(lake: Lake) -> None:
    names, refused = sorted_out(lake, "Table", lake.t)
    assert all(lake.refusals([*lake.home(), table(lake.t(n), {"id": "int64"})]) == ["M408"] for n in refused)
    there = lake.home() + [table(lake.t(n), {"id": "int64"}, config={"name": n}) for n in names]
    lake.management["thresholds"] = {"deletes": 100, "deletePercent": 100}
    lake.reach(there)
    assert {i: t.config["name"] for i, t in lake.outsider.state().tables.items()} == {lake.t(n): n for n in names}
    for name in names:
        lake.outsider.append(lake.t(name), FOREIGN_ROWS)
    before = lake.comparable()
    lake.reach(lake.home() + [table(lake.t(n), state="absent") for n in names])
    assert lake.outsider.state().tables == {}
    lake.reach(there)
    assert lake.comparable() == before


@pytest.mark.slow
def test_odd_namespaces_live_a_whole_life(lake: Lake) -> None:
    names, refused = sorted_out(lake, "Namespace", lake.ns)
    names = [n for n in names if n not in NAMES[-2:]]
    assert all(lake.refusals([namespace(lake.ns(n))]) == ["M408"] for n in refused)
    there = [
        d
        for n in names
        for d in (namespace(lake.ns(n), properties={"name": n}), table(lake.ns(n, "t"), {"id": "int64"}))
    ]
    lake.management["thresholds"] = {"deletes": 100, "deletePercent": 100}
    lake.reach(there)
    assert {i: p["name"] for i, p in lake.outsider.state().namespaces.items()} == {lake.ns(n): n for n in names}
    lake.reach(
        [d for n in names for d in (namespace(lake.ns(n), state="absent"), table(lake.ns(n, "t"), state="absent"))]
    )
    assert (lake.outsider.state().namespaces, lake.outsider.state().tables) == ({}, {})


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_cannot_be_kept_is_refused_before_anything_happens(lake: Lake, name: str) -> None:
    ident = lake.t(name)
    docs = [*lake.home(), table(ident, {"id": "int64"})]
    if lake.site.capabilities.ident_problem("Table", ident) is None:
        if lake.refusals(docs):
            return  # the format itself has no such name
        lake.reach(docs)
        assert set(lake.outsider.state().tables) == {ident}
        return
    assert lake.unchanged_by(lambda: lake.refusals(docs))
