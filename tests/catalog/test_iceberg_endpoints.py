"""What a server's configuration leaves out is `unsupported` in the plan, with the reason, and never asked for."""

from __future__ import annotations

import re

import pytest
from contract.lake import Doc, held, namespace, table
from iceberg_rig import Rig, iceberg_rest, rig
from iceberg_support import Call, Scripted, open_catalog, scripted
from servers.proxy import edited

from reconciler.catalog import iceberg_wire as wire
from reconciler.engine.observe import observe
from reconciler.model.change import DeclareTable, RenameTable, UpdateNamespace
from reconciler.model.observed import Scope
from reconciler.model.state import Marks

__all__ = ["iceberg_rest", "rig", "scripted"]
N, T, U = ("wh", "n"), ("wh", "n", "t"), ("wh", "n", "theirs")
COLUMNS = {"id": "int64"}
KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
HOME = [namespace(N, properties={"k": "1"}), namespace(("wh", "empty"))]
TABLE = table(T, COLUMNS, properties={"k": "1"})
CASES: dict[str, tuple[str, list[Doc]]] = {
    "create_namespace": (wire.CREATE_NAMESPACE, [*HOME, TABLE, namespace(("wh", "new"))]),
    "update_namespace": (wire.SET_PROPERTIES, [namespace(N, properties={"k": "2"}), HOME[1], TABLE]),
    "drop_namespace": (wire.DROP_NAMESPACE, [HOME[0], namespace(("wh", "empty"), state="absent"), TABLE]),
    "declare_table": (wire.CREATE_TABLE, [*HOME, TABLE, table(("wh", "n", "new"), COLUMNS)]),
    "update_table": (wire.COMMIT, [*HOME, table(T, COLUMNS, properties={"k": "2"})]),
    "adopt": (wire.COMMIT, [*HOME, TABLE, table(U, properties={"k": "2"})]),
    "rename_table": (wire.RENAME, [*HOME, table(("wh", "n", "new"), COLUMNS, renamedFrom=[*T], properties={"k": "1"})]),
    "deregister_table": (wire.DROP_TABLE, [*HOME, table(T, state="absent")]),
}


@pytest.mark.slow
def test_what_the_server_does_not_offer_is_unsupported_in_the_plan_and_never_sent(rig: Rig) -> None:
    assert rig.run(rig.write(*HOME, TABLE)).outcome == "applied"
    rig.outsider.put_table(U, f"{rig.folder}/theirs", {})
    before = rig.outsider.raw()
    for action, (endpoint, docs) in CASES.items():
        rig.proxy.forget()
        rig.catalog = rig.open()
        file = rig.write(*docs)
        offered = rig.plan(file, adopt=True)
        assert [s.verdict for s in offered.steps if s.action == action] == ["allowed"], action
        lacking = edited(lambda c, e=endpoint: {**c, "endpoints": [x for x in c["endpoints"] if x != e]})
        rig.proxy.fault(lacking, method="GET", path="/v1/config", times=None)
        rig.catalog = rig.open()
        plan = rig.plan(file, adopt=True)
        first = next(s for s in plan.steps if s.action == action)
        assert held(first)[2:] == ("unsupported", None), action
        assert f"the server does not offer {endpoint!r} for warehouse wh" in first.reason
        assert [s.id for s in plan.steps if s.verdict == "allowed"] == [], action
        assert rig.apply(plan).outcome in ("refused", "no_changes")
        assert {r.method for r in rig.proxy.requests()} == {"GET"}, action
    assert rig.outsider.raw() == before


@pytest.mark.slow
def test_every_write_has_a_key_of_its_own_and_nothing_asks_for_credentials(rig: Rig) -> None:
    remembers = edited(lambda c: {**c, "idempotency-key-lifetime": "PT30M"})
    rig.proxy.fault(remembers, method="GET", path="/v1/config", times=None)
    rig.catalog = rig.open()
    new = ("wh", "n", "new")
    moved = table(new, COLUMNS, renamedFrom=[*T], properties={"k": "2"})
    for docs in ([*HOME, TABLE], [namespace(N, properties={"k": "2"}), moved], [table(new, state="absent")]):
        assert rig.run(rig.write(*docs)).outcome == "applied"
    empty = namespace(("wh", "empty"), state="absent")
    assert rig.run(rig.write(empty)).outcome == "applied"
    writes = [r for r in rig.proxy.requests() if r.method != "GET"]
    assert {_template(r.method, r.path) for r in writes} == {endpoint for endpoint, _ in CASES.values()}
    keys = [r.headers.get("idempotency-key", "") for r in writes]
    assert all(KEY.fullmatch(k) for k in keys)
    assert len(set(keys)) == len(keys)
    for request in rig.proxy.requests():
        assert "x-iceberg-access-delegation" not in request.headers
        assert not request.path.endswith("/credentials")
        assert request.method != "GET" or "idempotency-key" not in request.headers


def _template(method: str, path: str) -> str:
    """The endpoint of a call to this server, which has no prefix."""
    path = re.sub("/namespaces/[^/]+", "/namespaces/{namespace}", path.partition("?")[0])
    path = re.sub("/tables/(?!rename$)[^/]+", "/tables/{table}", path)
    return f"{method} {path.replace('/v1/', '/v1/{prefix}/', 1)}"


def test_each_warehouse_has_what_its_own_configuration_says(scripted: Scripted) -> None:
    """None said, and none at all, are the protocol's default set, which has all that we call."""
    said = {"some": [wire.CREATE_NAMESPACE, wire.COMMIT, wire.CREATE_TABLE], "none": [], "silent": None}

    def config(call: Call) -> tuple[int, object]:
        endpoints = said[call.query["warehouse"]]
        return 200, {"defaults": {}, "overrides": {}, **({} if endpoints is None else {"endpoints": endpoints})}

    scripted.on("GET /v1/config", config)
    catalog = open_catalog(scripted.endpoint, warehouse="")
    seen = observe(catalog, Scope(namespaces=frozenset((name, "n") for name in said)))
    assert {u.ident for u in seen.unsupported} == {("some",)}
    assert {u.change for u in seen.unsupported} == {
        "UpdateNamespace", "AdoptNamespace", "DropNamespace", "RenameTable", "DeregisterTable",
    }  # fmt: skip
    for name in said:
        lacks = name == "some"
        assert (seen.refuses(RenameTable((name, "n", "b"), (name, "n", "a"))) is not None) == lacks
        assert (seen.refuses(UpdateNamespace((name, "n"), {}, (), Marks())) is not None) == lacks
        assert seen.refuses(DeclareTable((name, "n", "a"), {}, Marks())) is None
