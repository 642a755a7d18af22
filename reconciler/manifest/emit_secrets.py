"""What of a live object is not written into a manifest, because git would keep it: secrets among its values.

Some services put credentials among the properties, and people write tokens into comments. A value that others set is
left out: the next plan leaves it alone. One that we set becomes a reference to an environment variable, because what a
manifest no longer says would be removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any

from reconciler.core.applied import parse_applied
from reconciler.core.secret_names import names_credential
from reconciler.core.secret_values import credential_in, without_credentials
from reconciler.manifest.variables import escaped
from reconciler.manifest.yaml_edit import Append, Edit, Set
from reconciler.model.arrow import ArrowType, Field, ListOf, Struct
from reconciler.model.ident import Ident
from reconciler.model.state import DESCRIPTION_KEY, RESERVED_PREFIX, DatasetState, NamespaceState, TableState

Clean = Callable[[str], str]
"""Takes out what is known to be secret."""


def cleaner(clean: Clean | None) -> Clean | None:
    """Takes out what is a credential by its form too."""
    return None if clean is None else lambda text: without_credentials(clean(text))


@dataclass(slots=True)
class Withheld:
    """What is kept back of one object. `paths` as in `ignoreDifferences`."""

    about: tuple[str, ...]
    clean: Clean
    taken: set[str]
    """Names of variables, of all objects."""
    notes: list[str] = dataclass_field(default_factory=list)
    paths: list[str] = dataclass_field(default_factory=list)
    ignored: list[str] = dataclass_field(default_factory=list)
    """What the new document has to leave to others by name."""
    references: list[str] = dataclass_field(default_factory=list)

    def known(self, text: str) -> bool:
        return self.clean(text) != text

    def held(self, text: str) -> str | None:
        if not self.known(text):
            return None
        kind = credential_in(text)
        return f"it holds a secret, {kind} by its form" if kind else "it holds a secret"

    def why(self, key: str, value: str) -> str | None:
        if held := self.held(value):
            return held
        counts = value.isdecimal() and key.lower().endswith("tokens")
        return "its name says that it is a secret" if value and names_credential(key) and not counts else None

    def without(self, what: str, why: str, path: str) -> None:
        self.notes.append(f"{what} is left out: {why}")
        self.paths.append(path)

    def behind_a_variable(self, what: str, why: str, path: str) -> str:
        stem = "RECONCILER_" + re.sub(r"[^A-Z0-9]+", "_", "_".join((*self.about, path)).upper())
        names = (stem, *(f"{stem}_{number}" for number in range(2, len(self.taken) + 3)))
        name = next(n for n in names if n not in self.taken)
        self.taken.add(name)
        self.notes.append(f"{what} is not written out: {why}; set {name} to it")
        self.paths.append(path)
        reference = f"${{env:{name}}}"
        self.references.append(reference)
        return reference


def with_references(value: Any, references: Collection[str]) -> Any:
    """Values with `${` escaped, in which these are references all the same. Only whole values, and only those that were
    made here: what somebody else wrote into a catalog must not be resolved on our side."""
    if isinstance(value, str):
        return next((r for r in references if escaped(r) == value), value)
    if isinstance(value, dict):
        return {k: with_references(v, references) for k, v in value.items()}
    return [with_references(v, references) for v in value] if isinstance(value, list) else value


def edits_with_references(edits: Sequence[Edit], references: Collection[str]) -> list[Edit]:
    def one(edit: Edit) -> Edit:
        if isinstance(edit, Set):
            return replace(edit, value=with_references(edit.value, references))
        if isinstance(edit, Append):
            return replace(edit, values=tuple(with_references(v, references) for v in edit.values))
        return edit

    return [one(edit) for edit in edits] if references else list(edits)


class Secrets:
    """Of one catalog. Without `clean`, nothing is secret."""

    def __init__(self, catalog: str, clean: Clean | None) -> None:
        self._catalog, self._clean = catalog, clean
        self._taken: set[str] = set()

    def taken_out(
        self, ident: Ident, state: NamespaceState | TableState
    ) -> tuple[NamespaceState | TableState, Withheld]:
        out = Withheld((self._catalog, *ident), self._clean or str, self._taken)
        if self._clean is None:
            return state, out
        kept = _map(state.properties, "properties", "property", state.marks.applied, out)
        if isinstance(state, NamespaceState):
            return replace(state, properties=kept), out
        dataset = state.dataset
        if isinstance(dataset, DatasetState):
            ours = parse_applied(dataset.applied)
            metadata = _map(dataset.schema_metadata, "schemaMetadata", "schema metadata key", ours.schema, out)
            dataset = replace(
                dataset,
                config=_map(dataset.config, "config", "config key", ours.config, out),
                schema_metadata=metadata,
                fields=tuple(_column(f, f.name, ours.fields, out) for f in dataset.fields),
            )
        return replace(state, properties=kept, dataset=dataset), out


def _map(values: Mapping[str, str], root: str, noun: str, ours: Sequence[str], out: Withheld) -> dict[str, str]:
    kept = dict(values)
    for key, value in sorted(values.items()):
        if key.startswith(RESERVED_PREFIX):
            continue  # Never written.
        path = key if (root, key) == ("properties", DESCRIPTION_KEY) else f"{root}.{key}"
        if out.known(key):
            out.without(f"a {noun}", "its name holds a secret", root if key in ours else path)
            out.ignored += [root] if key in ours and root not in out.ignored else []
            del kept[key]
        elif (why := out.why(key, value)) and key in ours:
            kept[key] = out.behind_a_variable(f"the {noun} {key!r}", why, path)
        elif why:
            out.without(f"the {noun} {key!r}", why, path)
            del kept[key]
    return kept


def _column(field: Field, path: str, ours: Mapping[str, Sequence[str]], out: Withheld) -> Field:
    """Its comment and metadata, and those inside. A column with a secret in a name is left out as a whole later."""
    if out.known(field.name):
        return field
    set_by_us, about = ours.get(path, ()), f"of the column {path!r}"
    comment: str | None = field.comment
    if comment is not None and (why := out.held(comment)):
        what, at = f"the comment {about}", f"schema.{path}.comment"
        if "comment" in set_by_us:
            comment = out.behind_a_variable(what, why, at)
        else:
            out.without(what, why, at)
            comment = None
    kept = dict(field.metadata)
    for key, value in sorted(field.metadata.items()):
        if out.known(key):
            out.without(f"metadata {about}", "its name holds a secret", f"schema.{path}.metadata")
            out.ignored += [f"schema.{path}.metadata"] if key in set_by_us else []
            del kept[key]
        elif (why_not := out.why(key, value)) and key in set_by_us:
            kept[key] = out.behind_a_variable(f"metadata {key!r} {about}", why_not, f"schema.{path}.metadata")
        elif why_not:
            out.without(f"metadata {key!r} {about}", why_not, f"schema.{path}.metadata")
            del kept[key]
    return replace(field, comment=comment, metadata=kept, type=_inside(field.type, path, ours, out))


def _inside(type_: ArrowType, path: str, ours: Mapping[str, Sequence[str]], out: Withheld) -> ArrowType:
    """With the paths that `ignoreDifferences` has."""
    if isinstance(type_, Struct):
        return replace(type_, fields=tuple(_column(f, f"{path}.{f.name}", ours, out) for f in type_.fields))
    if isinstance(type_, ListOf):
        return replace(type_, item=_inside(type_.item, f"{path}.item", ours, out))
    return type_
