"""Catalog type `iceberg`: Lance tables in an Iceberg REST catalog, each as a companion table with a dummy schema."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.http import Auth, Http
from reconciler.catalog.http_auth import ClientCredentials, bearer
from reconciler.catalog.http_transport import Timeouts
from reconciler.catalog.iceberg_capabilities import iceberg_capabilities
from reconciler.catalog.iceberg_client import IcebergClient
from reconciler.catalog.iceberg_store import IcebergStore
from reconciler.catalog.iceberg_wire import METADATA, error_type, is_table_metadata
from reconciler.catalog.options import HEADER, STORAGE, address, base_address, number, text, tls, under
from reconciler.catalog.service import Service
from reconciler.catalog.stats import Stats
from reconciler.model.errors import CatalogError, Code

_SCOPE = "catalog"
"""What Iceberg's own clients ask for."""
_TOKENS = "/v1/oauth/tokens"


def connect(options: Mapping[str, str]) -> EntryCatalog:
    """Sends nothing yet. Raises CatalogError for options that make no sense."""
    endpoint = base_address(options, "endpoint")
    capabilities = iceberg_capabilities(options)
    timeouts = Timeouts(
        number(options, "connect_timeout", 10_000) / 1000, number(options, "read_timeout", 30_000) / 1000
    )
    retries = number(options, "max_retries", 3)
    verify = tls(options)
    stats = Stats()
    split = urlsplit(endpoint)
    http = Http(
        f"{split.scheme}://{split.netloc}",
        timeouts=timeouts,
        max_retries=retries,
        parallel=capabilities.max_parallelism,
        headers=under(options, HEADER),
        auth=_auth(options, endpoint, timeouts, retries, verify),
        verify=verify,
        stats=stats,
        service=Service("an Iceberg REST catalog", endpoint, "spec.endpoint", lambda r: error_type(r) is not None),
    )
    storage = under(options, STORAGE)
    client = IcebergClient(http, endpoint, text(options, "prefix"))
    store = IcebergStore(client, capabilities, text(options, "warehouse"), storage)
    return EntryCatalog(store, storage, stats, {METADATA: is_table_metadata})


def _auth(
    options: Mapping[str, str], endpoint: str, timeouts: Timeouts, retries: int, verify: ssl.SSLContext | bool
) -> Auth | None:
    token, credential = text(options, "auth_token"), text(options, "credential")
    if token is not None and credential is not None:
        raise CatalogError(Code.INVALID_INPUT, "spec.auth_token and spec.credential exclude each other")
    if credential is None:
        return bearer(token) if token is not None else None
    uri = address(options, "oauth2_server_uri") if text(options, "oauth2_server_uri") else f"{endpoint}{_TOKENS}"
    return ClientCredentials(
        uri,
        credential,
        scope=text(options, "scope") or _SCOPE,
        timeouts=timeouts,
        max_retries=retries,
        verify=verify,
    )
