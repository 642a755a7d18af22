"""Each server starts, is empty, answers, and is gone afterwards."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import httpx
import pytest

from servers.iceberg_rest import IcebergRest, iceberg_rest
from servers.moto import Moto, moto
from servers.nessie import Nessie, nessie
from servers.oidc import SHORT, Oidc, oidc
from servers.proxy import Proxy
from servers.rest_adapter import RestServers, rest_adapter
from servers.tls import Authority, authority

__all__ = ["authority", "iceberg_rest", "moto", "nessie", "oidc", "rest_adapter"]
pytestmark = pytest.mark.slow


def test_iceberg_servers_share_nothing(iceberg_rest: IcebergRest) -> None:
    one, two = iceberg_rest.new(), iceberg_rest.new()
    made = httpx.post(f"{one.endpoint}/v1/namespaces", json={"namespace": ["a"], "properties": {}})
    assert made.status_code == 200, made.text
    listed = [httpx.get(f"{s.endpoint}/v1/namespaces").json()["namespaces"] for s in (one, two)]
    assert listed == [[["a"]], []]
    orphan = {"name": "t", "schema": {"type": "struct", "fields": []}}
    assert httpx.post(f"{one.endpoint}/v1/namespaces/none/tables", json=orphan).status_code == 404, "not strict"
    one.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{one.endpoint}/v1/config")
    two.close()


def test_a_rest_server_for_each_folder(rest_adapter: RestServers, tmp_path: Path) -> None:
    one, two = (rest_adapter.serve(tmp_path / name) for name in ("one", "two"))
    assert httpx.post(f"{one}/v1/namespace/a/create", json={"id": ["a"]}).status_code in (200, 201)
    assert [httpx.get(f"{e}/v1/namespace/$/list").json()["namespaces"] for e in (one, two)] == [["a"], []]
    rest_adapter.stop(one)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{one}/v1/namespace/$/list")


def test_every_account_has_a_glue_of_its_own(moto: Moto) -> None:
    one, two = (moto.client_of("glue", moto.account()) for _ in range(2))
    one.create_database(DatabaseInput={"Name": "a"})
    assert [[d["Name"] for d in c.get_databases()["DatabaseList"]] for c in (one, two)] == [["a"], []]
    assert moto.make_bucket("b-servers") == "s3://b-servers"


def test_every_branch_of_nessie_is_an_empty_catalog(nessie: Nessie) -> None:
    one, two = nessie.branch(), nessie.branch()
    found = {}
    for uri in (one, two):
        config = httpx.get(f"{uri}/v1/config", params={"warehouse": "wh"}).json()
        settings = {**config["defaults"], **config["overrides"]}
        found[uri] = f"{settings['uri'].rstrip('/')}/v1/{settings['prefix']}"
    made = httpx.post(f"{found[one]}/namespaces", json={"namespace": ["a"], "properties": {}})
    assert made.status_code == 200, made.text
    assert [httpx.get(f"{found[u]}/namespaces").json()["namespaces"] for u in (one, two)] == [[["a"]], []]


def test_tokens_are_for_those_who_know_the_secret_and_expire(oidc: Oidc) -> None:
    client, _, secret = oidc.credential("short").partition(":")
    form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret, "scope": "catalog"}
    given = httpx.post(oidc.token_uri, data=form).json()
    assert (given["token_type"], given["expires_in"]) == ("Bearer", SHORT)
    assert oidc.accepts(given["access_token"])
    assert not oidc.accepts("made-up")
    refused = httpx.post(oidc.token_uri, data={**form, "client_secret": "guess"})
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    time.sleep(SHORT + 1.1)  # whole seconds
    assert not oidc.accepts(given["access_token"])


def test_a_guarded_server_lets_only_tokens_in(oidc: Oidc, rest_adapter: RestServers, tmp_path: Path) -> None:
    with Proxy(rest_adapter.serve(tmp_path)) as proxy:
        proxy.fault(oidc.guard(), times=None)
        url = f"{proxy.endpoint}/v1/namespace/$/list"
        good = {"Authorization": f"Bearer {oidc.token()}"}
        codes = [httpx.get(url, headers=h).status_code for h in ({}, {"Authorization": "Bearer x"}, good)]
        assert codes == [401, 401, 200]


def test_tls_for_those_who_know_the_authority(authority: Authority, rest_adapter: RestServers, tmp_path: Path) -> None:
    target = rest_adapter.serve(tmp_path)
    knows = ssl.create_default_context(cafile=authority.ca_file)
    with Proxy(target, tls=authority.server_context()) as proxy:
        assert httpx.get(f"{proxy.endpoint}/v1/namespace/$/list", verify=knows).status_code == 200
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{proxy.endpoint}/v1/namespace/$/list")
    with Proxy(target, tls=authority.server_context(client_needed=True)) as proxy:
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{proxy.endpoint}/v1/namespace/$/list", verify=knows)
        knows.load_cert_chain(*authority.client_files())
        assert httpx.get(f"{proxy.endpoint}/v1/namespace/$/list", verify=knows).status_code == 200
