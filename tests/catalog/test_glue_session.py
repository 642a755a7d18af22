"""Every way to say who we are, and every option that says where; seen from the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from catalog.glue_support import Account, account, glue_client, glue_server, scanned
from servers.moto import Moto
from servers.proxy import Exchange, Proxy, answer

from reconciler.catalog.glue import connect
from reconciler.catalog.glue_session import glue_client as make_client
from reconciler.engine.redact import Redactor
from reconciler.model.errors import CatalogError, Code

__all__ = ["account", "glue_client", "glue_server"]

ROLE = "arn:aws:iam::444455556666:role/reader"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No credentials but those of the test; nothing of this machine."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
                 "AWS_DEFAULT_REGION"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    return monkeypatch


@pytest.fixture
def sts(moto: Moto, environment: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Where roles are asked for: the proxy writes down who asked for what."""
    with Proxy(moto.endpoint_of("sts")) as proxy:
        environment.setenv("AWS_ENDPOINT_URL_STS", proxy.endpoint)
        yield proxy


def bare(account: Account, **more: str) -> dict[str, str]:
    return {"endpoint": account.server.endpoint, **more}


def asked(sts: Proxy) -> list[dict[str, str]]:
    return [{k: v[0] for k, v in parse_qs(r.body.decode()).items()} for r in sts.seen]


def used(account: Account) -> str:
    """Key and region of the last request."""
    credential = account.server.authorizations[-1].split("Credential=")[1].split(",")[0]
    key, _, region, *_ = credential.split("/")
    return f"{key} {region}"


def test_fixed_keys_and_region(account: Account) -> None:
    scanned(connect(bare(account, access_key_id="AKIAFIXED", secret_access_key="s", region="eu-west-3")))
    assert used(account) == "AKIAFIXED eu-west-3"


def test_the_default_chain(account: Account, environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "s")
    environment.setenv("AWS_DEFAULT_REGION", "us-west-2")
    scanned(connect(bare(account)))
    assert used(account) == "AKIAENV us-west-2"
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = s\n")
    environment.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    scanned(connect(bare(account)))
    assert used(account) == "AKIAFILE us-west-2"


def test_where_the_region_comes_from(account: Account, environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the order of AWS's SDKs: the option, AWS_REGION, AWS_DEFAULT_REGION, the profile."""
    keys = {"access_key_id": "AKIAFIXED", "secret_access_key": "s"}

    def region(**more: str) -> str:
        scanned(connect(bare(account, **keys, **more)))
        return used(account).split()[1]

    config = tmp_path / "config"
    config.write_text("[default]\nregion = eu-west-1\n[profile other]\nregion = eu-west-2\n")
    environment.setenv("AWS_CONFIG_FILE", str(config))
    assert region() == "eu-west-1"
    environment.setenv("AWS_PROFILE", "other")
    assert region() == "eu-west-2"
    environment.setenv("AWS_DEFAULT_REGION", "us-west-1")
    assert region() == "us-west-1"
    environment.setenv("AWS_REGION", "us-west-2")
    assert region() == "us-west-2"
    assert region(region="ap-south-1") == "ap-south-1"
    environment.setenv("AWS_REGION", "")
    assert region() == "us-west-1"
    environment.setenv("AWS_REGION", "us-west-2")
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE"):
        environment.delenv(name)
    config.unlink()
    assert region() == "us-west-2"


def test_a_session_token_is_sent(account: Account) -> None:
    with Proxy(account.server.endpoint) as proxy:
        keys = {"access_key_id": "ASIATEMP", "secret_access_key": "s", "session_token": "token-canary"}
        scanned(connect({"endpoint": proxy.endpoint, "region": "us-east-1", **keys}))
        assert {r.headers["x-amz-security-token"] for r in proxy.seen} == {"token-canary"}


@pytest.mark.slow
def test_a_role_is_taken_on_with_all_its_options(account: Account, sts: Proxy) -> None:
    more = {
        "assume_role_arn": ROLE,
        "assume_role_region": "eu-central-1",
        "assume_role_external_id": "external-canary",
        "assume_role_session_name": "nightly",
        "assume_role_timeout_sec": "1800",
    }
    keys = {"access_key_id": "AKIASOURCE", "secret_access_key": "s", "region": "us-east-1"}
    catalog = connect(bare(account, **keys, **more))
    assert asked(sts) == []
    scanned(catalog)
    scanned(catalog)
    (request,) = asked(sts)
    assert request["RoleArn"] == ROLE
    assert request["ExternalId"] == "external-canary"
    assert request["RoleSessionName"] == "nightly"
    assert request["DurationSeconds"] == "1800"
    signed = sts.seen[0].headers["authorization"]
    assert "AKIASOURCE" in signed
    assert "/eu-central-1/sts/" in signed
    key, region = used(account).split()
    assert key.startswith("ASIA")
    assert region == "us-east-1"


@pytest.mark.slow
def test_a_role_with_nothing_but_its_name(account: Account, sts: Proxy, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "s")
    scanned(connect(bare(account, assume_role_arn=ROLE, region="us-east-1")))
    (request,) = asked(sts)
    assert (request["DurationSeconds"], request["RoleSessionName"]) == ("3600", "lance-reconciler")
    assert "ExternalId" not in request
    assert "/us-east-1/sts/" in sts.seen[0].headers["authorization"]


@pytest.mark.slow
def test_a_role_is_taken_on_again_before_it_ends(account: Account, sts: Proxy) -> None:
    clock = [datetime.now(UTC)]
    keys = {"access_key_id": "AKIASOURCE", "secret_access_key": "s", "region": "us-east-1"}
    client, *_ = make_client(bare(account, assume_role_arn=ROLE, **keys), 4, lambda: clock[0])
    for minutes in (0, 30, 10):  # a role lasts an hour, the last fifteen minutes of it are not used
        clock[0] += timedelta(minutes=minutes)
        client.get_databases()
    assert len(asked(sts)) == 1
    first = used(account)
    clock[0] += timedelta(minutes=10)
    client.get_databases()
    assert len(asked(sts)) == 2
    assert used(account) != first


@pytest.mark.slow
@pytest.mark.parametrize(("life", "kept"), [(901, 670), (1800, 1340), (7200, 6290)])
def test_a_short_role_is_not_taken_on_for_every_call(account: Account, sts: Proxy, life: int, kept: int) -> None:
    """Renewed in the last quarter of its life, fifteen minutes before the end at the earliest."""
    start = datetime.now(UTC)
    clock = [start]
    keys = {"access_key_id": "AKIASOURCE", "secret_access_key": "s", "region": "us-east-1"}
    options = bare(account, assume_role_arn=ROLE, assume_role_timeout_sec=str(life), **keys)
    client, *_ = make_client(options, 4, lambda: clock[0])
    for second in (0, 1, 5, 10, kept):
        clock[0] = start + timedelta(seconds=second)
        client.get_databases()
    assert len(asked(sts)) == 1
    clock[0] = start + timedelta(seconds=life - 60)
    client.get_databases()
    assert len(asked(sts)) == 2


@pytest.mark.slow
def test_the_region_of_the_environment_is_that_of_a_role_too(
    account: Account, sts: Proxy, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("AWS_REGION", "eu-north-1")
    scanned(connect(bare(account, access_key_id="AKIASOURCE", secret_access_key="s", assume_role_arn=ROLE)))
    assert "/eu-north-1/sts/" in sts.seen[0].headers["authorization"]
    assert used(account).split()[1] == "eu-north-1"


@pytest.mark.slow
def test_a_role_that_is_refused(account: Account, sts: Proxy) -> None:
    body = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>"
    sts.fault(answer(403, body=body), times=None)
    keys = {"access_key_id": "AKIASOURCE", "secret_access_key": "s", "region": "us-east-1"}
    with pytest.raises(CatalogError, match="assume_role_arn") as caught:
        scanned(connect(bare(account, assume_role_arn=ROLE, max_retries="0", **keys)))
    assert caught.value.code is Code.PERMISSION_DENIED
    assert account.server.calls["GetDatabases"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("chain", [False, True])
def test_a_role_that_cannot_be_had_is_asked_for_once_more_than_max_retries(
    account: Account, sts: Proxy, environment: pytest.MonkeyPatch, tmp_path: Path, chain: bool
) -> None:
    """Also where botocore itself asks, with a client that has retries of its own."""
    environment.setattr("random.uniform", lambda least, most: 0.0)
    sts.fault(answer(503), times=None)
    keys = {"access_key_id": "AKIASOURCE", "secret_access_key": "s", "assume_role_arn": ROLE}
    if chain:
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        profiles = f"[default]\nrole_arn = {ROLE}\nsource_profile = base\n"
        base = "[base]\naws_access_key_id = AKIABASE\naws_secret_access_key = s\n"
        (tmp_path / "credentials").write_text(profiles + base)
        environment.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
        keys = {}
    with pytest.raises(CatalogError) as caught:
        scanned(connect(bare(account, region="us-east-1", max_retries="2", **keys)))
    assert len(sts.seen) == 3, caught.value
    assert account.server.calls["GetDatabases"] == 0


@pytest.mark.slow
def test_two_accounts_of_one_server(moto: Moto) -> None:
    """With moto itself, which keeps accounts apart by their credentials."""
    one, two = moto.account(), moto.account()
    moto.client_of("glue", one).create_database(DatabaseInput={"Name": "mine"})
    for keys, names in ((one, [("mine",)]), (two, [])):
        options = {k.removeprefix("aws_"): v for k, v in keys.items()}
        catalog = connect({"endpoint": moto.endpoint_of("glue"), "region": "us-east-1", **options})
        assert [ident for _, ident in scanned(catalog)] == names


def test_catalog_id_is_where_everything_starts(account: Account) -> None:
    account.make_database()
    account.make_table()
    keys = {"access_key_id": "k", "secret_access_key": "s", "region": "us-east-1"}
    assert ("Table", ("db", "t")) in scanned(connect(bare(account, catalog_id=account.id, **keys)))
    assert ("Namespace", ("db",)) not in scanned(connect(bare(account, **keys)))
    assert "CatalogId" not in account.server.requests[-1][1]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"access_key_id": "a", "region": "x"}, "secret_access_key"),
        ({"session_token": "a", "region": "x"}, "session_token"),
        ({"assume_role_external_id": "a", "region": "x"}, "assume_role_arn"),
        ({"assume_role_arn": ROLE, "assume_role_timeout_sec": "900", "region": "x"}, "more than 900"),
        ({"assume_role_arn": ROLE, "assume_role_timeout_sec": "soon", "region": "x"}, "whole number"),
        ({"max_retries": "often", "region": "x"}, "whole number"),
        ({"catalogs": "maybe", "region": "x"}, "true nor false"),
        ({"root": "lake", "region": "x"}, "root"),
        ({"endpoint": "ftp://x", "region": "x"}, "http"),
        ({}, "region"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], word: str) -> None:
    with pytest.raises(CatalogError, match=word) as caught:
        connect(options)
    assert caught.value.code is Code.INVALID_INPUT


def test_nobody_to_be(account: Account) -> None:
    with pytest.raises(CatalogError) as caught:
        scanned(connect(bare(account, region="us-east-1")))
    assert caught.value.code is Code.UNAUTHENTICATED


def test_secrets_are_in_no_error(account: Account) -> None:
    keys = {"access_key_id": "AKIACANARY", "secret_access_key": "secret-canary", "session_token": "token-canary"}
    account.server.fail("GetDatabases", "UnrecognizedClientException", message="The security token is invalid.")
    with pytest.raises(CatalogError) as caught:
        scanned(connect(bare(account, region="us-east-1", **keys)))
    assert caught.value.code is Code.UNAUTHENTICATED
    assert "canary" not in str(caught.value).lower()


@pytest.mark.slow
def test_the_token_of_a_role_is_a_secret_before_it_is_sent(account: Account, sts: Proxy) -> None:
    """Nobody wrote it into a manifest, and the service may repeat it in its message."""
    redactor = Redactor()
    keys = {"access_key_id": "AKIASOURCE", "secret_access_key": "s", "session_token": "source-canary", **OF_ROLE}
    with Proxy(account.server.endpoint) as proxy:
        proxy.fault(_echo)
        with pytest.raises(CatalogError) as caught:
            scanned(connect({"endpoint": proxy.endpoint, **keys}))
        token = proxy.seen[0].headers["x-amz-security-token"]
    assert len(token) > 16
    assert "you are ***" in caught.value.message
    assert redactor.text(f"{token} source-canary") == "*** ***"


OF_ROLE = {"assume_role_arn": ROLE, "region": "us-east-1"}


async def _echo(exchange: Exchange) -> None:
    said = json.dumps({"__type": "AccessDeniedException", "Message": exchange.request.headers["x-amz-security-token"]})
    await answer(400, said.replace('"Message": "', '"Message": "you are '))(exchange)
