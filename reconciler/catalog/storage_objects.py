"""Storage on S3, GCS, Azure and whatever else obstore reaches."""

from __future__ import annotations

import posixpath
import re
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from reconciler.catalog.fence import may_write
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.storage import LARGEST_RECORD, RESERVED, VERSIONS, Listing, escape, inside, relative_to
from reconciler.core.uris import canonical_location
from reconciler.model.errors import CatalogError, Code

_CLIENT_OPTIONS = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_keep_alive_interval",
    "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_only", "pool_idle_timeout",
    "pool_max_idle_per_host", "proxy_url", "proxy_ca_certificate", "proxy_excludes", "read_timeout",
    "root_certificate", "timeout", "user_agent",
})  # fmt: skip
_UNKNOWN_KEY = re.compile(r"key: '([^']*)'")
_RETRIES = 3
_PAGE = 1000
_MOST_PAGES = 5
"""Of a search in a folder that may hold anything."""
_THREADS = 16
_NOWHERE = "__reconciler/nowhere"


class ObjectStorage:
    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self._url = url.rstrip("/")
        self._options = dict(options)
        self._store = connect(self._url, self._options)
        self._reached = False

    @property
    def root(self) -> str:
        return self._url

    @property
    def lance_options(self) -> dict[str, str] | None:
        return self._options

    @property
    def threads(self) -> int:
        return _THREADS

    def uri(self, path: str) -> str:
        return f"{self._url}/{escape(path)}" if path else self._url

    def shown(self, path: str) -> str:
        return self.uri(path)

    def canonical(self, path: str) -> str:
        root = canonical_location(self._url)
        return f"{root}/{path}" if path else root

    def relative(self, location: str) -> str | None:
        return relative_to(self._url, location)

    def resolved(self, path: str) -> str | None:
        """A bucket has no links."""
        return inside(path)

    def check_open(self, path: str) -> None:
        """Would cost a request; and rights rarely end at a table here."""

    def check_files(self, path: str) -> None:
        """A bucket has nothing else."""

    def check(self) -> None:
        """Asks once for an object that nobody has. lance would go on listing a missing bucket, or an endpoint that
        cannot be reached, for seconds, whatever `client_max_retries` says; and a web page in the place of a listing
        (a console's port, a login page) reads as an empty one. A bucket has no folders that could be missing."""
        import obstore
        from obstore.exceptions import PermissionDeniedError

        if self._reached:
            return
        with translated(f"read {self._url}"):
            try:
                obstore.get(self._store, _NOWHERE)
            except FileNotFoundError as error:
                self._refuse_missing_bucket(error)
            except PermissionDeniedError:  # so S3 answers for a missing object when it may not be listed
                obstore.list_with_delimiter(self._store, _NOWHERE)
            else:
                raise CatalogError(
                    Code.INVALID_INPUT,
                    f"what answers for {self._url} is not an object store, it says yes to everything: correct the "
                    "endpoint in storage.* (a web console often has another port), or look for a proxy in between",
                )
        self._reached = True

    def check_root(self, wanted: int = 0) -> None:
        """A bucket is not mounted."""
        self.check()

    def list(self, path: str = "") -> Listing:
        import obstore

        with translated(f"list {self.uri(path)}"):
            result = obstore.list_with_delimiter(self._store, path or None)
        return Listing(
            tuple(posixpath.basename(p.rstrip("/")) for p in result["common_prefixes"]),
            tuple(posixpath.basename(o["path"]) for o in result["objects"]),
        )

    def doubt(self, path: str) -> str | None:
        self.check()
        return None

    def subfolders(self, path: str) -> tuple[tuple[str, ...], bool]:
        """Page by page, and past each folder in one step: the objects in it are not listed."""
        import obstore

        below = f"{path}/" if path else ""
        found: dict[str, None] = {}
        offset: str | None = None
        for _ in range(_MOST_PAGES):
            with translated(f"list {self.uri(path)}"):
                page = next(iter(obstore.list(self._store, path or None, offset=offset, chunk_size=_PAGE)), [])
            names = [o["path"][len(below) :] for o in page]
            found.update(dict.fromkeys(name.partition("/")[0] for name in names if "/" in name))
            if len(page) < _PAGE:
                return tuple(found), True
            folder, inside, _ = names[-1].partition("/")
            offset = f"{below}{folder}0" if inside else f"{below}{names[-1]}"  # `0` comes right after `/`.
        return tuple(found), False

    def is_folder(self, path: str) -> bool:
        listing = self.list(path)
        return bool(listing.folders or listing.files)

    def is_dataset(self, path: str) -> bool:
        import obstore

        below = f"{path}/" if path else ""
        try:
            with translated(f"list {self.uri(path)}"):
                if any(obstore.list(self._store, f"{below}{VERSIONS}", chunk_size=1)):
                    return True
            return self._exists(f"{below}{RESERVED}")
        except CatalogError as error:
            if error.code is Code.PERMISSION_DENIED:
                return False
            raise

    def list_deep(self, path: str, ending: str | None = None) -> tuple[str, ...]:
        """A bucket has no folders, so that none can be in the place of a file."""
        import obstore

        skip = len(path) + 1 if path else 0
        with translated(f"list {self.uri(path)}"):
            return tuple(o["path"][skip:] for page in obstore.list(self._store, path or None) for o in page)

    def having(self, folders: Iterable[str], name: str) -> frozenset[str]:
        names = list(folders)
        if not names:
            return frozenset()
        with ThreadPoolExecutor(min(_THREADS, len(names))) as pool:
            found = pool.map(lambda folder: self._exists(f"{folder}/{name}"), names)
            return frozenset(folder for folder, there in zip(names, found, strict=True) if there)

    def _exists(self, path: str) -> bool:
        import obstore

        with translated(f"read {self.uri(path)}"):
            try:
                obstore.head(self._store, path)
            except FileNotFoundError as error:
                self._refuse_missing_bucket(error)
                return False
        return True

    def read(self, path: str, most: int = LARGEST_RECORD) -> bytes | None:
        import obstore

        with translated(f"read {self.uri(path)}"):
            try:
                found = obstore.get(self._store, path)
                if found.meta["size"] > most:
                    raise ValueError(f"it has {found.meta['size']} bytes, and more than {most} are not read")
                return bytes(found.bytes())
            except FileNotFoundError as error:
                self._refuse_missing_bucket(error)
                return None

    def _refuse_missing_bucket(self, error: FileNotFoundError) -> None:
        if "NoSuchBucket" in str(error):
            raise CatalogError(
                Code.INVALID_INPUT, f"the bucket of {self._url} does not exist: create it or correct spec.path"
            )

    def create(self, path: str, data: bytes) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError

        may_write()
        with translated(f"write {self.uri(path)}", write=True):
            try:
                obstore.put(self._store, path, data, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def replace(self, path: str, data: bytes) -> None:
        import obstore

        may_write()
        with translated(f"write {self.uri(path)}", write=True):
            obstore.put(self._store, path, data)

    def delete(self, path: str) -> None:
        import obstore

        may_write()
        with translated(f"remove {self.uri(path)}", write=True):
            try:
                obstore.delete(self._store, path)
            except FileNotFoundError:
                return

    def time(self) -> float:
        import obstore

        path = f".reconciler-time-{uuid.uuid4().hex}"
        may_write()
        with translated(f"write {self.uri(path)}", write=True):
            obstore.put(self._store, path, b"time")
            try:
                return float(obstore.head(self._store, path)["last_modified"].timestamp())
            finally:
                obstore.delete(self._store, path)

    def prune(self, path: str) -> None:
        """A bucket has no empty folders."""


def connect(url: str, options: Mapping[str, str]) -> Any:
    """lance ignores options it does not know, obstore refuses them: those are left to lance alone."""
    from obstore.exceptions import UnknownConfigurationKeyError
    from obstore.store import from_url

    config = {k: v for k, v in options.items() if k.lower() not in _CLIENT_OPTIONS}
    client = {k.lower(): _boolean(v) for k, v in options.items() if k.lower() in _CLIENT_OPTIONS}
    retry: dict[str, Any] = {"max_retries": _number(config, "client_max_retries", _RETRIES)}
    if "client_retry_timeout" in config:
        retry["retry_timeout"] = timedelta(seconds=_number(config, "client_retry_timeout", 0))
    with translated(f"connect to {url}"):
        while True:
            try:
                return from_url(url, config=config, client_options=client or None, retry_config=retry)  # type: ignore[call-overload]
            except UnknownConfigurationKeyError as error:
                key = _UNKNOWN_KEY.search(str(error))
                if key is None or config.pop(key.group(1), None) is None:
                    raise


def _number(config: dict[str, str], key: str, default: int) -> int:
    """Takes the option out of `config`. Its value may be a secret put in the wrong place: it is not repeated."""
    text = config.pop(key, str(default)).strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise CatalogError(Code.INVALID_INPUT, f"storage.{key} is not a whole number from 0 to 999999999")
    return int(text)


def _boolean(value: str) -> str | bool:
    return {"true": True, "false": False}.get(value.lower(), value)
