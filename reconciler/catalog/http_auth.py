"""Who we are to a catalog service: a fixed token, or OAuth2 client credentials that are renewed before they expire."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlencode, urlsplit

from reconciler.catalog import deadline, strict_json
from reconciler.catalog.http_transport import LARGEST_CREDENTIALS, Answer, Broken, NeverSent, Timeouts, Transport
from reconciler.catalog.known_secrets import learned
from reconciler.catalog.lance_errors import clean
from reconciler.catalog.options import is_sendable, need_sendable
from reconciler.catalog.statuses import may_pass
from reconciler.model.errors import CatalogError, Code
from reconciler.model.public_url import public_url

_EARLY = 0.2
"""A token is renewed when a fifth of its life is left, so that no request starts with one that is about to end."""
_NO_EXPIRY = 3600.0
_LONGEST_TOKEN = 64 * 1024
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class FixedHeaders:
    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = dict(headers)

    def headers(self) -> Mapping[str, str]:
        return self._headers

    def renew(self, used: Mapping[str, str]) -> bool:
        return False


def bearer(token: str) -> FixedHeaders:
    """`token` is spec.auth_token. Raises CatalogError when no header can carry it."""
    need_sendable("auth_token", token)
    return FixedHeaders({"Authorization": f"Bearer {token}"})


class ClientCredentials:
    """`credential` is `client_id:client_secret` (the secret alone is allowed, as in Iceberg's clients)."""

    def __init__(
        self,
        token_uri: str,
        credential: str,
        *,
        scope: str | None = None,
        timeouts: Timeouts | None = None,
        max_retries: int = 3,
        verify: ssl.SSLContext | bool = True,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._uri = token_uri
        client, colon, secret = credential.partition(":")
        self._id, self._secret = (client, secret) if colon else ("", client)
        self._scope = scope
        self._timeouts = timeouts or Timeouts()
        self._max_retries = max_retries
        self._verify = verify
        self._sleep = sleep
        self._lock = threading.Lock()
        self._failed: tuple[float, CatalogError] | None = None
        self._token = ""
        self._good_until = 0.0

    def headers(self) -> Mapping[str, str]:
        """One asks for a token, and its failure is that of all who waited: they do not ask one after the other."""
        asked = time.monotonic()
        with self._lock:
            if self._failed is not None and self._failed[0] >= asked:
                raise self._failed[1].reworded(self._failed[1].message)
            if time.monotonic() >= self._good_until:
                try:
                    self._fetch()
                except CatalogError as error:
                    self._failed = (time.monotonic(), error)
                    raise
            return {"Authorization": f"Bearer {self._token}"}

    def renew(self, used: Mapping[str, str]) -> bool:
        """A token that was refused is not used again; one that another thread has renewed meanwhile is kept."""
        with self._lock:
            if used.get("Authorization") == f"Bearer {self._token}":
                self._good_until = 0.0
        return True

    def _fetch(self) -> None:
        form = {"grant_type": "client_credentials", "client_id": self._id, "client_secret": self._secret}
        if not self._id:
            del form["client_id"]
        if self._scope:
            form["scope"] = self._scope
        transport = Transport(self._uri, self._timeouts, self._verify, largest=LARGEST_CREDENTIALS)
        try:
            self._keep(self._asked(transport, urlencode(form).encode()))
        finally:
            transport.close()

    def _asked(self, transport: Transport, form: bytes) -> Answer:
        query = urlsplit(self._uri).query
        for attempt in range(self._max_retries + 1):
            try:
                answer = transport.exchange("POST", f"?{query}" if query else "", _FORM, form)
            except (NeverSent, Broken) as error:
                why = f"no token from {self._shown}: {error}"
                failure = CatalogError(Code.SERVICE_UNAVAILABLE, why, unreachable=True)
            else:
                if answer.status == 200:
                    return answer
                failure = self._refused(answer)
                if not failure.retryable:
                    raise failure
            if deadline.is_over():
                break
            if attempt < self._max_retries:
                self._sleep(deadline.allowed(0.2 * 2.0**attempt))
        failure.spent = True
        raise failure

    def _keep(self, answer: Answer) -> None:
        try:
            body = strict_json.loads(answer.content)
            token, life = str(body["access_token"]), float(body.get("expires_in") or _NO_EXPIRY)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CatalogError(
                Code.UNAUTHENTICATED, f"the answer of {self._shown} holds no access_token: is it a token endpoint?"
            ) from None
        if len(token) > _LONGEST_TOKEN:
            raise CatalogError(
                Code.UNAUTHENTICATED, f"the access_token of {self._shown} is too long for an HTTP header"
            )
        if not is_sendable(token):
            raise CatalogError(
                Code.UNAUTHENTICATED,
                f"the access_token of {self._shown} holds a character that no HTTP header can carry",
            )
        learned([token])
        self._token = token
        self._good_until = time.monotonic() + life * (1 - _EARLY)

    def _refused(self, answer: Answer) -> CatalogError:
        status = answer.status
        try:
            body = strict_json.loads(answer.content)
            why = clean(str(body.get("error_description") or body.get("error") or ""))
        except (ValueError, AttributeError):
            why = ""
        code = Code.UNAUTHENTICATED
        if status == 429:
            code = Code.THROTTLING
        elif may_pass(status) or status == 501:
            code = Code.SERVICE_UNAVAILABLE
        shown = f": {why}" if why else ""
        wrong_place = 300 <= status < 400 or (status in (404, 405) and not why)
        check = "oauth2_server_uri" if wrong_place else "credential"
        return CatalogError(code, f"{self._shown} gave no token ({status}{shown}): check `{check}`")

    @property
    def _shown(self) -> str:
        return public_url(self._uri) or "the token endpoint"
