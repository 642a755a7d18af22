"""What answers in the place of an object store: a refusal or nonsense is an error, never an empty catalog."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest
from dir_support import LAYOUTS, V1, detail

from reconciler.catalog.directory import DirectoryCatalog
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, RootSeen, Unreadable

NOTHING = (
    '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>'
    "<KeyCount>0</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated></ListBucketResult>"
)
DENIED = (403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
Answer = Callable[[str], tuple[int, str]]


class Server(ThreadingHTTPServer):
    answer: Answer

    def options(self, **layout: str) -> dict[str, str]:
        return {
            "path": "s3://b/lake",
            "storage.aws_access_key_id": "key",
            "storage.aws_secret_access_key": "canary",
            "storage.aws_region": "us-east-1",
            "storage.aws_endpoint": f"http://127.0.0.1:{self.server_port}",
            "storage.allow_http": "true",
            "storage.client_max_retries": "0",
            **layout,
        }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for an acknowledgement

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        status, text = self.server.answer(unquote(self.path))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def empty_but(*denied: str) -> Answer:
    """An empty bucket that denies the requests in whose address one of the texts is."""

    def answer(path: str) -> tuple[int, str]:
        if any(text in f"{path}&" for text in denied):
            return DENIED
        return (200, NOTHING) if "list-type" in path else (404, "<Error><Code>NoSuchKey</Code></Error>")

    return answer


def test_an_empty_bucket_is_empty(server: Server) -> None:
    server.answer = empty_but()
    catalog = DirectoryCatalog(server.options(**V1))
    assert list(catalog.scan(detail(("t",)))) == [RootSeen(new="s3://b/lake")]
    assert [o.finding for o in catalog.read([("Table", ("t",))], detail(("t",)))] == [Absent()]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (200, "<html><body>Please log in</body></html>", Code.INVALID_INPUT),
        (200, "", Code.INVALID_INPUT),
        (301, "", None),
        (403, "", Code.PERMISSION_DENIED),
        (500, "", None),
    ],
)
def test_something_else_answers(
    status: int, text: str, code: Code | None, layout: dict[str, str], server: Server
) -> None:
    server.answer = lambda path: (status, text)
    for call in (
        lambda c: list(c.scan(detail(("t",)))),
        lambda c: list(c.read([("Table", ("t",)), ("Namespace", ("n",))], detail(("t",)))),
        lambda c: c.children(()),
    ):
        with pytest.raises(CatalogError) as failed:
            call(DirectoryCatalog(server.options(**layout)))
        assert code is None or failed.value.code is code
        assert "s3://b/lake" in failed.value.message
        assert "canary" not in failed.value.message


@pytest.mark.slow
def test_a_server_that_knows_nothing(server: Server) -> None:
    """404 for everything, the listing included: a wrong path in the endpoint."""
    server.answer = lambda path: (404, "not here")
    for layout in LAYOUTS.values():
        with pytest.raises(CatalogError):
            list(DirectoryCatalog(server.options(**layout)).scan(detail(("t",))))
        try:
            found = [o.finding for o in DirectoryCatalog(server.options(**layout)).read([("Table", ("t",))], detail())]
        except CatalogError:
            continue
        assert isinstance(found[0], Unreadable)


def test_rights_that_end_somewhere(server: Server) -> None:
    """Listing may be denied where reading is not, and the other way round."""
    for denied in ("prefix=lake/&", "prefix=lake/__reconciler/&"):
        server.answer = empty_but(denied)
        with pytest.raises(CatalogError) as failed:
            list(DirectoryCatalog(server.options(**V1)).scan(detail(("t",))))
        assert failed.value.code is Code.PERMISSION_DENIED
    server.answer = empty_but("prefix=lake/t.lance/&")
    (one,) = DirectoryCatalog(server.options(**V1)).read([("Table", ("t",))], detail(("t",)))
    assert isinstance(one.finding, Unreadable)
    assert one.finding.code is Code.PERMISSION_DENIED


def test_a_missing_object_that_s3_calls_denied(server: Server) -> None:
    """It does when the caller may list some prefixes only: the listing decides."""
    server.answer = empty_but("__reconciler/nowhere")
    catalog = DirectoryCatalog(server.options(**V1))
    with pytest.raises(CatalogError, match="AccessDenied"):
        list(catalog.scan(detail()))
    server.answer = lambda path: (200, NOTHING) if "list-type" in path else DENIED
    assert list(catalog.scan(detail())) == [RootSeen(new="s3://b/lake")]
