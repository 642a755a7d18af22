"""Catalog services from the command line: secrets that a server repeats, scopes, and what is loaded when."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl

import pytest
from cli_runs import environment, namespace, process, reconciler, table, write

from reconciler.catalog import lance_errors
from reconciler.engine.redact import Redactor

_SESSION = "x-amz-security-token"


class Parrot(BaseHTTPRequestHandler):
    """Refuses everything, and repeats in its message what it was sent: the headers that tell who asks, and the body."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        who = [v for k, v in self.headers.items() if k.lower() in ("authorization", "x-api-key", "x-secret", _SESSION)]
        said = f"no entry for {who + [value for _, value in parse_qsl(body)]}"
        fields: dict[str, Any] = {"message": said, "Message": said, "detail": said, "code": 16}
        fields |= {"__type": "AccessDeniedException", "error_code": "UNAUTHENTICATED", "error_description": said}
        answer = json.dumps({**fields, "error": {"message": said, "type": "NotAuthorizedException", "code": 401}})
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        """Quietly."""


@pytest.fixture(scope="module")
def parrot() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def catalog(type_: str, options: dict[str, Any], owner: str = "team") -> str:
    spec = json.dumps({"type": type_, **options, "management": {"owner": owner}})
    return f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {spec}\n"


CANARY = "CANARY4711"
SPOKEN = {
    "rest by token": ("rest", "uri", {"auth_token": CANARY}),
    "rest by key": ("rest", "uri", {"api_key": CANARY}),
    "rest by header": ("rest", "uri", {"header.Authorization": f"Token {CANARY}"}),
    "rest by client": ("rest", "uri", {"credential": f"client:{CANARY}"}),
    "iceberg by token": ("iceberg", "endpoint", {"auth_token": CANARY, "warehouse": "w"}),
    "iceberg by client": ("iceberg", "endpoint", {"credential": f"client:{CANARY}", "warehouse": "w"}),
    "iceberg by header": ("iceberg", "endpoint", {"header.x-secret": CANARY, "warehouse": "w"}),
    "unity by token": ("unity", "endpoint", {"auth_token": CANARY, "catalog": "w"}),
    "glue by key": ("glue", "endpoint", {"access_key_id": CANARY, "secret_access_key": "abcdefgh", "region": "r"}),
    "glue by session": (
        "glue",
        "endpoint",
        {"access_key_id": "ABCDEFGH", "secret_access_key": "abcdefgh", "session_token": CANARY, "region": "r"},
    ),
}


@pytest.mark.parametrize("literal", [True, False], ids=["written out", "by reference"])
@pytest.mark.parametrize("case", SPOKEN)
def test_a_server_that_repeats_what_it_was_sent(tmp_path: Path, parrot: str, case: str, literal: bool) -> None:
    type_, address, options = SPOKEN[case]
    if not literal:
        options = {k: v.replace(CANARY, "${env:CANARY}") for k, v in options.items()}
    names = ("w", "n") if type_ in ("iceberg", "unity") else ("n",)
    text = (catalog(type_, {address: parrot, "max_retries": 0, **options}), namespace(*names), table(*names, "t"))
    text = (*text[:2], text[2].replace("spec:\n", "spec:\n  location: s3://b/t\n", 1))
    file = write(tmp_path, *text)
    loud = ("--debug", "--log-level", "debug")
    run = reconciler(tmp_path, "plan", file, "-o", "plan.json", *loud, env={"CANARY": CANARY})
    assert run.code == 1
    assert "no entry for" in run.err
    assert f"Check the endpoint in {address}, the network, and the credentials in {min(SPOKEN[case][2])}" in run.err
    assert CANARY not in run.out + run.err
    if literal:
        nothing = re.compile(r"(?!)()")  # A bearer token is known by its looks too.
        with patch.object(Redactor, "text", lambda self, text: text), patch.object(lance_errors, "_SCHEME", nothing):
            blind = reconciler(tmp_path, "plan", file, *loud)
        assert CANARY in blind.err, "the server does repeat it"


NOWHERE = {"endpoint": "http://127.0.0.1:9", "max_retries": 0}


@pytest.mark.parametrize("words", [("plan", "--prune"), ("apply", "--yes", "--prune"), ("import", "-o", "out")])
def test_an_iceberg_catalog_of_which_nothing_names_a_warehouse(tmp_path: Path, words: tuple[str, ...]) -> None:
    file = write(tmp_path, catalog("iceberg", NOWHERE))
    run = reconciler(tmp_path, words[0], file, *words[1:])
    assert (run.code, "M441" in run.err) == (1, True), run.err
    assert "m.yaml:1:1" in run.err
    assert "set spec.warehouse" in run.err
    for named in (catalog("iceberg", {**NOWHERE, "warehouse": "w"}), catalog("iceberg", NOWHERE) + namespace("w", "n")):
        run = reconciler(tmp_path, words[0], write(tmp_path, named), *words[1:])
        assert run.code == 1
        assert "M441" not in run.err
        assert "cannot be read" in run.err


def test_without_prune_there_is_nothing_to_read(tmp_path: Path) -> None:
    file = write(tmp_path, catalog("iceberg", NOWHERE))
    assert reconciler(tmp_path, "plan", file).code == 0


def test_a_reference_that_is_no_number(tmp_path: Path) -> None:
    file = write(tmp_path, catalog("iceberg", {**NOWHERE, "warehouse": "w", "read_timeout": "${env:MS}"}))
    run = reconciler(tmp_path, "plan", file, env={"MS": "hunter2"})
    assert run.code == 1
    assert "M205" in run.err
    assert "spec.read_timeout" in run.err
    assert "hunter2" not in run.err


@pytest.mark.slow
def test_validate_opens_nothing_and_loads_nothing(tmp_path: Path) -> None:
    """All types in one run: no client library is loaded, no address is asked."""
    services = {
        "rest": {"uri": "http://127.0.0.1:9"},
        "iceberg": {"endpoint": "http://127.0.0.1:9"},
        "unity": {"endpoint": "http://127.0.0.1:9", "catalog": "w"},
        "glue": {"root": "s3://b"},
    }
    parts = []
    for type_, options in services.items():
        ident = ("w", "n") if type_ in ("iceberg", "unity") else ("n",)
        documents = (catalog(type_, options), namespace(*ident), table(*ident, "t"))
        parts += [
            d.replace("name: lake", f"name: {type_}").replace("catalog: lake", f"catalog: {type_}") for d in documents
        ]
        parts.append("---\n")
    file = write(tmp_path, *parts)
    run = process(tmp_path, "validate", file, env={"PYTHONPROFILEIMPORTTIME": "1", **environment()})
    assert "12 documents, 0 errors, 0 warnings" in run.out, run.out
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in run.err.splitlines()}
    assert "jsonschema_rs" in loaded
    assert not loaded & {"lance", "pyarrow", "numpy", "boto3", "botocore", "obstore", "http"}
