"""Which answers are told as those of something else than the service."""

from __future__ import annotations

import pytest

from reconciler.catalog.http import Reply
from reconciler.catalog.service import Service

SERVICE = Service("a catalog", "http://h/api", "spec.uri", lambda reply: reply.body is not None)
PAGE = "<html>no</html>"


@pytest.mark.parametrize("status", [400, 404, 405, 410])
def test_a_page_for_an_error_is_not_of_the_service(status: int) -> None:
    assert SERVICE.is_strange(Reply(status, text=PAGE))
    assert not SERVICE.is_strange(Reply(status, body={"code": 1}, text=PAGE)), "its own words are"


@pytest.mark.parametrize("status", [401, 403, 429])
def test_what_is_about_the_caller_says_nothing_of_the_address(status: int) -> None:
    """A proxy in front of the right service refuses with a page as well: the credentials come first."""
    assert not SERVICE.is_strange(Reply(status, text=PAGE))


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_a_redirect_leads_elsewhere(status: int) -> None:
    reply = Reply(status, {"location": "https://login.example/CANARY?token=CANARY"})
    assert SERVICE.is_strange(reply)
    told = SERVICE.unlike(reply)
    assert told.startswith("it leads to login.example; ")
    assert "CANARY" not in told


def test_not_modified_leads_nowhere() -> None:
    reply = Reply(304, {"location": "https://login.example/"})
    assert not SERVICE.is_strange(reply)
    assert "login.example" not in SERVICE.unlike(reply)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_service_that_fails_is_at_its_address(status: int) -> None:
    assert not SERVICE.is_strange(Reply(status, text=PAGE))
