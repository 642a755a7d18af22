"""Which files of a source are in, by place and content: what only one of the two knows is a question."""

from __future__ import annotations

from typing import Any

from reconciler.core.source_files import by_sight, noted_also

LEDGER = {"/g/1": "x", "/g/2": "y"}


def seen(files: dict[str, str], ledger: dict[str, str] = LEDGER, **also: tuple[str, ...]) -> dict[str, Any]:
    found = by_sight(files, {f"/{key}": keys for key, keys in also.items()}, ledger)
    shown = {"new": found.new, "changed": found.changed, "copies": found.copies}
    return {what: sorted(files) for what, files in shown.items() if files}


def test_a_file_is_known_by_its_place_and_its_content() -> None:
    assert seen(LEDGER) == {}
    assert seen({"/g/3": "z"}) == {"new": ["/g/3"]}
    assert seen({"/g/1": "z"}) == {"changed": ["/g/1"]}
    assert seen({"/g/1": "y"}) == {"changed": ["/g/1"]}, "of two that changed places nothing is guessed"
    assert seen({**LEDGER, "/h/1": "x"}) == {"copies": ["/h/1"]}
    assert seen({"/a": "x", "/b": "x"}, {}) == {"new": ["/a", "/b"]}, "nothing is in"


def test_a_copy_has_another_time_and_the_same_content() -> None:
    ledger = {"/g/1": "x.c1", "/g/2": "y"}
    assert seen({"/g/1": "x", "/g/2": "y"}, ledger) == {}, "one that is in is not looked into"
    assert seen({"/h/1": "z.c1"}, ledger) == {"copies": ["/h/1"]}
    assert seen({"/h/1": "x.c2"}, ledger) == {"copies": ["/h/1"]}
    assert seen({"/h/1": "z.c2"}, ledger) == {"new": ["/h/1"]}
    assert seen({"/g/2": "y.c2", "/h/2": "z.c2"}, ledger) == {"copies": ["/h/2"]}, "the one that is in is still there"
    assert seen({"/h/2": "y.c2"}, ledger) == {"copies": ["/h/2"]}, "of what an earlier version noted only that is known"
    assert seen({"/g/1": "z.c1"}, ledger) == {"changed": ["/g/1"]}


def test_further_places_of_a_file() -> None:
    """Through a link to `/g`, which led elsewhere when the file was taken."""
    assert seen({"/link": "x"}, link=("/g/1",)) == {}
    assert seen({"/link": "z"}, link=("/g/1",)) == {"changed": ["/link"]}
    assert seen({"/link": "z"}, link=("/h/1",)) == {"new": ["/link"]}
    assert seen({"/g/1": "x", "/link": "x"}, link=("/g/1",)) == {}
    assert noted_also({"/link": "x"}, {"/link": ("/g/1",), "/other": ("/g/2",)}) == {"/g/1": "x"}


def test_a_name_of_an_earlier_version_is_that_of_one_file() -> None:
    old = {"1": "x"}
    assert seen({"/g": "x"}, old, g=("1",)) == {}
    assert seen({"/g": "z"}, old, g=("1",)) == {"changed": ["/g"]}
    assert seen({"/g": "x", "/h": "z"}, old, g=("1",), h=("1",)) == {"new": ["/h"]}, "the name is that of the first"
    assert seen({"/g": "y", "/h": "z"}, old, g=("1",), h=("1",)) == {"changed": ["/g", "/h"]}
