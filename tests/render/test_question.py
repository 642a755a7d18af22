"""The question before apply shows, of each catalog that it asks about, what would be lost there."""

from __future__ import annotations

import sys

import pytest
from plans import plan, step

from reconciler.cli import confirm as confirm_module
from reconciler.cli.confirm import confirm
from reconciler.cli.output import Output
from reconciler.model.change import DeregisterTable, DropColumns
from reconciler.model.plan import Plan


def asked(made: Plan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *answers: str) -> str:
    left = [*answers]

    def typed(question: str) -> str:
        sys.stderr.write(question)
        return left.pop(0)

    monkeypatch.setattr(confirm_module, "typed", typed)
    confirm(made, Output(), summary=False)
    return capsys.readouterr().err


def many(catalogs: dict[str, int]) -> Plan:
    """So many drops in each, and a table that is deregistered."""
    steps = []
    for catalog, count in catalogs.items():
        for n in range(count):
            drop = DropColumns((f"t{n}",), ("old",))
            steps.append(step(len(steps) + 1, drop, catalog=catalog, risk="destructive", reason="not declared"))
        gone = DeregisterTable(("gone",))
        steps.append(step(len(steps) + 1, gone, catalog=catalog, risk="metadata", reason="state: absent"))
    return plan(tuple(steps))


def test_each_catalog_shows_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown = asked(many({"aaa": 250, "zzz": 1}), monkeypatch, capsys, "aaa", "zzz")
    first, second = shown.split("Data in catalog aaa could be lost. To apply, type the catalog's name: ")
    assert first.startswith("Destructive in catalog aaa: 250 steps\n  - aaa:t0  drop_columns: not declared\n")
    assert "zzz" not in first
    listed = first.count("\n  - aaa:t")
    assert (
        f"  ... and {250 - listed} more\nRemoved from catalog aaa: 1 object\n  - aaa:gone  deregister_table:" in first
    )
    assert second.startswith(
        "Destructive in catalog zzz: 1 step\n  - zzz:t0  drop_columns: not declared\n"
        "Removed from catalog zzz: 1 object\n"
        "  - zzz:gone  deregister_table: state: absent\nData in catalog zzz could be lost."
    )


def test_many_catalogs_share_the_room(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"c{n:02}" for n in range(30)]
    shown = asked(many(dict.fromkeys(names, 40)), monkeypatch, capsys, *names)
    for name in names:
        assert f"Destructive in catalog {name}: 40 steps\n" in shown
        assert f"Removed from catalog {name}: 1 object\n  - {name}:gone" in shown
        assert shown.count(f"\n  - {name}:") == 4
    assert shown.count("  ... and 37 more\n") == 30


def test_what_keeps_its_data_is_told_before_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = asked(many({"aaa": 0, "zzz": 0}), monkeypatch, capsys, "yes")
    assert shown == (
        "Removed from catalog aaa: 1 object\n  - aaa:gone  deregister_table: state: absent\n"
        "Removed from catalog zzz: 1 object\n  - zzz:gone  deregister_table: state: absent\n"
        "Apply this plan? Type yes to apply, anything else to stop: "
    )
