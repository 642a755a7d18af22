"""`storage.*` properties of a live table say how to reach its data, below the catalog's options; never who we are."""

from __future__ import annotations

import pytest

from contract.lake import Lake, table
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.core.storage_keys import credentials_in, is_known, options_in
from reconciler.model.observed import Present, Scope
from reconciler.model.state import TableState

GIVEN = {"storage.request_payer": "true", "storage.aws_timeout": "9s", "other": "1"}


def test_they_are_used_below_the_options_of_the_catalog(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a directory all tables are in one store, which the catalog's options reach."""
    catalog = lake.site.open()
    if not isinstance(catalog, EntryCatalog) or not lake.has_properties:
        assert lake.backend.name.startswith(("dir", "memory"))
        return
    lake.reach([*lake.home(), table(lake.t("t"), {"id": "int64"}, properties=GIVEN)])
    monkeypatch.setattr(catalog, "_options", {"timeout": "5s"})
    (one,) = catalog.read([("Table", lake.t("t"))], Scope(detail=frozenset({lake.t("t")})))
    assert isinstance(one.finding, Present)
    assert isinstance(one.finding.state, TableState)
    used = catalog.data_place(lake.t("t"), one.finding.state).storage_options
    assert used["timeout"] == "5s"
    assert used["request_payer"] == "true"
    assert not {"aws_timeout", "other"} & {*used}


def test_credentials_among_them_are_refused(lake: Lake) -> None:
    for key in ("access_key_id", "SECRET_ACCESS_KEY", "aws_session_token", "sas_token", "account_key", "role_arn"):
        document = table(lake.t("t"), {"id": "int64"}, properties={f"storage.{key}": "canary"})
        assert "M446" in lake.refusals([*lake.home(), document])


def test_credentials_of_a_live_table_are_not_used() -> None:
    theirs = {
        "storage.region": "eu-west-1",
        "storage.AWS_ENDPOINT_URL": "http://theirs",
        "storage.aws_secret_access_key": "canary",
        "storage.proxy_url": "http://theirs",
        "storage.allow_invalid_certificates": "true",
        "region": "none",
    }
    at = "s3://lake/t"
    assert options_in(theirs, {}, at) == {"region": "eu-west-1", "AWS_ENDPOINT_URL": "http://theirs"}
    assert options_in(theirs, {"endpoint": "http://ours"}, at) == {"region": "eu-west-1"}
    assert options_in(theirs, {"aws_default_region": "x", "aws_endpoint": "y"}, at) == {}
    for bearer in ("gs://lake/t", "az://lake/t", "abfss://lake@account/t", "/lake/t"):
        assert options_in(theirs, {}, bearer) == {"region": "eu-west-1"}, "a token would go there"
    assert credentials_in(theirs) == [
        "storage.allow_invalid_certificates", "storage.aws_secret_access_key", "storage.proxy_url",
    ]  # fmt: skip


def test_what_object_stores_take_is_known_in_every_spelling() -> None:
    for key in ("AWS_ALLOW_HTTP", "allow_http", "aws_region", "region", "azure_storage_account_key", "account_name",
                "google_service_account", "aws_endpoint_url", "client_max_retries"):  # fmt: skip
        assert is_known(key), key
    assert not is_known("reigon")
