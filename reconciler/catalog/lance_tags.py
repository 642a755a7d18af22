"""The tags that apply sets before a rewriting or destructive step, on a dataset: how old they are, and their removal.

A tag is as old as its own record says (`updated_at`, which Lance writes into the tag's file), so a copy of the dataset
keeps the ages. Where an old pylance wrote none, the time of the tagged version counts.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Any

from reconciler.catalog.base import DataPlace
from reconciler.catalog.fence import may_write
from reconciler.catalog.lance_data import CLAIM_KEY
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.lance_write import field_ids
from reconciler.catalog.storage import open_storage
from reconciler.catalog.store_clock import need_right_clock
from reconciler.core.maintenance import expired_tags, is_our_tag

MOST_TAGS = 50
"""The newest ones, opened for one table while a plan is made."""


def opened(place: DataPlace) -> Any:
    return Datasets(place.storage_options).open(place.uri)


def our_tags(dataset: Any) -> dict[str, float]:
    """By name: when it was set, in seconds since 1970. Those of other people are not among them."""
    found = {name: tag for name, tag in dataset.tags.list().items() if is_our_tag(name) and not tag["branch"]}
    times = {name: tag.get("updated_at") or tag.get("created_at") for name, tag in found.items()}
    if any(at is None for at in times.values()):
        versions = {v["version"]: v["timestamp"] for v in dataset.versions()}
        times = {name: at or versions.get(found[name]["version"]) for name, at in times.items()}
    return {name: at.replace(fold=1).timestamp() if at is not None else time.time() for name, at in times.items()}


def count_tags(place: DataPlace) -> int:
    """Raises CatalogError."""
    dataset = opened(place)
    with translated(f"list the tags of {place.uri}", write=False):
        return len(our_tags(dataset))


def columns_in_tags(place: DataPlace, paths: Collection[str]) -> dict[str, tuple[str, int]]:
    """Of columns that the table lacks: our newest tag whose version has the column with rows, and that version. A
    column that was only renamed is not meant: it has the same field id still. Raises CatalogError."""
    dataset = opened(place)
    found: dict[str, tuple[str, int]] = {}
    with translated(f"read the tags of {place.uri}", write=False):
        tags = [(tag["version"], name) for name, tag in dataset.tags.list().items() if is_our_tag(name)]
        live = frozenset().union(*field_ids(dataset).values()) if tags else frozenset()
        for version, name in sorted(tags, reverse=True)[:MOST_TAGS]:
            left = [path for path in paths if path not in found]
            if not left:
                break
            before = dataset.checkout_version(name)
            ids = field_ids(before)
            kept = [path for path in left if path in ids and not ids[path] & live]
            if kept and before.count_rows():
                found |= dict.fromkeys(kept, (name, version))
    return found


def expire_tags(place: DataPlace, retention: int, plan: str) -> list[str]:
    """Deletes our tags that are older than `retention` seconds, and names them. The tags of `plan` (its short id) stay:
    its run is not over. So do all of them while a data step has the table in hand or was cut off there: they may be
    its rollback point. Raises CatalogError."""
    dataset = opened(place)
    with translated(f"expire tags of {place.uri}", write=False):
        if CLAIM_KEY in dataset.metadata:
            return []
        return _expire(dataset, place, expired_tags(our_tags(dataset), retention, time.time(), plan))


def expire_known(place: DataPlace, names: Collection[str], retention: int, now: float) -> int | None:
    """Deletes those tags that were found to be older than that, and counts them: one that was set again meanwhile is
    young. None, and nothing is deleted, while a data step has the table in hand. Raises CatalogError."""
    dataset = opened(place)
    with translated(f"delete tags of {place.uri}", write=False):
        if CLAIM_KEY in dataset.metadata:
            return None
        due = expired_tags(our_tags(dataset), retention, now)
        return len(_expire(dataset, place, [name for name in due if name in names]))


def _expire(dataset: Any, place: DataPlace, due: list[str]) -> list[str]:
    if due:
        need_right_clock(open_storage(place.uri, place.storage_options))
        delete_tags(dataset, due)
    return due


def delete_tags(dataset: Any, names: Iterable[str]) -> None:
    """One that is gone already is fine."""
    for name in names:
        may_write()
        try:
            dataset.tags.delete(name)
        except Exception:
            if name in dataset.tags.list():
                raise
