"""What a backend can do, as pure functions: known offline, so that `validate` and the planner can both ask."""

from __future__ import annotations

from typing import Protocol

from reconciler.model.arrow import ArrowType
from reconciler.model.change import Change
from reconciler.model.ident import Ident, Kind


class Capabilities(Protocol):
    @property
    def type(self) -> str: ...

    @property
    def max_parallelism(self) -> int: ...

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        """Depth and name rules: why this identifier cannot exist here, or None."""

    def type_problem(self, type_: ArrowType) -> str | None:
        """Why a column of this type cannot be stored, or None."""

    def location_problem(self, ident: Ident, location: str) -> str | None:
        """Why `spec.location` cannot be chosen here, or None (offline rules only)."""

    def holds_properties(self, kind: Kind, ident: Ident) -> bool:
        """False when the object cannot hold the user's properties at all (our marks always find a place)."""

    def refuses(self, change: Change) -> str | None:
        """Why this change cannot be done on this backend, or None. Such a step is `unsupported`, never tried."""
