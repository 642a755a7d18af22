"""What to write where a list, a mapping or a text is wanted and something else is given."""

from __future__ import annotations

import re

from reconciler.manifest.problem import Path
from reconciler.manifest.yaml_careful import Node
from reconciler.manifest.yaml_scalars import quoted, resolve

_IDENTIFIERS = frozenset({"id", "renamedFrom", "from"})
_ENTRIES = {
    "schema": "- {name: id, type: int64}",
    "fields": "- {name: id, type: int64}",
    "indexes": "- {column: id, type: btree}",
    "rules": '- {rule: naming, table: "[a-z_]+"}',
    "waivers": '- {code: P001, reason: why, until: "2027-01-31"}',
}
_SHORT = 80
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.*/-]*")


def shape_hint(path: Path, types: list[str], node: Node) -> str:
    """For a value of a wrong kind that is no secret; "" when there is nothing to say."""
    key = path[-1] if path else ""
    if types == ["array"]:
        return _list(str(key), node)
    if types == ["object"]:
        if not path or key in ("metadata", "spec"):
            return "write its keys below it, indented: `key: value`"
        return f"write {key}: {{key: value}}, or each `key: value` on a line of its own below it"
    if types == ["string"] and node.kind == "sequence" and len(node.items) == 1 and _short(node.items[0]):
        return f"write {word(node.items[0].text)}"
    return ""


def _list(key: str, node: Node) -> str:
    if node.kind == "scalar":
        if not node.text or not _short(node):
            return ""
        parts = node.text.split(".") if key in _IDENTIFIERS else [node.text]
        return f"write [{', '.join(word(part) for part in parts)}]" if all(parts) else ""
    if key in ("schema", "fields") and node.pairs:
        name, type_ = node.pairs[0]
        if _short(name) and _short(type_):
            return f"write each column as an entry: `{column(name.text, type_.text)}`"
    if key in _ENTRIES:
        return f"write each as an entry: `{_ENTRIES[key]}`"
    return "write the names in order: [a, b]" if key in _IDENTIFIERS else "begin each entry with `- `"


def column(name: str, type_: str) -> str:
    return f"- {{name: {word(name)}, type: {word(type_)}}}"


def word(text: str) -> str:
    """As an entry of `[…]` or `{…}`: in quotes where it would be read as something else."""
    return text if _PLAIN.fullmatch(text) and isinstance(resolve(text), str) else quoted(text)


def _short(node: Node) -> bool:
    return node.kind == "scalar" and len(node.text) <= _SHORT
