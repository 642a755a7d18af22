"""Locations that follow from manifests that are trusted: those of other manifests must not lead anywhere else, because
looking at a location sends the credentials of the storage there, or reads files of this machine."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from reconciler.core.uris import canonical_location, contains, is_file_uri
from reconciler.model.desired import CatalogSpec

_ROOTS = ("root", "path", "warehouse")


def is_known(location: str, spec: CatalogSpec, locations: Iterable[str]) -> bool:
    """At one of the locations, beside one, or below the place that the Catalog document names. A `dir` catalog takes
    nothing from outside its root, so there every location is."""
    if spec.type == "dir":
        return True
    known = {canonical_location(place) for place in locations}
    roots = {canonical_location(v) for k in _ROOTS if isinstance(v := spec.options.get(k), str) and _absolute(v)}
    place = canonical_location(location)
    if place in known:
        return True
    folders = {*roots, *map(_folder, known)} - {"", "/"}
    return _plain(location) and any(contains(folder, place) for folder in folders)


def _absolute(place: str) -> bool:
    return "${" not in place and ("://" in place or place.startswith("/") or is_file_uri(place))


def _folder(place: str) -> str:
    """What holds it; nothing where that would be everything: all hosts, all buckets, all files."""
    above, _, name = place.rpartition("/")
    return above if name and not above.endswith((":", "/")) else ""


def _plain(location: str) -> bool:
    """Written so that no reader of the text can see another location in it: no `..`, however it is written."""
    rest = unquote(location.partition("://")[2] or location).strip("/")
    plain = all(part not in ("", ".", "..") for part in rest.split("/"))
    return plain and not any(c == "\\" or ord(c) < 32 for c in rest)
