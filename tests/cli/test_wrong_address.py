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
STRANGE = {
    "deep": (200, "application/x-amz-json-1.1", b"[" * 100_000),
    "no text": (200, "application/x-amz-json-1.1", b'{"a": "\xff\xfe"}'),
    "deep, an error": (400, "application/x-amz-json-1.1", b"[" * 100_000),
    "no text, an error": (400, "application/x-amz-json-1.1", b'{"a": "\xff\xfe"}'),
}
KEYS = "access_key_id: AKIAEXAMPLE, secret_access_key: CANARYsecret1"
CATALOGS = {
    "rest": ("uri: '{url}/wrong', auth_token: CANARYtoken3", '["a"]', "spec.uri"),
    "iceberg": ("endpoint: '{url}/wrong', auth_token: CANARYtoken3", '["w", "a"]', "spec.endpoint"),
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


@pytest.mark.parametrize("answer", STRANGE)
@pytest.mark.parametrize("type_", CATALOGS)
def test_an_answer_that_no_parser_takes(somebody: Somebody, tmp_path: Path, type_: str, answer: str) -> None:
    """No words of a parser, which say nothing of where to look."""
    somebody.answer = STRANGE[answer]
    write(tmp_path, manifest(type_, somebody.url))
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert run.code == 1
    assert "recursion" not in run.err
    assert "codec" not in run.err
    if type_ == "glue" or "error" not in answer:  # The words of an error are those of whoever answered.
        assert f"{somebody.url}/wrong" in run.err
    if type_ == "glue":
        assert "does not answer like AWS Glue" in run.err
        assert "endpoint" in run.err.partition("does not answer like")[2]


@pytest.mark.parametrize("part", ["?sig=CANARY", "#CANARY", "/x?"])
@pytest.mark.parametrize("type_", CATALOGS)
def test_a_query_is_not_left_out_without_a_word(somebody: Somebody, tmp_path: Path, type_: str, part: str) -> None:
    """Neither where it is written nor where it comes from a reference; and it is not shown."""
    key = "uri" if type_ == "rest" else "endpoint"
    given = somebody.url if type_ == "unity" else f"{somebody.url}/wrong"
    text = manifest(type_, somebody.url)
    assert f"{key}: '{given}'" in text
    write(tmp_path, text.replace(f"'{given}'", f"'{given}{part}'"))
    run = reconciler(tmp_path, "validate", "m.yaml", "--format", "json")
    (told,) = [d for d in run.json["diagnostics"] if d["severity"] == "error"]
    assert (run.code, told["code"], told["line"], f"`spec.{key}`" in told["message"]) == (1, "M207", 4, True)
    assert "CANARY" not in run.out + run.err
    write(tmp_path, text.replace(f"'{given}'", "'${env:PLACE}'"))
    assert reconciler(tmp_path, "validate", "m.yaml").code == 0
    run = reconciler(tmp_path, "plan", "m.yaml", env={"PLACE": given + part})
    assert run.code == 1
    assert f"spec.{key} must not have a query" in run.err
    assert "CANARY" not in run.out + run.err


def test_a_reference_is_no_query(tmp_path: Path) -> None:
    """Whatever it has for the case that there is no such variable."""
    write(tmp_path, manifest("rest", "http://h").replace("http://h/wrong", "http://h/${env:PLACE:-a?b#c}"))
    assert reconciler(tmp_path, "validate", "m.yaml").code == 0


def test_nor_in_the_path_of_the_api(tmp_path: Path) -> None:
    text = manifest("unity", "http://h")
    write(tmp_path, text.replace("/wrong", "/wrong?CANARY"))
    run = reconciler(tmp_path, "validate", "m.yaml")
    assert (run.code, "`spec.api_path` has a query" in run.out + run.err) == (1, True)
    assert "CANARY" not in run.out + run.err
    write(tmp_path, text.replace("/wrong", "'${env:PLACE}'"))
    run = reconciler(tmp_path, "plan", "m.yaml", env={"PLACE": "/wrong?CANARY"})
    assert (run.code, "spec.api_path must not have a query" in run.err) == (1, True)
    assert "CANARY" not in run.out + run.err
