"""The calls: reads are repeated while their failure may pass, writes are sent once, and the pace follows the service.

botocore's own retries are off. A create that it repeated after a lost answer would come back as "already exists", and
nobody could tell whose it is; who can re-read the object decides whether a write goes out again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.catalog import glue_errors
from reconciler.catalog.fence import may_write
from reconciler.catalog.glue_errors import to_catalog_error
from reconciler.catalog.glue_session import BrokenAnswer
from reconciler.catalog.pace import Pace
from reconciler.catalog.service import unlike
from reconciler.catalog.stats import Stats
from reconciler.model.errors import CatalogError, Code

_LONGEST = 20.0
_PAGE = 100
"""What Glue gives at most for databases and tables."""


@dataclass
class GlueApi:
    """`client` is shared by all threads."""

    client: Any
    parallel: int
    max_retries: int
    stats: Stats = field(default_factory=Stats)
    sleep: Callable[[float], object] = time.sleep

    def __post_init__(self) -> None:
        self._pace = Pace(self.parallel, self.sleep)

    def close(self) -> None:
        self.client.close()

    def read(
        self, doing: str, call: str, key: str, arguments: Mapping[str, Any], missing: Code, retries: int | None = None
    ) -> dict[str, Any]:
        """`call` is the operation as boto3 names it. An answer without `key` is none of Glue's: Glue sends an empty
        list where there is nothing, and whatever else answers `{}` must not make a database look empty. Raises
        CatalogError."""
        self.stats.count("listings")
        most = self.max_retries if retries is None else retries
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = self._send(call, arguments)
                if answer.get(key) is None:
                    raise BrokenAnswer(f"the answer holds no {key}")
                return answer
            except Exception as error:
                if attempt > most or not glue_errors.passes(error):
                    raise self._failed(error, doing, write=False, missing=missing) from error
                self.sleep(random.uniform(0.0, min(_LONGEST, 0.2 * 2.0 ** (attempt - 1))))

    def write(
        self, doing: str, call: str, arguments: Mapping[str, Any], missing: Code, exists: Code = Code.INTERNAL
    ) -> None:
        """Sent again only when it certainly never left."""
        self.stats.count("writes")
        attempt = 0
        while True:
            attempt += 1
            may_write()
            try:
                self._send(call, arguments)
                return
            except Exception as error:
                if attempt > self.max_retries or not glue_errors.never_sent(error):
                    raise self._failed(error, doing, write=True, missing=missing, exists=exists) from error
                self.sleep(random.uniform(0.0, min(_LONGEST, 0.2 * 2.0 ** (attempt - 1))))

    def pages(
        self, doing: str, call: str, key: str, arguments: Mapping[str, Any], missing: Code, retries: int | None = None
    ) -> Iterator[list[dict[str, Any]]]:
        """Every page to the last one: an empty page that has a token is not the end. Everything on it has a name."""
        name = "FunctionName" if key == "UserDefinedFunctions" else "Name"
        token: str | None = None
        seen: set[str] = set()
        while True:
            more = {"NextToken": token} if token else {}
            answer = self.read(doing, call, key, {**arguments, "MaxResults": _PAGE, **more}, missing, retries)
            if any(not isinstance(item, dict) or not isinstance(item.get(name), str) for item in answer[key]):
                raise CatalogError(Code.INTERNAL, f"{doing}: the answer holds an item of {key} without {name}")
            yield answer[key]
            following = answer.get("NextToken")
            if following is None or following == "":
                return
            if not isinstance(following, str):
                raise CatalogError(Code.INTERNAL, f"{doing}: the answer has a NextToken that is no text")
            if following in seen:
                raise CatalogError(Code.INTERNAL, f"{doing}: the service repeats its pages for ever")
            seen.add(following)
            token = following

    def _failed(self, error: Exception, doing: str, *, write: bool, **means: Code) -> CatalogError:
        """With the address, when what answers there is something else."""
        failed = to_catalog_error(error, doing, write=write, **means)
        if not glue_errors.is_strange(error):
            return failed
        where = unlike(self.client.meta.endpoint_url, "AWS Glue")
        check = "" if failed.retryable else ": check spec.endpoint"  # Then the endpoint is named with all the rest.
        return CatalogError(failed.code, f"{failed.message}: {where}{check}", unknown_outcome=failed.unknown_outcome)

    def _send(self, call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        with self._pace.turn():
            try:
                answer: dict[str, Any] = getattr(self.client, call)(**arguments)
            except Exception as error:
                if to_catalog_error(error, "", write=False).code is Code.THROTTLING:
                    self._pace.slow_down(None)
                raise
        self._pace.went_well()
        return answer
