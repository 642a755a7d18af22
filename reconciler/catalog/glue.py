"""The AWS Glue Data Catalog.

docs/security.md lists what the caller needs, and a test keeps the list to what is called; with Lake Formation also its
permissions.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.glue_api import GlueApi
from reconciler.catalog.glue_capabilities import glue_capabilities
from reconciler.catalog.glue_session import MAX_RETRIES, glue_client
from reconciler.catalog.glue_store import GlueStore
from reconciler.catalog.options import STORAGE, flag, number, text, under
from reconciler.catalog.stats import Stats
from reconciler.model.errors import CatalogError, Code


def connect(options: Mapping[str, str]) -> EntryCatalog:
    """Checks the options; the first call is made by whoever uses the catalog."""
    capabilities = glue_capabilities(options)
    if capabilities.problem:
        raise CatalogError(Code.INVALID_INPUT, capabilities.problem)
    stats = Stats()
    client, sender = glue_client(options, capabilities.max_parallelism)
    retries = number(options, "max_retries", MAX_RETRIES)
    api = GlueApi(client, capabilities.max_parallelism, retries, stats, close_also=sender.close)
    where = f"Glue at {client.meta.endpoint_url}"
    storage = under(options, STORAGE)
    store = GlueStore(api, capabilities, where, storage, text(options, "catalog_id"), flag(options, "catalogs", False))
    return EntryCatalog(store, storage, stats)
