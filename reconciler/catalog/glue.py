"""The AWS Glue Data Catalog.

docs/security.md lists what the caller needs, and a test keeps the list to what is called; with Lake Formation also its
permissions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.glue_api import GlueApi
from reconciler.catalog.glue_capabilities import glue_capabilities
from reconciler.catalog.glue_session import MAX_RETRIES, glue_client
from reconciler.catalog.glue_store import GlueStore
from reconciler.catalog.options import STORAGE, flag, number, text, under
from reconciler.catalog.stats import Stats
from reconciler.model.errors import CatalogError, Code

_ACCOUNT = re.compile(r"[0-9]{12}(?=$|:)")
"""A catalog id starts with the account that the catalog is of, which need not be the caller's."""


def connect(options: Mapping[str, str]) -> EntryCatalog:
    """Checks the options; the first call is made by whoever uses the catalog."""
    capabilities = glue_capabilities(options)
    if capabilities.problem:
        raise CatalogError(Code.INVALID_INPUT, capabilities.problem)
    stats = Stats()
    client, sender, account = glue_client(options, capabilities.max_parallelism)
    retries = number(options, "max_retries", MAX_RETRIES)
    api = GlueApi(client, capabilities.max_parallelism, retries, stats, close_also=sender.close)
    where = f"Glue at {client.meta.endpoint_url}"
    storage = under(options, STORAGE)
    catalog_id = text(options, "catalog_id")
    store = GlueStore(api, capabilities, where, storage, catalog_id, flag(options, "catalogs", False))
    of_it = _ACCOUNT.match(catalog_id or "")
    told = {
        "account": lambda: of_it[0] if of_it is not None else account(),
        "region": lambda: str(client.meta.region_name),
    }
    return EntryCatalog(store, storage, stats, told=told)
