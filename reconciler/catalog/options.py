"""Options of a catalog document as values. They arrive as strings; the schema has checked what was written, and this
checks what a `${env:}` or `${file:}` became."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from reconciler.model.errors import CatalogError, Code

STORAGE = "storage."
HEADER = "header."


def text(options: Mapping[str, str], key: str) -> str | None:
    value = options.get(key)
    return value if value else None


def required(options: Mapping[str, str], key: str) -> str:
    value = options.get(key)
    if not value:
        raise CatalogError(Code.INVALID_INPUT, f"spec.{key} is missing or empty")
    return value


def number(options: Mapping[str, str], key: str, default: int) -> int:
    """A whole number, not negative. The value may be a secret put in the wrong place: it is not repeated."""
    value = options.get(key)
    if value is None:
        return default
    if not value.strip().isdecimal():
        raise CatalogError(Code.INVALID_INPUT, f"spec.{key} is not a whole number")
    return int(value)


def flag(options: Mapping[str, str], key: str, default: bool) -> bool:
    value = options.get(key)
    if value is None:
        return default
    known = {"true": True, "false": False}.get(value.strip().lower())
    if known is None:
        raise CatalogError(Code.INVALID_INPUT, f"spec.{key} is neither true nor false")
    return known


def under(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The options `prefix…`, without the prefix."""
    return {k[len(prefix) :]: v for k, v in options.items() if k.startswith(prefix)}


def base_address(options: Mapping[str, str], key: str) -> str:
    """One that paths are put after: a query or a fragment would have to be left out."""
    value = address(options, key)
    need_path_only(key, value)
    return value


def need_path_only(key: str, value: str) -> None:
    """What it has beyond that may be a token: it is not repeated."""
    if "?" in value or "#" in value:
        message = f"spec.{key} must not have a query (?) or a fragment (#): they would not be sent"
        raise CatalogError(Code.INVALID_INPUT, message)


def address(options: Mapping[str, str], key: str) -> str:
    """An http(s) address without a trailing slash and without a name or password in it."""
    value = required(options, key)
    scheme, _, rest = value.partition("://")
    if scheme not in ("http", "https") or not rest:
        raise CatalogError(Code.INVALID_INPUT, f"spec.{key} must start with http:// or https://")
    if "@" in rest.split("/", 1)[0]:
        raise CatalogError(Code.INVALID_INPUT, f"spec.{key} must not hold a user name or password")
    try:
        split = urlsplit(value)
        valid = bool(split.hostname) and split.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise CatalogError(Code.INVALID_INPUT, f"spec.{key} has no valid host or port: http(s)://host[:port]/...")
    return value.rstrip("/")


def is_sendable(value: str) -> bool:
    """As the value of an HTTP header."""
    return value.isascii() and value.isprintable()


def need_sendable(key: str, value: str) -> None:
    """The value is a secret: it is not repeated, and no library gets the chance to."""
    if not is_sendable(value):
        raise CatalogError(
            Code.INVALID_INPUT, f"spec.{key} holds a line break or a character that no HTTP header can carry"
        )


def tls(options: Mapping[str, str]) -> ssl.SSLContext | bool:
    """`tls.ca_file`, `tls.cert_file`, `tls.key_file`, `tls.verify`: True when none is given."""
    keys = under(options, "tls.")
    if not keys:
        return True
    try:
        context = ssl.create_default_context(cafile=keys.get("ca_file"))
        if keys.get("cert_file"):
            context.load_cert_chain(keys["cert_file"], keys.get("key_file"))
    except (OSError, ssl.SSLError) as error:
        raise CatalogError(Code.INVALID_INPUT, f"the files of spec.tls.* cannot be used: {error}") from None
    if not flag(options, "tls.verify", True):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
