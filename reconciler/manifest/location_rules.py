"""Where declared tables are: each has a location of its own, and none is inside another's. Offline, so links are not
resolved; the plan does that, with the same canonical form."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core.uris import canonical_location, contains, holds_userinfo, store_endpoints
from reconciler.manifest.registry import Entry, Registry
from reconciler.manifest.row_sources import schema_of
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec, DesiredTable
from reconciler.model.ident import dotted

_PATH = ("spec", "location")
USERINFO = "a user name or a password (scheme://user:password@host)"
Store = tuple[str, ...]


def check_locations(registry: Registry, capabilities: Mapping[str, Capabilities]) -> None:
    stores: dict[Store, list[tuple[str, Entry]]] = {}
    for catalog, tables in registry.tables.items():
        found = registry.catalogs.get(catalog)
        spec = found.spec if found is not None else None
        for entry in tables.values():
            location = _declared(entry)
            if location is not None:
                place = canonical_location(_whole(location, spec, capabilities.get(catalog)))
                stores.setdefault(_store(place, spec), []).append((place, entry))
    for placed in stores.values():
        _one_each(placed)
        by_place: dict[str, list[Entry]] = {}
        for place, entry in placed:
            by_place.setdefault(place, []).append(entry)
        for place, entries in by_place.items():
            _equal_schemas(place, entries)


def _declared(entry: Entry) -> str | None:
    """The location, unless the table is to go or the location is refused at once."""
    declared = entry.declared
    if not isinstance(declared, DesiredTable) or declared.location is None:
        return None
    if holds_userinfo(declared.location):
        message = f"`spec.location` holds {USERINFO}"
        entry.error("M417", _PATH, message, "leave them out: the catalog's `storage.*` has them")
        return None
    return None if declared.absent else declared.location


def _whole(location: str, spec: CatalogSpec | None, capabilities: Capabilities | None) -> str:
    """A relative location is below the catalog's root. The text of unresolved references is compared as written."""
    whole = capabilities.whole_place(location) if capabilities is not None and "${" not in location else None
    root = str(spec.options.get("path", "")) if spec is not None else ""
    if whole is not None or not root or location.startswith("/") or ":/" in location:
        return whole or location
    return f"{root.rstrip('/')}/{location}"


def _store(place: str, spec: CatalogSpec | None) -> Store:
    """The same URI at another endpoint is another location."""
    return store_endpoints(spec.options) if spec is not None and "://" in place else ()


def _one_each(placed: list[tuple[str, Entry]]) -> None:
    """Sorted by path parts, whatever is inside a location comes right after it. Tables of two catalogs may share a
    dataset, but never be inside one another."""
    placed.sort(key=lambda item: (item[0].split("/"), item[1].declared.source))
    first: dict[tuple[str, str], Entry] = {}
    outer: tuple[str, Entry] | None = None
    for place, entry in placed:
        same = first.setdefault((place, entry.declared.catalog), entry)
        if outer is not None and contains(outer[0], place):
            _conflict(entry, "inside the location of", outer[1])
        elif same is not entry:
            _conflict(entry, "at the same location as", same)
        else:
            outer = (place, entry)


def _conflict(entry: Entry, how: str, other: Entry) -> None:
    name = dotted(other.declared.ident)
    if entry.declared.catalog != other.declared.catalog:
        name = f"{other.declared.catalog}:{name}"
    message = f"the table is {how} {name}, declared at {other.declared.source}"
    entry.error("M406", _PATH, message, "give each table its own location")


def _equal_schemas(place: str, entries: list[Entry]) -> None:
    """One dataset may be declared in several catalogs, with equal schemas."""
    with_schema = [e for e in entries if isinstance(e.declared, DesiredTable) and e.declared.fields is not None]
    if len(with_schema) < 2:
        return
    first = min(with_schema, key=lambda e: e.declared.source)
    wanted = _schema_of(first)
    for entry in with_schema:
        if entry.declared.catalog != first.declared.catalog and _schema_of(entry) != wanted:
            entry.error(
                "M407",
                _PATH,
                f"the dataset at {place} is declared with another schema at {first.declared.source}",
                "one dataset has one schema: make them equal",
            )


def _schema_of(entry: Entry) -> list[tuple[str, str, bool]]:
    return schema_of(entry.declared) if isinstance(entry.declared, DesiredTable) else []
