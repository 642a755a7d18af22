"""The error taxonomy: what a catalog may raise. Codes are the Lance namespace codes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Code(IntEnum):
    UNSUPPORTED = 0
    NAMESPACE_NOT_FOUND = 1
    NAMESPACE_ALREADY_EXISTS = 2
    NAMESPACE_NOT_EMPTY = 3
    TABLE_NOT_FOUND = 4
    TABLE_ALREADY_EXISTS = 5
    TABLE_INDEX_NOT_FOUND = 6
    TABLE_INDEX_ALREADY_EXISTS = 7
    TABLE_TAG_NOT_FOUND = 8
    TABLE_TAG_ALREADY_EXISTS = 9
    TRANSACTION_NOT_FOUND = 10
    TABLE_VERSION_NOT_FOUND = 11
    TABLE_COLUMN_NOT_FOUND = 12
    INVALID_INPUT = 13
    CONCURRENT_MODIFICATION = 14
    PERMISSION_DENIED = 15
    UNAUTHENTICATED = 16
    SERVICE_UNAVAILABLE = 17
    INTERNAL = 18
    INVALID_TABLE_STATE = 19
    TABLE_SCHEMA_VALIDATION_ERROR = 20
    THROTTLING = 21
    TABLE_BRANCH_NOT_FOUND = 22
    TABLE_BRANCH_ALREADY_EXISTS = 23

    def __bool__(self) -> bool:
        """A code is a code: UNSUPPORTED is 0, and `x or other` must not lose it."""
        return True

    @property
    def title(self) -> str:
        """The spec's spelling: NamespaceNotFound."""
        return "".join(part.capitalize() for part in self.name.split("_"))


RETRYABLE = frozenset({Code.SERVICE_UNAVAILABLE, Code.THROTTLING, Code.CONCURRENT_MODIFICATION})


@dataclass(frozen=True, slots=True)
class ReadError:
    """Why something could not be read, as a plan and a report hold it."""

    code: Code | None
    """None in plans of earlier versions, which have the message alone."""
    message: str

    def to_json(self) -> dict[str, str | int] | str:
        if self.code is None:
            return self.message
        return {"code": int(self.code), "name": self.code.title, "message": self.message}

    @property
    def data(self) -> dict[str, str | int | None]:
        """For results that are not read back: no code where no catalog said it."""
        coded, name = (None, None) if self.code is None else (int(self.code), self.code.title)
        return {"code": coded, "name": name, "message": self.message}

    @property
    def text(self) -> str:
        return self.message if self.code is None else f"{self.code.title} ({int(self.code)}): {self.message}"


class CatalogError(Exception):
    """The only exception a catalog raises.

    `unknown_outcome`: a write may have landed although it failed (time-out, cut connection, 5xx): re-read, never
    conclude. `landed`: it failed for good, and yet something was written on the way, were it only undone again.
    `retry_after`: seconds a server asked us to wait. `gave_up`: nothing is wrong but that the run is to stop.
    `sendings`: how often the call that failed was sent in this step; 0 where nobody counts. `spent`: that is as often
    as `max_retries` allows, so nobody sends it again. `unreachable`: and the service answers no other call either.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        unknown_outcome: bool = False,
        landed: bool = False,
        retry_after: float | None = None,
        gave_up: bool = False,
        sendings: int = 0,
        spent: bool = False,
        unreachable: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.unknown_outcome = unknown_outcome
        self.landed = landed
        self.retry_after = retry_after
        self.gave_up = gave_up
        self.sendings = sendings
        self.spent = spent
        self.unreachable = unreachable

    @property
    def retryable(self) -> bool:
        return self.code in RETRYABLE

    def reworded(self, message: str) -> CatalogError:
        """The same failure in other words."""
        return CatalogError(
            self.code,
            message,
            unknown_outcome=self.unknown_outcome,
            landed=self.landed,
            retry_after=self.retry_after,
            gave_up=self.gave_up,
            sendings=self.sendings,
            spent=self.spent,
            unreachable=self.unreachable,
        )

    def to_json(self) -> dict[str, object]:
        return {"code": int(self.code), "name": self.code.title, "message": self.message}
