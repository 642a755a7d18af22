"""Rules across documents. Each rule is one function over the registry; messages name the other place."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.core.globs import Finder
from reconciler.core.uris import holds_userinfo
from reconciler.manifest.address_rules import check_addresses
from reconciler.manifest.backend_rules import check_backend
from reconciler.manifest.environment_rules import check_expected
from reconciler.manifest.location_rules import USERINFO, check_locations
from reconciler.manifest.look_alikes import check_ids
from reconciler.manifest.nearest import MOST, nearest
from reconciler.manifest.problem import Problem
from reconciler.manifest.registry import CatalogEntry, Entry, Registry
from reconciler.manifest.row_sources import check_row_sources
from reconciler.manifest.same_root import check_same_root
from reconciler.manifest.schema_files import catalog_types, is_secret
from reconciler.manifest.storage_rules import check_options
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, dotted

CapabilitiesOf = Callable[[CatalogSpec], Capabilities | None]
_ID = ("metadata", "id")
MAX_LOOSE = 30


def check(registry: Registry, capabilities_of: CapabilitiesOf | None) -> None:
    names = {*registry.catalogs, *registry.broken_catalogs}
    guesses = MOST
    with_password = _userinfo(registry)
    known: dict[str, Capabilities] = {}
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
        check_ids([*namespaces.values(), *tables.values()])
        _renames(namespaces)
        _renames(tables)
        if capabilities is not None:
            known[catalog] = capabilities
            if found is not None:
                _owner(found, capabilities)
            check_backend(capabilities, [*namespaces.values(), *tables.values()])
    for name, entry in registry.catalogs.items():
        if entry.spec.management.expect and capabilities_of is not None and name not in with_password:
            check_expected(entry, known.get(name) or _asked(entry, capabilities_of))
        objects = (registry.namespaces.get(name, {}), registry.tables.get(name, {}))
        _ignored(entry, [e for store in objects for e in store.values()])
    check_options(registry.catalogs.values())
    check_locations(registry, known)
    check_addresses(registry)
    check_same_root(registry)
    check_row_sources(registry, capabilities_of)


def _owner(catalog: CatalogEntry, capabilities: Capabilities) -> None:
    problem = capabilities.owner_problem(catalog.spec.management.owner)
    if problem:
        path = ("spec", "management", "owner")
        catalog.report(Problem("M418", path, f"the owner cannot be kept in this catalog: {problem}", "shorten it"))


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
                entry.report(Problem("M417", ("spec", key), f"`spec.{key}` holds {USERINFO}", hint))
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
