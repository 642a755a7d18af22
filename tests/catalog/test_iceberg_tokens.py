"""A real OAuth2 server in front of a real catalog: tokens that expire, and a credential that is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from iceberg_support import apply, open_catalog, scan
from servers.iceberg_rest import IcebergRest, iceberg_rest
from servers.oidc import SHORT, Oidc, oidc
from servers.proxy import Proxy

from reconciler.model.change import CreateNamespace
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Present
from reconciler.model.state import Marks

__all__ = ["iceberg_rest", "oidc"]
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("status", [401, 419])
def test_tokens_are_fetched_and_renewed(iceberg_rest: IcebergRest, oidc: Oidc, tmp_path: Path, status: int) -> None:
    server = iceberg_rest.new()
    with Proxy(server.endpoint) as proxy:
        proxy.fault(oidc.guard(status), times=None)
        options = {"credential": oidc.credential("short"), "oauth2_server_uri": oidc.token_uri, "root": str(tmp_path)}
        catalog = open_catalog(proxy.endpoint, **options)
        apply(catalog, CreateNamespace(("wh", "a"), {}, Marks("team-a")))
        time.sleep(SHORT + 0.5)
        apply(catalog, CreateNamespace(("wh", "b"), {}, Marks("team-a")))
        found = scan(catalog)
        assert all(isinstance(found["Namespace", ("wh", n)], Present) for n in "ab")
        assert len({r.headers["authorization"] for r in proxy.requests()}) >= 2
        catalog.close()
    server.close()


def test_a_wrong_secret_is_said_and_not_shown(iceberg_rest: IcebergRest, oidc: Oidc) -> None:
    server = iceberg_rest.new()
    with Proxy(server.endpoint) as proxy:
        wrong = {"credential": "long:wrong-canary", "oauth2_server_uri": oidc.token_uri}
        with pytest.raises(CatalogError, match="check `credential`") as caught:
            scan(open_catalog(proxy.endpoint, **wrong))
        assert caught.value.code is Code.UNAUTHENTICATED
        assert "wrong-canary" not in caught.value.message
        assert proxy.count() == 0, "nothing is asked of the catalog without a token"
        proxy.fault(oidc.guard(), times=None)
        with pytest.raises(CatalogError, match="not authorized"):
            scan(open_catalog(proxy.endpoint, auth_token="made-up"))
    server.close()
