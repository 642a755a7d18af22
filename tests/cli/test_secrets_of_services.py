"""A service that repeats all it was sent, in its messages and among its live properties: no output shows a secret.

The catalog is Lance's own REST server behind a proxy that does the repeating; the token is one that a real OAuth2
server gave out, which nobody wrote into any file. The exact plan (JSON, `-o`) is the one exception, and says so; a
later run takes out of it what it can resolve, which a token of the earlier run is not.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import lance
import pytest
from cli_runs import Run, namespace, reconciler, table, write
from servers.oidc import Oidc, oidc
from servers.proxy import Exchange, Message, Proxy, answer
from servers.rest_adapter import RestServers, rest_adapter

from reconciler.catalog.lease_records import KEY
from reconciler.engine.redact import MASK, Redactor
from reconciler.model.state import APPLIED_BY_KEY

__all__ = ["oidc", "rest_adapter"]
pytestmark = pytest.mark.slow

HEADER, STORED = "HEADcanary;secret/4711", "STOREcanary+8899=="
HUMAN = ("text", "markdown", "html", "sarif", "junit")
APPLY = ("text", "json", "markdown", "junit")
EXACT = ("p.json",)
"""Files that are exact by design."""


def said(exchange: Exchange, far: int) -> str:
    """What it was sent, as it is and in base64, and again `far` along, where messages are cut."""
    headers = exchange.request.headers
    token = headers["authorization"].removeprefix("Bearer ")
    basic = base64.b64encode(f"somebody:{HEADER}".encode()).decode()
    repeated = f"{headers['authorization']} {headers['x-secret']} token={HEADER}, {basic} {token} {STORED} "
    return repeated + "x" * (far - len(repeated)) + f"{HEADER}{token}"


@dataclass
class Echo:
    """The catalog as the program sees it."""

    proxy: Proxy
    folder: Path
    env: dict[str, str]
    runs: list[Run] = field(default_factory=list)

    def run(self, *words: str | Path) -> Run:
        run = reconciler(self.folder, *words, env=self.env)
        self.runs.append(run)
        return run

    def repeats_in_errors(self, path: str, status: int = 403, far: int = 280, plain: bool = False) -> None:
        async def act(exchange: Exchange) -> None:
            text = said(exchange, far)
            body = text if plain else json.dumps({"error": text, "code": 13, "detail": text})
            await answer(status, body, json=not plain)(exchange)

        self.proxy.fault(act, path=path, times=None)

    def repeats_in_properties(self) -> None:
        """In every property that it shows, and in one that nobody declared."""

        async def act(exchange: Exchange) -> None:
            reply = await exchange.forward()
            found = json.loads(reply.body) if reply.body else {}
            if isinstance(found, dict) and isinstance(found.get("properties"), dict):
                text = said(exchange, 150)
                live = found["properties"]
                found["properties"] = live | {"note": text, "theirs": text, f"k {HEADER}": "x"}
            body = json.dumps(found).encode() if reply.body else b""
            await exchange.give(Message(reply.start, reply.headers, body))

        self.proxy.fault(act, path="/describe", times=None)

    def secrets(self) -> set[str]:
        """Of the run, with the tokens that were fetched: every eight characters of each, and the base64."""
        tokens = {r.headers["authorization"].removeprefix("Bearer ") for r in self.proxy.seen}
        whole = {HEADER, STORED, *tokens, self.env["CREDENTIAL"].partition(":")[2]}
        basic = base64.b64encode(f"somebody:{HEADER}".encode()).decode()
        return {w[n : n + 8] for w in whole for n in range(len(w) - 7)} | {basic[14:-4]}

    def check(self, *more: str) -> None:
        texts = {f"run {n}": r.out + r.err for n, r in enumerate(self.runs)}
        for path in self.folder.rglob("*"):
            if path.is_file() and path.name not in ("m.yaml", "c.yaml", *EXACT):
                texts[str(path)] = path.read_bytes().decode("utf-8", "replace") + path.name
        for where, text in texts.items():
            for part in (*self.secrets(), *more):
                assert part not in text, f"{where}: {part} in {_around(text, part)}"


def _around(text: str, part: str) -> str:
    return text[max(0, text.index(part) - 300) : text.index(part) + 100]


@pytest.fixture
def echo(rest_adapter: RestServers, oidc: Oidc, tmp_path: Path) -> Iterator[Echo]:
    with Proxy(rest_adapter.serve(tmp_path / "lake")) as proxy:
        spec = {
            "type": "rest", "uri": proxy.endpoint, "max_retries": 0, "oauth2_server_uri": oidc.token_uri,
            "credential": "${env:CREDENTIAL}", "scope": "catalog", "header.x-secret": "${env:HEADER}",
            "storage.aws_secret_access_key": "${env:STORED}", "management": {"owner": "team"},
        }  # fmt: skip
        lake = f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {json.dumps(spec)}\n"
        write(tmp_path, lake, name="c.yaml")
        write(tmp_path, lake, namespace("a", spec="{properties: {note: ours}}"), table("a", "t"))
        env = {
            "CREDENTIAL": oidc.credential(),
            "HEADER": HEADER,
            "STORED": STORED,
            "CI_JOB_URL": f"https://ci/{HEADER}",
        }
        env |= {"RECONCILER_TERMINATION_LOG": "last-words"}
        yield Echo(proxy, tmp_path, env)


def test_live_properties(echo: Echo) -> None:
    assert echo.run("apply", "m.yaml", "--yes", "--report", "r.json").code == 0
    echo.repeats_in_properties()
    for how in HUMAN:
        planned = echo.run("plan", "m.yaml", "--format", how)
        assert planned.code == 0, planned.err
        assert MASK in planned.out or how == "sarif"
        echo.run("drift", "m.yaml", "--format", how, "--log-format", "json", "--metrics-file", f"{how}.prom")
    for how in ("text", "json", "markdown"):
        assert echo.run("status", "m.yaml", "--format", how).code == 0
    assert echo.run("import", "c.yaml", "-o", "live").code == 0
    assert "'theirs' is left out: it holds a secret" in echo.runs[-1].err
    assert echo.run("import", "c.yaml", "-o", "other", "--dry-run").code == 0
    saved = echo.run("plan", "m.yaml", "-o", "p.json")
    assert "warning: p.json is exact, and values in it hold secrets of this run: namespace lake:a (before" in saved.err
    assert HEADER in (echo.folder / "p.json").read_text(), "it could not be applied otherwise"
    for how in ("dot", "mermaid", "svg"):
        assert echo.run("graph", "--plan", "p.json", "--format", how).code == 0
    for how in ("text", "json", "markdown", "sarif", "junit"):
        assert echo.run("validate", "m.yaml", "--format", how).code == 0
    exact = reconciler(echo.folder, "plan", "m.yaml", "--format", "json", env=echo.env)
    echo.runs.append(Run(exact.code, "", exact.err))
    for how in APPLY:
        echo.run("apply", "m.yaml", "--yes", "--format", how, "--report", f"r-{how}.json", "--log-format", "json")
    saved = reconciler(echo.folder, "apply", "--plan", "p.json", "--yes", env=echo.env)
    assert MASK in saved.out
    assert not any(part in saved.out + saved.err for part in (HEADER[:8], HEADER[-8:], STORED[:8]))
    _show(echo)
    assert len({r.headers["authorization"] for r in echo.proxy.seen}) > 5, "each run has a token of its own"
    echo.check()

    nothing = patch.multiple(Redactor, text=lambda self, text: text, content=lambda self, text: text)
    with nothing:
        assert HEADER in reconciler(echo.folder, "plan", "m.yaml", env=echo.env).out


@pytest.mark.parametrize(
    ("address", "left"),
    [
        (f"https://ci/{HEADER}", "https://ci"),
        (f"https://ci/jobs/{STORED}/7", f"https://ci/jobs/{MASK}/7"),
        (f"https://u:{STORED}@ci:8443/jobs/7?key={HEADER}#{STORED}", "https://ci:8443/jobs/7"),
    ],
)
def test_what_is_noted_of_the_address_of_the_run(echo: Echo, address: str, left: str) -> None:
    """The same everywhere: in the report, the journal, on what was written, in the record of the lease."""
    echo.env |= {"CI_JOB_URL": address, "GITLAB_USER_LOGIN": f"ann-{STORED}", "GITHUB_ACTOR": ""}
    done = echo.run("apply", "m.yaml", "--yes", "--report", "r.json", "--journal", "j.jsonl", "--format", "json")
    assert done.code == 0, done.err
    run = json.loads((echo.folder / "r.json").read_text())["run"]
    assert run == done.json["run"] == json.loads((echo.folder / "j.jsonl").read_text().splitlines()[0])["run"]
    assert (run["url"], run["by"]) == (left, f"ann-{MASK}")
    sent = [json.loads(r.body).get("properties") or {} for r in echo.proxy.seen if r.body.startswith(b"{")]
    leases = [json.loads(p[KEY]) for p in sent if KEY in p]
    assert {(lease["holder"]["url"], lease["holder"]["user"]) for lease in leases} == {(left, f"ann-{MASK}")}
    on_objects = [json.loads(p[APPLIED_BY_KEY])["run"] for p in sent if APPLIED_BY_KEY in p]
    (dataset,) = (p for p in (echo.folder / "lake").iterdir() if p.name.endswith("a$t"))
    on_objects.append(json.loads(lance.dataset(str(dataset)).metadata[APPLIED_BY_KEY])["run"])
    assert on_objects == [left] * 3, "the namespace, the table, its dataset"
    for how in ("text", "markdown", "html", "json"):
        for file in ("r.json", "j.jsonl"):
            assert left in html.unescape(echo.run("show", file, "--format", how).out)
    ours = [p.read_bytes().decode("utf-8", "replace") for p in (echo.folder / "lake").rglob("*") if p.is_file()]
    addresses = {found for text in (*ours, *map(str, sent)) for found in re.findall(r"https://[^\s\"'\\]*", text)}
    assert addresses == {left}
    echo.check()


def _show(echo: Echo) -> None:
    """Reports, journals and what explains them; offline, from what was written."""
    files = [*echo.folder.glob("*r*.json"), *(echo.folder / ".reconciler/journal").iterdir()]
    assert len(files) > 2
    for file in files:
        for how in (*HUMAN, "json"):
            assert echo.run("show", file, "--format", how).code == 0
        if file.suffix == ".json":
            for how in ("text", "json", "markdown"):
                assert echo.run("explain", "--report", file, "--format", how).code == 0


@pytest.mark.parametrize(("far", "plain"), [(0, False), (590, False), (570, False), (0, True), (288, True)])
def test_messages(echo: Echo, far: int, plain: bool) -> None:
    """Of reading: nothing can be planned. Cut wherever it may be."""
    echo.repeats_in_errors("/list|/describe", far=far, plain=plain)
    for how in (*HUMAN, "json")[far % 3 :: 3]:
        for words in (("plan", "m.yaml"), ("drift", "m.yaml", "--metrics-file", "m.prom")):
            run = echo.run(*words, "--format", how, "--log-format", "json", "--log-level", "debug")
            assert (run.code, MASK in run.err) == (1, True), run.err
    for words in (("status", "m.yaml"), ("import", "c.yaml", "-o", "live"), ("apply", "m.yaml", "--yes", "--debug")):
        run = echo.run(*words, *(("--report", "r.json") if words[0] == "apply" else ()))
        assert (run.code, MASK in run.err) == (1, True), run.err
    assert MASK in json.loads((echo.folder / "r.json").read_text())["message"]
    assert MASK in (echo.folder / "last-words").read_text()
    for how in (*HUMAN, "json"):
        echo.run("show", "r.json", "--format", how)
    echo.check()


def test_messages_of_writes(echo: Echo) -> None:
    """The run ends in the middle, and everything that is kept of it holds the message."""
    assert echo.run("plan", "m.yaml", "-o", "p.json").code == 0
    echo.repeats_in_errors("/create|/declare|/register", status=400)
    for how in APPLY:
        more = ("--log-format", "json", "--metrics-file", "m.prom", "--log-level", "debug")
        run = echo.run("apply", "m.yaml", "--yes", "--format", how, "--report", f"r-{how}.json", *more)
        assert run.code in (1, 5), run.err
        assert MASK in run.out
        assert MASK in (echo.folder / f"r-{how}.json").read_text()
        assert MASK in (echo.folder / "last-words").read_text()
    assert echo.run("apply", "--plan", "p.json", "--yes", "--report", "r.json").code in (1, 5)
    _show(echo)
    assert any(MASK in p.read_text() for p in (echo.folder / ".reconciler/journal").iterdir())
    echo.check()


def test_the_token_is_a_secret_without_any_other(echo: Echo) -> None:
    """Not because it stands after `Bearer`, nor because the whole message went: the token alone is taken out."""

    async def act(exchange: Exchange) -> None:
        token = exchange.request.headers["authorization"].removeprefix("Bearer ")
        await answer(403, json.dumps({"error": f"who is {token} here", "code": 13}))(exchange)

    echo.proxy.fault(act, path="/list|/describe", times=None)
    run = echo.run("plan", "m.yaml")
    assert f"who is {MASK} here" in run.err
    echo.check()
