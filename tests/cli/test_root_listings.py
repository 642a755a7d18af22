"""The listing of a root that the run needs fails the run with the code, whichever page fails and whatever the type of
the catalog; below a root it is a gap, and the run goes on with the rest."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Run, namespace, reconciler, table, write
from cli_runs import catalog as dir_catalog

from reconciler.catalog.storage_local import LocalStorage
from reconciler.model.errors import CatalogError, Code

Reply = tuple[int, Any]
GLUE_DENIED: Reply = (400, {"__type": "AccessDeniedException", "Message": "no"})


class Scripted(ThreadingHTTPServer):
    """A service of any type with the namespace `a`, without tables. `refused`: what is answered with `status`."""

    refused: Callable[[str], bool] = staticmethod(lambda call: False)
    status = 403

    def reply(self, call: str) -> Reply:
        if self.refused(call):
            return GLUE_DENIED if call.startswith("AWSGlue") else (self.status, DENIED)
        last = "oken=2" in call
        for part, first, rest in ANSWERS:
            if part in call:
                return 200, rest if last else first
        return 404, {"error": {"message": "no", "type": "NoSuchNamespaceException", "code": 404}, "code": 1}


DENIED = {"error": {"message": "no", "type": "ForbiddenException", "code": 403}, "error_code": "PERMISSION_DENIED"}
GLUE_A = {"DatabaseList": [{"Name": "a", "CatalogId": "1"}], "NextToken": "2"}
ANSWERS: list[tuple[str, Any, Any]] = [
    ("/v1/config?warehouse=w", {"defaults": {}, "overrides": {"prefix": "w"}}, None),
    ("/v1/config?warehouse=x", {"defaults": {}, "overrides": {"prefix": "x"}}, None),
    ("/namespaces/a/tables", {"identifiers": []}, None),
    ("/namespaces/a", {"namespace": ["a"], "properties": {}}, None),
    ("/namespaces?parent=", {"namespaces": []}, None),
    ("/namespaces", {"namespaces": [["a"]], "next-page-token": "2"}, {"namespaces": []}),
    ("/v1/namespace/$/table/list", {"tables": []}, None),
    ("/v1/namespace/$/list", {"namespaces": ["a"], "page_token": "2"}, {"namespaces": []}),
    ("/v1/namespace/a/table/list", {"tables": []}, None),
    ("/v1/namespace/a/list", {"namespaces": []}, None),
    ("/v1/namespace/a/describe", {"properties": {}}, None),
    ("/schemas?", {"schemas": [{"name": "a", "catalog_name": "c"}], "next_page_token": "2"}, {"schemas": []}),
    ("/tables?", {"tables": []}, None),
    ("GetDatabases", GLUE_A, {"DatabaseList": []}),
    ("GetTables", {"TableList": []}, None),
]


class Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        target = self.headers.get("x-amz-target")
        call = self.path.replace("%24", "$") if target is None else f"{target} {body}".replace('Token": "', "Token=")
        status, said = self.server.reply(call)
        data = json.dumps(said or {}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def running() -> Iterator[Scripted]:
    with Scripted(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def service(running: Scripted) -> Scripted:
    running.refused = lambda call: False  # type: ignore[method-assign]
    running.status = 403
    return running


TYPES = {
    "rest": ("uri: '{url}'", [["a"]]),
    "iceberg": ("endpoint: '{url}', warehouse: w", [["w", "a"]]),
    "unity": ("endpoint: '{url}', catalog: c, root: '{root}'", [["c", "a"]]),
    "glue": (
        "endpoint: '{url}', region: us-east-1, access_key_id: AKIA1, secret_access_key: s, root: '{root}'",
        [["a"]],
    ),
}
ROOTS = {"rest": "/namespace/$/list", "iceberg": "/namespaces?", "unity": "/schemas?", "glue": "GetDatabases"}


def declare(service: Scripted, folder: Path, type_: str, *more: list[str]) -> None:
    options, idents = TYPES[type_]
    root = folder / "data"
    root.mkdir(exist_ok=True)
    url = f"http://127.0.0.1:{service.server_port}"
    spec = f"{{type: {type_}, {options.format(url=url, root=root)}, max_retries: 0, management: {{owner: team}}}}"
    head = f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {spec}\n"
    write(folder, head, *(namespace(*ident) for ident in (*idents, *more)))


def fails(run: Run, *words: str) -> None:
    assert run.code == 1, run
    for word in ("catalog lake cannot be read: PermissionDenied (15)", *words):
        assert word in run.err, run.err


COMMANDS = (("plan",), ("plan", "--prune"), ("apply", "--yes"), ("drift",), ("status",))


@pytest.mark.parametrize("page", ["first", "later"])
@pytest.mark.parametrize("type_", TYPES)
def test_a_page_of_the_root_fails(service: Scripted, tmp_path: Path, type_: str, page: str) -> None:
    declare(service, tmp_path, type_)
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0, "all of it is listed"
    later = page == "later"
    service.refused = lambda call: ROOTS[type_] in call and ("oken=2" in call) == later  # type: ignore[method-assign]
    for command in COMMANDS:
        fails(reconciler(tmp_path, *command, "m.yaml"))
    report = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json").json
    assert (report["outcome"], report["error"]["code"]) == ("failed", 15)


@pytest.mark.parametrize("call", ["/v1/config?warehouse=x", "/v1/x/namespaces?", "/v1/x/namespaces?pageToken=2"])
def test_one_of_several_warehouses(service: Scripted, tmp_path: Path, call: str) -> None:
    """It cannot be opened, not be listed, or not to its end. A target says which of the two the run needs."""
    declare(service, tmp_path, "iceberg", ["x", "a"])
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0
    service.refused = lambda made: call in made  # type: ignore[method-assign]
    for command in COMMANDS:
        fails(reconciler(tmp_path, *command, "m.yaml"), ": x: ")
    for target, code in (("w.**", 0), ("w.a", 0), ("x.**", 1), ("**", 1)):
        assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode", "--target", target).code == code


@pytest.mark.parametrize("type_", TYPES)
def test_below_a_root_it_is_a_gap(service: Scripted, tmp_path: Path, type_: str) -> None:
    declare(service, tmp_path, type_)
    below = {"rest": "/namespace/a/table/list", "iceberg": "/a/tables", "unity": "/tables?", "glue": "GetTables"}
    service.refused = lambda call: below[type_] in call  # type: ignore[method-assign]
    run = reconciler(tmp_path, "plan", "m.yaml", "--format", "json")
    assert run.code == 0
    assert run.json["catalogs"]["lake"]["complete"] is False


REFUSALS = {401: 16, 403: 15, 405: 0, 406: 0, 501: 0}
ROOT_TABLE = {
    "declared": table("r"),
    "absent": table("r").replace("schema: [{name: id, type: int64}]", "state: absent"),
}


def no_root_tables(service: Scripted, folder: Path, status: int, *more: str) -> None:
    declare(service, folder, "rest", ["b"])
    with (folder / "m.yaml").open("a") as file:
        file.writelines(more)
    service.refused = lambda call: "/namespace/$/table/list" in call  # type: ignore[method-assign]
    service.status = status


@pytest.mark.parametrize("status", REFUSALS)
def test_a_rest_server_that_refuses_the_tables_of_the_root(service: Scripted, tmp_path: Path, status: int) -> None:
    """There are such; where the run needs none of them, what was seen is planned, and what was not is blocked."""
    no_root_tables(service, tmp_path, status)
    plan = reconciler(tmp_path, "plan", "m.yaml", "--format", "json")
    assert plan.code == 0
    assert plan.json["catalogs"]["lake"]["complete"] is False
    assert [(s["object"]["id"], s["blocked_by"]) for s in plan.json["steps"]] == [(["b"], "incomplete_listing")]
    run = reconciler(tmp_path, "plan", "--prune", "m.yaml")
    assert (run.code, f"({REFUSALS[status]})" in run.err) == (1, True), run


@pytest.mark.parametrize("how", ROOT_TABLE)
@pytest.mark.parametrize("status", REFUSALS)
def test_and_a_root_table_that_is_named(service: Scripted, tmp_path: Path, status: int, how: str) -> None:
    no_root_tables(service, tmp_path, status, ROOT_TABLE[how])
    for command in COMMANDS:
        run = reconciler(tmp_path, *command, "m.yaml")
        assert (run.code, f"({REFUSALS[status]})" in run.err) == (1, True), (command, run)


@pytest.mark.parametrize("named", [(), (ROOT_TABLE["declared"],)], ids=["none", "declared"])
@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_rest_server_that_fails_to_list_the_tables_of_the_root(
    service: Scripted, tmp_path: Path, status: int, named: tuple[str, ...]
) -> None:
    """That is no word about what it does: whether root tables are declared or not."""
    no_root_tables(service, tmp_path, status, *named)
    for command in COMMANDS:
        run = reconciler(tmp_path, *command, "m.yaml")
        assert run.code == 1, (command, run)
        assert "catalog lake cannot be read" in run.err


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, dir_catalog(), namespace("a"), table("r"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    real = LocalStorage.list

    def denied(self: LocalStorage, path: str = "") -> Any:
        if path == "":
            raise CatalogError(Code.PERMISSION_DENIED, "no")
        return real(self, path)

    monkeypatch.setattr(LocalStorage, "list", denied)
    for command in COMMANDS:
        fails(reconciler(tmp_path, *command, "m.yaml"))
