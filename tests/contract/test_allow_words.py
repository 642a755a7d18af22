"""What needs an allow word on some backends: without the word the plan says which one, and nothing is done."""

from __future__ import annotations

from contract.lake import Lake, held_back, namespace, table

COLUMNS = {"id": "int64"}
NONE: frozenset[str] = frozenset()


def test_a_namespace_is_dropped_with_the_word_where_the_service_would_cascade(lake: Lake) -> None:
    x = lake.ns("x")
    if not lake.has_namespaces:
        assert lake.refusals([namespace(x)]) == ["M408"]
        return
    lake.reach([namespace(x)])
    gone = [namespace(x, state="absent")]
    plan = lake.plan(gone, allow=NONE)
    if not lake.site.capabilities.drop_needs_allow:
        assert held_back(plan) == []
        lake.reach(gone, allow=NONE)
        return
    assert held_back(plan) == [("drop_namespace", x, "blocked", "allow:drop_namespace")]
    assert lake.unchanged_by(lambda: lake.apply(plan)).outcome == "refused"
    lake.reach([namespace(x, state="absent", allow=["drop_namespace"])], allow=NONE)
    assert x not in lake.outsider.state().namespaces


def test_properties_change_with_the_word_where_an_entry_can_only_be_replaced(lake: Lake) -> None:
    if not lake.has_properties:
        plan = lake.plan([*lake.home(), table(lake.t("t"), COLUMNS, properties={"a": "1"})], allow=NONE)
        assert "unsupported" in {s.verdict for s in plan.steps}
        return
    lake.reach([*lake.home(), table(lake.t("t"), COLUMNS, properties={"a": "1"})])
    changed = [*lake.home(), table(lake.t("t"), COLUMNS, properties={"a": "2"})]
    plan = lake.plan(changed, allow=NONE)
    if not lake.site.capabilities.replaces_tables:
        assert {h[2] for h in held_back(plan)} == (set() if lake.changes_tables else {"unsupported"})
        return
    assert held_back(plan) == [("replace_table", lake.t("t"), "blocked", "allow:replace_table")]
    assert lake.unchanged_by(lambda: lake.apply(plan)).outcome == "refused"
    allowed = table(lake.t("t"), COLUMNS, properties={"a": "2"}, allow=["replace_table"])
    lake.reach([*lake.home(), allowed], allow=NONE)
    assert lake.outsider.state().tables[lake.t("t")].properties == {"a": "2"}
