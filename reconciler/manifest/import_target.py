"""Which document an edit goes to. An object may be made of its own document, of an overlay's and of Defaults.

With an environment only documents of that environment change: those of the base are read for all others too. Where the
base has the value, the overlay gets one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.manifest.emit_columns import Doc
from reconciler.manifest.layers import Layer, Layered, filled
from reconciler.manifest.overlay import patched
from reconciler.manifest.problem import Path
from reconciler.manifest.sink import Sink, place_in
from reconciler.manifest.variables import escaped
from reconciler.manifest.yaml_edit import Append, CannotEdit, Edit, Remove, Set, edited_value
from reconciler.manifest.yaml_reader import Document
from reconciler.model.diagnostic import Diagnostic, Source

PROTECT: Path = ("spec", "protect")
LEFT = "ignoreDifferences"
IGNORED: Path = ("spec", LEFT)
Found = Document | Layered


@dataclass(frozen=True, slots=True)
class Given:
    """What Defaults give to an object that does not have it live."""

    path: Path
    place: Source
    own: Source | None = None
    """Where the object's own documents give it another value, which counts."""

    @property
    def name(self) -> str:
        """As people write it, and as a path of `ignoreDifferences`."""
        return ".".join(map(str, self.path[1:]))


def source_of(layer: Layer) -> Source:
    return Source(layer.sink.file, layer.document.line, layer.document.column)


def patch_of(document: Found) -> Layer | None:
    return document.patch if isinstance(document, Layered) else None


def base_of(document: Found) -> Document:
    return document.base if isinstance(document, Layered) else document


def without_defaults(edits: Sequence[Edit], document: Found, file: str) -> tuple[list[Edit], list[Given]]:
    """The edits that a document can have; and what cannot be taken from the object, because Defaults give it. The
    protection that Defaults ask for is not taken back either: it may be about to come. A value of the object's own
    stays where it is: without it the object would get that of the Defaults. `file`: of the object's own document."""
    if not isinstance(document, Layered) or not document.given:
        return list(edits), []
    edits = [wanted for edit in edits for wanted in _still_left(edit, document)]
    kept: list[Edit] = []
    given: list[Given] = []
    for edit in edits:
        layer = document.given.get(edit.path)
        by_defaults = document.layer_of(edit.path) is layer
        unprotects = edit == Set(PROTECT, False) and by_defaults
        if layer is not None and (isinstance(edit, Remove) or unprotects):
            own = None if by_defaults else place_in(file, document, edit.path)
            given.append(Given(edit.path, place_in(layer.sink.file, layer.document, edit.path), own))
        else:
            kept.append(edit)
    return kept, given


def value_path(path: str) -> Path:
    """Of a path of `ignoreDifferences`: where its value is, if that is one value and no column or index."""
    root, dot, key = path.partition(".")
    return ("spec", root, key) if dot else ("spec", root) if root == "description" else ()


def _still_left(edit: Edit, document: Layered) -> list[Edit]:
    """What is to be left to others, but for what Defaults give: that is wanted. Where they have the list, the object
    gets one of its own with all of theirs."""
    theirs = document.given.get(IGNORED)
    of_defaults = theirs is not None and document.layer_of(IGNORED) is theirs
    if isinstance(edit, Remove) and edit.path[:-1] == IGNORED and theirs is not None and of_defaults:
        place = place_in(theirs.sink.file, theirs.document, edit.path)
        raise CannotEdit(f"Defaults leave something to others at {place} that can mean no live column")
    if not isinstance(edit, Append) or edit.path != IGNORED:
        return [edit]
    values = [v for v in edit.values if value_path(v) not in document.given]
    if of_defaults:
        whole: Any = document.value
        return [Set(IGNORED, [*escaped(whole["spec"][LEFT]), *values])] if values else []
    return [Append(IGNORED, tuple(values))] if values else []


def without_left(edits: Sequence[Edit]) -> list[Edit]:
    """Without what `ignoreDifferences` would get."""
    return [e for e in edits if e.path != IGNORED]


def for_overlay(edits: Sequence[Edit], document: Found, base_file: str) -> list[Edit]:
    """The same changes, made in the document of the overlay. Raises CannotEdit for a list that the base has: the
    overlay would have to repeat it, and what is added to the base later would not reach this environment."""
    base = base_of(document)
    patch = patch_of(document)
    changed = patch.document.value if patch is not None else {}
    out: list[Edit] = []
    for edit in edits:
        list_ = _list_in(edit)
        if list_ is not None and not _has(changed, list_) and _has(base.value, list_):
            name, place = ".".join(map(str, list_)), place_in(base_file, base, list_)
            raise CannotEdit(
                f"other environments share `{name}` at {place}; edit it there, or give the overlay one of its own"
            )
        if isinstance(edit, Remove) and list_ is None and _has(base.value, edit.path):
            edit = Set(edit.path, None)
        out.append(edit)
    return out


def _list_in(edit: Edit) -> Path | None:
    """The outermost: an overlay has all of a list or nothing."""
    numbers = [n for n, part in enumerate(edit.path) if isinstance(part, int)]
    if numbers:
        return edit.path[: numbers[0]]
    return edit.path if isinstance(edit, Append) else None


def _has(value: Any, path: Path) -> bool:
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True


def check_meaning(document: Found, meant: Sequence[Edit], own: Sequence[Edit], patch: Doc | None) -> None:
    """Raises CannotEdit unless the edits of the object's own document, and the overlay's document as it will be, come
    to what is meant for the object: a key that is taken away in one place may come to light in another."""
    before = patch_of(document)
    wanted = edited_value(_made_of(document, [], before.document.value if before is not None else None), meant)
    if _bare(_made_of(document, own, patch)) != _bare(wanted):
        raise CannotEdit("another document gives the object what would have to change")


def _made_of(document: Found, own: Sequence[Edit], patch: Any) -> Any:
    base = base_of(document)
    edited = replace(base, value=edited_value(base.value, own))
    value: Any = edited.value
    if patch is not None:
        problems: list[Diagnostic] = []
        value = patched(edited, Layer(Sink("", problems), replace(base, value=patch)), "").value
        if problems:
            raise CannotEdit(problems[0].message)
    if not isinstance(document, Layered) or not isinstance(value, dict):
        return value
    scratch = Layered(base, None, "")
    return {**value, "spec": filled(value.get("spec") or {}, document.defaults, document.given, scratch, ("spec",))}


def _bare(value: Any) -> Any:
    """Without mappings that are empty: whether they are there makes no difference."""
    if isinstance(value, dict):
        return {k: b for k, v in value.items() if (b := _bare(v)) != {}}
    return [_bare(v) for v in value] if isinstance(value, list) else value
