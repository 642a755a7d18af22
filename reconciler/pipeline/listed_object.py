"""Reads of one object that are bound to what a listing saw: every answer of the store says which object it is of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.catalog.storage_objects import connect
from reconciler.model.errors import CatalogError

_TIME = re.compile(r"\d+(\.\d+)?")
"""The stamp of a store that shows no etags."""


def object_stamp(meta: Mapping[str, Any]) -> str:
    return str(meta["e_tag"] or meta["last_modified"].timestamp())


def ranges(
    uri: str, storage_options: Mapping[str, str], stamp: str, changed: Callable[[str], Exception]
) -> Callable[[int, int], bytes]:
    """What reads a part of the object at `uri`, if it still has the stamp of the listing; otherwise raises what
    `changed` makes of the URI. The etag in the answer decides, and not `If-Match`: stores write etags of a listing and
    of a read with other quotes."""
    import obstore
    from obstore.exceptions import BaseError

    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    try:
        store = connect(f"{scheme}://{bucket}", storage_options)
    except CatalogError as error:
        raise OSError(error.message) from error

    def read(start: int, length: int) -> bytes:
        try:
            found = obstore.get(store, key, options={"range": (start, start + length)})
            if not _is(found.meta, stamp):
                raise changed(uri)
            return bytes(found.bytes())
        except FileNotFoundError as error:
            raise changed(uri) from error
        except BaseError as error:
            _need_stamp(store, key, stamp, changed(uri))  # Of a shorter object there is no such part.
            raise OSError(str(error)) from error

    return read


def _need_stamp(store: Any, key: str, stamp: str, error: Exception) -> None:
    import obstore
    from obstore.exceptions import BaseError

    try:
        if _is(obstore.head(store, key), stamp):
            return
    except (BaseError, OSError):
        return
    raise error


def _is(meta: Mapping[str, Any], stamp: str) -> bool:
    if _TIME.fullmatch(stamp):
        return int(float(stamp)) == int(meta["last_modified"].timestamp())  # A header has whole seconds.
    return _bare(str(meta["e_tag"])) == _bare(stamp)


def _bare(etag: str) -> str:
    return etag.removeprefix("W/").strip('"')
