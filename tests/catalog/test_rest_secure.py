"""TLS with a private authority, tokens of a real OAuth2 server, tables in a bucket, credentials that are handed out."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from rest_support import ID, US, Rig, rig
from servers.moto import Moto
from servers.oidc import SHORT, Oidc, oidc
from servers.proxy import Proxy, answer
from servers.rest_adapter import RestServers
from servers.tls import Authority, authority

from reconciler.catalog.rest import connect
from reconciler.model.change import AddColumns, CreateDataset, DeclareTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Present
from reconciler.model.state import DatasetState, TableState

__all__ = ["authority", "oidc", "rig"]

CANARY = "canary-7c1f"


@pytest.fixture
def behind_tls(rig: Rig, authority: Authority) -> Iterator[Proxy]:
    with Proxy(rig.server, tls=authority.server_context()) as proxy:
        yield proxy


def test_a_private_authority_is_trusted_when_named(rig: Rig, behind_tls: Proxy, authority: Authority) -> None:
    rig.namespace("n")
    uri = behind_tls.endpoint
    assert uri.startswith("https://")
    assert connect({"uri": uri, "tls.ca_file": str(authority.ca_file)}).children(()) == ["n"]
    assert connect({"uri": uri, "tls.verify": "false"}).children(()) == ["n"]


def test_otherwise_nothing_is_sent(behind_tls: Proxy) -> None:
    catalog = connect({"uri": behind_tls.endpoint, "max_retries": "0", "auth_token": CANARY})
    with pytest.raises(CatalogError, match=r"(?i)certificate") as caught:
        catalog.children(())
    assert behind_tls.count() == 0
    assert CANARY not in str(caught.value)


def test_a_server_that_asks_who_we_are(rig: Rig, authority: Authority) -> None:
    certificate, key = authority.client_files()
    with Proxy(rig.server, tls=authority.server_context(client_needed=True)) as proxy:
        options = {"uri": proxy.endpoint, "tls.ca_file": str(authority.ca_file), "max_retries": "0"}
        with pytest.raises(CatalogError):
            connect(options).children(())
        assert proxy.count() == 0
        ours = {"tls.cert_file": str(certificate), "tls.key_file": str(key)}
        assert connect({**options, **ours}).children(()) == []


@pytest.mark.slow
def test_tokens_of_a_real_server_are_fetched_and_renewed(rig: Rig, oidc: Oidc) -> None:
    rig.proxy.fault(oidc.guard(), times=None)
    with pytest.raises(CatalogError) as caught:
        rig.open().children(())
    assert caught.value.code is Code.UNAUTHENTICATED
    catalog = rig.open(credential=oidc.credential("short"), oauth2_server_uri=oidc.token_uri, scope="catalog")
    assert catalog.children(()) == []
    time.sleep(SHORT + 0.2)
    assert catalog.children(()) == []
    tokens = {r.headers.get("authorization") for r in rig.proxy.requests() if r.status == 200}
    assert len(tokens) == 2


@pytest.mark.slow
def test_a_wrong_secret_is_said_and_not_shown(rig: Rig, oidc: Oidc) -> None:
    catalog = rig.open(credential=f"long:{CANARY}", oauth2_server_uri=oidc.token_uri)
    with pytest.raises(CatalogError, match="check `credential`") as caught:
        catalog.children(())
    assert caught.value.code is Code.UNAUTHENTICATED
    assert CANARY not in str(caught.value)


def dataset(finding: object) -> DatasetState:
    assert isinstance(finding, Present), finding
    assert isinstance(finding.state, TableState)
    assert isinstance(finding.state.dataset, DatasetState)
    return finding.state.dataset


@pytest.fixture
def in_bucket(rest_adapter: RestServers, moto: Moto, tmp_path: Path) -> Iterator[Rig]:
    bucket = f"b-{uuid.uuid4().hex[:12]}"
    moto.make_bucket(bucket)
    storage = {f"storage.{k}": v for k, v in moto.storage_options.items()}
    endpoint = rest_adapter.serve(f"s3://{bucket}/lake", **storage)
    rig = Rig(tmp_path, endpoint, Proxy(endpoint))
    yield rig
    rig.close()


@pytest.mark.slow
def test_tables_in_a_bucket_are_opened_with_the_storage_options(in_bucket: Rig, moto: Moto) -> None:
    ours = in_bucket.open(**{f"storage.{k}": v for k, v in moto.storage_options.items()})
    in_bucket.namespace("n")
    in_bucket.apply(
        DeclareTable(("n", "ü#1"), {"a": "1"}, US),
        CreateDataset(("n", "ü#1"), ID, {}, {}, "team-a", ()),
        catalog=ours,
    )
    finding = in_bucket.find("Table", "n", "ü#1", catalog=ours)
    assert dataset(finding).owner == "team-a"
    assert in_bucket.scan(detail=[("n", "ü#1")], catalog=ours)["Table", ("n", "ü#1")].finding == finding


@pytest.mark.slow
def test_credentials_that_are_handed_out_open_their_table(in_bucket: Rig, moto: Moto) -> None:
    """They are not asked for; where a describe brings them, they are enough."""
    ours = in_bucket.open(**{f"storage.{k}": v for k, v in moto.storage_options.items()})
    in_bucket.namespace("n")
    in_bucket.apply(DeclareTable(("n", "t"), {}, US), CreateDataset(("n", "t"), ID, {}, {}, "team-a", ()), catalog=ours)
    location = ours.store.table(("n", "t")).location  # type: ignore[union-attr]
    said = {"location": location, "properties": {"reconciler.owner": "team-a"}}
    said["storage_options"] = {**moto.storage_options, "x-canary": CANARY}  # type: ignore[assignment]
    in_bucket.proxy.fault(answer(200, json.dumps(said)), path="/v1/table/n%24t/describe", times=None)
    without = in_bucket.open()
    finding = in_bucket.find("Table", "n", "t", catalog=without)
    assert dataset(finding).owner == "team-a"
    assert CANARY not in repr(finding)
    assert CANARY not in repr(without.store.table(("n", "t")))
    in_bucket.apply(AddColumns(("n", "t"), tuple(f.__class__("more", f.type) for f in ID)), catalog=without)
    assert len(dataset(in_bucket.find("Table", "n", "t", catalog=without)).fields) == 2
