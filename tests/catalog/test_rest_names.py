"""Names: each is encoded so that the server takes it for what it is, or refused offline with the reason."""

from __future__ import annotations

import lance
import lance_namespace as ln
import pytest
from rest_support import Rig, rig

from reconciler.catalog.rest_capabilities import rest_capabilities
from reconciler.model.observed import Present
from reconciler.model.state import TableState

__all__ = ["rig"]

KEPT = [
    "plain", "UPPER", "with.dots", "...", "a+b", "100%", "%2F", "%24", "#hash", "a?b&c=d", "日本語", "e\u0301", "😀",
    'say"x"', "[x]{y}", "a:b", "a;b,c", "a@b", "~", "-", "_", "a\\b", "*", "|^`<>", "select", "__manifest", "x" * 200,
]  # fmt: skip
REFUSED = {
    "": "empty", ".": "place in an address", "..": "place in an address", "a$b": "'$'", "a/b": "'/'", "/": "'/'",
    "a b": "space", "a\x1fb": "control", "a\tb": "control", "\x00": "control", "a\x7f": "control",
    "\ud800": "Unicode", "x" * 256: "255",
}  # fmt: skip


@pytest.mark.slow
def test_every_name_that_we_take_can_be_opened_by_pylance_and_its_client(rig: Rig) -> None:
    capabilities = rig.catalog.capabilities
    assert [n for n in KEPT if capabilities.ident_problem("Table", ("n", n))] == []
    rig.namespace("n")
    for name in KEPT:
        rig.table("n", name)
    found = rig.scan(detail=[("n", n) for n in KEPT])
    assert found.keys() == {("Namespace", ("n",)), *(("Table", ("n", n)) for n in KEPT)}
    assert sorted(rig.stranger.list_tables(ln.ListTablesRequest(id=["n"])).tables) == sorted(KEPT)
    for name in KEPT:
        finding = found["Table", ("n", name)].finding
        assert isinstance(finding, Present)
        assert isinstance(finding.state, TableState)
        assert lance.dataset(str(finding.state.place)).schema.names == ["id"]
        opened = lance.dataset(namespace_client=rig.stranger, table_id=["n", name])
        assert opened.schema.names == ["id"]


@pytest.mark.slow
def test_namespaces_too_at_any_depth(rig: Rig) -> None:
    names = [n for n in KEPT if len(n) < 100]
    for name in names:
        rig.namespace(name, properties={"is": name})
        rig.namespace(name, name)
        rig.table(name, name, "t", data=False)
    found = rig.scan()
    wanted = {k for n in names for k in (("Namespace", (n,)), ("Namespace", (n, n)), ("Table", (n, n, "t")))}
    phantoms = {k for k in found if k[0] == "Occupied"}  # the server's, see rest_walk
    assert found.keys() - phantoms == wanted
    for name in names:
        assert found["Namespace", (name,)].finding.state.properties == {"is": name}
        assert isinstance(found["Table", (name, name, "t")].finding, Present)
        assert name in rig.catalog.children((name,))


@pytest.mark.parametrize("name", REFUSED)
def test_the_others_are_refused_with_the_reason(name: str) -> None:
    capabilities = rest_capabilities({"uri": "http://x"})
    for kind, ident in (("Namespace", (name,)), ("Table", ("n", name)), ("Table", (name, "t"))):
        problem = capabilities.ident_problem(kind, ident)  # type: ignore[arg-type]
        assert problem is not None
        assert REFUSED[name] in problem


def test_rules_that_depend() -> None:
    problem = rest_capabilities({"delimiter": "::"}).ident_problem
    assert "'::'" in (problem("Table", ("a::b",)) or "")
    assert "'$'" in (problem("Table", ("a$b",)) or "")
    assert problem("Table", ("a:b",)) is None
    assert "single quote" in (problem("Namespace", ("it's",)) or "")
    assert "single quote" in (problem("Table", ("it's", "t")) or "")
    assert problem("Table", ("n", "it's")) is None
    assert "root namespace" in (problem("Namespace", ()) or "")
    assert problem("Table", ("n", "x" * 244)) is None
    assert "246" not in (problem("Table", ("n", "x" * 244)) or "")
    assert "256 bytes" in (problem("Table", ("n", "x" * 245)) or "")
    assert "bytes" in (problem("Table", ("n", "ü" * 25)) or "")
    assert problem("Namespace", ("x" * 255,)) is None
    assert rest_capabilities({"delimiter": "${env:D}"}).ident_problem("Table", ("a.b",)) is None


def test_the_longest_names_fit_indeed(rig: Rig) -> None:
    rig.namespace("n")
    for name in ("x" * 244, "ü" * 24, "é" * 20 + "x" * 40):
        assert rig.catalog.capabilities.ident_problem("Table", ("n", name)) is None
        rig.table("n", name)
        assert isinstance(rig.find("Table", "n", name), Present)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("relative/path", "absolute"),
        ("s3://me:pw@bucket/x", "password"),
        ("s3://bucket/x", None),
        ("/data/x", None),
        ("file:///data/x", None),
        ("${env:WHERE}", None),
    ],
)
def test_locations(location: str, said: str | None) -> None:
    problem = rest_capabilities({}).location_problem(("n", "t"), location)
    assert problem is None if said is None else said in (problem or "")
