"""New columns with values for the rows that exist, and columns written anew in another type."""

from __future__ import annotations

from reconciler.catalog.base import DataPlace, WriteContext, Written
from reconciler.model.change import BackfillColumns, RewriteColumns
from reconciler.pipeline.data_plane import Running


def evolve(
    running: Running, change: BackfillColumns | RewriteColumns, place: DataPlace, context: WriteContext
) -> Written:
    raise NotImplementedError
