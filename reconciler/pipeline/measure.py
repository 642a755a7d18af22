"""The figures of a dataset that cost no scan: from its manifest, its fragments and its indexes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

SMALL_ROWS = 1024 * 1024
"""A fragment with fewer rows is small: what Lance compacts to by default."""


def measured(uri: str, options: Mapping[str, str], version: int | None) -> dict[str, Any]:
    import lance

    dataset = lance.dataset(uri, version=version, storage_options=dict(options) or None)
    now: Any = dataset.get_version()
    rows = int(now["metadata"]["total_rows"])
    indexes = [i for i in dataset.describe_indices() if not i.name.startswith("__lance")]  # lance's own bookkeeping
    return {
        "rows": rows,
        "bytes": int(now["metadata"]["total_files_size"]),
        "fragments": int(now["metadata"]["total_fragments"]),
        "small_fragments": sum(1 for f in dataset.get_fragments() if f.metadata.physical_rows < SMALL_ROWS),
        "unindexed_rows": max((max(0, rows - int(i.num_rows_indexed)) for i in indexes), default=None),
        "versions": len(dataset.version_refs()),
        "last_commit": now["timestamp"].astimezone(datetime.UTC),
        "version": dataset.version,
    }
