"""The `rest` catalog type: a Lance REST namespace server."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.http import Auth, Http
from reconciler.catalog.http_auth import ClientCredentials, bearer
from reconciler.catalog.http_transport import Timeouts
from reconciler.catalog.options import (
    HEADER,
    STORAGE,
    address,
    base_address,
    need_sendable,
    number,
    required,
    text,
    tls,
    under,
)
from reconciler.catalog.rest_api import RestApi, code_of
from reconciler.catalog.rest_capabilities import DELIMITER, rest_capabilities
from reconciler.catalog.rest_store import RestStore
from reconciler.catalog.service import Service
from reconciler.catalog.stats import Stats
from reconciler.model.errors import CatalogError, Code

_TOKEN_PATH = "/oauth/token"


def connect(options: Mapping[str, str]) -> EntryCatalog:
    """`options` resolved to strings. Sends nothing yet. Raises CatalogError."""
    capabilities = rest_capabilities(options)
    stats = Stats()
    http = Http(
        base_address(options, "uri"),
        timeouts=_timeouts(options),
        max_retries=_retries(options),
        parallel=capabilities.max_parallelism,
        headers=_headers(options),
        auth=_auth(options),
        verify=tls(options),
        stats=stats,
        code_of=code_of,
        service=Service(
            "a Lance REST namespace server", base_address(options, "uri"), "spec.uri", lambda r: code_of(r) is not None
        ),
    )
    delimiter = required(options, "delimiter") if "delimiter" in options else DELIMITER
    return EntryCatalog(RestStore(RestApi(http, delimiter), capabilities), under(options, STORAGE), stats)


def _timeouts(options: Mapping[str, str]) -> Timeouts:
    return Timeouts(number(options, "connect_timeout", 10_000) / 1000, number(options, "read_timeout", 30_000) / 1000)


def _retries(options: Mapping[str, str]) -> int:
    return number(options, "max_retries", 3)


def _headers(options: Mapping[str, str]) -> dict[str, str]:
    headers = under(options, HEADER)
    if key := text(options, "api_key"):
        headers["x-api-key"] = key
    for name, value in headers.items():
        need_sendable(f"{HEADER}{name}" if f"{HEADER}{name}" in options else "api_key", value)
    return headers


def _auth(options: Mapping[str, str]) -> Auth | None:
    token, credential = text(options, "auth_token"), text(options, "credential")
    if token and credential:
        raise CatalogError(Code.INVALID_INPUT, "spec.auth_token and spec.credential exclude each other: give one")
    if token:
        need_sendable("auth_token", token)
        return bearer(token)
    if not credential:
        return None
    given = "oauth2_server_uri" in options
    return ClientCredentials(
        address(options, "oauth2_server_uri") if given else base_address(options, "uri") + _TOKEN_PATH,
        credential,
        scope=text(options, "scope"),
        timeouts=_timeouts(options),
        max_retries=_retries(options),
        verify=tls(options),
    )
