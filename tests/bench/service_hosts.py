"""The servers of the service benchmarks, in processes of their own: neither side pays for the server's work.

Run as a script it serves one kind and prints its address; it ends when its standard input does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))


@contextmanager
def hosted(kind: str, *arguments: str) -> Iterator[str]:
    """The address of a server of this kind: rest, iceberg, proxy TARGET SECONDS, unity, glue, pages TABLES."""
    command = [sys.executable, __file__, kind, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        endpoint = process.stdout.readline().strip()
        assert endpoint, f"no {kind} server: see above"
        yield endpoint
    finally:
        process.stdin.close()
        process.wait(30)


def _serve(kind: str, arguments: list[str]) -> None:
    def until_told(endpoint: str) -> None:
        print(endpoint, flush=True)
        sys.stdin.read()

    if kind == "iceberg":
        from servers.iceberg_rest import IcebergRest

        with tempfile.TemporaryDirectory() as folder:
            servers = IcebergRest(Path(folder))
            until_told(servers.new().endpoint)
            servers.close()
    elif kind == "proxy":
        from delay_relay import relayed

        with relayed(arguments[0], float(arguments[1]), {b" /v1/wh/": b" /v1/"}) as endpoint:
            until_told(endpoint)
    elif kind == "unity":
        from servers.unity_server import UnityServer

        unity = UnityServer()
        unity.start()
        until_told(unity.endpoint)
        unity.stop()
    elif kind == "glue":
        from servers.glue_moto import GlueServer

        with GlueServer() as glue:
            until_told(glue.endpoint)
    elif kind == "rest":
        from servers.rest_adapter import RestServers

        with tempfile.TemporaryDirectory() as folder:
            rest = RestServers(Path(folder))
            until_told(rest.serve(Path(folder) / "lake"))
            rest.close()
    elif kind == "pages":
        _pages(int(arguments[0]), until_told)


def _pages(tables: int, until_told: object) -> None:
    """A Unity server of one schema with so many Lance tables, made up page by page."""
    import json
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    from urllib.parse import parse_qs, urlsplit

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            first = int(parse_qs(parts.query).get("page_token", ["0"])[0])
            if parts.path.endswith("/tables"):
                names = range(first, min(first + 100, tables))
                body: dict[str, object] = {"tables": [_table(n) for n in names]}
                body["next_page_token"] = str(first + 100) if first + 100 < tables else None
            elif parts.path.endswith("/schemas"):
                body = {"schemas": [{"name": "s", "catalog_name": "lake", "properties": {}}], "next_page_token": None}
            else:
                body = {"name": "lake", "properties": {}, "next_page_token": None}
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    import threading

    threading.Thread(target=server.serve_forever, daemon=True).start()
    until_told(f"http://127.0.0.1:{server.server_port}")  # type: ignore[operator]
    server.shutdown()


def _table(number: int) -> dict[str, object]:
    return {
        "name": f"t{number:06}",
        "catalog_name": "lake",
        "schema_name": "s",
        "table_type": "EXTERNAL",
        "data_source_format": "TEXT",
        "columns": [],
        "storage_location": f"file:///lake/s/t{number:06}",
        "comment": None,
        "properties": {"table_type": "lance", "reconciler.owner": "us", "team": f"team-{number % 7}"},
        "table_id": f"id-{number}",
    }


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2:])
