"""`storage.*` properties of a live table say how to reach its data, below the catalog's options; never who we are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.lake import Lake, namespace, table
from reconciler.catalog.entries import TableEntry
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.core.storage_keys import credentials_in, is_known, options_in
from reconciler.model.observed import Present, Scope
from reconciler.model.state import TableState
from reconciler.render.markdown import plan_markdown
from reconciler.render.masked import masked_plan, secret_places
from reconciler.render.plan_page import plan_page
from reconciler.render.step_diff import fields_of
from reconciler.render.text import plan_text

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


def test_they_are_refused_for_namespaces_and_in_any_case_of_the_prefix(lake: Lake) -> None:
    for key in ("storage.aws_secret_access_key", "storage.token", "Storage.secret_access_key", "STORAGE.SAS_TOKEN"):
        documents = [table(lake.t("t"), {"id": "int64"}, properties={key: "canary"})]
        if lake.has_namespaces:
            documents.append(namespace(lake.ns("n"), properties={key: "canary"}))
        assert lake.refusals([*lake.home(), *documents]).count("M446") == len(documents)


def test_nothing_shows_one_that_is_live(lake: Lake) -> None:
    """Whoever wrote it, and with no secret known to the run."""
    if not lake.has_properties:
        return
    secret = {"storage.aws_session_token": "canary", "Storage.account_key": "canary", "other": "shown"}
    plain = lake.desired([*lake.home(), table(lake.t("t"), {"id": "int64"})])
    written = replace(plain.tables["lake"][lake.t("t")], properties=secret)
    tables = {**plain.tables["lake"], lake.t("t"): written}
    theirs = replace(plain, tables={"lake": tables})
    made = lake.plan_desired(theirs)
    lake.apply(made)
    for plan in (made, lake.plan_desired(plain)):
        shown = masked_plan(plan, str)
        for text in (plan_text(shown), plan_markdown(shown), plan_page(shown)):
            assert "canary" not in text
            assert "aws_session_token" in text
            assert "shown" in text
        fields = [d for step in plan.steps for d in fields_of(step)]
        assert "canary" not in str(fields)
        assert plan is made or "properties.storage.aws_session_token" in {d.field for d in fields}
        assert "before.properties.storage.aws_session_token" in str(secret_places(plan, str)) or plan is made


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


OURS = {"endpoint": "https://ours", "region": "eu", "account_name": "ours", "request_payer": "false", "timeout": "5s"}
SPELLINGS = ("aws_endpoint_url_s3", "AWS_ENDPOINT_URL_S3", "aws_endpoint_url", "endpoint_url", "aws_endpoint",
             "endpoint", "google_base_url", "azure_storage_endpoint", "azure_endpoint", "oss_endpoint",
             "aws_default_region", "default_region", "region", "azure_storage_account_name", "aws_request_payer",
             "TIMEOUT")  # fmt: skip


@pytest.mark.parametrize("key", SPELLINGS)
@pytest.mark.parametrize("at", ["s3://lake/t", "gs://lake/t", "az://lake/t", "oss://lake/t"])
def test_no_spelling_of_an_option_replaces_one_of_the_catalog(key: str, at: str) -> None:
    assert options_in({f"storage.{key}": "http://theirs"}, OURS, at) == {}
    assert options_in({"storage.endpoint": "http://theirs"}, {"aws_endpoint_url_s3": "https://ours"}, at) == {}


def test_what_is_not_known_to_say_how_a_store_is_reached_is_not_used() -> None:
    """It may be a spelling that a later lance takes; and nobody chooses the encryption or the commits of our data."""
    keys = ("aws_endpoint_url_s4", "reigon", " endpoint", "headers.x-a", "use_opendal", "aws_provider_scheme",
            "sse_kms_key_id", "aws_server_side_encryption", "sse_bucket_key_enabled", "conditional_put",
            "copy_if_not_exists", "bucket", "use_emulator", "credential_type", "authority_host")  # fmt: skip
    assert options_in({f"storage.{key}": "x" for key in keys}, {}, "s3://lake/t") == {}


@pytest.mark.parametrize("value", ["x.theirs.org/", "x@theirs", "a#", "", "eu\n"])
def test_a_word_that_becomes_part_of_an_address_is_a_word(value: str) -> None:
    assert options_in({"storage.region": value, "storage.account_name": value}, {}, "az://lake/t") == {}


def test_what_the_service_hands_out_is_not_replaced_either(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = lake.site.open()
    if not isinstance(catalog, EntryCatalog):
        return
    theirs = {"storage.aws_endpoint_url_s3": "http://theirs", "storage.region": "eu"}
    entry = TableEntry(lake.t("t"), "s3://lake/t", theirs, storage={"endpoint": "https://ours"})
    assert catalog._options_of(entry) == {**catalog._options, "endpoint": "https://ours", "region": "eu"}


def test_what_object_stores_take_is_known_in_every_spelling() -> None:
    for key in ("AWS_ALLOW_HTTP", "allow_http", "aws_region", "region", "azure_storage_account_key", "account_name",
                "google_service_account", "aws_endpoint_url", "aws_endpoint_url_s3", "google_base_url",
                "client_max_retries"):  # fmt: skip
        assert is_known(key), key
    assert not is_known("reigon")
