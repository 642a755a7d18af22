"""A secret is found in every encoding of the table, alone and in a sentence; an ordinary text stays as it is."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from secret_encodings import ENCODINGS, NASTY

from reconciler.core.secret_forms import SecretForms

MASK = "***"
SECRETS = [
    NASTY,
    "AKIAcanary0123456789abcdefXYZ",
    "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "hunter2 is a long pass phrase",
    "SuperSecretCanaryValueWithLettersOnly",
    "\U0001f512 unlock-canary-77",
    "STRASSEstraße-0815-canary",
    "eyJhbGciOiJIUzI1NiJ9.canary.x-_~",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding(name: str, secret: str) -> None:
    encoded = ENCODINGS[name](secret)
    said = f"denied (id 7): value [{encoded}] was refused; retry"
    shown = SecretForms([secret, "unrelated-4711-value"]).masked(said, MASK)
    assert shown.startswith("denied (id 7): value [")
    assert shown.endswith("] was refused; retry")
    inside = shown.removeprefix("denied (id 7): value [").removesuffix("] was refused; retry")
    assert MASK in inside, said
    rest = inside.replace(MASK, "")
    beside = 8 if "base64" in name or "basic" in name else 3  # A neighbour's bits; a space at the end, escaped.
    assert len(rest.strip("\\ +=\0")) <= beside, f"{rest} is left of {encoded}"


@pytest.mark.parametrize("name", ["plain", "upper case", "html", "url", "form", "json", "python repr", "hex", "base64"])
def test_a_secret_that_looks_escaped_itself(name: str) -> None:
    secret = "100%25&amp;\\u0041\\n-canary"
    assert SecretForms([secret]).masked(f"[{ENCODINGS[name](secret)}]", MASK) == f"[{MASK}]"


@pytest.mark.parametrize("name", [n for n in ENCODINGS if "base64" not in n and "basic" not in n and "cut" not in n])
def test_short_secrets_are_found_too(name: str) -> None:
    spread = ("wrapped", "broken", "without its", "entities cut", "hex with spaces", "zeros between")
    if name.startswith((*spread, "a list of bytes as Go")):
        return  # Those need LONG characters: shorter ones would be found in ordinary sentences.
    encoded = ENCODINGS[name]("d'v0t")
    shown = SecretForms(["d'v0t"]).masked(f"a {encoded} b", MASK)
    assert shown == f"a {MASK} b"


@pytest.mark.parametrize(
    "text",
    [
        "cannot open s3://lake/team/t.lance: access denied at production, retry in 30 s",
        "plan sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "eu-west-1 and http://127.0.0.1:9001/x and 2024-01-01T00:00:00Z and 20240101",
        'service {"type": "service_account", "name": "x"} on production-lake',
        "&amp; &#39; %20 \\n \\u0041 \\\\ %zz &nope; \\x4 % & \\",
        "",
    ],
)
def test_ordinary_texts_stay_as_they_are(text: str) -> None:
    secrets = [
        "production-key-0001", "eu-west-3", "http://127.0.0.1:9000/private", "20240101-canary", "team-secret-77",
        '{"type": "service_account", "private_key": "canary"}', *SECRETS,
    ]  # fmt: skip
    assert SecretForms(secrets, whole=["eu-west-3"]).masked(text, MASK) == text


def test_of_a_long_secret_eight_telling_characters_are_enough_and_never_a_word() -> None:
    forms = SecretForms(["t0k-9182736455-abcdef", "production-key-0001"])
    assert forms.masked("t0k-9182… refused", MASK) == f"{MASK}… refused"
    assert forms.masked("…455-abcdef refused", MASK) == f"…{MASK} refused"
    assert forms.masked("t0k-918", MASK) == "t0k-918"
    assert forms.masked("the production lake", MASK) == "the production lake"
    assert forms.masked("production-k…", MASK) == f"{MASK}…"


def test_a_secret_that_begins_with_another_is_hidden_whole() -> None:
    assert SecretForms(["canary-0001", "canary-0001-and-more"]).masked("<canary-0001-and-more>", MASK) == f"<{MASK}>"


def test_lines_and_passwords_of_secrets() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEcanary0001\nSECONDcanary0002\n-----END PRIVATE KEY-----\n"
    forms = SecretForms([key, "jdbc://user:pa%2Fss-w0rd-1@db:5432/x"])
    assert forms.masked("x SECONDcanary0002 y", MASK) == f"x {MASK} y"
    assert "canary" not in forms.masked(json.dumps({"k": key}), MASK)
    assert forms.masked("login with pa/ss-w0rd-1 failed", MASK) == f"login with {MASK} failed"


SLASHED = "pa/ss w+0rd=1/canary"


@pytest.mark.parametrize("secret", [SLASHED, f"https://user:{quote(SLASHED, safe='')}@host/x"])
def test_a_slash_in_a_secret_is_hidden_however_an_address_has_it(secret: str) -> None:
    forms = SecretForms([secret])
    for once in (SLASHED, quote(SLASHED), quote(SLASHED, safe=""), quote_plus(SLASHED), quote_plus(SLASHED, safe="/")):
        for told in (once, once.replace("%2F", "%2f"), quote(once, safe="")):
            assert forms.masked(f"GET http://host/{told}/x?y", MASK) == f"GET http://host/{MASK}/x?y"
    for sent in (SLASHED, quote(SLASHED, safe=""), quote_plus(SLASHED)):
        header = base64.b64encode(f"user:{sent}".encode()).decode()
        assert MASK in forms.masked(f"Authorization: Basic {header}", MASK), sent


@given(st.text(max_size=200), st.text(min_size=9, max_size=30), st.text(max_size=200))
def test_any_secret_in_any_text(before: str, secret: str, after: str) -> None:
    """As it is, whatever stands beside it."""
    if len("".join(secret.split()).replace("+", "")) < 8:
        return
    assert secret not in SecretForms([secret]).masked(before + secret + after, MASK).replace(MASK, "")


@given(st.text(alphabet=" \n%&\\#;u0123456789abcdefxn+*", max_size=300))
def test_a_text_without_its_characters_stays_as_it_is(text: str) -> None:
    assert SecretForms(["zyxwvuts-zyxwvuts", "zyxw"]).masked(text, MASK) == text


@pytest.mark.parametrize("piece", ["%25", "\\", "&amp;", "&", "%", "\\u00", " ", "t0k-9182", "t0k-918 ", "+", "\u200b"])
def test_a_hostile_text_takes_time_in_proportion_to_its_length(piece: str) -> None:
    """A megabyte; a search that goes back would take hours."""
    forms = SecretForms(["t0k-9182736455-abcdef", "v0t!"])
    start = time.process_time()
    forms.masked(piece * (1_000_000 // len(piece)) + "x", MASK)
    assert time.process_time() - start < 60
