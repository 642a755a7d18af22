"""Where the data of a table is that left the catalog from another place than its usual one.

A note in the folder where the table would be by rule: a table that comes back finds its data there and is not created
empty beside it. The note is hidden (its name starts with a dot) and never makes a folder look used.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.catalog.entries import LastLocation
from reconciler.catalog.locations import lance_uri, same_location
from reconciler.catalog.storage import open_storage

NOTE = ".reconciler-location"


class RememberedPlaces:
    """`options` are the `storage.*` settings."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def remember(self, home: str, location: str) -> None:
        """Before the table leaves the catalog. `home` is its place by rule."""
        storage = open_storage(lance_uri(home), self._options)
        if not same_location(home, location):
            storage.replace(NOTE, location.encode())
        elif storage.read(NOTE) is not None:
            storage.delete(NOTE)

    def recall(self, home: str) -> LastLocation:
        note = open_storage(lance_uri(home), self._options).read(NOTE)
        return LastLocation(note.decode(), f"{home.rstrip('/')}/{NOTE}") if note else LastLocation(home)
