"""Where nothing exists yet, the name may be misspelt: are the declared tables in a folder beside it?"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence

from reconciler.catalog.directory_inventory import FOLDER
from reconciler.catalog.storage import open_storage
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Elsewhere, Observation, Present, Scope

MOST_FOLDERS = 8
"""Those with the most similar names."""
MOST_TABLES = 20

Read = Callable[[str, Sequence[tuple[Kind, Ident]], Scope], Iterable[Observation]]
"""Objects of the catalog at a path."""


def elsewhere(path: str, storage: Mapping[str, str], declared: Iterable[Ident], read: Read) -> tuple[Elsewhere, ...]:
    """`path`: as written. What cannot be read says nothing: this is for a warning."""
    above, slash, name = path.rstrip("/").rpartition("/")
    if above.endswith(":/"):  # A bucket: what is beside it is not ours to list.
        return ()
    idents = sorted(declared)[:MOST_TABLES]
    try:
        beside = open_storage(above or slash or ".", storage)
        folders = {*beside.list().folders} - {name} if idents else set()
        similar = difflib.get_close_matches(name, folders, MOST_FOLDERS, 0.0)
        roots = [folder for folder in similar if beside.is_folder(f"{folder}/{FOLDER}")]
    except CatalogError:
        return ()
    found: list[Elsewhere] = []
    for folder in roots:  # Only where we have written.
        place = f"{above}{slash}{folder}"
        try:
            seen = list(read(place, [("Table", ident) for ident in idents], Scope(detail=frozenset(idents))))
        except CatalogError:
            continue
        live = ((o.ident, o.finding.state) for o in seen if isinstance(o.finding, Present))
        found += (Elsewhere(ident, place, state.marks.owner) for ident, state in live if state.marks.owner is not None)
    return tuple(found)
