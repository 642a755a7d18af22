"""What a backend can do, as pure functions: known offline, so that `validate` and the planner can both ask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from reconciler.model.arrow import ArrowType, Field
from reconciler.model.change import Change
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Finding, Present
from reconciler.model.state import Column, NamespaceState


def is_container(
    ident_problem: Callable[[Kind, Ident], str | None], ident: Ident, found: Finding | None = None
) -> bool:
    """True for a level that is always there and holds what can be declared, but cannot be declared itself: a warehouse,
    a Unity catalog, a federated catalog of Glue. It can be a parent; it is never ours, never an orphan, never imported.
    Where the name does not tell (Glue), what was found does."""
    return is_service_level(found) or (
        ident_problem("Namespace", ident) is not None and ident_problem("Namespace", (*ident, "x")) is None
    )


def is_service_level(found: Finding | None) -> bool:
    return isinstance(found, Present) and isinstance(found.state, NamespaceState) and found.state.container


class Capabilities:
    """A backend derives from it and says where it differs. The answers here: everything can be done in place, the
    catalog chooses locations, and shows no columns of its own."""

    type: str = ""
    max_parallelism: int = 8
    replaces_tables: bool = False
    """True where an entry cannot be updated, only removed and created again (`ReplaceTable`)."""
    drop_needs_allow: bool = False
    """True where the service cascades, so that RESTRICT is only our own check: dropping a namespace there takes the
    allow word `drop_namespace`."""
    levels: tuple[str, ...] = ()
    """Where namespaces are of two kinds: what the one is called that holds namespaces, then the one that holds tables.
    Empty where every namespace holds both."""
    chooses_location: bool = False
    """True where `spec.location` may name a place that holds nothing yet."""
    told: tuple[str, ...] = ()
    """What `management.expect` may name besides options: the catalog says it of itself (`Placed`)."""

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        """Depth and name rules: why this identifier cannot exist here, or None."""
        return None

    def type_problem(self, type_: ArrowType) -> str | None:
        """Why a column of this type cannot be stored, or None."""
        return None

    def schema_problem(self, fields: Sequence[Field]) -> str | None:
        """Why these columns cannot stand together here (two that differ only in case, say), or None."""
        return None

    def property_problem(self, kind: Kind, key: str, value: str) -> str | None:
        """Why this property cannot be kept here (too long, reserved), or None."""
        return None

    def owner_problem(self, owner: str) -> str | None:
        """Why `management.owner` cannot be kept on what is made here, or None."""
        return None

    def location_problem(self, ident: Ident, location: str) -> str | None:
        """Why `spec.location` cannot be chosen here, or None (offline rules only)."""
        return None

    def location_of(self, ident: Ident) -> str | None:
        """Where a table goes whose manifest gives no location; None where only the server knows."""
        return None

    def whole_place(self, location: str = "") -> str | None:
        """A relative location as an absolute path or a URI; without one, the folder that all tables are in, wherever
        the catalog puts them there. None where there is none, or where it is not known yet (`${env:…}`)."""
        return None

    def columns_of(self, fields: Sequence[Field]) -> tuple[Column, ...] | None:
        """The schema as the catalog is to show it; None where the catalog shows no columns."""
        return None

    def holds_properties(self, kind: Kind, ident: Ident) -> bool:
        """False when the object cannot hold the user's properties at all (our marks always find a place)."""
        return True

    def covers(self, kind: Kind, ident: Ident, namespaces: Collection[Ident]) -> bool:
        """Does a scan for manifests about these namespaces look where such an object would be? What no plan has looked
        for is not looked for before it is applied either: that may take a privilege that nobody has given."""
        return True

    def remark(self, change: Change) -> str | None:
        """What whoever reads the plan should know about this change here; it is added to the step's reason."""
        return None

    def refuses(self, change: Change) -> str | None:
        """Why this change cannot be done on this backend, or None. Such a step is `unsupported`, never tried."""
        return None
