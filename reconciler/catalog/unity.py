"""`type: unity`: a catalog on a Unity Catalog server (the open-source one; Databricks' own takes Delta tables only)."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.catalog import options as opt
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.http import Http
from reconciler.catalog.http_auth import bearer
from reconciler.catalog.http_transport import Timeouts
from reconciler.catalog.service import Service
from reconciler.catalog.stats import Stats
from reconciler.catalog.storage import open_storage
from reconciler.catalog.unity_capabilities import unity_capabilities
from reconciler.catalog.unity_client import UnityClient, error_code
from reconciler.catalog.unity_records import Records
from reconciler.catalog.unity_store import UnityStore

API_PATH = "/api/2.1/unity-catalog"
CONTROL_PATH = "/api/1.0/unity-control"
"""Beside the other: whose token it is."""


def connect(options: Mapping[str, str]) -> EntryCatalog:
    """Time-outs are in seconds. Nothing is sent yet."""
    catalog = opt.required(options, "catalog")
    capabilities = unity_capabilities(options)
    stats = Stats()
    token = opt.text(options, "auth_token")
    api_path = opt.text(options, "api_path") or API_PATH
    opt.need_path_only("api_path", api_path)
    endpoint, api_path = opt.base_address(options, "endpoint"), api_path.strip("/")
    verify = opt.tls(options)

    def http(path: str) -> Http:
        url = f"{endpoint}/{path}"
        ours = Service("Unity Catalog", url, "spec.endpoint and spec.api_path", lambda reply: bool(error_code(reply)))
        return Http(
            url,
            timeouts=Timeouts(
                connect=opt.number(options, "connect_timeout", 10), read=opt.number(options, "read_timeout", 60)
            ),
            max_retries=opt.number(options, "max_retries", 3),
            parallel=capabilities.max_parallelism,
            auth=bearer(token) if token is not None else None,
            verify=verify,
            stats=stats,
            service=ours,
        )

    before, known, _ = api_path.rpartition(API_PATH.strip("/"))
    control = http(before + CONTROL_PATH.strip("/")) if token is not None and known else None
    client = UnityClient(http(api_path), control)
    storage = opt.under(options, opt.STORAGE)
    records = Records(open_storage(opt.text(options, "root") or ".", storage), catalog)
    return EntryCatalog(UnityStore(client, records, capabilities, catalog), storage, stats)
