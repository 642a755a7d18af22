"""When a service is said not to answer any more: a run stops on that word, so one damaged object must not give it."""

from __future__ import annotations

import pytest

from reconciler.catalog import outage
from reconciler.catalog.outage import Outage
from reconciler.model.errors import CatalogError, Code


def spent(found: Outage, call: str, *, silent: bool = False, since: int | None = None) -> bool:
    """A call that fails for good: is its service gone?"""
    begun = found.begin() if since is None else since
    failure = CatalogError(Code.SERVICE_UNAVAILABLE, f"{call} failed")
    assert found.spent(call, failure, 4, begun, silent=silent) is failure
    assert (failure.spent, failure.sendings) == (True, 4)
    return failure.unreachable


def test_no_answer_at_all_is_enough() -> None:
    assert spent(Outage(), "a", silent=True)


def test_of_a_gateway_it_takes_two_calls() -> None:
    found = Outage()
    assert not spent(found, "a")
    assert not spent(found, "a"), "the same object again says nothing of the service"
    assert spent(found, "b")


def test_an_answer_between_them_says_that_it_is_there() -> None:
    found = Outage()
    assert not spent(found, "a")
    found.answered()
    assert not spent(found, "b")


@pytest.mark.parametrize("silent", [False, True])
def test_what_was_answered_meanwhile_counts(silent: bool) -> None:
    """Another thread got an answer after this call was sent last."""
    found = Outage()
    spent(found, "a")
    begun = found.begin()
    found.answered()
    assert not spent(found, "b", silent=silent, since=begun)


def test_a_read_that_failed_for_good_is_not_asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(outage.time, "monotonic", lambda: now[0])
    found = Outage()
    found.need_hope("a")
    spent(found, "a")
    found.need_hope("b")
    with pytest.raises(CatalogError) as caught:
        found.need_hope("a")
    assert (caught.value.message, caught.value.spent) == ("a failed", True)
    now[0] += 0.5
    found.need_hope("a")
