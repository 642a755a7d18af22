"""moto's Glue with what the real service has and moto lacks, served on a port of its own.

    with GlueServer() as glue:
        glue.fail("GetTables", "ThrottlingException", times=2)    # the next two; skip=1 lets the first one pass
        glue.before("UpdateTable", lambda: ...)                   # somebody else is quicker, once
        glue.add_catalog("111122223333", "parent", "child")
        glue.empty_pages = True                                   # every listing starts with an empty page
        glue.calls["GetTables"], glue.most_in_flight

Added: pages of at most 100, catalogs that are apart by CatalogId, their own calls, functions of a database, names
folded to lower case, and an UpdateTable under an old VersionId is refused. DeleteDatabase and DeleteCatalog delete what
is inside, as the real ones do. Answers that get lost are the proxy's matter.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from flask import Flask, Response, request
from moto.core.responses import ActionResult
from moto.core.utils import convert_to_flask_response
from moto.glue.exceptions import GlueClientError
from moto.glue.models import GlueBackend
from moto.glue.responses import GlueResponse
from moto.moto_server import werkzeug_app
from werkzeug.serving import make_server

KEYS = {"access_key_id": "glue-key", "secret_access_key": "glue-secret-canary", "region": "us-east-1"}
LARGEST_PAGE = 100


@dataclass
class _Rule:
    operation: str
    act: Callable[[], Response | None]
    skip: int
    times: int | None


@dataclass
class GlueServer:
    page_size: int = LARGEST_PAGE
    empty_pages: bool = False
    calls: Counter[str] = field(default_factory=Counter)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """What was asked, with its arguments."""
    authorizations: list[str] = field(default_factory=list)
    most_in_flight: int = 0
    catalogs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Child catalogs by id."""
    functions: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """By catalog id and database."""

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self._rules: list[_Rule] = []
        self._in_flight = 0
        self._stores: dict[str, GlueBackend] = {}

    # the script

    def fail(
        self, operation: str, name: str, *, status: int = 400, message: str = "", times: int | None = 1, skip: int = 0
    ) -> None:
        """The operation is not carried out."""
        body = json.dumps({"__type": name, "Message": message or f"{name} by script"})
        answer = Response(body, status, content_type="application/x-amz-json-1.1")
        self._rules.append(_Rule(operation, lambda: answer, skip, times))

    def answer(self, operation: str, body: str, status: int = 200) -> None:
        """Once, these very words."""
        answer = Response(body, status, content_type="application/x-amz-json-1.1")
        self._rules.append(_Rule(operation, lambda: answer, 0, 1))

    def before(self, operation: str, act: Callable[[], object], *, skip: int = 0) -> None:
        def run() -> None:
            act()

        self._rules.append(_Rule(operation, run, skip, 1))

    def forget(self) -> None:
        self._rules.clear()
        self.calls.clear()
        self.requests.clear()
        self.authorizations.clear()
        self.most_in_flight = 0
        self.page_size, self.empty_pages = LARGEST_PAGE, False

    def add_catalog(self, account: str, *chain: str, **more: Any) -> str:
        """A child catalog, and its parents with it. Returns its id."""
        above: str | None = None
        for depth in range(1, len(chain) + 1):
            id_ = f"{account}:{'/'.join(chain[:depth])}"
            self.catalogs.setdefault(id_, {"CatalogId": id_, "Name": chain[depth - 1], "parent": above or account})
            above = id_
        assert above is not None
        self.catalogs[above].update(more)
        return above

    def store(self, catalog: str) -> GlueBackend:
        """The databases of one catalog."""
        if ":" in catalog and catalog not in self.catalogs:
            raise GlueClientError("EntityNotFoundException", f"Catalog {catalog} not found.")
        with self.lock:
            if catalog not in self._stores:
                self._stores[catalog] = GlueBackend("us-east-1", catalog)
            return self._stores[catalog]

    # serving

    def __enter__(self) -> GlueServer:
        class Quiet(werkzeug_app.MotoRequestHandler):
            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                """Nobody reads it."""

        class Shim(_Shim):
            server = self

        app = Flask(__name__)
        app.request_class = getattr(werkzeug_app, "BackendRequest", app.request_class)  # moto 5.2 takes no other
        dispatch = convert_to_flask_response(Shim.dispatch)
        app.add_url_rule("/", "glue", lambda: self._serve(dispatch), methods=["POST"])
        self._http = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def client(self, **more: Any) -> Any:
        """Somebody else's way in."""
        import boto3

        return boto3.session.Session().client(
            "glue",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEYS["access_key_id"],
            aws_secret_access_key=KEYS["secret_access_key"],
            **more,
        )

    def _serve(self, dispatch: Callable[..., Any]) -> Any:
        operation = request.headers["X-Amz-Target"].rpartition(".")[2]
        with self.lock:
            self.calls[operation] += 1
            self.requests.append((operation, json.loads(request.data or b"{}")))
            self.authorizations.append(request.headers.get("Authorization", ""))
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            return self._scripted(operation) or dispatch()
        finally:
            with self.lock:
                self._in_flight -= 1

    def _scripted(self, operation: str) -> Response | None:
        with self.lock:
            rule = next((r for r in self._rules if r.operation == operation and r.times != 0), None)
            if rule is None:
                return None
            if rule.skip:
                rule.skip -= 1
                return None
            if rule.times is not None:
                rule.times -= 1
        return rule.act()


class _Shim(GlueResponse):
    server: GlueServer

    @property
    def catalog(self) -> str:
        return str(self.parameters.get("CatalogId") or self.current_account)

    @property
    def glue_backend(self) -> GlueBackend:
        return self.server.store(self.catalog)

    @property
    def parameters(self) -> dict[str, Any]:  # type: ignore[override]
        found: dict[str, Any] = json.loads(self.body)
        return _folded(found)

    def get_databases(self) -> ActionResult:
        return self._page("DatabaseList", {d.name: d.as_dict() for d in self.glue_backend.get_databases()})

    def get_database(self) -> ActionResult:
        """With the members that moto forgets."""
        found = self.glue_backend.get_database(self.parameters["Name"])
        federated = found.input.get("FederatedDatabase")
        return ActionResult({"Database": {**found.as_dict(), "FederatedDatabase": federated}})

    def get_tables(self) -> ActionResult:
        database = self.parameters["DatabaseName"]
        return self._page("TableList", {t.name: t.as_dict() for t in self.glue_backend.get_tables(database, None)})

    def create_table(self) -> Any:
        with self.server.lock:
            return super().create_table()

    def update_table(self) -> Any:
        given = self.parameters
        with self.server.lock:
            name = given["TableInput"]["Name"]
            now = self.glue_backend.get_table(given["DatabaseName"], name).as_dict()["VersionId"]
            if given.get("VersionId") not in (None, now):
                raise GlueClientError("ConcurrentModificationException", f"Update table failed: version {now}")
            return super().update_table()

    def get_user_defined_functions(self) -> ActionResult:
        given = self.parameters
        self.glue_backend.get_database(given["DatabaseName"])
        names = self.server.functions.get((self.catalog, given["DatabaseName"]), [])
        return self._page("UserDefinedFunctions", {n: {"FunctionName": n} for n in names})

    def get_catalogs(self) -> ActionResult:
        given = self.parameters
        parent = given.get("ParentCatalogId")
        if parent is not None and "IncludeRoot" in given:
            raise GlueClientError("InvalidInputException", "IncludeRoot cannot go with ParentCatalogId")
        parent = parent or self.current_account
        if ":" in parent:
            self.server.store(parent)
        inside = {i: c for i, c in self.server.catalogs.items() if c["parent"] == parent}
        if given.get("IncludeRoot"):
            inside[parent] = {"CatalogId": parent, "Name": "default"}
        return self._page("CatalogList", {i: {k: v for k, v in c.items() if k != "parent"} for i, c in inside.items()})

    def get_catalog(self) -> ActionResult:
        found = self.server.catalogs.get(self.parameters["CatalogId"])
        if found is None:
            raise GlueClientError("EntityNotFoundException", "Catalog not found.")
        return ActionResult({"Catalog": {k: v for k, v in found.items() if k != "parent"}})

    def create_catalog(self) -> ActionResult:
        """Always in the account of the caller: the request has no parent."""
        given = self.parameters
        id_ = f"{self.current_account}:{given['Name']}"
        with self.server.lock:
            if id_ in self.server.catalogs:
                raise GlueClientError("AlreadyExistsException", "Catalog already exists.")
            self.server.add_catalog(self.current_account, given["Name"], **given["CatalogInput"])
        return ActionResult({})

    def update_catalog(self) -> ActionResult:
        """Replaces everything."""
        given = self.parameters
        self.get_catalog()
        old = self.server.catalogs[given["CatalogId"]]
        kept = {k: old[k] for k in ("CatalogId", "Name", "parent")}
        self.server.catalogs[given["CatalogId"]] = {**kept, **given["CatalogInput"]}
        return ActionResult({})

    def delete_catalog(self) -> ActionResult:
        """With all that is inside, as AWS does."""
        self.get_catalog()
        gone = self.parameters["CatalogId"]
        for id_ in [i for i in self.server.catalogs if i == gone or i.startswith(f"{gone}/")]:
            del self.server.catalogs[id_]
            self.server._stores.pop(id_, None)
        return ActionResult({})

    def _page(self, key: str, rows: dict[str, dict[str, Any]]) -> ActionResult:
        given = self.parameters
        asked = given.get("MaxResults", LARGEST_PAGE)
        if not 1 <= asked <= LARGEST_PAGE:
            raise GlueClientError("InvalidInputException", f"MaxResults {asked} is not in 1..{LARGEST_PAGE}")
        token = given.get("NextToken")
        if self.server.empty_pages and token is None:
            return ActionResult({key: [], "NextToken": ">"})
        left = [n for n in sorted(rows) if token is None or n > token[1:]]
        size = min(asked, self.server.page_size)
        page, more = left[:size], left[size:]
        answer: dict[str, Any] = {key: [rows[n] for n in page]}
        return ActionResult({**answer, "NextToken": f">{page[-1]}"} if more else answer)


_NAMES = ("DatabaseName", "TableName")


def _folded(given: dict[str, Any]) -> dict[str, Any]:
    """Names of databases, tables and columns in lower case, as Glue keeps them; inside a type they stay."""
    for key in _NAMES:
        if key in given:
            given[key] = given[key].lower()
    if isinstance(given.get("Name"), str):
        given["Name"] = given["Name"].lower()
    for key in ("DatabaseInput", "TableInput"):
        if key in given:
            given[key]["Name"] = given[key]["Name"].lower()
    for column in given.get("TableInput", {}).get("StorageDescriptor", {}).get("Columns", ()):
        column["Name"] = column["Name"].lower()
    return given
