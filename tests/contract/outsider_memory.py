"""For the catalog in memory the World itself is the independent view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from contract.outsider import Changes, Ident, TableView, View, changed
from reconciler.catalog.arrow_convert import from_arrow_schema, to_arrow_schema
from reconciler.catalog.marks import join
from reconciler.catalog.memory import place
from reconciler.core.world import World
from reconciler.model.change import DeclareTable
from reconciler.model.errors import Code
from reconciler.model.observed import Present, Unreadable
from reconciler.model.state import DatasetState, Marks, NamespaceState, TableState


class MemoryOutsider:
    holds_rows = False

    def __init__(self, world: World) -> None:
        self.world = world

    def create_namespace(self, ident: Ident, properties: Mapping[str, str] | None = None) -> None:
        self.world._put(self.world.namespaces, ident, Present(NamespaceState(dict(properties or {}))))

    def create_table(self, ident: Ident, schema: pa.Schema, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        fields, metadata = from_arrow_schema(schema)
        state = TableState(place(ident), {}, Marks(), DatasetState(fields, metadata))
        self.world._put(self.world.tables, ident, Present(state))

    def declare_table(self, ident: Ident) -> None:
        self.world.apply(DeclareTable(ident, {}, Marks()))

    def append(self, ident: Ident, rows: Sequence[Mapping[str, Any]]) -> None:
        """There are no rows in here."""

    def set_config(self, ident: Ident, values: Changes) -> None:
        state = self._table(ident)
        assert isinstance(state.dataset, DatasetState)
        dataset = replace(state.dataset, config=changed(state.dataset.config, values))
        self.world.tables[ident] = Present(replace(state, dataset=dataset))

    def mark_data(self, ident: Ident, owner: str) -> None:
        state = self._table(ident)
        assert isinstance(state.dataset, DatasetState)
        self.world.tables[ident] = Present(replace(state, dataset=replace(state.dataset, owner=owner)))

    def move(self, ident: Ident, other: Ident) -> None:
        state, target = self._table(ident), self._table(other)
        self.world.tables[ident] = Present(replace(state, location=target.location, dataset=target.dataset))

    def set_properties(self, kind: str, ident: Ident, values: Changes) -> None:
        where = self.world.namespaces if kind == "Namespace" else self.world.tables
        found = where[ident]
        assert isinstance(found, Present)
        where[ident] = Present(replace(found.state, properties=changed(found.state.properties, values)))

    def spoil(self, ident: Ident) -> None:
        owner = self._table(ident).marks.owner
        self.world.tables[ident] = Unreadable(Code.INTERNAL, "spoiled", owner=owner)

    def data_of(self, ident: Ident) -> object:
        found = self.world.detached.get(ident)
        if found is not None:
            return found.location, found.dataset
        state = self._table(ident)
        return state.location, state.dataset

    def tagged(self, ident: Ident, tag: str) -> TableView:
        raise AssertionError("there are no versions in here")

    def state(self) -> View:
        namespaces = {i: self._namespace(i) for i in self.world.namespaces}
        tables = {i: self._view(i) for i, f in self.world.tables.items() if isinstance(f, Present)}
        return View(namespaces, tables)

    def raw(self) -> object:
        return dict(self.world.namespaces), dict(self.world.tables), dict(self.world.detached)

    def raw_of(self, ident: Ident) -> object:
        return self.world.namespaces.get(ident), self.world.tables.get(ident)

    def _namespace(self, ident: Ident) -> dict[str, str]:
        found = self.world.namespaces[ident]
        assert isinstance(found, Present)
        return join(found.state.properties, found.state.marks)

    def _table(self, ident: Ident) -> TableState:
        found = self.world.tables[ident]
        assert isinstance(found, Present)
        assert isinstance(found.state, TableState)
        return found.state

    def _view(self, ident: Ident) -> TableView:
        state = self._table(ident)
        owner, dataset = state.marks.owner, state.dataset
        if not isinstance(dataset, DatasetState):
            return TableView(dict(state.properties), owner)
        return TableView(
            dict(state.properties),
            owner,
            to_arrow_schema(dataset.fields, dict(dataset.schema_metadata)),
            dict(dataset.config),
            {i.name: (i.type, i.column) for i in dataset.indexes},
            {"reconciler.owner": dataset.owner or "", "applied": str(dataset.applied)},
        )
