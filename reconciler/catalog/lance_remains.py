"""A folder without a dataset in it: was there ever one?

An interrupted create and a dataset that lost its files look alike. What tells them apart is a file that lance
writes along with every commit, `_transactions/<version it started from>-<id>.txn`: a create starts from version 0 and
writes no data file, so a later start, or a data file, proves that there was something to lose.
"""

from __future__ import annotations

from reconciler.catalog.storage import Storage


def has_versions(storage: Storage, folder: str = "") -> bool:
    return any(name.endswith(".manifest") for name in storage.list(_below(folder, "_versions")).files)


def had_versions(storage: Storage, folder: str = "") -> bool:
    """Ask before `has_versions`: a dataset that is being made has its first version before this is true."""
    starts = (name.partition("-")[0] for name in storage.list(_below(folder, "_transactions")).files)
    return any(start.isdecimal() and int(start) > 0 for start in starts)


def has_data(storage: Storage, folder: str = "") -> bool:
    return bool(storage.list(_below(folder, "data")).files)


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
