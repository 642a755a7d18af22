"""An address as others may see it."""

from __future__ import annotations

from urllib.parse import urlsplit


def public_url(url: str) -> str | None:
    """Without user, password, query and fragment, where tokens are; outside of the web also without parameters, as in
    `sc://host/;token=`. None for what is no address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not parts.scheme or not host:
        return None
    at = f"[{host}]" if ":" in host else host
    path = parts.path if parts.scheme in ("http", "https") else parts.path.partition(";")[0]
    return f"{parts.scheme}://{at}{f':{port}' if port is not None else ''}{path}"
