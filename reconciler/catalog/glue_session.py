"""Who we are to AWS: the default chain, fixed keys, a session token, or a role that is taken on again before it ends.

Nothing here touches boto3's global session: two catalogs in one run may be two accounts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from reconciler.catalog.known_secrets import learned
from reconciler.catalog.options import base_address, number, text
from reconciler.model.errors import CatalogError, Code

DEFAULT_SESSION_NAME = "lance-reconciler"
_DEFAULT_LIFE = 3600
_SHORTEST_LIFE = 901
"""botocore renews fifteen minutes before the end: a shorter life would take on the role anew for every request."""
_CONNECT_SECONDS = 10
_READ_SECONDS = 60
_ROLE_KEYS = ("region", "external_id", "session_name", "timeout_sec")


class BrokenAnswer(Exception):
    """An answer of status 200 that is not JSON, or lacks what was asked for. botocore would read it as an empty one:
    as nothing there."""


def glue_client(options: Mapping[str, str], parallel: int, now: Callable[[], datetime] | None = None) -> Any:
    """One client for all threads. It sends every request once: what may be repeated is decided in `glue_api`."""
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    endpoint = base_address(options, "endpoint") if text(options, "endpoint") else None
    try:
        session = _session(options, now)
        client = session.create_client(
            "glue",
            region_name=text(options, "region"),
            endpoint_url=endpoint,
            config=Config(
                retries={"total_max_attempts": 1, "mode": "standard"},
                max_pool_connections=parallel,
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=_READ_SECONDS,
                user_agent_extra=DEFAULT_SESSION_NAME,
            ),
        )
    except (BotoCoreError, ValueError) as error:
        from reconciler.catalog.glue_errors import to_catalog_error

        raise to_catalog_error(error, "connect to Glue", write=False) from error
    client.meta.events.register("before-parse.glue", _refuse_broken)
    client.meta.events.register("before-send.glue", _learn)
    return client


@cache
def _descriptions() -> Any:
    """botocore's descriptions of the services: large, read once for all sessions. They hold nothing of a user."""
    from botocore.session import Session

    return Session().get_component("data_loader")


def _new_session() -> Any:
    from botocore.session import Session

    session = Session()
    session.register_component("data_loader", _descriptions())
    return session


def _session(options: Mapping[str, str], now: Callable[[], datetime] | None) -> Any:
    source = _new_session()
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
    sts = source.create_client("sts", region_name=region, config=Config(retries={"mode": "standard"}))
    sts.meta.events.register("before-send.sts", _learn)

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
    target = _new_session()
    target._credentials = DeferredRefreshableCredentials(refresh_using=take_on, method="sts-assume-role", **clock)
    return target


def _no_role(error: Exception) -> CatalogError:
    """The request that needed the role was never sent, whatever it was."""
    from reconciler.catalog.glue_errors import to_catalog_error

    return to_catalog_error(error, "the role of spec.assume_role_arn was not given", write=False)


def _learn(request: Any, **_: Any) -> None:
    """Of all that botocore found or was given, only a session token is sent, so only that can be repeated. A secret key
    signs, and stays here."""
    token = request.headers.get("X-Amz-Security-Token")
    if token:
        learned([token.decode() if isinstance(token, bytes) else token])


def _refuse_broken(response_dict: Mapping[str, Any], **_: Any) -> None:
    if response_dict["status_code"] >= 300:
        return
    body = response_dict["body"]
    try:
        if not body or isinstance(json.loads(body), dict):
            return
    except (ValueError, RecursionError):
        pass
    raise BrokenAnswer("the answer is not complete JSON")
