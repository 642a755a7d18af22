"""The stand-in answers every recorded request as the real server did: that is what makes it worth testing against."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path
from typing import Any

import pytest
from servers.unity_server import API, unity_server

RECORDINGS = Path(__file__).parent.parent / "recordings"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r'("(?:created_at|updated_at)": )\d+')


class Mask:
    """Ids by the order in which they appear, times as a word."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        text = _UUID.sub(lambda m: self._ids.setdefault(m[0], f"<id-{len(self._ids) + 1}>"), text)
        return _TIME.sub(r'\1"<time>"', text)


def _renumbered(text: str, known: dict[str, str]) -> str:
    """A recording numbers its ids too; some numbers went to answers that were left out of it."""
    return re.sub(r"<id-\d+>", lambda m: known.setdefault(m[0], f"<id-{len(known) + 1}>"), text)


@pytest.mark.parametrize("name", ["unity-0.6.0-catalogs-schemas", "unity-0.6.0-tables"])
def test_every_recorded_exchange(name: str) -> None:
    exchanges = [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]
    assert len(exchanges) > 80
    mask, known, wrong = Mask(), {}, []
    with unity_server("/server") as server:
        connection = http.client.HTTPConnection(server.endpoint.removeprefix("http://"))
        for number, exchange in enumerate(exchanges):
            request = exchange["request"]
            body = request if isinstance(request, str) else json.dumps(request) if request is not None else None
            headers = {"Content-Type": "application/json", **exchange["headers"]}
            connection.request(exchange["method"], API + exchange["path"], body, headers)
            answer = connection.getresponse()
            text = mask(answer.read().decode())
            kind = answer.headers["Content-Type"]
            found: Any = json.loads(text) if kind == "application/json" else text
            expected = json.loads(_renumbered(json.dumps(exchange["response"]), known))
            if (answer.status, kind, found) != (exchange["status"], exchange["content_type"], expected):
                wrong.append((number, exchange["method"], exchange["path"], answer.status, found, expected))
    assert not wrong, wrong[0]
