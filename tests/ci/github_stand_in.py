"""The part of GitHub's REST API that the action uses, on loopback: comments, artifacts, runs, and faults on demand."""

from __future__ import annotations

import io
import json
import re
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_TheTokenOfTheJob"
REPOSITORY = "acme/lake"
BOT = "github-actions[bot]"
WORKFLOW = ".github/workflows/lake.yml"
HEAD = "5f0c6a2d9b1e4c7f8a3b5d6e7f8091a2b3c4d5e6"
"""The last commit of the pull request; `MERGED` is what it became on the branch `main`."""
MERGED = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Fault:
    """For the next `times` requests of the method. `lands`: the work is done all the same, and the answer is lost.
    `content`: what is answered; `hangs`: seconds without an answer."""

    method: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    lands: bool = False
    content: bytes | None = None
    hangs: float = 0


@dataclass
class StandIn:
    url: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    pulls: list[dict[str, Any]] = field(
        default_factory=lambda: [
            {
                "number": 7,
                "merged_at": "2026-01-02T00:00:00Z",
                "head": {"sha": HEAD, "repo": {"id": 1}},
                "base": {"ref": "main", "repo": {"id": 1}},
            }
        ]
    )
    """Those that brought the commit `MERGED`."""
    zips: dict[int, bytes] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and Authorization header of each request."""

    def comment(self, body: str, author: str = BOT) -> dict[str, Any]:
        made = {"id": 1000 + len(self.comments), "body": body, "user": {"login": author}}
        self.comments.append(made)
        return made

    def keep(self, name: str, content: bytes, event: str = "pull_request") -> dict[str, Any]:
        """An artifact with plan.json in it, of a run of its own. Gives that run."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("plan.json", content)
        number = 50 + len(self.artifacts)
        run = {"id": 900 + number, "repository_id": 1, "head_repository_id": 1, "head_sha": HEAD}
        self.runs[900 + number] = {"id": 900 + number, "path": WORKFLOW, "event": event, "head_sha": HEAD}
        created = f"2026-01-01T00:00:{len(self.artifacts):02}Z"
        self.artifacts.append(
            {"id": number, "name": name, "expired": False, "created_at": created, "workflow_run": run}
        )
        self.zips[number] = packed.getvalue()
        return self.runs[900 + number]

    def writes(self) -> list[str]:
        return [method for method, _, _ in self.seen if method != "GET"]


class _Handler(BaseHTTPRequestHandler):
    state: StandIn

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PATCH(self) -> None:
        self._answer("PATCH")

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, method: str) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.state.seen.append((method, self.path, self.headers.get("Authorization")))
        fault = next((f for f in self.state.faults if f.method == method and f.times > 0), None)
        if fault is not None:
            fault.times -= 1
            if fault.lands:
                self._work(method, sent)
            time.sleep(fault.hangs)
            content = fault.content if fault.content is not None else {"message": f"fault {fault.status}"}
            with suppress(OSError):  # Nobody waits that long.
                self._reply(fault.status, content, fault.headers)
            return
        self._reply(*self._work(method, sent))

    def _work(self, method: str, sent: bytes) -> tuple[int, Any, dict[str, str]]:
        state, url = self.state, urlsplit(self.path)
        if store := re.fullmatch(r"/store/(\d+)", url.path):
            return 200, state.zips[int(store.group(1))], {}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}, {}
        path = url.path.removeprefix(f"/repos/{REPOSITORY}/")
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        if method == "GET" and path == "issues/7/comments":
            return 200, self._page(state.comments, query), {}
        if method == "POST" and path == "issues/7/comments":
            return 201, state.comment(self._body(sent)), {}
        if method == "PATCH" and (one := re.fullmatch(r"issues/comments/(\d+)", path)):
            (found,) = [c for c in state.comments if c["id"] == int(one.group(1))]
            found["body"] = self._body(sent)
            return 200, found, {}
        if method == "GET" and path == "actions/artifacts":
            named = [a for a in state.artifacts if a["name"] == query["name"]]
            return 200, {"total_count": len(named), "artifacts": self._page(named, query)}, {}
        if method == "GET" and (one := re.fullmatch(r"actions/artifacts/(\d+)/zip", path)):
            return 302, {}, {"Location": f"{state.url}/store/{one.group(1)}"}
        if method == "GET" and (one := re.fullmatch(r"actions/runs/(\d+)", path)):
            return 200, state.runs[int(one.group(1))], {}
        if method == "GET" and path == f"commits/{MERGED}/pulls":
            return 200, self._page(state.pulls, query), {}
        return 404, {"message": "Not Found"}, {}

    def _body(self, sent: bytes) -> str:
        body = str(json.loads(sent)["body"])
        assert len(body) <= 65536
        return body

    def _page(self, items: list[Any], query: dict[str, str]) -> list[Any]:
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        return items[(page - 1) * size : page * size]

    def _reply(self, status: int, content: Any, headers: dict[str, str]) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Its address, while it serves."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def stand_in() -> Iterator[StandIn]:
    state = StandIn()
    with serving(type("Handler", (_Handler,), {"state": state})) as url:
        state.url = url
        yield state
