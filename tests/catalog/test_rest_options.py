"""Every option of a `rest` catalog has the effect that its name promises: seen by what stands behind it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from rest_support import Rig, rig
from servers.proxy import answer, delay

from reconciler.catalog.rest import connect
from reconciler.model.errors import CatalogError, Code

__all__ = ["rig"]


def token(value: str, life: int = 3600) -> str:
    return json.dumps({"access_token": value, "token_type": "bearer", "expires_in": life})


def test_an_api_key_and_headers_go_with_every_request(rig: Rig) -> None:
    catalog = rig.open(**{"api_key": "k-1", "header.x-team": "vision", "header.X-Other": "2"})
    catalog.children(())
    assert rig.proxy.count() == 2
    for request in rig.proxy.requests():
        sent = request.headers
        assert (sent["x-api-key"], sent["x-team"], sent["x-other"]) == ("k-1", "vision", "2")
        assert "authorization" not in sent


def test_a_token_is_a_bearer_token(rig: Rig) -> None:
    rig.open(auth_token="t-1").children(())
    assert {r.headers.get("authorization") for r in rig.proxy.requests()} == {"Bearer t-1"}
    assert {r.headers.get("x-api-key") for r in rig.proxy.requests()} == {None}


def test_client_credentials_fetch_one_token_at_the_server(rig: Rig) -> None:
    rig.proxy.fault(answer(200, token("fresh")), path="^/oauth/token$")
    rig.open(credential="me:secret", scope="catalog").children(())
    (asked,) = rig.proxy.requests("POST", "/oauth/token")
    form = set(asked.body.decode().split("&"))
    assert form == {"grant_type=client_credentials", "client_id=me", "client_secret=secret", "scope=catalog"}
    others = rig.proxy.requests("GET")
    assert len(others) == 2
    assert {r.headers["authorization"] for r in others} == {"Bearer fresh"}


def test_the_token_server_may_be_another_one(rig: Rig) -> None:
    rig.proxy.fault(answer(200, token("theirs")), path="^/realms/x/token$")
    rig.open(credential="me:secret", oauth2_server_uri=f"{rig.proxy.endpoint}/realms/x/token").children(())
    assert rig.proxy.count("POST", "/oauth/token") == 0
    assert {r.headers["authorization"] for r in rig.proxy.requests("GET")} == {"Bearer theirs"}


def test_a_token_that_is_refused_is_renewed_once(rig: Rig) -> None:
    rig.proxy.fault(answer(200, token("one")), path="/oauth/token")
    rig.proxy.fault(answer(200, token("two")), path="/oauth/token")
    rig.proxy.fault(answer(401, '{"error": "expired", "code": 16}'), method="GET")
    rig.open(credential="me:secret").children(())
    assert [r.headers["authorization"] for r in rig.proxy.requests("GET")][:2] == ["Bearer one", "Bearer two"]


def test_a_delimiter_joins_the_names_and_is_announced(rig: Rig) -> None:
    rig.namespace("a")
    rig.namespace("a", "b.c")
    rig.proxy.forget()
    dotted = rig.open(delimiter="::")
    assert dotted.children(("a",)) == ["b.c"]
    assert rig.scan(catalog=dotted).keys() == {("Namespace", ("a",)), ("Namespace", ("a", "b.c"))}
    assert all("delimiter=%3A%3A" in r.path for r in rig.proxy.requests())
    assert rig.proxy.count("POST", "/v1/namespace/a%3A%3Ab%2Ec/describe") == 1
    assert rig.proxy.count("GET", "/v1/namespace/%3A%3A/list") >= 1


def test_the_usual_delimiter_is_not_announced(rig: Rig) -> None:
    rig.catalog.children(())
    assert sorted(r.path for r in rig.proxy.requests()) == ["/v1/namespace/%24/list", "/v1/namespace/%24/table/list"]


@pytest.mark.parametrize("delimiter", [".", "/", "\x1f", "%"])
def test_odd_delimiters_reach_the_root(rig: Rig, delimiter: str) -> None:
    rig.namespace("a")
    rig.namespace("a", "b")
    odd = rig.open(delimiter=delimiter)
    assert (odd.children(()), odd.children(("a",))) == (["a"], ["b"])


@pytest.mark.parametrize(("retries", "calls"), [("0", 1), ("2", 3)])
def test_reads_are_retried_so_often(rig: Rig, retries: str, calls: int) -> None:
    catalog = rig.open(max_retries=retries)
    rig.proxy.fault(answer(503, retry_after=0), method="GET", times=None)
    with pytest.raises(CatalogError) as caught:
        catalog.children(())
    assert caught.value.code is Code.SERVICE_UNAVAILABLE
    assert rig.proxy.count() == calls


def test_an_answer_that_takes_too_long(rig: Rig) -> None:
    catalog = rig.open(read_timeout="150", max_retries="0")
    rig.proxy.fault(delay(1.0), method="GET")
    with pytest.raises(CatalogError, match=r"no answer in time \(read_timeout: 0.15 s") as caught:
        catalog.children(())
    assert caught.value.code is Code.SERVICE_UNAVAILABLE


@pytest.fixture
def full() -> Iterator[int]:
    """A port whose queue is full: nobody gets a connection, and nobody is refused."""
    held = []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port: int = listening.getsockname()[1]
        for _ in range(4):
            held.append(socket.socket())
            held[-1].setblocking(False)
            held[-1].connect_ex(("127.0.0.1", port))
        yield port
        for one in held:
            one.close()


def test_a_connection_that_takes_too_long(full: int) -> None:
    catalog = connect({"uri": f"http://127.0.0.1:{full}", "connect_timeout": "150", "max_retries": "0"})
    with pytest.raises(CatalogError, match=r"no answer in time \(connect_timeout: 0.15 s"):
        catalog.children(())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "spec.uri is missing"),
        ({"uri": "ftp://x"}, "http:// or https://"),
        ({"uri": "http://me:pw@x"}, "user name or password"),
        ({"uri": "http://x", "max_retries": "many"}, "spec.max_retries is not a whole number"),
        ({"uri": "http://x", "read_timeout": "-1"}, "spec.read_timeout is not a whole number"),
        ({"uri": "http://x", "delimiter": ""}, "spec.delimiter is missing or empty"),
        ({"uri": "http://x", "auth_token": "canary\n"}, "spec.auth_token holds a line break"),
        ({"uri": "http://x", "api_key": "canary\r\nx: y"}, "spec.api_key holds a line break"),
        ({"uri": "http://x", "header.a": "canaré"}, "spec.header.a holds"),
        ({"uri": "http://x", "auth_token": "a", "credential": "b:c"}, "exclude each other"),
        ({"uri": "http://x", "tls.ca_file": "/nowhere.pem"}, "spec.tls"),
    ],
)
def test_what_a_variable_became_is_checked_and_not_repeated(options: dict[str, str], said: str) -> None:
    with pytest.raises(CatalogError, match=said) as caught:
        connect(options)
    assert caught.value.code is Code.INVALID_INPUT
    assert "canar" not in str(caught.value)
