"""URIs as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from reconciler.model.state import TableState

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SPELLINGS = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "abfs": "abfss", "wasb": "wasbs",
}  # fmt: skip
"""Schemes that name one store. Everything else about two URIs may still differ."""
_LOCAL = re.compile(r"(file|file-object-store|file\+uring):", re.IGNORECASE)
"""Schemes of local files: lance has three readers for them."""
_NOT_READ = re.compile(r"[\t\r\n]|[?#].*", re.DOTALL)
"""Of the URI of a bucket: what lance and obstore leave out."""
_BLANK = "".join(map(chr, range(0x21)))
_COMMITS = "+ddb"
"""`s3+ddb` keeps the versions of a dataset elsewhere too: it is opened as written, and its files are those of `s3`."""
_PORT = re.compile(r":[0-9]*$")
_CONTAINER_FIRST = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""Schemes in which `container@account` is the name of the store."""


def canonical_location(location: str) -> str:
    """The one text by which locations are compared, however they are spelled: `file:` URIs become paths, schemes and
    hosts are lower case, percent-encoding is undone, and `.`, `..`, `//` and trailing slashes are gone. So is what does
    not count in the URI of a bucket: a port, a query, a fragment, spaces around it, and tabs.

    For comparing only: it is never sent to a catalog, shown or opened. Purely lexical; where storage has links,
    `catalog.locations.canonical` resolves them on top. A relative path stays relative."""
    if is_file_uri(location):
        return _without_dots(unquote(_local(location)))
    read = _NOT_READ.sub("", location.strip(_BLANK))
    match = _SCHEME.match(read)
    if match is None:
        return _without_dots(location)
    host, _, path = read[match.end() :].partition("/")
    scheme = _store(match.group(1)).removesuffix(_COMMITS)
    store = f"{scheme}://{_PORT.sub('', host.lower())}"
    return store + _without_dots("/" + unquote(path)).rstrip("/")


def canonical_of(state: TableState) -> str | None:
    """The canonical location of a live table; None when it is not known."""
    if state.place is not None:
        return state.place
    return canonical_location(state.location) if isinstance(state.location, str) else None


def with_store_scheme(uri: str) -> str:
    """The URI with the scheme that lance and obstore know, without a trailing slash, otherwise as written."""
    match = _SCHEME.match(uri)
    return f"{_store(match.group(1))}://{uri[match.end() :].rstrip('/')}" if match else uri


def is_file_uri(location: str) -> bool:
    return _LOCAL.match(location) is not None


def contains(outer: str, inner: str) -> bool:
    """Is the one canonical location a folder somewhere above the other?"""
    return inner != outer and inner.startswith(outer.rstrip("/") + "/")


def folders_above(location: str) -> Iterator[str]:
    """The folders that a canonical location is in, the nearest first, up to the bucket or the root of the disk."""
    scheme, separator, rest = location.rpartition("://")
    while "/" in rest.rstrip("/"):
        rest = rest.rstrip("/").rpartition("/")[0]
        yield f"{scheme}{separator}{rest}" or "/"


def store_endpoints(options: Mapping[str, object]) -> tuple[str, ...]:
    """Of a catalog's options: the same URI at another endpoint is another location."""
    found = (str(v) for k, v in options.items() if k.startswith("storage.") and "endpoint" in k.lower())
    return tuple(sorted({text.strip().rstrip("/").lower() for text in found}))


def _store(scheme: str) -> str:
    return _SPELLINGS.get(scheme.lower(), scheme.lower())


def _local(uri: str) -> str:
    """The path of a `file:` URI. A location has no query and no fragment: `#` and `?` are part of a name."""
    path = uri.partition(":")[2]
    return "".join(path[2:].partition("/")[1:]) if path.startswith("//") else f"/{path}"


def _without_dots(path: str) -> str:
    """As text. An absolute path cannot be left upwards. A relative one keeps its first name (`.`, `..`): what it is
    relative to may depend on that."""
    first, _, rest = path.partition("/")
    parts: list[str] = []
    for part in rest.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif (part == ".." and first) or part not in ("", ".", ".."):
            parts.append(part)
    return "/".join((first, *parts)) or "/"


_SIGNED = re.compile(
    r"[?&](sig|signature|access_token|token|awsaccesskeyid|x-(amz|goog)-(signature|credential|security-token))=[^&#]",
    re.IGNORECASE,
)


def is_signed(uri: str) -> bool:
    """True for an address whose query lets in whoever has it, as the signed ones of S3, Google Cloud and Azure do."""
    return "://" in uri and _SIGNED.search(uri) is not None


def holds_userinfo(uri: str) -> bool:
    """True for `scheme://user:password@host/...` and `scheme://user@host/...`. A password may hold anything, also a
    slash: then it looks like a port that is no number, with an @ further on."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return False
    host, _, path = rest.partition("/")
    if "@" in host:
        return ":" in host.rpartition("@")[0] or scheme.lower() not in _CONTAINER_FIRST
    port = host.rpartition(":")[2]
    return ":" in host and not host.endswith("]") and not port.isdecimal() and "@" in path


def inside(folder: str, location: str) -> bool | None:
    """Is the location the folder or below it? None when that cannot be told: it is relative, or not resolved yet."""
    if "${" in location or "${" in folder:
        return None
    outer, inner = canonical_location(folder), canonical_location(location)
    if not inner.startswith("/") and "://" not in inner:
        return None
    return inner == outer or contains(outer, inner)
