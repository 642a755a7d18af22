"""Rules across documents. Each rule is one function over the registry; messages name the other place."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.core.globs import Finder
from reconciler.core.uris import holds_userinfo
from reconciler.manifest.address_rules import check_addresses
from reconciler.manifest.backend_rules import check_backend
from reconciler.manifest.locations import contains, normal
from reconciler.manifest.nearest import MOST, nearest
from reconciler.manifest.problem import Problem
from reconciler.manifest.registry import CatalogEntry, Entry, Registry
from reconciler.manifest.row_sources import check_row_sources, schema_of
from reconciler.manifest.same_root import check_same_root
from reconciler.manifest.schema_files import catalog_types, is_secret
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec, DesiredTable
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, dotted

CapabilitiesOf = Callable[[CatalogSpec], Capabilities | None]
_ID = ("metadata", "id")
_USERINFO = "a user name or a password (scheme://user:password@host)"
MAX_LOOSE = 30


def check(registry: Registry, capabilities_of: CapabilitiesOf | None) -> None:
    names = {*registry.catalogs, *registry.broken_catalogs}
    guesses = MOST
    with_password = _userinfo(registry)
    for catalog in sorted({*registry.namespaces, *registry.tables}):
        namespaces = registry.namespaces.get(catalog, {})
        tables = registry.tables.get(catalog, {})
        if not registry.known_catalog(catalog):
            guesses -= len(names)
            near = nearest(catalog, sorted(names)) if guesses >= 0 else None
            _unknown_catalog(catalog, near, [*namespaces.values(), *tables.values()])
        found = registry.catalogs.get(catalog)
        capabilities = None
        if found is not None and capabilities_of is not None and catalog not in with_password:
            capabilities = _asked(found, capabilities_of)
        _hierarchy(registry, catalog, capabilities)
        _renames(namespaces)
        _renames(tables)
        if capabilities is not None:
            check_backend(capabilities, [*namespaces.values(), *tables.values()])
    for name, entry in registry.catalogs.items():
        objects = (registry.namespaces.get(name, {}), registry.tables.get(name, {}))
        _ignored(entry, [e for store in objects for e in store.values()])
    _locations(registry)
    check_addresses(registry)
    check_same_root(registry)
    check_row_sources(registry, capabilities_of)


def _asked(catalog: CatalogEntry, capabilities_of: CapabilitiesOf) -> Capabilities | None:
    try:
        return capabilities_of(catalog.spec)
    except CatalogError as error:
        catalog.report(Problem("M440", ("spec", "type"), error.message, "tell the author of the plug-in"))
        return None


def _userinfo(registry: Registry) -> set[str]:
    """The catalogs with an address or path that holds a user name or a password: it would be printed, logged and saved
    with every plan. The message never repeats it. A plug-in knows best what its keys hold."""
    found: set[str] = set()
    for name, entry in registry.catalogs.items():
        type_ = entry.spec.type
        for key, value in entry.spec.options.items() if type_ in catalog_types() else ():
            if isinstance(value, str) and holds_userinfo(value) and not is_secret(key, type_):
                found.add(name)
                hint = "give them as `storage.*`" if key in ("path", "root") else "give them in the options made for it"
                entry.report(Problem("M417", ("spec", key), f"`spec.{key}` holds {_USERINFO}", hint))
    return found


def _unknown_catalog(catalog: str, near: str | None, entries: list[Entry]) -> None:
    hint = f"did you mean {near}?" if near else "declare it with a document of kind Catalog"
    for entry in entries:
        entry.error("M402", ("metadata", "catalog"), f"the catalog {catalog!r} is not declared", hint)


def _hierarchy(registry: Registry, catalog: str, capabilities: Capabilities | None) -> None:
    namespaces, tables = registry.namespaces.get(catalog, {}), registry.tables.get(catalog, {})
    missing: dict[Ident, list[Entry]] = {}
    for store in (namespaces, tables):
        for ident, entry in store.items():
            for length in range(1, len(ident)):
                above = tables.get(ident[:length])
                if above is not None:
                    entry.error(
                        "M404",
                        _ID,
                        f"{dotted(ident)} is below {dotted(ident[:length])}, which is a table "
                        f"(declared at {above.declared.source})",
                        "tables have no children",
                    )
                    break
            if entry.declared.absent:
                continue
            _absent_parent(ident, entry, namespaces)
            parent = ident[:-1]
            if (
                parent
                and parent not in namespaces
                and parent not in tables
                and (catalog, parent) not in registry.broken_objects
            ):
                missing.setdefault(parent, []).append(entry)
    for ident, entry in tables.items():
        other = namespaces.get(ident)
        if other is not None and not entry.declared.absent and not other.declared.absent:
            entry.error(
                "M405", _ID, f"a namespace of this name is declared at {other.declared.source}", "rename one of them"
            )
    for parent, entries in missing.items():
        if capabilities is not None and capabilities.ident_problem("Namespace", parent) is not None:
            continue  # A warehouse, say: it cannot be declared.
        first = min(entries, key=lambda e: e.declared.source)
        more = f" (and {len(entries) - 1} more below it)" if len(entries) > 1 else ""
        first.warning(
            "M403",
            _ID,
            f"the namespace {dotted(parent)} is not declared{more}",
            "declare it, unless it exists already and is managed elsewhere",
        )


def _absent_parent(ident: Ident, entry: Entry, namespaces: dict[Ident, Entry]) -> None:
    for length in range(len(ident) - 1, 0, -1):
        above = namespaces.get(ident[:length])
        if above is not None and above.declared.absent:
            entry.error(
                "M409",
                _ID,
                f"{dotted(ident)} is below {dotted(ident[:length])}, which is `state: absent` "
                f"at {above.declared.source}",
                "make both absent, or both present",
            )
            return


def _renames(entries: dict[Ident, Entry]) -> None:
    taken: dict[Ident, Entry] = {}
    circles = _circles({i: e for i, e in entries.items() if e.declared.renamed_from is not None})
    for ident, entry in entries.items():
        old = entry.declared.renamed_from
        if old is None:
            continue
        place = ("spec", "renamedFrom")
        other = entries.get(old)
        if old == ident:
            entry.error("M410", place, f"{dotted(ident)} is renamed from itself", "remove renamedFrom")
        elif ident in circles:
            names = " <- ".join(dotted(i) for i in circles[ident][:10])
            hint = "rename through a third name, in two steps"
            entry.error("M411", place, f"the renames go in a circle: {names}", hint)
        elif other is not None and not other.declared.absent:
            entry.error(
                "M412",
                place,
                f"{dotted(old)} is declared too, at {other.declared.source}",
                "a rename needs the old object to be gone from the manifests",
            )
        first = taken.setdefault(old, entry)
        if first is not entry:
            entry.error(
                "M413",
                place,
                f"{dotted(first.declared.ident)} is renamed from {dotted(old)} too, at {first.declared.source}",
                "one object can become one other only",
            )


def _circles(entries: dict[Ident, Entry]) -> dict[Ident, list[Ident]]:
    """Every identifier on a circle of renames, with the circle. Each chain is walked once."""
    done: set[Ident] = set()
    found: dict[Ident, list[Ident]] = {}
    for start in entries:
        chain: dict[Ident, int] = {}
        current: Ident | None = start
        while current is not None and current not in done:
            done.add(current)
            chain[current] = len(chain)
            entry = entries.get(current)
            current = entry.declared.renamed_from if entry is not None else None
        if current is not None and current in chain:
            circle = list(chain)[chain[current] :]
            found.update(dict.fromkeys(circle, circle))
    return found


def _ignored(catalog: CatalogEntry, entries: list[Entry]) -> None:
    """Loose patterns are tried on every object, declared or live, one by one: so their number is bounded."""
    spec = catalog.spec
    if not spec.management.ignore:
        return
    finder = Finder(spec.management.ignore)
    if len(finder.loose) > MAX_LOOSE:
        path = ("spec", "management", "ignore", spec.management.ignore.index(finder.loose[MAX_LOOSE]))
        message = f"more than {MAX_LOOSE} patterns of `ignore` have a wildcard that is not their last name"
        catalog.report(Problem("M437", path, message, "write names, with at most `.*` or `.**` after them"))
        return
    for entry in entries:
        for pattern in finder.find(entry.declared.ident):
            entry.error(
                "M432",
                _ID,
                f"{dotted(entry.declared.ident)} is ignored by {pattern!r} in `management.ignore` "
                f"of catalog {spec.name!r} ({spec.source})",
                "change the pattern, or remove this document",
            )


def _locations(registry: Registry) -> None:
    places: dict[str, list[Entry]] = {}
    for catalog, tables in registry.tables.items():
        spec = registry.catalogs.get(catalog)
        root = str(spec.spec.options.get("path", "")) if spec is not None else None
        placed: list[tuple[str, Entry]] = []
        for entry in tables.values():
            declared = entry.declared
            if not isinstance(declared, DesiredTable) or declared.location is None:
                continue
            if holds_userinfo(declared.location):
                message = f"`spec.location` holds {_USERINFO}"
                entry.error("M417", ("spec", "location"), message, "leave them out: the catalog's `storage.*` has them")
            elif not declared.absent:
                place = normal(declared.location, root)
                placed.append((place, entry))
                places.setdefault(place, []).append(entry)
        _within_catalog(placed)
    for place, entries in places.items():
        _across_catalogs(place, entries)


def _within_catalog(placed: list[tuple[str, Entry]]) -> None:
    """Sorted by path parts, whatever is inside a place comes right after it."""
    placed.sort(key=lambda item: (item[0].split("/"), item[1].declared.source))
    outer: tuple[str, Entry] | None = None
    for place, entry in placed:
        if outer is None or (place != outer[0] and not contains(outer[0], place)):
            outer = (place, entry)
            continue
        how = "at the same location as" if place == outer[0] else "inside the location of"
        other = outer[1].declared
        entry.error(
            "M406",
            ("spec", "location"),
            f"the table is {how} {dotted(other.ident)}, declared at {other.source}",
            "give each table its own location",
        )


def _across_catalogs(place: str, entries: list[Entry]) -> None:
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
                ("spec", "location"),
                f"the dataset at {place} is declared with another schema at {first.declared.source}",
                "one dataset has one schema: make them equal",
            )


def _schema_of(entry: Entry) -> list[tuple[str, str, bool]]:
    return schema_of(entry.declared) if isinstance(entry.declared, DesiredTable) else []
