"""The record of what we set on a dataset: `config:KEY`, `schema:KEY`, `field:PATH:KEY`, `index:NAME`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.core.diff_schema import ignore_rule
from reconciler.core.fields import Fields, annotated, find
from reconciler.model.arrow import Field
from reconciler.model.desired import DesiredTable
from reconciler.model.state import DatasetState


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
            path, _, key = rest.partition(":")
            path = _unescape(path)
            fields[path] = (*fields.get(path, ()), key)
    return Applied(tuple(config), tuple(schema), fields, tuple(indexes))


def wanted_metadata(f: Field) -> dict[str, str]:
    """What the manifest says about a column besides its type; the comment is its metadata key `comment`."""
    return {**f.metadata, "comment": f.comment} if f.comment is not None else dict(f.metadata)


def expected_applied(want: DesiredTable, there: Fields | None = None) -> tuple[str, ...]:
    """What is ours once the manifest holds. `there`: only columns that exist count."""
    ignored = frozenset(want.ignore_differences)
    rule = ignore_rule(want.ignore_differences)
    out: list[str] = []
    if "config" not in ignored:
        out += [f"config:{k}" for k in want.config if f"config.{k}" not in ignored]
    if "schemaMetadata" not in ignored:
        out += [f"schema:{k}" for k in want.schema_metadata if f"schemaMetadata.{k}" not in ignored]
    for path, f in annotated(want.fields or ()):
        if not rule(path, None):
            if there is not None and find(there, path) is None:
                continue
            skip_comment, skip_metadata = rule(path, "comment"), rule(path, "metadata")
            keys = [k for k in wanted_metadata(f) if not (skip_comment if k == "comment" else skip_metadata)]
            out += [field_entry(path, k) for k in keys]
    if "indexes" not in ignored:
        out += [f"index:{i.name}" for i in want.indexes if f"indexes.{i.name}" not in ignored]
    return tuple(sorted(out))


def live_entries(live: DatasetState) -> set[str]:
    """Everything that is there and could be in the record."""
    noted = [field_entry(path, k) for path, f in annotated(live.fields) for k in wanted_metadata(f)]
    config, schema = [f"config:{k}" for k in live.config], [f"schema:{k}" for k in live.schema_metadata]
    return {*config, *schema, *noted, *(f"index:{i.name}" for i in live.indexes)}


def field_entry(path: str, key: str) -> str:
    return f"field:{_escape(path)}:{key}"


def _escape(path: str) -> str:
    return path.replace("%", "%25").replace(":", "%3A")


def _unescape(path: str) -> str:
    return path.replace("%3A", ":").replace("%25", "%")
