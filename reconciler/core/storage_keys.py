"""The `storage.*` keys: which ones object stores take, and what those among the properties of a table may say.

A table's properties are written by whoever may write the catalog. They say where a store is, never who we are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.core.secret_names import names_secret

STORAGE = "storage."

_PREFIXES = ("aws_", "azure_storage_", "azure_", "google_", "oss_")
_SAME = {
    "base_url": "endpoint",
    "default_region": "region",
    "bucket_name": "bucket",
    "endpoint_url": "endpoint",
    "endpoint_url_s3": "endpoint",
    "sts_endpoint": "endpoint_url_sts",
}

_EVERY_STORE = """allow_http allow_invalid_certificates client_max_retries client_retry_timeout connect_timeout
    default_content_type download_retry_count endpoint http1_only http2_keep_alive_interval http2_keep_alive_timeout
    http2_keep_alive_while_idle http2_max_frame_size http2_only pool_idle_timeout pool_max_idle_per_host
    proxy_ca_certificate proxy_excludes proxy_url randomize_addresses skip_signature timeout token user_agent"""
_S3 = """access_key_id bucket checksum_algorithm conditional_put container_authorization_token_file
    container_credentials_full_uri container_credentials_relative_uri copy_if_not_exists disable_bulk_delete
    disable_tagging endpoint_url_sts imdsv1_fallback metadata_endpoint region request_payer role_arn role_session_name
    s3_express secret_access_key server_side_encryption session_token sse_bucket_key_enabled sse_customer_key_base64
    sse_kms_key_id unsigned_payload virtual_hosted_style_request web_identity_token_file"""
_AZURE = """access_key account_key account_name authority_host authority_id bearer_token client_id client_secret
    container_name credential_type encryption_key fabric_cluster_identifier fabric_session_token
    fabric_token_service_url fabric_workload_host federated_token_file identity_endpoint master_key msi_endpoint
    msi_resource_id object_id sas_key sas_token tenant_id use_azure_cli use_emulator use_fabric_endpoint"""
_OTHERS = """application_credentials service_account service_account_key service_account_path storage_token
    access_key_secret security_token hf_token hf_revision hf_root"""
KNOWN = frozenset(f"{_EVERY_STORE} {_S3} {_AZURE} {_OTHERS}".split())
"""One name of each, without the prefix of the store (`aws_region`)."""

_OF_LANCE = ("lance_aimd_", "cos_", "tos_", "dynamodb_")
"""How fast lance asks, and stores that it adds to those of object_store."""

_IDENTITY = frozenset({"client_id", "application_credentials", "role_arn", "service_account", "service_account_path"})
_TRUST = ("proxy_", "allow_invalid_certificates", "metadata_endpoint", "msi_endpoint", "identity_endpoint",
          "endpoint_url_sts", "authority_host", "container_credentials", "fabric_workload_host")  # fmt: skip
"""What would send the catalog's own credentials through somebody else, or fetch others."""

_REACHED = """account_name allow_http checksum_algorithm client_max_retries client_retry_timeout connect_timeout
    disable_bulk_delete disable_tagging download_retry_count endpoint http1_only http2_only pool_idle_timeout
    pool_max_idle_per_host region request_payer s3_express skip_signature timeout unsigned_payload use_fabric_endpoint
    virtual_hosted_style_request"""
_HOW_TO_REACH = frozenset(_REACHED.split())
"""All that is taken from properties. Not what encrypts the data that we write, nor what keeps two commits apart
(`conditional_put`): those are decisions of whoever runs us."""
_IN_ADDRESS = frozenset({"account_name", "region"})
_WORD = re.compile(r"[A-Za-z0-9-]+")
"""The store's host name is made of them: with a slash or an at sign in it they name another host."""

_SIGNED = ("s3://", "s3a://", "s3n://", "s3+ddb://")
_ADDRESS = frozenset({"endpoint", "allow_http"})


def bare(key: str) -> str:
    """One name for all spellings of an option: `AWS_ENDPOINT_URL`, `aws_endpoint` and `endpoint` are one."""
    name = key.lower()
    name = next((name[len(p) :] for p in _PREFIXES if name.startswith(p)), name)
    return _SAME.get(name, name)


def is_known(key: str) -> bool:
    return bare(key) in KNOWN or key.lower().startswith(_OF_LANCE)


def is_credential(key: str) -> bool:
    """Of a key without `storage.`: it says who we are, or how far others are trusted. Not for properties."""
    name = bare(key)
    return names_secret(key) or name in _IDENTITY or name.startswith(_TRUST)


def storage_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in properties.items() if k.startswith(STORAGE)}


def is_credential_property(key: str) -> bool:
    """Of an object's property. In any case of the prefix: other tools read it, and everybody sees it."""
    return key[: len(STORAGE)].lower() == STORAGE and is_credential(key[len(STORAGE) :])


def credentials_in(properties: Mapping[str, str]) -> list[str]:
    """The keys among the properties of an object that are never used, never written and never shown."""
    return sorted(filter(is_credential_property, properties))


def options_in(properties: Mapping[str, str], own: Mapping[str, str], location: str) -> dict[str, str]:
    """What the properties of a table add to the `own` storage options, of the catalog and of what its service hands
    out: never in place of one of them, in whatever spelling. Only what is known to say how a store is reached counts: a
    key that we do not know may be another spelling of one that we have. An endpoint counts on S3 alone: requests are
    signed there, and elsewhere they hold a token that would go to whoever wrote the property."""
    taken = {bare(key) for key in own} | (frozenset() if location.startswith(_SIGNED) else _ADDRESS)
    given = {k[len(STORAGE) :]: v for k, v in storage_properties(properties).items()}
    return {k: v for k, v in given.items() if bare(k) not in taken and _reaches(bare(k), v)}


def _reaches(name: str, value: str) -> bool:
    return name in _HOW_TO_REACH and (name not in _IN_ADDRESS or _WORD.fullmatch(value) is not None)
