"""The record of what we set on a dataset: `config:KEY`, `schema:KEY`, `field:PATH:KEY`, `index:NAME`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.core.diff_schema import aspect_of, ignore_rule
from reconciler.core.fields import Fields, annotated, find
from reconciler.model.arrow import Field
from reconciler.model.desired import DesiredTable
from reconciler.model.state import DatasetState

_ROOTS = {"config": "config", "schema": "schemaMetadata", "index": "indexes"}
"""Where the other kinds are in a manifest."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The record, taken apart."""

    config: tuple[str, ...] = ()
    schema: tuple[str, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    indexes: tuple[str, ...] = ()


def parse_applied(entries: Iterable[str]) -> Applied:
    """Entries of a kind we do not know are skipped: a later version may have written them."""
    config, schema, indexes = [], [], []
    fields: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        kind, _, rest = entry.partition(":")
        if kind == "config":
            config.append(rest)
        elif kind == "schema":
            schema.append(rest)
        elif kind == "index":
            indexes.append(rest)
        elif kind == "field":
            path, key = _column_key(rest)
            fields[path] = (*fields.get(path, ()), key)
    return Applied(tuple(config), tuple(schema), fields, tuple(indexes))


def wanted_metadata(f: Field) -> dict[str, str]:
    """What the manifest says about a column besides its type; the comment is its metadata key `comment`."""
    return {**f.metadata, "comment": f.comment} if f.comment is not None else dict(f.metadata)


def expected_applied(want: DesiredTable, there: Fields | None = None) -> tuple[str, ...]:
    """What is ours once the manifest holds. `there`: only columns that exist count."""
    left = entries_left_to_others(want.ignore_differences)
    out = [*(f"config:{k}" for k in want.config), *(f"schema:{k}" for k in want.schema_metadata)]
    for path, f in annotated(want.fields or ()):
        if there is None or find(there, path) is not None:
            out += [field_entry(path, k) for k in wanted_metadata(f)]
    out += [f"index:{i.name}" for i in want.indexes]
    return tuple(sorted(entry for entry in out if not left(entry)))


def entries_left_to_others(paths: tuple[str, ...]) -> Callable[[str], bool]:
    """By `ignoreDifferences`."""
    ignored, rule = frozenset(paths), ignore_rule(paths)
    if not ignored:
        return lambda _: False

    def left(entry: str) -> bool:
        kind, _, rest = entry.partition(":")
        if kind == "field":
            path, key = _column_key(rest)
            return rule(path, aspect_of(key))
        root = _ROOTS.get(kind)
        return root is not None and (root in ignored or f"{root}.{rest}" in ignored)

    return left


def ignore_path(entry: str) -> str | None:
    """The path of `ignoreDifferences` that leaves just this to others. None for an entry of a later version."""
    kind, _, rest = entry.partition(":")
    if kind == "field":
        path, key = _column_key(rest)
        return f"schema.{path}.{aspect_of(key)}"
    return f"{_ROOTS[kind]}.{rest}" if kind in _ROOTS else None


def live_entries(live: DatasetState) -> set[str]:
    """Everything that is there and could be in the record."""
    noted = [field_entry(path, k) for path, f in annotated(live.fields) for k in wanted_metadata(f)]
    config, schema = [f"config:{k}" for k in live.config], [f"schema:{k}" for k in live.schema_metadata]
    return {*config, *schema, *noted, *(f"index:{i.name}" for i in live.indexes)}


def field_entry(path: str, key: str) -> str:
    return f"field:{_escape(path)}:{key}"


def named(entries: Iterable[str]) -> list[str]:
    """For people: `config:KEY` as `config KEY`. Entries of a later version are not understood, and not shown."""
    known = parse_applied(sorted(entries))
    return [
        *(f"config {key}" for key in known.config),
        *(f"schema metadata {key}" for key in known.schema),
        *(f"column {path} {key}" for path, keys in known.fields.items() for key in keys),
        *(f"index {name}" for name in known.indexes),
    ]


def _column_key(rest: str) -> tuple[str, str]:
    path, _, key = rest.partition(":")
    return _unescape(path), key


def _escape(path: str) -> str:
    return path.replace("%", "%25").replace(":", "%3A")


def _unescape(path: str) -> str:
    return path.replace("%3A", ":").replace("%25", "%")
