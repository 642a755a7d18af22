"""The few calls of GitHub's REST API that the action makes, with nothing but the standard library."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, NoReturn

TIMEOUT = 30
PER_PAGE = 100
MAX_PAGES = 100
MAX_BYTES = 256 << 20
LONGEST_MESSAGE = 500


class ApiError(Exception):
    """`wait`: seconds after which it may be tried again; None: trying again would change nothing."""

    def __init__(self, message: str, status: int = 0, wait: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.wait = wait


@contextmanager
def reading() -> Iterator[None]:
    """An answer of another shape than GitHub's is told as one, wherever in it that is noticed."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ApiError(f"an answer that is not GitHub's ({type(error).__name__})") from error


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer: following it would send the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class GitHub:
    api: str
    """`https://api.github.com`, or that of an Enterprise server."""
    repository: str
    token: str

    def get(self, path: str) -> Any:
        return _json(self._send("GET", path))

    def send(self, method: str, path: str, body: dict[str, Any]) -> Any:
        return _json(self._send(method, path, json.dumps(body).encode()))

    def pages(self, path: str, key: str | None = None) -> Iterator[dict[str, Any]]:
        """All items of a list, of which a page is what it says or what stands under `key`. For use under `reading`."""
        for page in range(1, MAX_PAGES + 1):
            mark = "&" if "?" in path else "?"
            found = self.get(f"{path}{mark}per_page={PER_PAGE}&page={page}")
            items = found if key is None else found[key]
            if not isinstance(items, list):
                raise TypeError("not a list")
            yield from items
            if len(items) < PER_PAGE:
                return

    def download(self, path: str) -> bytes:
        """What the answer redirects to, fetched without the token: its address is a signed one of a store."""
        try:
            return self._send("GET", path)
        except ApiError as error:
            place = getattr(error.__cause__, "headers", {}).get("Location")
            if error.status not in (301, 302, 303, 307, 308) or not place:
                raise
        try:
            with _opener().open(place, timeout=TIMEOUT) as answer:
                return bytes(answer.read(MAX_BYTES))
        except (OSError, HTTPException, ValueError) as error:
            raise ApiError(f"the download failed: {error}", wait=2) from error

    def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "User-Agent": "lance-reconciler",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        url = f"{self.api}/repos/{self.repository}/{path}"
        request = urllib.request.Request(url, body, headers, method=method)
        try:
            with _opener().open(request, timeout=TIMEOUT) as answer:
                return bytes(answer.read(MAX_BYTES))
        except urllib.error.HTTPError as error:
            _refused(error)
        except (OSError, HTTPException) as error:
            raise ApiError(f"no answer: {error}", wait=2) from error
        except ValueError as error:  # An address or a header that cannot be; the message may quote the token.
            raise ApiError(f"no answer: {type(error).__name__}") from error


def _json(data: bytes) -> Any:
    """A page of a proxy, or that of a maintenance, comes as 200 too, and passes."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ApiError("an answer that is not JSON", wait=2) from error


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Stay)


def _refused(error: urllib.error.HTTPError) -> NoReturn:
    """A limit of the rate comes as 429, or as 403 with a header that says when it ends."""
    try:
        message = str(json.loads(error.read(1 << 16))["message"])[:LONGEST_MESSAGE]
    except (ValueError, LookupError, TypeError, RecursionError, OSError, HTTPException):
        message = error.reason
    after = error.headers.get("Retry-After", "")
    limited = error.code == 429 or (error.code == 403 and (after or error.headers.get("X-RateLimit-Remaining") == "0"))
    wait = None
    if limited or error.code >= 500:
        wait = float(after) if after.isascii() and after.isdigit() else 2.0
    raise ApiError(f"{error.code} {message}", error.code, wait) from error
