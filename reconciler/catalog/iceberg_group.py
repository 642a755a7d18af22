"""Property changes of several tables in one call, where the server has `transactions/commit`.

Callers that come while a commit is under way wait for it, and what is waiting then goes out together (group commit).
A group is a way to send, never a promise: servers may carry out only a part of one (Apache's own commits the tables one
by one), so nothing is concluded from its failure. Refused, every table is read again and committed alone, and one bad
member fails nobody else; with an unknown outcome it is unknown for each. A table whose group failed is alone from then
on, so that no group can fail twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident

Commit = Mapping[str, Any]
"""The protocol's CommitTableRequest, with its identifier and its requirements."""
_PASSING = (Code.SERVICE_UNAVAILABLE, Code.THROTTLING)


@dataclass(slots=True, eq=False)
class _Member:
    ident: Ident
    commit: Commit
    done: bool = False
    grouped: bool = False
    error: CatalogError | None = None


class GroupCommit:
    """Of one warehouse. `one` and `many` make the calls; they raise CatalogError unless all of it was done."""

    def __init__(self, one: Callable[[Ident, Commit], None], many: Callable[[Sequence[Commit]], None]) -> None:
        self._one = one
        self._many = many
        self._waiting: list[_Member] = []
        self._sending = False
        self._alone: set[Ident] = set()
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """Callers that wait for a commit under way."""
        with self._changed:
            return len(self._waiting)

    def commit(self, ident: Ident, commit: Commit) -> bool:
        """True when it was done. False: it was part of a group that the server refused, and is to be read again and
        committed once more. Raises CatalogError as for a commit of its own."""
        with self._changed:
            alone = ident in self._alone
        if alone:
            self._one(ident, commit)
            return True
        mine = _Member(ident, commit)
        self._send(mine)
        if mine.error is None:
            return True
        error = mine.error
        if not mine.grouped or error.unknown_outcome or error.code in _PASSING:
            failure = error.reworded(error.message)  # Each caller gets one of its own.
            if mine.grouped:  # The call of the group is spent, not the one that this table makes next.
                failure.sendings, failure.spent = 0, False
            raise failure
        return False

    def _send(self, mine: _Member) -> None:
        with self._changed:
            self._waiting.append(mine)
        while True:
            with self._changed:
                while self._sending and not mine.done:
                    self._changed.wait()
                if mine.done:
                    return
                self._sending = True
                batch = self._next()
            self._lead(batch)

    def _next(self) -> list[_Member]:
        """What is waiting, each table once: of two changes of one table, servers lose one."""
        batch: dict[Ident, _Member] = {}
        for member in self._waiting:
            batch.setdefault(member.ident, member)
        self._waiting = [m for m in self._waiting if batch[m.ident] is not m]
        return [*batch.values()]

    def _lead(self, batch: Sequence[_Member]) -> None:
        doubt = "the commit was broken off"
        error: CatalogError | None = CatalogError(Code.INTERNAL, doubt, unknown_outcome=True)
        try:
            if len(batch) == 1:
                self._one(batch[0].ident, batch[0].commit)
            else:
                self._many([m.commit for m in batch])
            error = None
        except CatalogError as failed:
            error = failed
        finally:
            with self._changed:
                for member in batch:
                    member.error, member.grouped, member.done = error, len(batch) > 1, True
                    if error is not None and member.grouped:
                        self._alone.add(member.ident)
                self._sending = False
                self._changed.notify_all()
