"""What the records of leases share, wherever they are kept: how they are numbered, and what the answers of a service
mean for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from reconciler.model.errors import CatalogError, Code
from reconciler.model.lease import LAST_NUMBER

T = TypeVar("T")
KEY = "reconciler.lease"
"""The property that has the text of a record, where a record is an object of a service."""
NOTE = "Notes of the reconciler. Do not change."
_NUMBER = re.compile(f"[0-9]{{10,{len(str(LAST_NUMBER))}}}")


def numbered(number: int) -> str:
    """Ten digits, so that names sort; more when they are needed."""
    return f"{number:010d}"


def numbers_in(names: Iterable[str], before: str = "", after: str = "") -> list[int]:
    """Only of names that we would give: another spelling of a number is not found when the record is read."""
    inner = (n[len(before) : len(n) - len(after)] for n in names if n.startswith(before) and n.endswith(after))
    return [int(text) for text in inner if _NUMBER.fullmatch(text) and text == numbered(int(text))]


def created(call: Callable[[], object]) -> bool:
    """False when there is an object of that name."""
    try:
        call()
    except CatalogError as error:
        if error.code in (Code.NAMESPACE_ALREADY_EXISTS, Code.TABLE_ALREADY_EXISTS):
            return False
        raise
    return True


def unless_missing(call: Callable[[], T]) -> T | None:
    """None when the service says that there is no such object, or nothing that could hold it."""
    try:
        return call()
    except CatalogError as error:
        if error.code in (Code.NAMESPACE_NOT_FOUND, Code.TABLE_NOT_FOUND):
            return None
        raise
