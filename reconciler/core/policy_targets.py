"""What rules are judged on: an object as it will be, which is not always as it is declared.

What `ignoreDifferences` leaves to others is not written, so that only what is live counts. A table also has the columns
that no manifest names and that no step of the plan takes away: all of them without a `schema`, else those that
`schemaMode: at_least` leaves alone or whose drop is blocked. That counts for tables that are ours by then: what is in
the tables of others is their matter. A table that is copied without a `schema` gets the columns of the other one. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.core.diff_properties import ignored_paths, left_to_others
from reconciler.core.diff_schema import ignore_rule, unignored
from reconciler.core.fields import Fields, with_others
from reconciler.core.ownership import entry_owner
from reconciler.core.world import World
from reconciler.model.change import MigrateTable
from reconciler.model.desired import DesiredObject, DesiredTable
from reconciler.model.ident import ObjectKey
from reconciler.model.observed import Present
from reconciler.model.plan import Step
from reconciler.model.state import DatasetState, NamespaceState, TableState


class Targets:
    """Objects at the end of a plan: `ends` are the catalogs then, as far as they are known. `owners`: who we are in
    each of them."""

    def __init__(
        self,
        ends: Mapping[str, World] | None = None,
        steps: Sequence[Step] = (),
        owners: Mapping[str, str] | None = None,
    ) -> None:
        self._ends, self._owners = ends or {}, owners or {}
        self.known = ends is not None
        """False: only manifests are judged, and nobody has looked at what is live."""
        self._copied = {s.key: s.change.fields for s in steps if isinstance(s.change, MigrateTable)}

    def of(self, want: DesiredObject) -> DesiredObject:
        if not want.ignore_differences and not (self.known and isinstance(want, DesiredTable)):
            return want
        state = self._state(want)
        left, live = left_to_others(ignored_paths(want)), state.properties if state is not None else {}
        properties = {k: v for k, v in want.properties.items() if not left(k)}
        properties |= {k: v for k, v in live.items() if left(k)}
        if isinstance(want, DesiredTable):
            return replace(want, properties=properties, fields=self._fields(want, state))
        return replace(want, properties=properties)

    def _state(self, want: DesiredObject) -> NamespaceState | TableState | None:
        end = self._ends.get(want.catalog)
        found = end.find("Table" if isinstance(want, DesiredTable) else "Namespace", want.ident) if end else None
        return found.state if isinstance(found, Present) else None

    def _fields(self, want: DesiredTable, state: NamespaceState | TableState | None) -> Fields | None:
        dataset = state.dataset if isinstance(state, TableState) else None
        live = dataset.fields if isinstance(dataset, DatasetState) else None
        us = self._owners.get(want.catalog)
        ours = us is not None and state is not None and entry_owner(us, state) == us
        if want.fields is None:
            return self._copied.get(ObjectKey(want.catalog, want.ident, "Table"), live if ours else None)
        ignored = any(path.split(".")[0] == "schema" for path in want.ignore_differences)
        if live is None:
            rule = ignore_rule(want.ignore_differences)
            return tuple(unignored(f, f.name, rule) for f in want.fields) if ignored else want.fields
        if "schema" in want.ignore_differences:
            return live
        there = {f.name: f for f in live} if ignored else {}
        kept = tuple(there.get(f.name, f) for f in want.fields)
        return with_others(kept, live) if ours else kept
