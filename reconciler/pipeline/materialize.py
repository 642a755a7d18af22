"""Fills a table from its source: files are read where they are written, everything else comes through a DataFrame."""

from __future__ import annotations

from reconciler.catalog.base import DataPlace, WriteContext, Written
from reconciler.model.change import MaterializeTable
from reconciler.pipeline.data_plane import Running


def materialize(running: Running, change: MaterializeTable, place: DataPlace, context: WriteContext) -> Written:
    raise NotImplementedError
