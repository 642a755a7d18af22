"""A foreign writer: points entries at other data, makes datasets, writes over them. For state machines.

The oracle: data without our mark is identical before and after whatever we do, unless the options let us take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from prop_cases import THEM, US, dataset
from prop_dice import Dice
from prop_run import ListingCatalog

from reconciler.core.options import PlanOptions
from reconciler.core.world import World
from reconciler.model.ident import Ident
from reconciler.model.observed import Present
from reconciler.model.state import DatasetState, TableState

TAPES = st.binary(min_size=200, max_size=200).map(Dice)
Data = Mapping[Ident, tuple[object, DatasetState]]


class ForeignWriter(RuleBasedStateMachine):
    """In memory. The machine that mixes it in has a `catalog`."""

    catalog: ListingCatalog

    @rule(dice=TAPES)
    def points_an_entry_at_other_data(self, dice: Dice) -> None:
        """The entry keeps its properties and our marks."""
        if found := _tables(self.catalog.world):
            ident = dice.pick(sorted(found))
            other = replace(dataset(dice, None), owner=dice.pick([None, None, THEM]))
            moved = replace(found[ident], location=f"elsewhere/{dice.roll(3)}/{'.'.join(ident)}", dataset=other)
            self.catalog.world.tables[ident] = Present(moved)

    @rule(dice=TAPES)
    def writes_over_data(self, dice: Dice) -> None:
        """`mode="overwrite"`: other columns, no indexes, and the mark that was there stays."""
        found = {i: s for i, s in _tables(self.catalog.world).items() if isinstance(s.dataset, DatasetState)}
        if found:
            ident = dice.pick(sorted(found))
            old = found[ident].dataset
            assert isinstance(old, DatasetState)
            new = replace(old, fields=dataset(dice, None).fields, indexes=())
            self.catalog.world.tables[ident] = Present(replace(found[ident], dataset=new))

    @rule(dice=TAPES)
    def makes_data_anew(self, dice: Dice) -> None:
        """The folder is removed and written again: the mark is gone."""
        if found := _tables(self.catalog.world):
            ident = dice.pick(sorted(found))
            new = replace(dataset(dice, None), owner=None, applied=())
            self.catalog.world.tables[ident] = Present(replace(found[ident], dataset=new))


def foreign_data(world: World, options: PlanOptions) -> Data:
    """The data that is not ours to change, by the tables that lead to it."""
    return {
        ident: (state.location, state.dataset)
        for ident, state in _tables(world).items()
        if isinstance(state.dataset, DatasetState) and not _takes(state.marks.owner, state.dataset.owner, options)
    }


def unchanged(before: Data, world: World) -> None:
    """An entry of ours may be renamed or removed; the data behind it stays as it was."""
    after = [(state.location, state.dataset) for state in _values(world)]
    for ident, (location, data) in before.items():
        assert (location, data) in after, f"the data of {ident} at {location} was changed"


def _values(world: World) -> list[TableState]:
    gone = [TableState(d.location, dataset=d.dataset) for d in world.detached.values()]
    return [*_tables(world).values(), *gone]


def _tables(world: World) -> dict[Ident, TableState]:
    found = {i: f.state for i, f in world.tables.items() if isinstance(f, Present)}
    return {i: s for i, s in found.items() if isinstance(s, TableState)}


def _takes(entry: str | None, data: str | None, options: PlanOptions) -> bool:
    """Unmarked data goes with its entry when that is taken; marked data is asked for by the name in it."""
    if data is not None:
        return data == US or data in options.take_over
    return options.adopt if entry in (None, US) else entry in options.take_over
