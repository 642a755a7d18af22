"""HTTP for the catalog services: retries of reads, sign-in, and a pace that follows the server.

A read is repeated when its answer may pass (408, 425, 429, 5xx but for 501, a cut or truncated answer). A write is
repeated here only when it certainly was not carried out (no connection, 425, 429); after 408, 5xx and a cut its outcome
is unknown, and whoever can re-read the object decides whether it is sent again. Both are sent `max_retries` + 1 times
at most: the sendings of a write are counted over the whole step (`fence`), and an error says when they are spent.
"""

from __future__ import annotations

import email.utils
import json as jsonlib
import random
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

from reconciler.catalog import deadline, strict_json
from reconciler.catalog.fence import answered, counting, may_write
from reconciler.catalog.http_transport import Answer, Broken, NeverSent, Refused, Timeouts, Transport
from reconciler.catalog.lance_errors import clean
from reconciler.catalog.options import HEADER, need_sendable
from reconciler.catalog.outage import Outage
from reconciler.catalog.pace import Pace
from reconciler.catalog.service import Service, is_page
from reconciler.catalog.stats import Stats
from reconciler.catalog.statuses import NO_SERVICE, may_have_landed, may_pass
from reconciler.model.errors import CatalogError, Code
from reconciler.model.public_url import public_url

T = TypeVar("T")
_REFUSED = (401, 419)
"""The second is Iceberg's word for a token whose time is over."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_LONGEST = 20.0
_LONGEST_ASKED = 60.0
_STATUS = {400: Code.INVALID_INPUT, 401: Code.UNAUTHENTICATED, 403: Code.PERMISSION_DENIED, 404: Code.INTERNAL,
           405: Code.UNSUPPORTED, 406: Code.UNSUPPORTED, 409: Code.CONCURRENT_MODIFICATION, 419: Code.UNAUTHENTICATED,
           422: Code.INVALID_INPUT, 429: Code.THROTTLING, 501: Code.UNSUPPORTED, 502: Code.SERVICE_UNAVAILABLE,
           503: Code.SERVICE_UNAVAILABLE, 504: Code.SERVICE_UNAVAILABLE, 408: Code.SERVICE_UNAVAILABLE,
           425: Code.SERVICE_UNAVAILABLE}  # fmt: skip


class Auth(Protocol):
    def headers(self) -> Mapping[str, str]:
        """For the next request. Raises CatalogError."""

    def renew(self, used: Mapping[str, str]) -> bool:
        """Called after a 401 or 419 to a request with these headers: True when it is worth another try."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer, whatever its status. `body` is the parsed JSON, or None when there is none."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    text: str = ""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def retry_after(self) -> float | None:
        return _seconds(self.headers.get("retry-after"))


class Http:
    """`base` is the address up to the API's root. Thread-safe; connections are reused, at most `parallel` at a time."""

    def __init__(
        self,
        base: str,
        *,
        timeouts: Timeouts,
        max_retries: int,
        parallel: int,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        verify: ssl.SSLContext | bool = True,
        stats: Stats | None = None,
        sleep: Callable[[float], object] = time.sleep,
        code_of: Callable[[Reply], Code | None] | None = None,
        service: Service | None = None,
    ) -> None:
        """`code_of`: the service's own error code in an answer, where it has such codes; else the status decides.
        `service`: whose answers are expected."""
        self._address = base.rstrip("/")
        self.base = public_url(self._address) or self._address
        """As it may be shown: a query may hold a token, and is not sent."""
        self._service = service
        self._code_of = code_of
        self.stats = stats or Stats()
        self._timeouts = timeouts
        self.max_retries = max_retries
        self._headers = _sendable(headers or {})
        self._auth = auth
        self._verify = verify
        self._sleep = sleep
        self._pace = Pace(parallel, sleep)
        self._outage = Outage()
        self._lock = threading.Lock()
        self._transport: Transport | None = None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # requests

    def get(
        self, path: str, params: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """`path` is already percent-encoded. Raises CatalogError when no complete answer came; else any status."""
        return self._read("GET", path, params, headers)

    def head(self, path: str, params: Mapping[str, str] | None = None) -> Reply:
        return self._read("HEAD", path, params, None)

    def ask(self, path: str, json: Any, params: Mapping[str, str] | None = None) -> Reply:
        """A read that the API wants as a POST."""
        return self._read("POST", path, params, None, json)

    def send(
        self,
        method: str,
        path: str,
        json: Any = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """A write. A 5xx is raised as an unknown outcome, like a connection that broke; other statuses are returned."""
        self.stats.count("writes")
        doing = f"{method} {self._shown(path)}"
        call = (self._address, method, _target(path, params), _encoded(json))
        with counting():
            while True:
                sendings = may_write(call)
                spent = sendings > self.max_retries
                try:
                    reply = self._once(method, path, params, headers, json)
                except NeverSent as error:
                    failure = CatalogError(Code.SERVICE_UNAVAILABLE, f"{doing}: {error}")
                except Broken as error:
                    failure = CatalogError(Code.SERVICE_UNAVAILABLE, f"{doing}: {error}", unknown_outcome=True)
                else:
                    found = self._failed_write(reply, doing)
                    if found is None:
                        answered(call)
                        return reply
                    failure = found
                if spent or failure.unknown_outcome or deadline.is_over():
                    failure.sendings, failure.spent = sendings, spent
                    raise failure
                self._sleep(deadline.allowed(_delay(sendings, failure.retry_after)))

    def _failed_write(self, reply: Reply, doing: str) -> CatalogError | None:
        """None: an answer that the caller understands."""
        if may_pass(reply.status):
            return self.error(reply, doing, write=True)
        if reply.ok and is_page(reply.text):  # Other text is fine: some services answer a write in words.
            return CatalogError(
                Code.SERVICE_UNAVAILABLE,
                f"{doing}: the answer ({reply.status}) is a web page, not an answer of the service: is a login page or "
                "a proxy in front of it?",
                unknown_outcome=True,
            )
        return None

    def until_done(self, action: Callable[[], T]) -> T:
        """For several writes of which the step's object shows nothing: nobody would repeat them. `action` looks before
        it writes, and is run again until it has done what is missing or one of its calls is spent."""
        uncounted = 0
        with counting():
            while True:
                try:
                    return action()
                except CatalogError as error:
                    uncounted += not error.sendings
                    passes = error.retryable or error.unknown_outcome
                    if not passes or error.spent or uncounted > self.max_retries:
                        raise
                    self._sleep(deadline.allowed(_delay(error.sendings or uncounted, error.retry_after)))

    def _read(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        json: Any = None,
    ) -> Reply:
        doing = f"{method} {self._shown(path)}"
        call = (method, _target(path, params), _encoded(json))
        self._outage.need_hope(call)
        self.stats.count("listings")
        attempt = 0
        while True:
            attempt += 1
            asked: float | None = None
            since, silent = self._outage.begin(), False
            try:
                reply = self._once(method, path, params, headers, json)
                if not may_pass(reply.status):
                    return reply
                failure = self.error(reply, doing)
                asked = reply.retry_after
            except Refused as error:
                raise CatalogError(Code.INTERNAL, f"{doing}: {error}") from None
            except (NeverSent, Broken) as error:
                failure, silent = CatalogError(Code.SERVICE_UNAVAILABLE, f"{doing}: {error}"), True
            if attempt > self.max_retries or deadline.is_over():
                raise self._outage.spent(call, failure, attempt, since, silent=silent)
            self._sleep(deadline.allowed(_delay(attempt, asked)))

    def _once(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        json: Any,
    ) -> Reply:
        signed = dict(self._auth.headers()) if self._auth else {}
        reply = self._exchange(method, path, params, {**signed, **(headers or {})}, json)
        if reply.status in _REFUSED and self._auth is not None and self._auth.renew(signed):
            signed = dict(self._auth.headers())
            reply = self._exchange(method, path, params, {**signed, **(headers or {})}, json)
        return reply

    def _exchange(
        self, method: str, path: str, params: Mapping[str, str] | None, headers: Mapping[str, str], json: Any
    ) -> Reply:
        body = _encoded(json)
        if body is not None:
            headers = {"content-type": "application/json", **headers}
        with self._pace.turn():
            answer = self._open().exchange(method, _target(path, params), headers, body)
        reply = _reply(answer)
        if reply.status not in NO_SERVICE:
            self._outage.answered()
        if reply.status == 429:
            self._pace.slow_down(reply.retry_after)
        elif reply.ok:
            self._pace.went_well()
        return reply

    def _open(self) -> Transport:
        with self._lock:
            if self._transport is None:
                self._transport = Transport(self._address, self._timeouts, self._verify, self._headers)
            return self._transport

    # errors

    def error(self, reply: Reply, doing: str, *, write: bool = False, code: Code | None = None) -> CatalogError:
        """What an answer means when the service's own error codes say nothing better."""
        if code is None and self._code_of is not None:
            code = self._code_of(reply)
        if code is None:
            code = _STATUS.get(reply.status, Code.INTERNAL)
        strange = self._service is not None and self._service.is_strange(reply)
        told = message_of(reply) if not strange or reply.body is not None else ""
        detail = "; ".join(filter(None, (told, self.unlike(reply) if strange else "")))
        unknown = write and may_have_landed(reply.status)
        return CatalogError(
            code,
            f"{doing} answered {reply.status}" + (f": {detail}" if detail else ""),
            unknown_outcome=unknown,
            retry_after=reply.retry_after,
        )

    def unlike(self, reply: Reply | None = None) -> str:
        """What to say of an answer that is not the service's."""
        return self._service.unlike(reply) if self._service is not None else f"check the address {self.base}"

    def _shown(self, path: str) -> str:
        return self.base + path


def _sendable(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of the user, looked at before a library fails over them with their values in its message."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise CatalogError(Code.INVALID_INPUT, f"spec.{HEADER}{name} is not the name of an HTTP header")
        need_sendable(f"{HEADER}{name}", value)
    return dict(headers)


def _target(path: str, params: Mapping[str, str] | None) -> str:
    return path + (f"?{urlencode(params, quote_via=quote)}" if params else "")


def _encoded(json: Any) -> bytes | None:
    if json is None:
        return None
    return jsonlib.dumps(json, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def message_of(reply: Reply) -> str:
    """The server's own words, from the usual places of a JSON error body."""
    body = reply.body
    if isinstance(body, dict):
        inner = body.get("error")
        if isinstance(inner, dict):
            body = inner
        for key in ("message", "detail", "error_description", "Message", "error"):
            if isinstance(body.get(key), str) and body[key]:
                return clean(body[key])
    return clean(reply.text, 300) if reply.text and "<" not in reply.text[:20] else ""


def _reply(answer: Answer) -> Reply:
    status, headers, content = answer
    if not content:
        return Reply(status, headers)
    if "json" not in headers.get("content-type", "").lower():
        return Reply(status, headers, None, answer.text)
    try:
        return Reply(status, headers, strict_json.loads(content), "")
    except ValueError as error:
        if status >= 400:
            return Reply(status, headers, None, answer.text)
        if isinstance(error, strict_json.Malformed):
            raise Refused(f"the answer ({status}) is not valid JSON: {error}") from None
        raise Broken(f"the answer ({status}) is not complete JSON: {error}") from None


def _delay(attempt: int, asked: float | None) -> float:
    delay = random.uniform(0.0, min(_LONGEST, 0.2 * 2.0 ** (attempt - 1)))
    return max(delay, min(asked, _LONGEST_ASKED)) if asked is not None else delay


def _seconds(value: str | None) -> float | None:
    """Retry-After: seconds, or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
