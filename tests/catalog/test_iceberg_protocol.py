"""What a server may say in its configuration and in its answers, by a scripted server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from iceberg_support import UUID, Call, Scripted, apply, error, find, loaded, open_catalog, scan, scripted

from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.model.arrow import Field, Scalar
from reconciler.model.change import (
    CreateDataset,
    CreateNamespace,
    DeclareTable,
    DeregisterTable,
    DropNamespace,
    RenameTable,
    UpdateNamespace,
    UpdateTable,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Finding, Gap, Present, Scope, Unreadable
from reconciler.model.state import DatasetState, Marks, NamespaceState, TableState

__all__ = ["scripted"]
OURS = Marks("team-a")
T = ("wh", "n", "t")
KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


# configuration


@pytest.mark.parametrize(
    ("said", "options", "root"),
    [
        ({}, {}, "/v1"),
        ({"defaults": {"prefix": "main%7Cwh"}}, {}, "/v1/main%7Cwh"),
        ({"defaults": {"prefix": "d"}, "overrides": {"prefix": "catalogs/o"}}, {}, "/v1/catalogs/o"),
        ({"overrides": {"prefix": "o"}}, {"prefix": "mine%2Fown"}, "/v1/mine%2Fown"),
        ({"defaults": {"prefix": ""}}, {}, "/v1"),
    ],
)
def test_the_prefix_is_used_as_the_server_wrote_it(
    scripted: Scripted, said: dict[str, object], options: dict[str, str], root: str
) -> None:
    scripted.config(**said)
    scan(open_catalog(scripted.endpoint, **options))
    assert [c.path for c in scripted.calls] == ["/v1/config", f"{root}/namespaces"]
    assert scripted.calls[0].query == {"warehouse": "wh"}


def test_another_path_at_the_same_host_is_followed_and_another_host_never(scripted: Scripted) -> None:
    scripted.config(overrides={"uri": f"{scripted.endpoint}/iceberg/"})
    scan(open_catalog(scripted.endpoint))
    assert scripted.calls[-1].path == "/iceberg/v1/namespaces"
    scripted.config(overrides={"uri": "http://elsewhere.invalid/iceberg"})
    scan(open_catalog(scripted.endpoint, auth_token="t"))
    assert scripted.calls[-1].path == "/v1/namespaces"


def test_the_configuration_is_asked_for_once_for_each_warehouse(scripted: Scripted) -> None:
    catalog = open_catalog(scripted.endpoint)
    scope = Scope(namespaces=frozenset({("wh", "n"), ("other", "n")}))
    for _ in range(2):
        found = scan(catalog, scope)
    find(catalog, "Namespace", "wh")
    assert {("Namespace", ("wh",)), ("Namespace", ("other",))} <= set(found)
    assert sorted(c.query["warehouse"] for c in scripted.requests("/config")) == ["other", "wh"]


def test_one_warehouse_that_fails_does_not_hide_the_others(scripted: Scripted) -> None:
    def config(call: Call) -> tuple[int, object]:
        known = call.query["warehouse"] == "wh"
        return (200, {"defaults": {}, "overrides": {}}) if known else (404, error(404, "NoSuchWarehouseException"))

    scripted.on("GET /v1/config", config)
    found = scan(open_catalog(scripted.endpoint), Scope(namespaces=frozenset({("gone", "n")})))
    gap = found["Gap", ("gone",)]
    assert isinstance(gap, Gap)
    assert gap.code is Code.INVALID_INPUT
    assert "no such warehouse" in gap.message
    assert isinstance(found["Namespace", ("wh",)], Present)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((404, error(404, "NoSuchWarehouseException", "who?")), "no such warehouse"),
        ((404, "<html>not here</html>"), "does not answer like an Iceberg REST catalog: check spec.endpoint"),
        ((200, "<html>hello</html>"), "does not answer like an Iceberg REST catalog"),
        ((200, ["x"]), "does not answer like an Iceberg REST catalog"),
        ((200, {"overrides": {"uri": "http://[bad"}}), "a `uri` that is no address"),
        ((500, error(500, "IllegalArgumentException", "Unknown warehouse 'wh'")), "Unknown warehouse 'wh'"),
    ],
)
def test_a_warehouse_that_cannot_be_opened_is_an_error(
    scripted: Scripted, answer: tuple[int, object], words: str
) -> None:
    scripted.on("GET /v1/config", answer)
    with pytest.raises(CatalogError, match=words):
        scan(open_catalog(scripted.endpoint))


def test_without_any_warehouse_nothing_is_complete(scripted: Scripted) -> None:
    found = scan(open_catalog(scripted.endpoint, warehouse=""))
    (gap,) = found.values()
    assert isinstance(gap, Gap)
    assert "spec.warehouse" in gap.message
    assert scripted.calls == []


# separators and names


@pytest.mark.parametrize(("said", "mark", "path"), [({}, "\x1f", "%1F"), ({"namespace-separator": "%2E"}, ".", "%2E")])
def test_levels_are_joined_as_the_server_says(scripted: Scripted, said: dict[str, str], mark: str, path: str) -> None:
    scripted.config(overrides=said)
    scripted.on(r"GET /v1/namespaces/a%20b" + path + "c$", (200, {"namespace": ["a b", "c"], "properties": {"k": "v"}}))
    catalog = open_catalog(scripted.endpoint)
    assert find(catalog, "Namespace", "wh", "a b", "c") == Present(NamespaceState({"k": "v"}))
    catalog.children(("wh", "a b", "c"))
    assert scripted.requests("GET /v1/namespaces$")[-1].query["parent"] == f"a b{mark}c"


def test_a_name_with_the_separator_in_it_is_never_sent(scripted: Scripted) -> None:
    """Its address would be that of another namespace."""
    scripted.config(overrides={"namespace-separator": "%2E"})
    catalog = open_catalog(scripted.endpoint)
    declared = Scope(detail=frozenset({("wh", "a.b", "t")}), namespaces=frozenset({("wh", "a.b")}))
    found = scan(catalog, declared)
    for key in [("Namespace", ("wh", "a.b")), ("Table", ("wh", "a.b", "t"))]:
        finding = found[key]  # type: ignore[index]
        assert isinstance(finding, Unreadable)
        assert "separates the levels of a namespace by '.'" in finding.message
    with pytest.raises(CatalogError, match="separates"):
        apply(catalog, CreateNamespace(("wh", "a.b"), {}, OURS))
    assert scripted.requests("POST|DELETE|a.b|a%2Eb") == []


def test_an_answer_about_another_namespace_is_not_believed(scripted: Scripted) -> None:
    scripted.on("GET /v1/namespaces/a$", (200, {"namespace": ["b"], "properties": {}}))
    finding = find(open_catalog(scripted.endpoint), "Namespace", "wh", "a")
    assert isinstance(finding, Unreadable)
    assert "['b']" in finding.message


# what is missing, and what is only not answered


@pytest.mark.parametrize("type_", ["NoSuchTableException", "NoSuchNamespaceException"])
def test_the_catalogs_own_word_is_needed_for_absence(scripted: Scripted, type_: str) -> None:
    scripted.on("GET /v1/namespaces/n/tables/t$", (404, error(404, type_)))
    assert find(open_catalog(scripted.endpoint), "Table", "wh", "n", "t") == Absent()


@pytest.mark.parametrize(
    "answer",
    [
        (404, "<html>nginx</html>"),
        (404, None),
        (404, {"message": "Not Found"}),
        (404, error(404, "NotFoundException", "metadata file is gone")),
        (404, {"error": "no"}),
        (400, error(400, "NoSuchTableException")),
        (400, error(400, "BadRequestException")),
        (400, "no"),
        (422, error(422, "ValidationException")),
        (403, error(403, "ForbiddenException")),
        (200, {"identifiers": []}),
        (200, "<html>login</html>"),
        (500, error(500, "NoSuchTableException")),
    ],
)
def test_any_other_answer_is_unreadable(scripted: Scripted, answer: tuple[int, object]) -> None:
    fill(scripted, "t")
    scripted.on("GET /v1/namespaces/n/tables/t$", answer)
    finding = find(open_catalog(scripted.endpoint), "Table", "wh", "n", "t")
    assert isinstance(finding, Unreadable)
    assert not finding.foreign, "an error says nothing about what is there"


@pytest.mark.parametrize("type_", ["NotFoundException", "EntityNotFound", ""])
def test_a_404_that_does_not_say_what_is_missing_is_settled_by_the_list(scripted: Scripted, type_: str) -> None:
    unclear = (404, error(404, type_))
    fill(scripted, "other")
    scripted.on("GET /v1/namespaces/(m|n/tables/t)$", unclear)
    catalog = open_catalog(scripted.endpoint)
    assert find(catalog, "Table", *T) == Absent()
    assert find(catalog, "Namespace", "wh", "m") == Absent()
    scripted.on("GET /v1/namespaces/m/tables(/t)?$", unclear)
    assert find(catalog, "Table", "wh", "m", "t") == Absent(), "its namespace is not listed either"
    scripted.on(r"GET /v1/namespaces$", (200, {"namespaces": [["m"], ["n"]]}))
    assert isinstance(find(catalog, "Namespace", "wh", "m"), Unreadable), "it is listed"
    assert isinstance(find(catalog, "Table", "wh", "m", "t"), Unreadable), "its namespace is listed"


@pytest.mark.parametrize("answer", [(404, "<html>nginx</html>"), (403, error(403, "ForbiddenException")), (200, {})])
def test_a_list_that_fails_settles_nothing(scripted: Scripted, answer: tuple[int, object]) -> None:
    scripted.on("GET /v1/namespaces/n/tables/t$", (404, error(404, "NotFoundException")))
    scripted.on("GET /v1/namespaces/n/tables$", answer)
    assert isinstance(find(open_catalog(scripted.endpoint), "Table", *T), Unreadable)


@pytest.mark.parametrize(("status", "code"), [(503, 17), (429, 21), (401, 16), (419, 16)])
def test_what_may_pass_is_raised_to_be_asked_again(scripted: Scripted, status: int, code: int) -> None:
    scripted.on("GET /v1/namespaces/n/tables/t$", (status, error(status, "SomeException")))
    with pytest.raises(CatalogError) as caught:
        find(open_catalog(scripted.endpoint), "Table", "wh", "n", "t")
    assert caught.value.code == code


# lists


def fill(scripted: Scripted, *tables: str) -> None:
    scripted.on(r"GET /v1/namespaces$", lambda c: (200, {"namespaces": [] if "parent" in c.query else [["n"]]}))
    scripted.on(r"GET /v1/namespaces/n$", (200, {"namespace": ["n"], "properties": {}}))
    names = [{"namespace": ["n"], "name": t} for t in tables]
    scripted.on(r"GET /v1/namespaces/n/tables$", (200, {"identifiers": names}))
    scripted.on(r"GET /v1/namespaces/n/tables/.+", (200, loaded()))


def test_all_pages_are_read(scripted: Scripted) -> None:
    fill(scripted)

    def page(call: Call) -> tuple[int, object]:
        number = int(call.query["pageToken"] or 0)
        more = str(number + 1) if number < 4 else None
        return 200, {"identifiers": [{"namespace": ["n"], "name": f"t{number}"}], "next-page-token": more}

    scripted.on(r"GET /v1/namespaces/n/tables$", page)
    found = scan(open_catalog(scripted.endpoint))
    assert [i[2] for k, i in sorted(found) if k == "Table"] == ["t0", "t1", "t2", "t3", "t4"]
    assert [c.query["pageSize"] for c in scripted.requests("/tables$")] == ["1000"] * 5


def test_a_list_that_does_not_end_is_a_gap(scripted: Scripted) -> None:
    fill(scripted)
    numbers = iter(range(1000))
    endless = {
        "the server gave the same page token twice": lambda c: (200, {"identifiers": [], "next-page-token": "again"}),
        "hold nothing new": lambda c: (200, {"identifiers": [], "next-page-token": f"{next(numbers)}"}),
    }
    for words, page in endless.items():
        scripted.on(r"GET /v1/namespaces/n/tables$", page)
        found = scan(open_catalog(scripted.endpoint))
        gap = found["Gap", ("wh", "n")]
        assert isinstance(gap, Gap)
        assert words in gap.message
    assert len(scripted.requests("/tables$")) < 110


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"identifiers": [{"namespace": ["other"], "name": "t"}]}),
        (200, {"identifiers": [{"namespace": None, "name": "t"}]}),
        (200, {"identifiers": [{"name": "t"}]}),
        (200, {"identifiers": [{"namespace": ["n"], "name": 7}]}),
        (200, {"identifiers": [None, []]}),
        (200, {"identifiers": [], "next-page-token": {"page": 2}}),
        (200, {"identifiers": [], "next-page-token": []}),
        (200, {"identifiers": None}),
        (200, {"tables": []}),
        (403, error(403, "ForbiddenException")),
        (404, "<html>gone</html>"),
        (503, None),
    ],
)
def test_a_page_that_fails_is_a_gap(scripted: Scripted, answer: tuple[int, object]) -> None:
    fill(scripted)
    scripted.on(r"GET /v1/namespaces/n/tables$", answer)
    found = scan(open_catalog(scripted.endpoint))
    gap = found["Gap", ("wh", "n")]
    assert isinstance(gap, Gap)
    named = "cannot list tables of wh.n: ", "/v1/namespaces/n/tables answered 503"
    assert any(words in gap.message for words in named), gap.message
    assert isinstance(found["Namespace", ("wh", "n")], Present)
    with pytest.raises(CatalogError):
        open_catalog(scripted.endpoint).children(("wh", "n"))


@pytest.mark.parametrize("name", [[], None, "n", [["n"]]])
def test_a_namespace_without_a_name_is_no_answer(scripted: Scripted, name: object) -> None:
    """Without the list of a warehouse nothing can be said of it."""
    scripted.on(r"GET /v1/namespaces$", (200, {"namespaces": [name]}))
    with pytest.raises(CatalogError) as caught:
        scan(open_catalog(scripted.endpoint))
    assert f"cannot list namespaces of wh: the answer names {name!r}" in caught.value.message


def test_properties_that_are_no_map_are_not_none(scripted: Scripted) -> None:
    fill(scripted, "t")
    scripted.on(r"GET /v1/namespaces/n$", (200, {"namespace": ["n"], "properties": [1]}))
    answer = loaded()
    answer["metadata"]["properties"] = [1]
    scripted.on(r"GET /v1/namespaces/n/tables/.+", (200, answer))
    found = scan(open_catalog(scripted.endpoint))
    for key, name in (("Namespace", ("wh", "n")), ("Table", ("wh", "n", "t"))):
        finding = found[key, name]
        assert isinstance(finding, Unreadable)
        assert (finding.code, "properties that are no map" in finding.message) == (Code.INTERNAL, True)


def test_a_server_that_ignores_the_parent_is_not_followed_for_ever(scripted: Scripted) -> None:
    fill(scripted)
    scripted.on(r"GET /v1/namespaces$", (200, {"namespaces": [["n"]]}))
    assert isinstance(scan(open_catalog(scripted.endpoint))["Gap", ("wh", "n")], Gap)


def test_a_table_that_is_listed_and_not_found_is_asked_for_twice(scripted: Scripted) -> None:
    fill(scripted, "t")
    scripted.on(r"GET /v1/namespaces/n/tables/t$", (404, error(404, "NoSuchTableException")))
    finding = scan(open_catalog(scripted.endpoint))["Table", ("wh", "n", "t")]
    assert isinstance(finding, Unreadable)
    pages = iter([[{"namespace": ["n"], "name": "t"}], []])
    scripted.on(r"GET /v1/namespaces/n/tables$", lambda c: (200, {"identifiers": next(pages)}))
    assert ("Table", ("wh", "n", "t")) not in scan(open_catalog(scripted.endpoint)), "it was removed meanwhile"


def test_rows_are_not_put_where_the_table_was(scripted: Scripted) -> None:
    """Between the read and the data step somebody else has made the entry lead to another dataset."""
    fill(scripted, "t")
    catalog = open_catalog(scripted.endpoint)
    found = find(catalog, "Table", *T)
    assert isinstance(found, Present)
    assert isinstance(found.state, TableState)
    assert catalog.data_place(T, found.state).uri == "/nowhere"
    scripted.on(r"GET /v1/namespaces/n/tables/.+", (200, loaded("/elsewhere")))
    with pytest.raises(CatalogError, match="moved") as caught:
        catalog.data_place(T, found.state)
    assert caught.value.code is Code.CONCURRENT_MODIFICATION


def test_what_is_ignored_is_not_read(scripted: Scripted) -> None:
    fill(scripted, "t", "scratch")
    found = scan(open_catalog(scripted.endpoint), Scope(ignore=("wh.n.scratch",)))
    assert ("Occupied", ("wh", "n", "scratch")) in found
    assert [c.path for c in scripted.requests("/tables/")] == ["/v1/namespaces/n/tables/t"]


@pytest.mark.parametrize("said", ["lance", "LANCE", "Lance"])
def test_the_table_type_is_read_in_any_case(scripted: Scripted, said: str) -> None:
    fill(scripted, "t")
    answer = loaded("/server/put/it/here", {"table_type": said, "lance.location": "/data/t", "k": "v", "nessie.x": "1"})
    scripted.on(r"GET /v1/namespaces/n/tables/t$", (200, answer))
    finding = scan(open_catalog(scripted.endpoint))["Table", ("wh", "n", "t")]
    assert isinstance(finding, Present)
    assert isinstance(finding.state, TableState)
    assert (finding.state.location, dict(finding.state.properties)) == ("/data/t", {"k": "v"})


def test_a_native_iceberg_table_is_there_and_not_ours_to_use(scripted: Scripted) -> None:
    fill(scripted, "t")
    scripted.on(r"GET /v1/namespaces/n/tables/t$", (200, loaded(properties={"table_type": "ICEBERG"})))
    finding = scan(open_catalog(scripted.endpoint))["Table", ("wh", "n", "t")]
    assert finding == Unreadable(Code.INVALID_INPUT, "wh.n.t is an Iceberg table, not a Lance table", foreign=True)


def test_an_unchanged_table_is_not_sent_again(scripted: Scripted) -> None:
    fill(scripted, "t")
    scripted.on(
        r"GET /v1/namespaces/n/tables/t$",
        lambda c: (304, None) if c.headers.get("if-none-match") == '"one"' else (200, loaded(), {"ETag": '"one"'}),
    )
    catalog = open_catalog(scripted.endpoint)
    first = find(catalog, "Table", "wh", "n", "t")
    assert find(catalog, "Table", "wh", "n", "t") == first
    assert [c.headers.get("if-none-match") for c in scripted.requests("/tables/t$")] == [None, '"one"']


# what the server offers


def test_views_are_listed_only_where_the_server_has_them(scripted: Scripted) -> None:
    fill(scripted)
    scripted.on(r"GET /v1/namespaces/n/views$", (200, {"identifiers": [{"namespace": ["n"], "name": "v"}]}))
    assert ("Table", ("wh", "n", "v")) not in scan(open_catalog(scripted.endpoint))
    assert open_catalog(scripted.endpoint).children(("wh", "n")) == []
    scripted.config(endpoints=["GET /v1/{prefix}/namespaces/{namespace}/views"])
    finding = scan(open_catalog(scripted.endpoint))["Table", ("wh", "n", "v")]
    assert finding == Unreadable(Code.INVALID_INPUT, "wh.n.v is a view, not a table", foreign=True)
    assert open_catalog(scripted.endpoint).children(("wh", "n")) == ["v"]


def test_what_the_server_does_not_offer_is_not_tried(scripted: Scripted, tmp_path: Path) -> None:
    fill(scripted, "t")
    scripted.config(endpoints=["GET v1/{prefix}/namespaces"])
    catalog = open_catalog(scripted.endpoint, root=str(tmp_path))
    changes = [
        CreateNamespace(("wh", "m"), {}, OURS),
        UpdateNamespace(("wh", "m"), {"a": "b"}, (), OURS),
        DropNamespace(("wh", "m")),
        DeclareTable(("wh", "n", "u"), {}, OURS),
        UpdateTable(("wh", "n", "t"), {"a": "b"}, (), OURS),
        RenameTable(("wh", "n", "u"), ("wh", "n", "t")),
        DeregisterTable(("wh", "n", "t")),
    ]
    scripted.on(r"GET /v1/namespaces/m$", (200, {"namespace": ["m"], "properties": {}}))
    scripted.on(r"GET /v1/namespaces/m/tables$", (200, {"identifiers": []}))
    for change in changes:
        with pytest.raises(CatalogError, match="does not offer") as caught:
            apply(catalog, change)
        assert caught.value.code is Code.UNSUPPORTED
    assert scripted.requests("POST|DELETE") == []
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_write_has_a_key_where_the_server_remembers_keys(scripted: Scripted) -> None:
    made = (200, {"namespace": ["m"], "properties": {}})
    scripted.on(r"POST /v1/namespaces$", made)
    apply(open_catalog(scripted.endpoint), CreateNamespace(("wh", "m"), {}, OURS))
    assert "idempotency-key" not in scripted.calls[-1].headers
    scripted.config(**{"idempotency-key-lifetime": "PT30M"})
    catalog = open_catalog(scripted.endpoint)
    answers = iter([(503, None), (500, None), made, made])
    scripted.on(r"POST /v1/namespaces$", lambda c: next(answers))
    for _ in range(2):
        with pytest.raises(CatalogError) as caught:
            apply(catalog, CreateNamespace(("wh", "m"), {}, OURS))
        assert caught.value.unknown_outcome
    for _ in range(2):
        apply(catalog, CreateNamespace(("wh", "m"), {}, OURS))
    keys = [c.headers["idempotency-key"] for c in scripted.requests("POST")[1:]]
    assert keys[0] == keys[1] == keys[2] != keys[3], "one key for one write, a new one for the next"
    assert all(KEY.fullmatch(k) for k in keys)
    assert not any("idempotency-key" in c.headers for c in scripted.requests("GET"))


def test_credentials_are_never_asked_for(scripted: Scripted) -> None:
    fill(scripted, "t")
    scan(open_catalog(scripted.endpoint))
    assert not any("x-iceberg-access-delegation" in c.headers for c in scripted.calls)


# writes


@pytest.mark.parametrize(
    ("status", "type_", "code"),
    [
        (409, "AlreadyExistsException", Code.TABLE_ALREADY_EXISTS),
        (409, "", Code.TABLE_ALREADY_EXISTS),
        (409, "CommitFailedException", Code.CONCURRENT_MODIFICATION),
        (404, "NoSuchNamespaceException", Code.NAMESPACE_NOT_FOUND),
        (403, "ForbiddenException", Code.PERMISSION_DENIED),
        (401, "NotAuthorizedException", Code.UNAUTHENTICATED),
        (400, "BadRequestException", Code.INVALID_INPUT),
        (406, "UnsupportedOperationException", Code.UNSUPPORTED),
        (429, "TooManyRequestsException", Code.THROTTLING),
    ],
)
def test_a_refused_write_has_not_happened(
    scripted: Scripted, tmp_path: Path, status: int, type_: str, code: Code
) -> None:
    fill(scripted)
    scripted.on(r"POST /v1/namespaces/n/tables$", (status, error(status, type_)))
    with pytest.raises(CatalogError) as caught:
        apply(open_catalog(scripted.endpoint, root=str(tmp_path)), DeclareTable(("wh", "n", "t"), {}, OURS))
    assert (caught.value.code, caught.value.unknown_outcome) == (code, False)
    kept = any(tmp_path.rglob(".lance-reserved"))
    assert kept == (code is Code.TABLE_ALREADY_EXISTS), "the mark of the place is another run's then"


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_write_that_ends_in_a_server_error_may_have_happened(scripted: Scripted, tmp_path: Path, status: int) -> None:
    fill(scripted)
    scripted.on(r"POST /v1/namespaces/n/tables$", (status, error(status, "CommitStateUnknownException")))
    with pytest.raises(CatalogError) as caught:
        apply(open_catalog(scripted.endpoint, root=str(tmp_path)), DeclareTable(("wh", "n", "t"), {}, OURS))
    assert caught.value.unknown_outcome


@pytest.mark.parametrize(
    "answer", [loaded("/elsewhere"), {"metadata": {"properties": {}}}, {}, loaded(properties={"lance.location": "/x"})]
)
def test_an_accepted_write_that_made_something_else_is_doubted(
    scripted: Scripted, tmp_path: Path, answer: object
) -> None:
    fill(scripted)
    scripted.on(r"POST /v1/namespaces/n/tables$", (200, answer))
    with pytest.raises(CatalogError) as caught:
        apply(open_catalog(scripted.endpoint, root=str(tmp_path)), DeclareTable(("wh", "n", "t"), {}, OURS))
    assert caught.value.unknown_outcome


@pytest.mark.parametrize(("location", "companion"), [("/own", "as sent"), ("/elsewhere", ""), ("/own", "/elsewhere")])
def test_a_table_that_was_made_elsewhere_is_doubted(
    scripted: Scripted, tmp_path: Path, location: str, companion: str
) -> None:
    """A server may choose its own location as long as ours is kept beside it. Else our data would not be where the
    entry leads to, though all other properties are as asked."""
    fill(scripted)

    def made(call: Call) -> tuple[int, object]:
        kept = {k: v for k, v in call.body["properties"].items() if companion == "as sent" or k != "lance.location"}
        return 200, loaded(location, {**kept, **({"lance.location": companion} if companion[:1] == "/" else {})})

    scripted.on(r"POST /v1/namespaces/n/tables$", made)
    catalog, change = open_catalog(scripted.endpoint, root=str(tmp_path)), DeclareTable(T, {}, OURS)
    if companion == "as sent":
        apply(catalog, change)
        return
    with pytest.raises(CatalogError, match="did not keep the location") as caught:
        apply(catalog, change)
    assert caught.value.unknown_outcome


@pytest.mark.parametrize("kind", ["namespace", "table"])
def test_what_came_right_before_a_drop_keeps_the_namespace(scripted: Scripted, kind: str) -> None:
    """The server of this test would drop it with everything inside."""
    child = (
        {"namespaces": [["a", "b"]]} if kind == "namespace" else {"identifiers": [{"namespace": ["a"], "name": "t"}]}
    )
    scripted.on(r"GET /v1/namespaces/a$", (200, {"namespace": ["a"], "properties": {}}))
    scripted.on(r"GET /v1/namespaces$" if kind == "namespace" else r"GET /v1/namespaces/a/tables$", (200, child))
    scripted.on(r"DELETE /v1/namespaces/a$", (204, None))
    with pytest.raises(CatalogError) as caught:
        apply(open_catalog(scripted.endpoint), DropNamespace(("wh", "a")))
    assert caught.value.code is Code.NAMESPACE_NOT_EMPTY
    assert scripted.requests("DELETE") == []


def test_a_login_page_as_the_answer_to_a_write_is_called_so(scripted: Scripted) -> None:
    scripted.on(r"POST /v1/namespaces$", (200, "<html>login</html>"))
    with pytest.raises(CatalogError, match="not an answer of the service") as caught:
        apply(open_catalog(scripted.endpoint), CreateNamespace(("wh", "a"), {}, OURS))
    assert caught.value.unknown_outcome


def test_a_parent_is_never_made_up(scripted: Scripted) -> None:
    scripted.on(r"GET /v1/namespaces/a$", (404, error(404, "NoSuchNamespaceException")))
    with pytest.raises(CatalogError) as caught:
        apply(open_catalog(scripted.endpoint), CreateNamespace(("wh", "a", "b"), {}, OURS))
    assert caught.value.code is Code.NAMESPACE_NOT_FOUND
    assert scripted.requests("POST") == []


def test_a_conflict_at_a_drop_means_that_something_is_inside(scripted: Scripted) -> None:
    scripted.on(r"GET /v1/namespaces/a$", (200, {"namespace": ["a"], "properties": {}}))
    scripted.on(r"DELETE /v1/namespaces/a$", (409, error(409, "")))
    with pytest.raises(CatalogError) as caught:
        apply(open_catalog(scripted.endpoint), DropNamespace(("wh", "a")))
    assert caught.value.code is Code.NAMESPACE_NOT_EMPTY


# what servers with a file system of their own leave at the location


def keeps_metadata(scripted: Scripted) -> None:
    """As Apache's server with HadoopFileIO does: its record of the table is written to the table's own location."""
    fill(scripted)

    def create(call: Call) -> tuple[int, object]:
        folder = Path(call.body["location"], "metadata")
        folder.mkdir(parents=True)
        (folder / f"00000-{UUID}.metadata.json").write_text("{}")
        (folder / f".00000-{UUID}.metadata.json.crc").write_text("")
        answer = (200, loaded(call.body["location"], call.body["properties"]))
        scripted.on(r"GET /v1/namespaces/n/tables/t$", answer)
        return answer

    scripted.on(r"GET /v1/namespaces/n/tables/t$", (404, error(404, "NoSuchTableException")))
    scripted.on(r"POST /v1/namespaces/n/tables$", create)


def detailed(catalog: EntryCatalog) -> Finding:
    (seen,) = catalog.read([("Table", T)], Scope(detail=frozenset({T})))
    return seen.finding


def test_the_servers_own_metadata_at_the_location_is_nobodys_data(scripted: Scripted, tmp_path: Path) -> None:
    keeps_metadata(scripted)
    catalog = open_catalog(scripted.endpoint, root=str(tmp_path))
    apply(catalog, DeclareTable(T, {}, OURS))
    declared = detailed(catalog)
    assert isinstance(declared, Present)
    assert isinstance(declared.state, TableState)
    assert declared.state.dataset is None
    apply(catalog, CreateDataset(T, (Field("id", Scalar("int64")),), {}, {}, "team-a", ()))
    created = detailed(catalog)
    assert isinstance(created, Present)
    assert isinstance(created.state, TableState)
    assert isinstance(created.state.dataset, DatasetState)


def test_metadata_that_a_dropped_table_left_does_not_block_its_return(scripted: Scripted, tmp_path: Path) -> None:
    keeps_metadata(scripted)
    catalog = open_catalog(scripted.endpoint, root=str(tmp_path))
    apply(catalog, DeclareTable(T, {}, OURS))
    scripted.on(r"GET /v1/namespaces/n/tables/t$", (404, error(404, "NoSuchTableException")))
    assert detailed(catalog) == Absent()


@pytest.mark.parametrize("name", ["snap-1-1.avro", "notes.txt", "sub/00000-x.metadata.json"])
def test_a_real_iceberg_table_at_the_location_is_left_alone(scripted: Scripted, tmp_path: Path, name: str) -> None:
    keeps_metadata(scripted)
    catalog = open_catalog(scripted.endpoint, root=str(tmp_path))
    apply(catalog, DeclareTable(T, {}, OURS))
    file = tmp_path.joinpath(*T, "metadata", name)
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    finding = detailed(catalog)
    assert isinstance(finding, Unreadable)
    assert "holds 'metadata' but no Lance dataset" in finding.message
    with pytest.raises(CatalogError, match="holds 'metadata'"):
        apply(catalog, CreateDataset(T, (Field("id", Scalar("int64")),), {}, {}, "team-a", ()))
