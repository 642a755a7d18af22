"""What the edits of all parts of a document have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.manifest.emit_columns import Doc
from reconciler.manifest.problem import Path
from reconciler.manifest.variables import escaped
from reconciler.manifest.yaml_edit import CannotEdit, Edit, Remove, Set
from reconciler.model.state import default_index_name


def map_edits(
    path: Path,
    said: Mapping[str, str],
    found: Mapping[str, str],
    ignored: Sequence[str] = (),
    unsaid: frozenset[str] | set[str] = frozenset(),
) -> Iterator[Edit]:
    """`unsaid`: live keys that no manifest can have; whatever the document has there stays."""
    word = str(path[-1])
    if word in ignored:
        return
    for key in (*said, *(k for k in found if k not in said)):
        if said.get(key) != found.get(key) and f"{word}.{key}" not in ignored and key not in unsaid:
            yield Set((*path, key), escaped(found[key])) if key in found else Remove((*path, key))


def entry_at(written: Sequence[Doc], number: int, name: str) -> Doc:
    """The column or index of the name. An edit goes by position: another one there would be changed instead."""
    entry = written[number] if number < len(written) else {}
    said = entry.get("name") or default_index_name(str(entry.get("column")))
    if said != name and "${" not in str(said):
        raise CannotEdit(f"{name} is not where it was expected")
    return entry


def with_old_lines(written: object, said: str, found: str) -> str:
    """A new text of several lines, in which lines that stay are as they are written: with their references."""
    if not isinstance(written, str) or "\n" not in written or "${" not in written:
        return str(escaped(found))
    before, meant = written.split("\n"), said.split("\n")
    kept = dict(zip(meant, before, strict=True)) if len(before) == len(meant) else {}
    return "\n".join(kept[line] if line in kept else str(escaped(line)) for line in found.split("\n"))
