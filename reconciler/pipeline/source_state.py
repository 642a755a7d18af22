"""A source as a plan sees it: its files as hashes, which stand in plans and ledgers, and whether it fits the table."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.model.arrow import Field
from reconciler.model.data import FILE_FORMATS, DataSpec, SourceState
from reconciler.pipeline.listing import SourceError
from reconciler.pipeline.source_fit import fits
from reconciler.pipeline.sources import Listing, SourceFile, digest, list_source, source_schema, storage_of


def look(source: Mapping[str, Any], spec: DataSpec, fields: Sequence[Field], storage: Mapping[str, str]) -> SourceState:
    """`source` with its secrets; `storage` opens it when it says nothing of its own. Raises nothing that a source did:
    that is its state."""
    options = storage_of(source) or dict(storage)
    try:
        listing = list_source(source, options)
        problems = _misfits(listing, source, options, fields, spec.columns)
    except SourceError as error:
        return SourceState(problem=f"the source cannot be read: {error}")
    if problems:
        return SourceState(problem=f"the source does not fit the table: {'; '.join(problems)}")
    names = {key: file.uri for key, file in keyed(listing).items()}
    return SourceState(digest_of(listing, spec.columns), files_of(listing), names, _told(listing, source))


def files_of(listing: Listing) -> dict[str, str]:
    """Hash of a path -> hash of what the file is; nothing for a source that is not a matter of files."""
    return {key: hashed(f"{f.size} {f.stamp}") for key, f in keyed(listing).items()}


def keyed(listing: Listing) -> dict[str, SourceFile]:
    """By the hash of the path below what the source names: the same folder, mounted or checked out elsewhere, has the
    same files. Where two folders have a file of one name, by the whole path."""
    counts = Counter(f.name for f in listing.files)
    return {hashed(f.name if counts[f.name] == 1 else f.uri): f for f in listing.files}


def digest_of(listing: Listing, columns: Mapping[str, str]) -> str:
    """Of what decides about the rows; the layout does not."""
    return digest([listing.digest, dict(columns)])


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _misfits(
    listing: Listing,
    source: Mapping[str, Any],
    storage: Mapping[str, str],
    fields: Sequence[Field],
    columns: Mapping[str, str],
) -> list[str]:
    """Before any byte is written. What only Spark can read is looked at by the step itself."""
    import pyarrow as pa

    from reconciler.catalog.arrow_convert import to_arrow_field

    if source["format"] not in (*FILE_FORMATS, "lance"):
        return []
    found = source_schema(listing, source, storage)
    if found is None:
        asked = [f for f in fields if not f.filled]
    else:  # What it lacks is null, or computed.
        lacks = [f for f in fields if f.name not in columns and f.name not in found.names]
        asked = [f for f in fields if f not in lacks or not (f.nullable or f.filled)]
    return fits(found, pa.schema([to_arrow_field(f) for f in asked]), columns, source["format"])


def _told(listing: Listing, source: Mapping[str, Any]) -> str:
    if source["format"] in FILE_FORMATS:
        count = len(listing.files)
        return f"{count} {'file' if count == 1 else 'files'}, {_size(sum(f.size for f in listing.files))}"
    return str(source["format"])


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"
