"""The calls: reads are repeated while their failure may pass, writes only when they certainly were not carried out,
both `max_retries` + 1 times at most (see `http`). The pace follows the service.

botocore's own retries are off. A create that it repeated after a lost answer would come back as "already exists", and
nobody could tell whose it is; who can re-read the object decides whether a write goes out again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.catalog import deadline, glue_errors
from reconciler.catalog.fence import answered, counting, may_write
from reconciler.catalog.glue_errors import to_catalog_error
from reconciler.catalog.glue_session import BrokenAnswer
from reconciler.catalog.outage import Outage
from reconciler.catalog.pace import Pace
from reconciler.catalog.paging import Pages
from reconciler.catalog.service import unlike
from reconciler.catalog.stats import Stats
from reconciler.catalog.statuses import NO_SERVICE
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
    close_also: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self._pace = Pace(self.parallel, self.sleep)
        self._outage = Outage()

    def close(self) -> None:
        self.client.close()
        self.close_also()

    def read(
        self, doing: str, call: str, key: str, arguments: Mapping[str, Any], missing: Code, retries: int | None = None
    ) -> dict[str, Any]:
        """`call` is the operation as boto3 names it. An answer without `key` is none of Glue's: Glue sends an empty
        list where there is nothing, and whatever else answers `{}` must not make a database look empty. Raises
        CatalogError."""
        name = (call, repr(sorted(arguments.items())))
        self._outage.need_hope(name)
        self.stats.count("listings")
        most = self.max_retries if retries is None else retries
        attempt = 0
        while True:
            attempt += 1
            since = self._outage.begin()
            try:
                answer = self._send(call, arguments)
                if answer.get(key) is None:
                    raise BrokenAnswer(f"the answer holds no {key}")
                return answer
            except Exception as error:
                if attempt > most or not glue_errors.passes(error) or deadline.is_over():
                    failed = self._failed(error, doing, write=False, missing=missing)
                    silent = glue_errors.no_answer(error)
                    if silent or glue_errors.passes(error):
                        failed = self._outage.spent(name, failed, attempt, since, silent=silent)
                    failed.sendings, failed.spent = attempt, True
                    raise failed from error
                self._wait(attempt)

    def write(
        self, doing: str, call: str, arguments: Mapping[str, Any], missing: Code, exists: Code = Code.INTERNAL
    ) -> None:
        """Sent again only when it certainly was not carried out."""
        self.stats.count("writes")
        name = (self.client.meta.endpoint_url, call, doing)
        with counting():
            while True:
                sendings = may_write(name)
                try:
                    self._send(call, arguments)
                    answered(name)
                    return
                except Exception as error:
                    failed = self._failed(error, doing, write=True, missing=missing, exists=exists)
                    refused = glue_errors.never_sent(error) or failed.code is Code.THROTTLING
                    last = failed.spent or sendings > self.max_retries or deadline.is_over()
                    if last or failed.unknown_outcome or not refused:
                        if refused or failed.unknown_outcome:
                            failed.sendings = sendings
                            failed.spent = failed.spent or sendings > self.max_retries
                        else:
                            answered(name)
                        raise failed from error
                self._wait(sendings)

    def _wait(self, attempt: int) -> None:
        self.sleep(deadline.allowed(random.uniform(0.0, min(_LONGEST, 0.2 * 2.0 ** (attempt - 1)))))

    def pages(
        self, doing: str, call: str, key: str, arguments: Mapping[str, Any], missing: Code, retries: int | None = None
    ) -> Iterator[list[dict[str, Any]]]:
        """Every page to the last one: an empty page that has a token is not the end. Everything on it has a name."""
        name = "FunctionName" if key == "UserDefinedFunctions" else "Name"
        pages = Pages(doing)
        token: str | None = None
        while True:
            more = {"NextToken": token} if token else {}
            answer = self.read(doing, call, key, {**arguments, "MaxResults": _PAGE, **more}, missing, retries)
            if any(not isinstance(item, dict) or not isinstance(item.get(name), str) for item in answer[key]):
                raise CatalogError(Code.INTERNAL, f"{doing}: the answer holds an item of {key} without {name}")
            pages.new(item[name] for item in answer[key])
            yield answer[key]
            token = pages.following(answer.get("NextToken"))
            if token is None:
                return

    def _failed(self, error: Exception, doing: str, *, write: bool, **means: Code) -> CatalogError:
        """With the address, when what answers there is something else."""
        failed = to_catalog_error(error, doing, write=write, **means)
        if not glue_errors.is_strange(error):
            return failed
        where = unlike(self.client.meta.endpoint_url, "AWS Glue")
        check = "" if failed.retryable else ": check spec.endpoint"  # Then the endpoint is named with all the rest.
        return failed.reworded(f"{failed.message}: {where}{check}")

    def _send(self, call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        with self._pace.turn():
            try:
                answer: dict[str, Any] = getattr(self.client, call)(**arguments)
            except Exception as error:
                if to_catalog_error(error, "", write=False).code is Code.THROTTLING:
                    self._pace.slow_down(None)
                if not glue_errors.no_answer(error) and glue_errors.status_of(error) not in NO_SERVICE:
                    self._outage.answered()
                raise
        self._outage.answered()
        self._pace.went_well()
        return answer
