"""Names that hurt: each one works to the end, or validation refuses it; nothing in between."""

from __future__ import annotations

import pytest

from contract.lake import Lake, namespace, table
from contract.sample import FOREIGN_ROWS

NAMES = [  # a slow backend takes only the first few
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
REFUSED = ["a/b", "a\\b", "a$b", ".", "..", "", "a\tb", "__manifest", ".hidden", "x" * 300]


def test_odd_names_live_a_whole_life(lake: Lake) -> None:
    home, names = lake.backend.home, NAMES[: lake.many(len(NAMES))]
    there = lake.home() + [table((*home, n), {"id": "int64"}, config={"name": n}) for n in names]
    lake.management["thresholds"] = {"deletes": 100, "deletePercent": 100}
    lake.reach(there)
    assert {(*i, t.config["name"]) for i, t in lake.outsider.state().tables.items()} == {(*home, n, n) for n in names}
    for name in names:
        lake.outsider.append((*home, name), FOREIGN_ROWS)
    before = lake.outsider.state().comparable()
    lake.reach(lake.home() + [table((*home, n), state="absent") for n in names])
    assert lake.outsider.state().tables == {}
    lake.reach(there)
    assert lake.outsider.state().comparable() == before


def test_odd_namespaces_live_a_whole_life(lake: Lake) -> None:
    names = NAMES[: lake.many(len(NAMES) - 2)]
    there = [d for n in names for d in (namespace((n,), properties={"name": n}), table((n, "t"), {"id": "int64"}))]
    if not lake.has_namespaces:
        assert set(lake.refusals(there)) == {"M408"}
        return
    lake.management["thresholds"] = {"deletes": 100, "deletePercent": 100}
    lake.reach(there)
    assert {i: p["name"] for i, p in lake.outsider.state().namespaces.items()} == {(n,): n for n in names}
    lake.reach([d for n in names for d in (namespace((n,), state="absent"), table((n, "t"), state="absent"))])
    assert (lake.outsider.state().namespaces, lake.outsider.state().tables) == ({}, {})


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_cannot_be_kept_is_refused_before_anything_happens(lake: Lake, name: str) -> None:
    ident = (name,)
    if lake.site.capabilities.ident_problem("Table", ident) is None:
        if lake.refusals([table(ident, {"id": "int64"})]):
            return  # the format itself has no such name
        lake.reach([table(ident, {"id": "int64"})])
        assert set(lake.outsider.state().tables) == {ident}
        return
    assert lake.unchanged_by(lambda: lake.refusals([table(ident, {"id": "int64"})]))
