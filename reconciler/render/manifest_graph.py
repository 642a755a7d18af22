"""What manifests declare as a graph: catalogs, what is in them, where rows come from, what was renamed or moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.model.desired import Desired, DesiredObject, DesiredTable
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.render.graph import Edge, Graph, Node, Style

_PLACES = ("path", "table", "query", "sql")
"""Keys of a source that say where its rows are; others may be secrets, or would fill a page."""


@dataclass
class _Made:
    """In the order in which they were found; what is named twice is there once."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[Edge, None] = field(default_factory=dict)

    def add(self, node: Node) -> str:
        self.nodes.setdefault(node.id, node)
        return node.id

    def join(self, source: str, target: str, label: str = "") -> None:
        self.edges[Edge(source, target, label)] = None


def manifest_graph(desired: Desired) -> Graph:
    made = _Made()
    for name, spec in sorted(desired.catalogs.items()):
        made.add(Node(catalog_id(name), (name, f"catalog ({spec.type})"), "catalog"))
    objects = [*_declared(desired)]
    for item in objects:
        made.add(_node(item))
    for item in objects:
        made.join(_container(desired, item), _id(item))
        _origins(item, made)
    return Graph("Manifests", tuple(made.nodes.values()), tuple(made.edges))


def catalog_id(name: str) -> str:
    return f"catalog/{name}"


def object_id(catalog: str, kind: Kind, ident: Ident) -> str:
    return f"{kind}/{catalog}:{dotted(ident)}"


def _declared(desired: Desired) -> Iterator[DesiredObject]:
    for catalog in sorted({*desired.namespaces, *desired.tables}):
        yield from (item for _, item in sorted(desired.namespaces.get(catalog, {}).items()))
        yield from (item for _, item in sorted(desired.tables.get(catalog, {}).items()))


def _kind(item: DesiredObject) -> Kind:
    return "Table" if isinstance(item, DesiredTable) else "Namespace"


def _id(item: DesiredObject) -> str:
    return object_id(item.catalog, _kind(item), item.ident)


def _node(item: DesiredObject) -> Node:
    kind = _kind(item)
    if item.absent:
        return Node(_id(item), (dotted(item.ident), f"{kind.lower()}, to be removed"), "delete")
    style: Style = "table" if kind == "Table" else "namespace"
    return Node(_id(item), (dotted(item.ident), kind.lower()), style)


def _container(desired: Desired, item: DesiredObject) -> str:
    """The nearest declared namespace around it, or the catalog."""
    around = desired.namespaces.get(item.catalog, {})
    for length in range(len(item.ident) - 1, 0, -1):
        if item.ident[:length] in around:
            return object_id(item.catalog, "Namespace", item.ident[:length])
    return catalog_id(item.catalog)


def _origins(item: DesiredObject, made: _Made) -> None:
    if item.renamed_from is not None:
        old = Node(
            f"old/{_id(item)}", (dotted(item.renamed_from), f"former name of this {_kind(item).lower()}"), "outside"
        )
        made.join(made.add(old), _id(item), "renamed")
    if not isinstance(item, DesiredTable):
        return
    if item.migration is not None:
        source = _table(item.migration.catalog, item.migration.ident, made)
        made.join(source, _id(item), "migration")
    if item.data is not None:
        for source in _sources(item.data.source, made):
            made.join(source, _id(item), f"rows: {item.data.mode}")


def _sources(source: Mapping[str, object], made: _Made) -> Iterator[str]:
    """Tables and places; of a query over views, what the views read."""
    table, views = source.get("table"), source.get("views")
    if isinstance(views, Mapping) and views:
        for view in views.values():
            yield from _sources(view, made)
    elif isinstance(table, Mapping):
        yield _table(str(table["catalog"]), tuple(table["id"]), made)
    else:
        where = next((source[key] for key in _PLACES if key in source), "")
        place = ", ".join(map(str, where)) if isinstance(where, list | tuple) else str(where)
        yield made.add(Node(f"source/{source['format']}/{place}", (place, f"{source['format']} source"), "outside"))


def _table(catalog: str, ident: Ident, made: _Made) -> str:
    """A declared one, or one that is only named."""
    shown = (f"{catalog}:{dotted(ident)}", "table, not declared here")
    return made.add(Node(object_id(catalog, "Table", ident), shown, "outside"))
