"""How the records of leases are called."""

from __future__ import annotations

from reconciler.catalog.lease_records import numbered, numbers_in
from reconciler.model.lease import LAST_NUMBER


def test_names_and_numbers() -> None:
    for number in (1, 9_999_999_999, 10_000_000_000, LAST_NUMBER):
        assert numbers_in([f"l_{numbered(number)}.x"], "l_", ".x") == [number]


def test_other_spellings_are_none_of_ours() -> None:
    """A record that is listed and cannot be read under its number would stop everybody."""
    odd = [
        "1",
        "00000000001",
        "٠٠٠٠٠٠٠٠٠١",
        "0000000001 ",
        "-000000001",
        "",
        "9" * 19,
        "9" * 100,
        "9" * 5000,
        "l_0000000001",
    ]
    assert numbers_in(odd) == []
    assert numbers_in(["l_0000000001", "0000000001.x", "l_.x", "l_0000000001.x.x"], "l_", ".x") == []
