"""`--catalogs-from`: what decides where the program connects to is taken from another place than the other manifests.

A pull request may say what is in a catalog, and not where the catalog is: whoever says that gets the credentials.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.known_places import is_known
from reconciler.manifest.problem import Problem
from reconciler.manifest.registry import Registry
from reconciler.model.desired import CatalogSpec, DesiredTable


def take_catalogs(registry: Registry, base: Registry, where: str) -> None:
    """The catalogs of `base` in place of those of `registry`. Sources of rows and locations that `base` does not have
    are not looked at: they are places to connect to as well."""
    told = f"Catalog documents are taken from {where}"
    for name, entry in sorted(registry.catalogs.items()):
        wanted = base.catalogs.get(name)
        if wanted is None and name not in base.broken_catalogs:
            message = f"the catalog {name!r} is not among them: {told}"
            entry.report(Problem("M313", ("metadata", "name"), message, "bring the Catalog document there first"))
        elif wanted is not None and not same_catalog(entry.spec, wanted.spec):
            message = f"not used: {told}, and this one differs from {wanted.spec.source}"
            hint = "its changes count once they are there"
            entry.report(Problem("M312", ("spec",), message, hint, severity="warning"))
    missing = registry.catalogs.keys() - base.catalogs.keys()
    registry.broken_catalogs |= base.broken_catalogs | missing
    registry.catalogs = dict(base.catalogs)
    _keep_policies(registry, base, where)
    _hold_back_sources(registry, base, where)
    _hold_back_locations(registry, base, where)


def _keep_policies(registry: Registry, base: Registry, where: str) -> None:
    """What is in force there stays in force: a pull request may add rules, and not take away those it is judged by."""
    for name, wanted in sorted(base.policies.items()):
        entry = registry.policies.get(name)
        if entry is not None and entry.written != wanted.written:
            message = (
                f"not used: the policies of {where} stay in force, and this one differs from {wanted.policy.source}"
            )
            entry.report(
                Problem("M312", ("spec",), message, "its changes count once they are there", severity="warning")
            )
    registry.policies |= base.policies


def same_catalog(one: CatalogSpec, other: CatalogSpec) -> bool:
    """But for where they stand."""
    return replace(one, source=other.source) == other


def _hold_back_sources(registry: Registry, base: Registry, where: str) -> None:
    why = f"the source is not looked at: places to read from are taken from {where}, and this one is not there"
    for catalog, tables in registry.tables.items():
        for ident, entry in tables.items():
            mine = entry.declared
            if not isinstance(mine, DesiredTable) or mine.data is None:
                continue
            there = base.tables.get(catalog, {}).get(ident)
            known = there.declared.data if there is not None and isinstance(there.declared, DesiredTable) else None
            unread = why if known is None or known.source != mine.data.source else None
            entry.declared = replace(mine, data=replace(mine.data, unread=unread, untrusted=True))


def _hold_back_locations(registry: Registry, base: Registry, where: str) -> None:
    for catalog, tables in registry.tables.items():
        spec = base.catalogs.get(catalog)
        if spec is None:
            continue  # An error already.
        there = [e.declared for e in base.tables.get(catalog, {}).values() if isinstance(e.declared, DesiredTable)]
        known = {table.location for table in there if table.location is not None}
        for entry in tables.values():
            mine = entry.declared
            if not isinstance(mine, DesiredTable) or mine.location is None:
                continue
            if not is_known(mine.location, spec.spec, known):
                why = f"the location {mine.location} is not looked at: locations are taken from {where}, and this one "
                why += "is not there, nor below the catalog's root or beside another table"
                entry.declared = replace(mine, held_back=why)
