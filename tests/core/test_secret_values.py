"""Credentials that are known by their form. The samples are put together here, so that no scanner finds one."""

from __future__ import annotations

import pytest

from reconciler.core.secret_values import MASK, credential_in, without_credentials

A36 = "aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN %sPRIVATE KEY-----\nMIIEcanary\n-----END %sPRIVATE KEY-----"
SAMPLES = {
    "AKIA" + "IOSFODNN7EXAMPLE": "an AWS access key",
    "ASIA" + "IOSFODNN7EXAMPLE": "an AWS access key",
    "ghp_" + A36: "a GitHub token",
    "ghs_" + A36: "a GitHub token",
    "github_pat_" + A36 + "_" + A36: "a GitHub token",
    "glpat-" + A36[:20]: "a GitLab token",
    JWT: "a JSON web token",
    "eyJhbGciOiJkaXIifQ" + "..aaaaaaaaaaaaaaaa.bbbbbbbbbbbb.cccccccccccc": "a JSON web token",
    PEM % ("", ""): "a private key",
    PEM % ("RSA ", "RSA "): "a private key",
    PEM % ("OPENSSH ", "OPENSSH "): "a private key",
    PEM % ("ENCRYPTED ", "ENCRYPTED "): "a private key",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\ncanary": "a private key",
    "xoxb-" + "123456789012-abcdefABCDEF": "a Slack token",
    "https://hooks.slack.com/services/" + "T0AAAAAAA/B0AAAAAAA/" + A36[:24]: "a Slack webhook",
    "AIza" + A36[:35]: "a Google API key",
    "sk_live_" + A36[:24]: "a Stripe key",
    "sk-proj-" + A36: "an API key",
    "hf_" + A36[:34]: "a Hugging Face token",
    "dapi" + "0123456789abcdef" * 2: "a Databricks token",
    "npm_" + A36: "an npm token",
    "pypi-AgEIcHlwaS5vcmc" + A36 * 2: "a PyPI token",
    "hvs." + A36: "a Vault token",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + A36 * 2 + "==": "an account key",
    "https://a.blob.core.windows.net/c/b?sv=2022&sig=" + A36 + "%3D": "a signed address",
    "jdbc:postgresql://h/db?user=u&password=canary": "a password",
    "Server=h;Database=d;Uid=u;Pwd=canary;": "a password",
}


@pytest.mark.parametrize(("value", "kind"), SAMPLES.items(), ids=range(len(SAMPLES)))
def test_a_credential_is_known_by_its_form(value: str, kind: str) -> None:
    for text in (value, f"use {value}", f"({value})", f"{value}, or ask", f'{{"it": "{value}"}}'):
        assert credential_in(text) == kind
        cleaned = without_credentials(text)
        assert MASK in cleaned
        assert not [secret for secret in ("canary", A36[:20]) if secret in cleaned]
        assert without_credentials(cleaned) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s3://bucket/akia/asia",
        "AKIA",
        "AKIAIOSFODNN7EXAMPLES",  # one too many
        "MAKIAIOSFODNN7EXAMPLE",
        "ghp_short",
        "the prefix ghp_ marks a token",
        "eyJhbGciOiJIUzI1NiJ9",  # JSON in base64, not a token
        "eyJ.eyJ.x",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "3f0c2c4e-8f3e-4a53-9d9f-2f0b7a3d5c11",
        "task-list sk-learn risk-model-v2",
        "gldt-2024-01-product-catalogue-export.v2",
        "glft-this-is-a-feature-table_name",
        "sk-proj-classification-of-customer-photos",
        "xoxo-hugs-and-kisses-table",
        "cmd; PWD=/tmp make",
        "hf_hub_download",
        "dapi_client",
        "npm_config_registry",
        "see https://h/page?sig=short&x=1",
        "password=${env:PW}",
        "https://h/?password=${env:PW}",
        "?password=***",
        "reset your password; pwd=",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    ],
)
def test_what_only_looks_a_little_like_one_is_none(text: str) -> None:
    assert credential_in(text) is None
    assert without_credentials(text) == text


@pytest.mark.parametrize(
    "part",
    ["eyJ", "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY", "-----BEGIN A ", "xoxb-", "ghp_a", "sk-ant-", "ya29.-", "&pwd=;",
     "hooks.slack.com/services/T0/B0", "-----BEGIN PRIVATE KEY-----"],
)  # fmt: skip
def test_a_long_text_is_read_once(part: str) -> None:
    """Two hundred kilobytes of a beginning: a pattern that went back over it would not end within a test."""
    text = part * (200_000 // len(part))
    credential_in(text)
    without_credentials(text)
