"""How much is live, as people count it: what can be declared, and not what was deregistered. What was read and is no
Lance table (another format, a view) is counted apart."""

from __future__ import annotations

from reconciler.core.selection import Selected
from reconciler.model.capabilities import Capabilities, is_container
from reconciler.model.observed import Detached, Snapshot, Unreadable


def live_counts(
    snapshot: Snapshot, capabilities: Capabilities, selected: Selected = lambda _: True
) -> tuple[int, int, int]:
    """Namespaces, tables, and tables of other formats, of those that are selected."""
    rule = capabilities.ident_problem
    namespaces = sum(1 for i, f in snapshot.namespaces.items() if selected(i) and not is_container(rule, i, f))
    tables = [f for i, f in snapshot.tables.items() if selected(i) and not isinstance(f, Detached)]
    others = sum(1 for f in tables if isinstance(f, Unreadable) and f.foreign)
    return namespaces, len(tables) - others, others
