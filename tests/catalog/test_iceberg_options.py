"""Every key of the catalog document has its effect."""

from __future__ import annotations

import time
from urllib.parse import parse_qs

import pytest
from iceberg_support import Call, Scripted, error, find, open_catalog, scan, scripted

from reconciler.catalog.iceberg import connect
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Present

__all__ = ["scripted"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "spec.endpoint is missing"),
        ({"endpoint": "ftp://x"}, "http:// or https://"),
        ({"endpoint": "http://u:secret@x"}, "must not hold a user name or password"),
        ({"endpoint": "http://x", "read_timeout": "secret"}, "spec.read_timeout is not a whole number"),
        ({"endpoint": "http://x", "auth_token": "secret", "credential": "a:secret"}, "exclude each other"),
        ({"endpoint": "http://x", "credential": "a:secret", "oauth2_server_uri": "x"}, "spec.oauth2_server_uri"),
        ({"endpoint": "http://x:abc"}, "spec.endpoint has no valid host or port"),
        ({"endpoint": "http://:80/v1"}, "spec.endpoint has no valid host or port"),
        (
            {"endpoint": "http://x", "credential": "a:secret", "oauth2_server_uri": "http://127.0.0.1:abc/t"},
            "spec.oauth2_server_uri has no valid host or port",
        ),
        ({"endpoint": "http://x", "auth_token": "secret-\u00fc"}, "spec.auth_token holds a line break or a character"),
        ({"endpoint": "http://x", "auth_token": "secret\nsecret"}, "spec.auth_token holds a line break or a character"),
        ({"endpoint": "http://x", "header.X-Key": "secret-\u00fc"}, "spec.header.X-Key holds a line break"),
        ({"endpoint": "http://x", "header.X-Key": "secret\r\nX: y"}, "spec.header.X-Key holds a line break"),
        ({"endpoint": "http://x", "header.X Key": "secret"}, "spec.header.X Key is not the name of an HTTP header"),
        ({"endpoint": "https://x", "tls.ca_file": "/nowhere.pem"}, "spec.tls"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], words: str) -> None:
    with pytest.raises(CatalogError, match=words) as caught:
        connect(options)
    assert caught.value.code is Code.INVALID_INPUT
    assert "secret" not in caught.value.message


def test_a_path_in_the_endpoint_is_kept(scripted: Scripted) -> None:
    scripted.on("GET /iceberg/branch/v1/config", (200, {"defaults": {}, "overrides": {}}))
    scan(open_catalog(f"{scripted.endpoint}/iceberg/branch/"))
    assert [c.path for c in scripted.calls] == ["/iceberg/branch/v1/config", "/iceberg/branch/v1/namespaces"]


def test_the_token_and_the_headers_are_sent_with_everything(scripted: Scripted) -> None:
    scan(open_catalog(scripted.endpoint, auth_token="abc", **{"header.X-Team": "vision"}))
    assert len(scripted.calls) == 2
    assert {(c.headers["authorization"], c.headers["x-team"]) for c in scripted.calls} == {("Bearer abc", "vision")}


@pytest.mark.slow
def test_timeouts_are_in_milliseconds(scripted: Scripted) -> None:
    def slow(call: Call) -> tuple[int, object]:
        time.sleep(1.0)
        return 200, {"defaults": {}, "overrides": {}}

    scripted.on("GET /v1/config", slow)
    with pytest.raises(CatalogError, match="no answer in time") as caught:
        scan(open_catalog(scripted.endpoint, read_timeout="100"))
    assert caught.value.code is Code.SERVICE_UNAVAILABLE
    assert find(open_catalog(scripted.endpoint, read_timeout="20000"), "Namespace", "wh") is not None


@pytest.mark.parametrize("retries", [0, 2])
def test_max_retries(scripted: Scripted, retries: int) -> None:
    scripted.on("GET /v1/config", (503, None))
    with pytest.raises(CatalogError):
        scan(open_catalog(scripted.endpoint, max_retries=str(retries)))
    assert len(scripted.calls) == retries + 1


# OAuth2


def issue(scripted: Scripted, path: str = "/v1/oauth/tokens", life: int = 3600) -> list[dict[str, str]]:
    """Tokens t1, t2, ...; only the last one is good. Returns the forms that were posted."""
    forms: list[dict[str, str]] = []

    def tokens(call: Call) -> tuple[int, object]:
        forms.append({k: v[0] for k, v in parse_qs(call.body).items()})
        return 200, {"access_token": f"t{len(forms)}", "token_type": "bearer", "expires_in": life}

    scripted.on(f"POST {path}$", tokens)
    return forms


def test_the_credential_gets_a_token_at_the_server_itself(scripted: Scripted) -> None:
    forms = issue(scripted)
    scan(open_catalog(scripted.endpoint, credential="me:s:1"))
    assert forms == [
        {"grant_type": "client_credentials", "client_id": "me", "client_secret": "s:1", "scope": "catalog"}
    ]
    assert {c.headers["authorization"] for c in scripted.requests("GET")} == {"Bearer t1"}


def test_the_token_server_and_the_scope_can_be_chosen(scripted: Scripted) -> None:
    forms = issue(scripted, "/realm/token")
    uri = f"{scripted.endpoint}/realm/token"
    scan(open_catalog(scripted.endpoint, credential="me:s", oauth2_server_uri=uri, scope="PRINCIPAL_ROLE:ALL"))
    assert [f["scope"] for f in forms] == ["PRINCIPAL_ROLE:ALL"]


@pytest.mark.parametrize("status", [401, 419])
def test_a_refused_token_is_renewed_once(scripted: Scripted, status: int) -> None:
    forms = issue(scripted)

    def guarded(call: Call) -> tuple[int, object]:
        if call.headers["authorization"] == "Bearer t2":
            return 200, {"namespace": ["n"], "properties": {}}
        return status, error(status, "AuthenticationTimeoutException")

    scripted.on("GET /v1/namespaces/n$", guarded)
    catalog = open_catalog(scripted.endpoint, credential="me:s")
    assert isinstance(find(catalog, "Namespace", "wh", "n"), Present)
    assert len(forms) == 2
    scripted.on("GET /v1/namespaces/n$", (status, error(status, "NotAuthorizedException")))
    with pytest.raises(CatalogError) as caught:
        find(catalog, "Namespace", "wh", "n")
    assert caught.value.code is Code.UNAUTHENTICATED
    assert len(forms) == 3


def test_a_token_is_renewed_before_it_ends(scripted: Scripted) -> None:
    forms = issue(scripted, life=0.2)  # type: ignore[arg-type]
    catalog = open_catalog(scripted.endpoint, credential="me:s")
    scan(catalog)
    time.sleep(0.2)
    scan(catalog)
    assert len(forms) >= 2
    assert {c.headers["authorization"] for c in scripted.requests("GET")} >= {"Bearer t1", "Bearer t2"}


def test_a_refused_credential_is_said_without_the_secret(scripted: Scripted) -> None:
    scripted.on("POST /v1/oauth/tokens", (401, {"error": "invalid_client", "error_description": "who are you?"}))
    with pytest.raises(CatalogError, match=r"who are you\?.*check `credential`") as caught:
        scan(open_catalog(scripted.endpoint, credential="me:secret-canary"))
    assert caught.value.code is Code.UNAUTHENTICATED
    assert "secret-canary" not in caught.value.message
