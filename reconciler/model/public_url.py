"""An address as others may see it."""

from __future__ import annotations

from urllib.parse import urlsplit


def public_url(url: str) -> str | None:
    """Without user, password, query and fragment, where tokens are, and without the part of the path that has such
    (`/;token=`) and what follows: half a secret could not be masked. None for what is no address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not parts.scheme or not host:
        return None
    at = f"[{host}]" if ":" in host else host
    path, parameters, _ = parts.path.partition(";")
    path = path.rpartition("/")[0] if parameters else path
    return f"{parts.scheme}://{at}{f':{port}' if port is not None else ''}{path}"
