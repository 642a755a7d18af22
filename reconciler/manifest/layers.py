"""A document that several were merged into. Each value remembers the document that it was written in, so that what is
wrong with it is told there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.yaml_careful import Careful, Node
from reconciler.manifest.yaml_reader import Document
from reconciler.manifest.yaml_scalars import Value

if TYPE_CHECKING:
    from reconciler.manifest.sink import Sink

_FOR_SOME = frozenset({"M436"})
"""Said of a value that one object has in vain. As a default it is for those that it fits."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A document whose values go into others."""

    sink: Sink
    document: Document | Layered
    shared: bool = False
    """It is for many objects: a problem says which one it was seen with."""

    @property
    def place(self) -> str:
        return f"{self.sink.file}:{self.document.line}"


@dataclass(slots=True)
class Layered:
    """Used like a Document. `written` has the places that are not the base's own, `removed` the keys that were taken
    from it."""

    base: Document
    value: Value
    about: str
    written: dict[Path, Layer] = field(default_factory=dict)
    removed: dict[Path, Layer] = field(default_factory=dict)
    patch: Layer | None = None
    """The document of the overlay."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What Defaults have for its spec, used or not."""
    given: Mapping[Path, Layer] = field(default_factory=dict)
    """Where each of these was written."""

    @property
    def line(self) -> int:
        return self.base.line

    @property
    def column(self) -> int:
        return self.base.column

    def careful(self) -> Careful:
        return _Places(self)

    def layer_of(self, path: Path) -> Layer | None:
        """The document that the value was written in; None when that is the base."""
        for length in range(len(path), 0, -1):
            found = self.written.get(path[:length])
            if found is not None:
                return found
        return None

    def home(self, problem: Problem) -> tuple[Layer | None, Problem | None]:
        """Where a problem is told (no layer: in the base), and how; no problem: nowhere."""
        gone = self.removed.get((*problem.path, problem.missing)) if problem.missing else None
        if gone is not None:
            return gone, replace(problem, path=(*problem.path, problem.missing), at_key=True)
        layer = self.layer_of(problem.path)
        if layer is None:
            return None, self._of_another_type(problem)
        if not layer.shared:
            return layer, problem
        if problem.code in _FOR_SOME:
            return layer, None
        return layer, replace(problem, message=f"{problem.message} (default for {self.about})")

    def _of_another_type(self, problem: Problem) -> Problem:
        """A key of the base that an overlay made unknown, with the type of the catalog."""
        layer = self.written.get(("spec", "type"))
        if layer is None or problem.code != "M203" or problem.path[:1] != ("spec",):
            return problem
        key = problem.path[-1]
        hint = f"{layer.place} changes spec.type: remove there what this type does not have, with `{key}: null`"
        return replace(problem, hint=hint)


class _Places(Careful):
    """The positions of a layered document."""

    __slots__ = ("_of",)

    def __init__(self, of: Layered) -> None:
        super().__init__()
        self._of = of

    def locate(self, path: Path) -> tuple[Node | None, Node | None]:
        layer = self._of.layer_of(path)
        return (layer.document if layer is not None else self._of.base).careful().locate(path)


def overlaid(base: Mapping[str, Any], patch: Mapping[str, Any], layer: Layer, into: Layered, path: Path = ()) -> Any:
    """The base with the patch's keys: mappings are merged, lists and values replaced, null removes. Lists have no keys
    to merge by, and a list of columns that is only half there would read as the complete one."""
    out = dict(base)
    for key, value in patch.items():
        here = (*path, key)
        if value is None:
            if key not in out:
                message = f"`{_dotted(here)}` is not there to be removed"
                hint = "a key with null is removed from the base; remove this line"
                layer.sink.problem(layer.document, Problem("M515", here, message, hint, at_key=True))
            out.pop(key, None)
            into.removed[here] = layer
        elif isinstance(value, dict):
            inner = out.get(key)
            if not isinstance(inner, dict):
                into.written[here] = layer
                inner = {}
            out[key] = overlaid(inner, value, layer, into, here)
        else:
            out[key] = value
            into.written[here] = layer
    return out


def filled(own: Mapping[str, Any], shared: Mapping[str, Any], written: Mapping[Path, Layer], into: Layered,
           path: Path) -> Any:  # fmt: skip
    """The document's own keys, and those of `shared` that it does not have. `written` says where each was written."""
    out = dict(own)
    for key, value in shared.items():
        here = (*path, key)
        there = key in out
        if isinstance(value, dict) and value and (not there or isinstance(out[key], dict)):
            if not there:
                into.written[here] = written[here]
            out[key] = filled(out[key] if there else {}, value, written, into, here)
        elif not there:
            out[key] = value
            into.written[here] = written[here]
    return out


def _dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)
