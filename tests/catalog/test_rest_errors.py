"""What the server's answers mean: its own codes first, and absence only when it is said."""

from __future__ import annotations

import json

import pytest
from rest_support import PRUDENT, US, WRITE, Rig, rig
from servers.proxy import answer

from reconciler.model.change import CreateNamespace, DeclareTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent

__all__ = ["rig"]

STATUS = {
    Code.UNSUPPORTED: 406, Code.NAMESPACE_NOT_FOUND: 404, Code.NAMESPACE_ALREADY_EXISTS: 409,
    Code.NAMESPACE_NOT_EMPTY: 409, Code.TABLE_NOT_FOUND: 404, Code.TABLE_ALREADY_EXISTS: 409,
    Code.TABLE_INDEX_NOT_FOUND: 404, Code.TABLE_INDEX_ALREADY_EXISTS: 409, Code.TABLE_TAG_NOT_FOUND: 404,
    Code.TABLE_TAG_ALREADY_EXISTS: 409, Code.TRANSACTION_NOT_FOUND: 404, Code.TABLE_VERSION_NOT_FOUND: 404,
    Code.TABLE_COLUMN_NOT_FOUND: 404, Code.INVALID_INPUT: 400, Code.CONCURRENT_MODIFICATION: 409,
    Code.PERMISSION_DENIED: 403, Code.UNAUTHENTICATED: 401, Code.SERVICE_UNAVAILABLE: 503, Code.INTERNAL: 500,
    Code.INVALID_TABLE_STATE: 409, Code.TABLE_SCHEMA_VALIDATION_ERROR: 400, Code.THROTTLING: 429,
    Code.TABLE_BRANCH_NOT_FOUND: 404, Code.TABLE_BRANCH_ALREADY_EXISTS: 409,
}  # fmt: skip


def body(code: object) -> str:
    return json.dumps({"error": "the server's words", "code": code})


def test_every_code_of_the_table_is_in_here() -> None:
    assert set(STATUS) == set(Code)


def test_codes_win_over_statuses_in_reads_and_writes(rig: Rig) -> None:
    for code, status in STATUS.items():
        catalog = rig.open(**PRUDENT)
        rig.proxy.fault(answer(status, body(int(code)), retry_after=0), method="GET", path="/table/list")
        with pytest.raises(CatalogError, match="the server's words") as read:
            catalog.children(("n",))
        rig.proxy.fault(answer(status, body(int(code)), retry_after=0), method="POST", path="/create")
        with pytest.raises(CatalogError, match="the server's words") as written:
            catalog.apply(CreateNamespace(("n",), {}, US), WRITE)
        assert (read.value.code, written.value.code) == (code, code)
        assert read.value.unknown_outcome is False
        assert written.value.unknown_outcome is (status >= 500)


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 13), (401, 16), (403, 15), (404, 18), (405, 0), (406, 0), (409, 14), (429, 21), (500, 18), (501, 0),
     (502, 17), (503, 17), (504, 17), (302, 18), (418, 18)],
)  # fmt: skip
def test_without_a_code_the_status_decides(rig: Rig, status: int, code: int) -> None:
    rig.proxy.fault(answer(status, "<html>gateway</html>", json=False, retry_after=0), path="/create", times=None)
    with pytest.raises(CatalogError) as caught:
        rig.catalog.apply(CreateNamespace(("n",), {}, US), WRITE)
    assert caught.value.code == code
    assert caught.value.unknown_outcome is (status in (500, 502, 503, 504))


NOT_THE_SERVER = [
    answer(404), answer(404, "not here", json=False), answer(404, "{}"), answer(404, '{"message": "no route"}'),
    answer(404, body(404)), answer(404, body("4")), answer(404, body(True)), answer(404, body(13)),
    answer(404, "[1]"), answer(404, '{"code": 4'),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["Namespace", "Table"])
def test_a_404_that_is_not_the_servers_is_never_absence(rig: Rig, kind: str) -> None:
    for fault in NOT_THE_SERVER:
        rig.proxy.fault(fault, path="/describe")
        with pytest.raises(CatalogError):
            rig.find(kind, "n", "t")  # type: ignore[arg-type]
    assert rig.find(kind, "n", "t") == Absent()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "said", ["<html>login</html>", "[]", '"ok"', "null", '{"namespaces": null}', '{"tables": "t"}']
)
def test_something_else_than_a_listing_is_never_an_empty_one(rig: Rig, said: str) -> None:
    rig.proxy.fault(answer(200, said, json=said[0] != "<"), method="GET", times=None)
    with pytest.raises(CatalogError) as caught:
        rig.catalog.children(())
    assert caught.value.code is Code.INTERNAL
    with pytest.raises(CatalogError):
        rig.scan()


@pytest.mark.parametrize("said", ['{"properties": ["x"]}', '{"properties": {"a": 1}}'])
def test_properties_that_are_none(rig: Rig, said: str) -> None:
    rig.proxy.fault(answer(200, said), path="/describe")
    with pytest.raises(CatalogError, match="not a map of strings"):
        rig.find("Namespace", "n")


def test_what_the_real_server_says(rig: Rig) -> None:
    def code(change: CreateNamespace | DeclareTable) -> Code:
        with pytest.raises(CatalogError) as caught:
            rig.apply(change)
        assert not caught.value.unknown_outcome
        return caught.value.code

    rig.namespace("n")
    rig.table("n", "t", data=False)
    assert code(CreateNamespace(("n",), {}, US)) is Code.NAMESPACE_ALREADY_EXISTS
    assert code(CreateNamespace(("x", "y"), {}, US)) is Code.NAMESPACE_NOT_FOUND
    assert code(DeclareTable(("n", "t"), {}, US)) is Code.TABLE_ALREADY_EXISTS
    rig.proxy.forget()
    assert code(DeclareTable(("x", "t"), {}, US)) is Code.NAMESPACE_NOT_FOUND
    assert rig.proxy.count("POST", "/declare") == 0  # the server would have done it
