"""A path or a host in a catalog's document that leads to something else: the message has the address, says what to
check, and repeats nothing that may be secret."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cli_runs import reconciler, write

NOT_FOUND = (404, "text/html", b"<html><h1>Not Found</h1></html>")
ANSWERS = {
    "not found": NOT_FOUND,
    "not found, in JSON": (404, "application/json", b'{"detail": "Not Found"}'),
    "login": (302, "text/html", b""),
    "empty": (200, "application/json", b"{}"),
    "page": (200, "text/html", b"<html>welcome</html>"),
    "wrong port": (400, "text/html", b"<html>The plain HTTP request was sent to HTTPS port</html>"),
}
KEYS = "access_key_id: AKIAEXAMPLE, secret_access_key: CANARYsecret1"
CATALOGS = {
    "rest": ("uri: '{url}/wrong?sig=CANARYquery2', auth_token: CANARYtoken3", '["a"]', "spec.uri"),
    "iceberg": ("endpoint: '{url}/wrong?sig=CANARYquery2', auth_token: CANARYtoken3", '["w", "a"]', "spec.endpoint"),
    "unity": (
        "endpoint: '{url}', api_path: /wrong, catalog: c, root: /data, auth_token: CANARYtoken3",
        '["c", "a"]',
        "spec.endpoint and spec.api_path",
    ),
    "glue": (f"endpoint: '{{url}}/wrong', region: us-east-1, {KEYS}, root: /data", '["a"]', "endpoint"),
}


class Somebody(ThreadingHTTPServer):
    answer = NOT_FOUND

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Somebody

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        status, kind, body = self.server.answer
        self.send_response(status)
        if status == 302:
            self.send_header("location", "https://login.example/CANARYpath4?token=CANARYtoken5")
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def somebody() -> Iterator[Somebody]:
    with Somebody(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def manifest(type_: str, url: str) -> str:
    options, ident, _ = CATALOGS[type_]
    head = "apiVersion: reconciler.lance/v1\n"
    spec = f"{{type: {type_}, {options.format(url=url)}, max_retries: 0, management: {{owner: t}}}}"
    return (
        f"{head}kind: Catalog\nmetadata: {{name: lake}}\nspec: {spec}\n---\n"
        f"{head}kind: Namespace\nmetadata: {{catalog: lake, id: {ident}}}\n"
    )


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("type_", CATALOGS)
def test_the_message_has_the_address_and_what_to_check(
    somebody: Somebody, tmp_path: Path, type_: str, answer: str
) -> None:
    somebody.answer = ANSWERS[answer]
    write(tmp_path, manifest(type_, somebody.url))
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert run.code == 1
    assert f"{somebody.url}/wrong" in run.err
    assert "does not answer like" in run.err
    assert CATALOGS[type_][2] in run.err
    assert "<" not in run.err
    assert "CANARY" not in run.err + run.out
    assert run.err.count("check ") + run.err.count("Check ") == 1, run.err


@pytest.mark.parametrize("answer", ["not found", "login"])
def test_a_token_endpoint_that_is_none(somebody: Somebody, tmp_path: Path, answer: str) -> None:
    """It is not the credential that is to be looked at."""
    somebody.answer = ANSWERS[answer]
    address = f"oauth2_server_uri: '{somebody.url}/tokens?sig=CANARYquery2', credential: 'id:CANARYsecret1'"
    text = manifest("rest", somebody.url).replace("auth_token: CANARYtoken3", address)
    write(tmp_path, text)
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert run.code == 1
    assert f"{somebody.url}/tokens gave no token" in run.err
    assert "check `oauth2_server_uri`" in run.err
    assert "CANARY" not in run.err + run.out


def test_a_service_that_fails_is_no_wrong_address(somebody: Somebody, tmp_path: Path) -> None:
    somebody.answer = (503, "text/html", b"<html>Service Unavailable</html>")
    write(tmp_path, manifest("rest", somebody.url))
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert (run.code, "does not answer like" in run.err) == (1, False)
    assert f"{somebody.url}/wrong/v1/" in run.err
    assert "Check the endpoint in uri, the network" in run.err
    assert "CANARY" not in run.err
