"""What the redactor knows, and that it is asked before a text is cleaned and cut."""

from __future__ import annotations

import base64

import pytest

from reconciler.catalog.lance_errors import clean
from reconciler.engine.lease_holder import this_process
from reconciler.engine.redact import MASK, Redactor
from reconciler.pipeline.listing import first_words


@pytest.mark.parametrize("user", ["", "u:", "us:", "use:", "a-longer-user:"])
@pytest.mark.parametrize("secret", ["canary77", "canary777", "c4n4ry+/ÿÿ~~", "c" * 61])
def test_a_secret_in_base64_is_hidden_whatever_stands_before_it(user: str, secret: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        told = encode(f"{user}{secret}".encode()).decode()
        left = Redactor([secret]).text(f"Basic {told} was refused").split()[1]
        assert MASK in left
        rest = left.replace(MASK, "").rstrip("=")
        assert len(rest) <= (len(user.encode()) * 8 + 5) // 6 + 2, (told, left)


def test_short_secrets_have_no_base64_that_could_be_a_word() -> None:
    assert Redactor(["dict"]).text("ZGljd dict ZGljdA==") == f"ZGljd {MASK} ZGljdA=="


def test_a_region_is_taken_out_of_messages_and_not_out_of_names() -> None:
    redactor = Redactor()
    redactor.add(["eu-west-3", "hushhush"], harmless=["eu-west-3"])
    assert redactor.text("eu-west-3 hushhush") == f"{MASK} {MASK}"
    assert redactor.content("s3://lake-eu-west-3 hushhush") == f"s3://lake-eu-west-3 {MASK}"
    redactor.add(["eu-west-3"])
    assert redactor.content("eu-west-3") == MASK, "elsewhere it is a password"


def test_messages_are_freed_of_secrets_before_they_are_cleaned_and_cut() -> None:
    """Half a secret is past knowing: `;` ends what looks like a credential, and the limit falls anywhere."""
    redactor = Redactor(["can;ary 1234567890", "x" * 590 + "tail-canary"])
    assert clean("token=can;ary 1234567890, retry") == f"token={MASK}, retry"
    assert "x" not in clean("at " + "x" * 590 + "tail-canary")
    assert "x" not in clean("at " + "x" * 590 + "tail-canary", 300)
    del redactor
    assert clean("token=can;ary") == f"token={MASK};ary", "its session is over"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Authorization: Bearer eyJhbGciOi.x-canary~ refused", f"Authorization: {MASK} refused"),
        ('{"authorization": "Basic dXNlcjpjYW5hcnk="}', f'{{"authorization": {MASK}}}'),
        ("authorization=basic dXNlcjpj; path=/x", f"authorization={MASK} path=/x"),
        ("invalid header Bearer abc123canary in request", f"invalid header Bearer {MASK} in request"),
        ("Basic authentication is off, use a bearer token", "Basic authentication is off, use a bearer token"),
    ],
)
def test_a_header_that_is_repeated_is_hidden_with_its_scheme(said: str, shown: str) -> None:
    assert clean(said) == shown


def test_the_command_of_a_lease_holder_is_freed_of_secrets_before_it_is_cut() -> None:
    secret = "it's a long; canary"
    redactor = Redactor([secret])
    before = "apply " + "m" * 284
    assert "canary" not in this_process(command=f"{before} {secret}").command
    assert this_process(command=f"{before} {secret}").command.endswith(MASK)
    assert redactor.text(secret) == MASK


def test_what_a_library_says_of_a_source_is_freed_of_secrets_before_it_is_cut() -> None:
    redactor = Redactor(["canary" * 10])
    assert first_words(ValueError("e" * 280 + " " + "canary" * 10)) == "e" * 280 + f" {MASK}"
    assert redactor.text("canary" * 10) == MASK
