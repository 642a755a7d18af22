"""Who we are to AWS: the default chain, fixed keys, a session token, or a role that is taken on again before it ends.

Nothing here touches boto3's global session: two catalogs in one run may be two accounts. botocore signs and parses;
what it would send goes out by our own transport, because botocore reads an answer of any length for any time.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from reconciler.catalog import strict_json
from reconciler.catalog.http_transport import (
    LARGEST,
    LARGEST_CREDENTIALS,
    Broken,
    NeverSent,
    Refused,
    Timeouts,
    Transport,
)
from reconciler.catalog.known_secrets import learned
from reconciler.catalog.options import base_address, number, text
from reconciler.model.errors import CatalogError, Code
from reconciler.model.public_url import public_url

DEFAULT_SESSION_NAME = "lance-reconciler"
_DEFAULT_LIFE = 3600
_SHORTEST_LIFE = 901
_RENEWED = {"_advisory_refresh_timeout": (4, 15 * 60), "_mandatory_refresh_timeout": (8, 10 * 60)}
"""A role is renewed in the last quarter of its life, and calls wait for that in the last eighth; never earlier than
botocore would (15 and 10 minutes before the end). Those alone would renew a role of 15 minutes for every request."""
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""The order of AWS's SDKs. botocore knows the second only."""
MAX_RETRIES = 3
_CONNECT_SECONDS = 10
_READ_SECONDS = 60
_METADATA = Timeouts(2, 5)
"""botocore has one and two seconds, for each piece of an answer. Where there is no such address it is asked in vain."""
_ROLE_KEYS = ("region", "external_id", "session_name", "timeout_sec")


class BrokenAnswer(Exception):
    """An answer of status 200 that is not JSON, or lacks what was asked for. botocore would read it as an empty one:
    as nothing there."""


class RefusedAnswer(BrokenAnswer):
    """The same again would be no better: it is too long, or no JSON that two readers would agree on."""


class Sender:
    """Sends what botocore has made, in its place (`before-send`). Thread-safe."""

    def __init__(
        self, timeouts: Timeouts, verify: ssl.SSLContext | bool, largest: int = LARGEST, proxies: bool = True
    ) -> None:
        self._timeouts, self._verify, self._largest, self._proxies = timeouts, verify, largest, proxies
        self._lock = threading.Lock()
        self._transports: dict[str, Transport] = {}

    def __call__(self, request: Any, **_: Any) -> Any:
        from botocore.awsrequest import AWSResponse
        from botocore.exceptions import EndpointConnectionError, HTTPClientError

        parts = urlsplit(request.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {name: _text(value) for name, value in request.headers.items()}
        body = request.body.encode() if isinstance(request.body, str) else request.body
        try:
            answer = self._to(f"{parts.scheme}://{parts.netloc}").exchange(request.method, target, headers, body)
        except NeverSent as error:
            raise EndpointConnectionError(endpoint_url=request.url, error=error) from error
        except Refused as error:
            raise RefusedAnswer(str(error)) from error
        except Broken as error:
            raise HTTPClientError(error=error) from error
        found: Any = dict(answer.headers)
        return AWSResponse(request.url, answer.status, found, _Content(answer.content))

    def _to(self, base: str) -> Transport:
        with self._lock:
            if base not in self._transports:
                self._transports[base] = Transport(
                    base, self._timeouts, self._verify, largest=self._largest, proxies=self._proxies
                )
            return self._transports[base]

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()


class _KeySender(Sender):
    """For what gives keys: an answer of it that is refused is none of Glue's."""

    def __init__(self, timeouts: Timeouts, verify: ssl.SSLContext | bool, proxies: bool = True) -> None:
        super().__init__(timeouts, verify, LARGEST_CREDENTIALS, proxies)

    def __call__(self, request: Any, **more: Any) -> Any:
        from botocore.exceptions import CredentialRetrievalError

        try:
            return super().__call__(request, **more)
        except RefusedAnswer as error:
            parts = urlsplit(request.url)
            where = public_url(f"{parts.scheme}://{parts.netloc}") or "the endpoint"
            raise CredentialRetrievalError(provider=where, error_msg=str(error)) from error


class _Metadata:
    """For the addresses inside a machine or container that give keys, which botocore asks with a client of its own. Its
    retries, and that an instance without such an address has none, rest on these errors."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._sender = _KeySender(timeouts, True, proxies=False)

    def send(self, request: Any) -> Any:
        from botocore.exceptions import HTTPClientError, ReadTimeoutError

        try:
            return self._sender(request)
        except HTTPClientError as error:
            raise ReadTimeoutError(endpoint_url=request.url, error=error) from error


class _Content:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Iterator[bytes]:
        yield self._content


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _authorities(session: Any) -> ssl.SSLContext:
    """Those that botocore would trust: AWS_CA_BUNDLE, `ca_bundle` of the profile, or its own list."""
    from botocore.httpsession import get_cert_path

    try:
        return ssl.create_default_context(cafile=get_cert_path(session.get_config_variable("ca_bundle") or True))
    except OSError as error:
        raise CatalogError(Code.INVALID_INPUT, f"the file of AWS_CA_BUNDLE cannot be used: {error}") from None


class GlueClient(NamedTuple):
    client: Any
    """One for all threads. It sends every request once: what may be repeated is decided in `glue_api`."""
    sender: Sender
    """What it sends with."""
    account: Callable[[], str]
    """Asks STS whose credentials these are. Raises CatalogError."""


def glue_client(options: Mapping[str, str], parallel: int, now: Callable[[], datetime] | None = None) -> GlueClient:
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    endpoint = base_address(options, "endpoint") if text(options, "endpoint") else None
    connect, read = number(options, "connect_timeout", _CONNECT_SECONDS), number(options, "read_timeout", _READ_SECONDS)
    try:
        source = _new_session()
        sender = Sender(Timeouts(connect, read), _authorities(source))
        _bound_the_chain(source, Timeouts(connect, read))
        session = _session(source, options, now)
        client = session.create_client(
            "glue",
            region_name=text(options, "region"),
            endpoint_url=endpoint,
            config=Config(
                retries={"total_max_attempts": 1, "mode": "standard"},
                max_pool_connections=parallel,
                user_agent_extra=DEFAULT_SESSION_NAME,
            ),
        )
    except (BotoCoreError, ValueError) as error:
        from reconciler.catalog.glue_errors import to_catalog_error

        raise to_catalog_error(error, "connect to Glue", write=False) from error
    client.meta.events.register("before-parse.glue", _refuse_broken)
    client.meta.events.register("before-send.glue", _learn)
    client.meta.events.register("before-send.glue", sender)
    return GlueClient(client, sender, lambda: _account(session, options, client.meta))


def _account(session: Any, options: Mapping[str, str], glue: Any) -> str:
    """STS is where AWS has it. But an endpoint of Glue that is not of AWS stands for all of AWS, as those of test
    services do, unless STS has one of its own (`AWS_ENDPOINT_URL_STS`)."""
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    from reconciler.catalog.glue_errors import to_catalog_error

    retries = Config(
        retries={"mode": "standard", "total_max_attempts": number(options, "max_retries", MAX_RETRIES) + 1}
    )
    timeouts = Timeouts(
        number(options, "connect_timeout", _CONNECT_SECONDS), number(options, "read_timeout", _READ_SECONDS)
    )
    try:
        sts = session.create_client("sts", region_name=glue.region_name, config=retries)
        if _of_aws(sts.meta.endpoint_url) and not _of_aws(glue.endpoint_url):
            sts = session.create_client(
                "sts", region_name=glue.region_name, endpoint_url=glue.endpoint_url, config=retries
            )
        sts.meta.events.register("before-send.sts", _learn)
        sts.meta.events.register("before-send.sts", _KeySender(timeouts, _authorities(session)))
        return str(sts.get_caller_identity()["Account"])
    except (BotoCoreError, ClientError, KeyError) as error:
        raise to_catalog_error(error, "ask STS for the account", write=False) from error


def _of_aws(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".api.amazonwebservices.com.cn"))


def _bound_the_chain(session: Any, timeouts: Timeouts) -> None:
    """Also what the default chain asks for keys: STS and SSO with clients of the session, the rest by `_Metadata`.
    Those clients send once: the call that needs the keys is repeated, and they are asked for again with it."""
    from botocore.config import Config

    session.set_default_client_config(Config(retries={"mode": "standard", "total_max_attempts": 1}))
    keys = _KeySender(timeouts, _authorities(session))
    for service in ("sts", "sso", "sso-oidc", "signin"):
        session.register(f"before-send.{service}", _learn)
        session.register(f"before-send.{service}", keys)
    metadata = _Metadata(_METADATA)
    for provider in session.get_component("credential_provider").providers:
        fetcher: Any = getattr(provider, "_fetcher", None) or getattr(provider, "_role_fetcher", None)
        if hasattr(fetcher, "_session"):
            fetcher._session = metadata


@cache
def _descriptions() -> Any:
    """botocore's descriptions of the services: large, read once for all sessions. They hold nothing of a user."""
    from botocore.session import Session

    return Session().get_component("data_loader")


def _new_session() -> Any:
    from botocore.session import Session

    named = [name for name in _REGION if os.environ.get(name)]  # One that is set to nothing is not set.
    session = Session(session_vars={"region": ("region", named, None, None)})
    session.register_component("data_loader", _descriptions())
    logging.getLogger("botocore.credentials").setLevel(logging.CRITICAL)  # A traceback of what we report anyway.
    return session


def _session(source: Any, options: Mapping[str, str], now: Callable[[], datetime] | None) -> Any:
    key, secret, token = (text(options, k) for k in ("access_key_id", "secret_access_key", "session_token"))
    if (key is None) != (secret is None):
        raise CatalogError(Code.INVALID_INPUT, "spec.access_key_id and spec.secret_access_key go together")
    if token is not None and key is None:
        raise CatalogError(Code.INVALID_INPUT, "spec.session_token needs spec.access_key_id and secret_access_key")
    if key is not None and secret is not None:
        source.set_credentials(key, secret, token)
    role = text(options, "assume_role_arn")
    if role is None:
        if extra := next((k for k in _ROLE_KEYS if text(options, f"assume_role_{k}")), None):
            raise CatalogError(Code.INVALID_INPUT, f"spec.assume_role_{extra} needs spec.assume_role_arn")
        return source
    return _with_role(source, role, options, now)


def _with_role(source: Any, role: str, options: Mapping[str, str], now: Callable[[], datetime] | None) -> Any:
    """A session whose credentials are those of the role. STS is asked with the credentials of `source`."""
    from botocore.config import Config
    from botocore.credentials import DeferredRefreshableCredentials
    from botocore.exceptions import BotoCoreError, ClientError

    life = number(options, "assume_role_timeout_sec", _DEFAULT_LIFE)
    if life < _SHORTEST_LIFE:
        raise CatalogError(Code.INVALID_INPUT, "spec.assume_role_timeout_sec must be more than 900 (seconds)")
    wanted: dict[str, Any] = {
        "RoleArn": role,
        "RoleSessionName": text(options, "assume_role_session_name") or DEFAULT_SESSION_NAME,
        "DurationSeconds": life,
    }
    if external := text(options, "assume_role_external_id"):
        wanted["ExternalId"] = external
    region = text(options, "assume_role_region") or text(options, "region")
    attempts = number(options, "max_retries", MAX_RETRIES) + 1
    config = Config(retries={"mode": "standard", "total_max_attempts": attempts})
    sts = source.create_client("sts", region_name=region, config=config)

    def take_on() -> dict[str, Any]:
        try:
            got = sts.assume_role(**wanted)["Credentials"]
        except (BotoCoreError, ClientError) as error:
            raise _no_role(error) from error
        return {
            "access_key": got["AccessKeyId"],
            "secret_key": got["SecretAccessKey"],
            "token": got["SessionToken"],
            "expiry_time": got["Expiration"].isoformat(),
        }

    clock = {"time_fetcher": now} if now is not None else {}
    credentials = DeferredRefreshableCredentials(refresh_using=take_on, method="sts-assume-role", **clock)
    for name, (part, longest) in _RENEWED.items():
        setattr(credentials, name, min(life // part, longest))
    target = _new_session()
    target._credentials = credentials
    return target


def _no_role(error: Exception) -> CatalogError:
    """The request that needed the role was never sent, whatever it was."""
    from reconciler.catalog.glue_errors import to_catalog_error

    failed = to_catalog_error(error, "the role of spec.assume_role_arn was not given", write=False)
    failed.spent = True
    return failed


def _learn(request: Any, **_: Any) -> None:
    """Of all that botocore found or was given, only a session token is sent, so only that can be repeated. A secret key
    signs, and stays here."""
    token = request.headers.get("X-Amz-Security-Token")
    if token:
        learned([token.decode() if isinstance(token, bytes) else token])


def _refuse_broken(response_dict: Mapping[str, Any], **_: Any) -> None:
    body, failed = response_dict["body"], response_dict["status_code"] >= 300
    try:
        if not body or isinstance(strict_json.loads(body), dict):
            return
    except strict_json.Malformed as error:
        raise RefusedAnswer(f"the answer is not valid JSON: {error}") from None
    except ValueError:
        pass
    if failed:
        return
    raise BrokenAnswer("the answer is not complete JSON")
