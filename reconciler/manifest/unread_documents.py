"""The document of an object that is live and could not be read.

It names the object, so that no plan takes it for an orphan, and leaves all of it to others: were it empty instead, a
plan that can read the object again would take away everything that we once set on it. While it is as it was written,
with its comment, an import that can read the object writes it anew.
"""

from __future__ import annotations

import re
from typing import Any

from reconciler.manifest.documents import API_VERSION
from reconciler.model.ident import Ident, Kind

_ALL_OF: dict[Kind, tuple[str, ...]] = {
    "Namespace": ("description", "properties"),
    "Table": ("description", "properties", "config", "schemaMetadata", "schema", "indexes"),
}
_WHAT_TO_DO = """\
# What it is like is not known here: all of it is left as it is. The next import that can read it fills this document
# in, if nothing was changed here. Otherwise delete the document, with this comment, and import again. Delete it too if
# the object has been removed since: a document that names it would make it again.
"""
_COMMENT = re.compile(rf"^# [^\n]* could not be read: [^\n]*\n{re.escape(_WHAT_TO_DO)}\Z", re.MULTILINE)


def unread_document(kind: Kind, catalog: str, ident: Ident) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"catalog": catalog, "id": list(ident)},
        "spec": {"ignoreDifferences": list(_ALL_OF[kind])},
    }


def unread_comment(why: str) -> str:
    """`why`: one line, `NAME could not be read: REASON`."""
    return f"# {why}\n{_WHAT_TO_DO}"


def is_unread(document: Any) -> bool:
    """It says what `unread_document` says, and nothing else. In an overlay it also says that it is new."""
    spec = document.get("spec") if isinstance(document, dict) else None
    if not isinstance(spec, dict) or document.keys() - {"overlay"} != {"apiVersion", "kind", "metadata", "spec"}:
        return False
    return bool(spec == {"ignoreDifferences": list(_ALL_OF.get(document["kind"], ()))})


def comment_start(above: str) -> int | None:
    """Where the comment begins that `above` ends with; None when it ends otherwise."""
    found = _COMMENT.search(above)
    return found.start() if found else None
