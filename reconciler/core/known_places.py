"""Locations that follow from manifests that are trusted: those of other manifests must not lead anywhere else, because
looking at a location sends the credentials of the storage there, or reads files of this machine."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from reconciler.core.uris import place_of
from reconciler.model.desired import CatalogSpec

_ROOTS = ("root", "path", "warehouse")


def is_known(location: str, spec: CatalogSpec, locations: Iterable[str]) -> bool:
    """At one of the locations, beside one, or below the place that the Catalog document names. A `dir` catalog takes
    nothing from outside its root, so there every location is."""
    if spec.type == "dir":
        return True
    known = {place_of(place) for place in locations}
    roots = {place_of(root) for key in _ROOTS if isinstance(root := spec.options.get(key), str) and _absolute(root)}
    place = place_of(location)
    return place in known or any(_below(folder, place) for folder in {*roots, *map(_folder, known)} if folder)


def _absolute(place: str) -> bool:
    return "${" not in place and ("://" in place or place.startswith(("/", "file:")))


def _folder(place: str) -> str:
    """What holds it; nothing where that would be everything: all hosts, all buckets, all files."""
    above, _, name = place.rpartition("/")
    return above if name and not above.endswith((":", "/")) else ""


def _below(folder: str, place: str) -> bool:
    """By their texts, and only where no reader of the text can see it otherwise: no `..`, however it is written."""
    start = folder.rstrip("/") + "/"
    if start == "/" or not place.startswith(start):
        return False
    rest = unquote(place[len(start) :])
    plain = all(part not in ("", ".", "..") for part in rest.split("/"))
    return plain and not any(c == "\\" or ord(c) < 32 for c in rest)
