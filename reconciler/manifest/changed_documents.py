"""`--changed-since`: the documents that are not what they were at a git revision. Documents are compared, not files: a
comment, another order, a document that moved to another file are no change.

A run reads the files of today anyway, so those documents are taken from it; only the earlier ones are read here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.manifest.changed_files import ChangedFiles
from reconciler.manifest.earlier_documents import EarlierDocuments
from reconciler.manifest.identity import Key, identity
from reconciler.manifest.prepare import File
from reconciler.manifest.repository_places import Layer
from reconciler.manifest.yaml_reader import Document
from reconciler.manifest.yaml_scalars import Value
from reconciler.manifest.yaml_text import decode

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
Values = list[Value]


@dataclass(frozen=True, slots=True)
class Change:
    """Documents of one key. Usually one of each; none when it was not there, or is gone."""

    old: Values
    """Those that are no more."""
    new: Values
    """Those that were not there."""


@dataclass(slots=True)
class Changes:
    documents: dict[Key, list[Change]] = field(default_factory=dict)
    """Those of the base, and those of the overlay."""
    files: set[str] = field(default_factory=set)
    """Files, as they were found, whose content changed."""


def changed_documents(asked: ChangedFiles, read: Mapping[str, File], expand: Callable[[str], str]) -> Changes:
    """`read`: the files of the run, by name. Raises GitError."""
    changes, was, now = Changes(), _Versions(expand), _Versions(expand)
    blobs = asked.earlier()
    earlier = EarlierDocuments()
    differing: list[tuple[Layer, str]] = []
    for candidate in asked.candidates:
        file = read.get(candidate.file or "")
        current = "" if file is None else file.text
        before = "" if candidate.blob is None else decode(blobs[candidate.blob]).text
        if before == current:
            continue
        differing.append((candidate.layer, before))
        if file is not None:
            found = [document for document in file.kept() if isinstance(document, Document)]
            now.take(candidate.layer, (document.value for document in found))
            earlier.know(file.text, found)
            changes.files.add(file.sink.file)
    for layer, text in differing:
        was.take(layer, earlier.values(text))
    for mark in was.values.keys() | now.values.keys():
        change = _change(was.values.get(mark, []), now.values.get(mark, []))
        if change is not None:
            changes.documents.setdefault(mark[1], []).append(change)
    return changes


class _Versions:
    """Documents by what they are about."""

    def __init__(self, expand: Callable[[str], str]) -> None:
        self.expand = expand
        self.values: dict[tuple[Layer, Key], Values] = {}

    def take(self, layer: Layer, values: Iterable[Value]) -> None:
        for value in values:
            key = identity(value, self.expand)
            if key is not None:
                self.values.setdefault((layer, key), []).append(value)


def _change(old: Values, new: Values) -> Change | None:
    """None when they are the same documents, in any order. As JSON: in Python `1 == True == 1.0`."""
    if len(old) == len(new) == 1 and (old[0] is new[0] or old != new):
        return None if old[0] is new[0] else Change(old, new)
    before, after = [_ENCODER.encode(value) for value in old], [_ENCODER.encode(value) for value in new]
    gone, come = _without(old, before, after), _without(new, after, before)
    return Change(gone, come) if gone or come else None


def _without(values: Values, texts: list[str], others: list[str]) -> Values:
    """Those that the others do not have, each counted."""
    left = Counter(others)
    out = []
    for value, text in zip(values, texts, strict=True):
        left[text] -= 1
        if left[text] < 0:
            out.append(value)
    return out
