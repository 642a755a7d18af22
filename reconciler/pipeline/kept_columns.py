"""The earlier values of columns that steps create: which tags of ours still hold them. Asked while a plan is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NoReturn

from reconciler.catalog.base import Catalog
from reconciler.catalog.deadline import answers
from reconciler.catalog.lance_tags import columns_in_tags
from reconciler.core.kept_columns import NewColumns
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, ObjectKey
from reconciler.model.observed import Present, Snapshot
from reconciler.model.state import TableState
from reconciler.model.values import KeptColumn

AT_A_TIME = 8
"""Tables."""


def with_kept(
    created: Mapping[ObjectKey, NewColumns],
    snapshots: Mapping[str, Snapshot],
    catalogs: Mapping[str, Catalog],
    late: Callable[[ObjectKey], NoReturn],
    clean: Callable[[str], str],
) -> dict[str, Snapshot]:
    """The snapshots with what was found, several tables at a time. Tags that cannot be read stop no plan: the step does
    what it says with or without them. `clean` takes secrets out of locations; `late` ends it when the time of the run
    is over."""

    def look(key: ObjectKey) -> list[KeptColumn]:
        columns = created[key]
        found = snapshots[key.catalog].tables[columns.live]
        if not isinstance(found, Present) or not isinstance(found.state, TableState):
            return []
        try:
            place = catalogs[key.catalog].data_place(columns.live, found.state)
            tags = columns_in_tags(place, columns.paths)
        except CatalogError:
            return []
        return [KeptColumn(path, tag, version, clean(place.uri)) for path, (tag, version) in tags.items()]

    seen = list(zip(created, answers(look, created, AT_A_TIME, late, "tags"), strict=True))
    kept: dict[str, dict[tuple[Ident, str], KeptColumn]] = {name: {} for name in snapshots}
    for key, columns in seen:
        kept[key.catalog].update({(key.ident, column.column): column for column in columns})
    return {name: replace(s, kept=kept[name]) for name, s in snapshots.items()}
