"""A step that only brings our own notes up to date says what differs in them."""

from __future__ import annotations

from reconciler.core.record_text import marks_reason, record_reason
from reconciler.model.state import Marks

RECORD = "our record of what we set differs: "


def test_what_differs_in_the_record() -> None:
    before = ("config:y", "field:a.b:comment", "index:id_idx", "later:thing")
    after = ("config:z", "index:keep", "schema:s")
    told = "config z, schema metadata s, index keep are declared now; "
    told += "config y, column a.b comment, index id_idx are no longer ours"
    assert record_reason(before, after, ("me", "me")) == RECORD + told
    assert record_reason(before, before, (None, "me")) == RECORD + "its data has no owner yet"
    assert record_reason((), (), ("you", "me")) == RECORD + "the owner in its data is you"
    assert record_reason(("later:thing",), (), ("me", "me")) == RECORD.removesuffix(": ")


def test_it_is_bounded() -> None:
    reason = record_reason([f"config:{n:04}" for n in range(1000)], (), ("me", "me"))
    assert reason == RECORD + "config 0000, config 0001, config 0002, config 0003 and 996 more are no longer ours"


def test_what_differs_in_the_marks() -> None:
    told = marks_reason(Marks("me", False, ("a", "b")), Marks("me", True, ("c",)))
    assert told == (
        "our marks differ: property c is declared now; properties a, b are no longer ours; protect is to be set"
    )
    assert marks_reason(Marks("me", True), Marks("me")) == "our marks differ: protect is to be taken off"
