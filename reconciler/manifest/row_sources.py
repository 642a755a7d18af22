"""Tables that get their rows from other tables, by `migration` or by a Lance source: these must be able to exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reconciler.manifest.data_rules import each_source
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path
from reconciler.manifest.registry import Entry, Registry
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec, DesiredTable
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, dotted

FROM: Path = ("spec", "migration", "from")
Key = tuple[str, Ident]


def check_row_sources(registry: Registry, capabilities_of: Callable[[CatalogSpec], Capabilities | None] | None) -> None:
    edges: dict[Key, list[tuple[Key, Path, Entry]]] = {}
    for tables in registry.tables.values():
        for entry in tables.values():
            table = entry.declared
            if not isinstance(table, DesiredTable) or (table.data is None and table.migration is None):
                continue
            own = (table.catalog, table.ident)
            for other, path in _sources(table):
                if _possible(registry, capabilities_of, entry, own, other, path):
                    edges.setdefault(own, []).append((other, path, entry))
            if table.migration is not None:
                _same_schema(registry, entry, table)
    _circles(edges)


def _sources(table: DesiredTable) -> Iterator[tuple[Key, Path]]:
    if table.migration is not None:
        yield (table.migration.catalog, table.migration.ident), FROM
    if table.data is not None:
        for path, source in each_source(table.data.source):
            if source["format"] == "lance" and "table" in source:
                yield (source["table"]["catalog"], tuple(source["table"]["id"])), (*path, "table")


def _possible(
    registry: Registry,
    capabilities_of: Callable[[CatalogSpec], Capabilities | None] | None,
    entry: Entry,
    own: Key,
    other: Key,
    path: Path,
) -> bool:
    catalog, ident = other
    if not registry.known_catalog(catalog):
        near = nearest(catalog, sorted({*registry.catalogs, *registry.broken_catalogs}))
        hint = f"did you mean {near}?" if near else "declare it with a document of kind Catalog"
        entry.error("M480", (*path, "catalog"), f"the catalog {catalog!r} is not declared", hint)
        return False
    if other == own:
        entry.error("M482", path, "the table would get its rows from itself", "name another table")
        return False
    found = registry.tables.get(catalog, {}).get(ident)
    if found is not None and found.declared.absent:
        message = f"{catalog}:{dotted(ident)} is `state: absent` at {found.declared.source}"
        entry.error("M485", path, message, "remove it in a later change, when the rows are here")
        return False
    spec = registry.catalogs.get(catalog)
    if spec is not None and capabilities_of is not None:
        try:
            rules = capabilities_of(spec.spec)
        except CatalogError:
            return True  # Told at the catalog, if anything is declared in it; else when it is opened.
        problem = rules.ident_problem("Table", ident) if rules is not None else None
        if problem is not None:
            entry.error("M481", (*path, "id"), f"{dotted(ident)}: {problem}")
            return False
    return True


def _same_schema(registry: Registry, entry: Entry, table: DesiredTable) -> None:
    """A move copies files. What the columns should become is a change of its own, before or after it."""
    assert table.migration is not None
    found = registry.tables.get(table.migration.catalog, {}).get(table.migration.ident)
    other = found.declared if found is not None else None
    if not isinstance(other, DesiredTable) or other.fields is None or table.fields is None or other is table:
        return
    if schema_of(other) != schema_of(table):
        message = f"the table it is moved from is declared with another schema at {other.source}"
        entry.error("M484", FROM, message, "make them equal or leave one out; change the columns after the move")


def schema_of(table: DesiredTable) -> list[tuple[str, str, bool]]:
    """Name, type and nullability; the order of columns is never compared."""
    return sorted((f.name, str(f.type), f.nullable) for f in table.fields or ())


def _circles(edges: dict[Key, list[tuple[Key, Path, Entry]]]) -> None:
    """Told at the table that closes the circle. Each table is walked once."""
    done: set[Key] = set()
    for start in sorted(edges):
        stack: list[tuple[Key, Iterator[tuple[Key, Path, Entry]]]] = [(start, iter(edges[start]))]
        on_way = {start: 0}
        while stack and start not in done:
            key, rest = stack[-1]
            step = next(rest, None)
            if step is None:
                stack.pop()
                done.add(key)
                on_way.pop(key)
                continue
            other, path, entry = step
            if other in on_way:
                names = [f"{c}:{dotted(i)}" for c, i in [*list(on_way)[on_way[other] :], other][:10]]
                message = f"the tables get their rows from each other: {' <- '.join(names)}"
                entry.error("M483", path, message, "one of them needs another source")
            elif other in edges and other not in done:
                on_way[other] = len(stack)
                stack.append((other, iter(edges[other])))
