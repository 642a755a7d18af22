"""How much is live, as people count it: what can be declared, and not what was deregistered."""

from __future__ import annotations

from reconciler.core.selection import Selected
from reconciler.model.capabilities import Capabilities, is_container
from reconciler.model.observed import Detached, Snapshot


def live_counts(snapshot: Snapshot, capabilities: Capabilities, selected: Selected = lambda _: True) -> tuple[int, int]:
    """Namespaces and tables, of those that are selected."""
    rule = capabilities.ident_problem
    namespaces = sum(1 for i, f in snapshot.namespaces.items() if selected(i) and not is_container(rule, i, f))
    tables = sum(1 for i, f in snapshot.tables.items() if selected(i) and not isinstance(f, Detached))
    return namespaces, tables
