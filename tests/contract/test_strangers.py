"""What a catalog service holds besides Lance tables: counted, never touched, never taken for anything else."""

from __future__ import annotations

import pytest

from contract.lake import Lake, held_back, namespace, table
from contract.outsider import Ident
from contract.outsider_service import ServiceOutsider

COLUMNS = {"id": "int64"}


def stranger(lake: Lake, ident: Ident) -> None:
    """Something of the service's own that is no Lance table."""
    assert isinstance(lake.outsider, ServiceOutsider)
    lake.outsider.foreign_table(ident)


def test_a_stranger_keeps_its_namespace(mixed: Lake) -> None:
    x = mixed.ns("x")
    mixed.reach([namespace(x)])
    stranger(mixed, (*x, "native"))
    plan = mixed.plan([namespace(x, state="absent")])
    assert held_back(plan) == [("drop_namespace", x, "blocked", "not_empty")]
    assert "native" in plan.steps[0].reason
    mixed.unchanged_by(lambda: mixed.apply(plan))


def test_a_stranger_that_comes_right_before_the_drop_keeps_its_namespace(mixed: Lake) -> None:
    x = mixed.ns("x")
    mixed.reach([namespace(x)])
    plan = mixed.plan([namespace(x, state="absent")])
    stranger(mixed, (*x, "native"))
    assert mixed.unchanged_by(lambda: mixed.apply(plan)).outcome == "stale"


@pytest.mark.parametrize("adopt", [False, True])
def test_a_stranger_is_never_taken_for_a_table_of_its_name(mixed: Lake, adopt: bool) -> None:
    mixed.make_home()
    stranger(mixed, mixed.t("native"))
    for docs in ([table(mixed.t("native"), COLUMNS)], [table(mixed.t("native"), state="absent")]):
        plan = mixed.plan(docs, adopt=adopt, prune=True)
        assert {s.verdict for s in plan.steps} == {"blocked"}
        mixed.unchanged_by(lambda plan=plan: mixed.apply(plan))


def test_a_stranger_is_in_nobodys_way(mixed: Lake) -> None:
    mixed.make_home()
    stranger(mixed, mixed.t("native"))
    mixed.reach([table(mixed.t("t"), COLUMNS)], prune=True)
    mixed.reach([table(mixed.t("t"), state="absent")], prune=True)
