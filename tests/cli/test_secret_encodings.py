"""The table of encodings x every channel: a secret that a service or a live value repeats in any of them is shown in
none. The exact plan (JSON, `-o`) is the one exception."""

from __future__ import annotations

import html
import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from cli_runs import catalog, namespace, reconciler, table, write
from secret_encodings import ENCODINGS, NASTY, pieces
from servers.oidc import Oidc, oidc
from servers.proxy import Exchange, Proxy, answer
from servers.rest_adapter import RestServers, rest_adapter

from reconciler.cli.json_log import JsonLog
from reconciler.cli.output import Output
from reconciler.engine.redact import MASK
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.session import Session

__all__ = ["oidc", "rest_adapter"]
ENV = {"TOK": NASTY}
OPTIONS = {"storage__aws_secret_access_key": "${env:TOK}"}
VALUES = {f"e{n:02}": encode(NASTY) for n, encode in enumerate(ENCODINGS.values())}
NAMES = list(ENCODINGS)


def assert_hidden(text: str, encoded: str, where: str) -> None:
    try:
        read = json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        read = ""
    for shown in (text, html.unescape(text), read, read.replace("\\\\", "\\")):
        for piece in pieces(encoded):
            at = shown.find(piece)
            assert at < 0, f"{where}: {piece!r} of {encoded!r} in {shown[max(0, at - 80) : at + 80]!r}"


@pytest.fixture
def drifted(tmp_path: Path) -> Path:
    """Live properties hold the secret in every encoding; the manifest has other values."""
    live = json.dumps(VALUES)
    write(tmp_path, catalog(**OPTIONS), namespace("a", spec=f"{{properties: {live}}}"), table("a", "t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", env={"TOK": "another"}).code == 0
    for file in (tmp_path / ".reconciler/journal").iterdir():
        file.unlink()
    other = json.dumps(dict.fromkeys(VALUES, "ours"))
    write(tmp_path, catalog(**OPTIONS), namespace("a", spec=f"{{properties: {other}}}"), table("a", "t"))
    write(tmp_path, catalog(**OPTIONS), name="c.yaml")
    return tmp_path


COMMANDS: dict[str, tuple[str, ...]] = {
    **{f"plan {how}": ("plan", "m.yaml", "--format", how) for how in ("text", "markdown", "html", "sarif", "junit")},
    **{f"drift {how}": ("drift", "m.yaml", "--format", how) for how in ("text", "markdown", "html")},
    **{f"status {how}": ("status", "m.yaml", "--format", how) for how in ("text", "markdown", "json")},
    "log": ("plan", "m.yaml", "--log-format", "json", "--log-level", "debug"),
    "import": ("import", "c.yaml", "-o", "live"),
    "import, only shown": ("import", "c.yaml", "-o", "live", "--dry-run"),
    "apply": ("apply", "m.yaml", "--yes", "--report", "r.json", "--metrics-file", "m.prom"),
    **{f"apply {how}": ("apply", "m.yaml", "--yes", "--format", how) for how in ("json", "markdown", "junit")},
}


@pytest.mark.parametrize("name", COMMANDS)
def test_live_values(drifted: Path, name: str) -> None:
    run = reconciler(drifted, *COMMANDS[name], env={**ENV, "RECONCILER_TERMINATION_LOG": "last-words"})
    assert run.code in (0, 2, 5), run.err
    if name in ("plan text", "drift text", "plan markdown", "apply"):
        assert run.out.count(MASK) >= len(VALUES)
    files = [p for p in drifted.rglob("*") if p.is_file() and "lake" not in p.parts[:-1] and p.suffix != ".yaml"]
    files += list(drifted.glob("live/**/*.yaml"))
    texts = {"stdout": run.out, "stderr": run.err} | {str(p): p.read_text() for p in files}
    for where, text in texts.items():
        for encoded in VALUES.values():
            assert_hidden(text, encoded, where)


@pytest.mark.parametrize("exact", ["--format", "-o"])
def test_the_exact_plan_names_where_they_are(drifted: Path, exact: str) -> None:
    run = reconciler(drifted, "plan", "m.yaml", exact, "json" if exact == "--format" else "p.json", env=ENV)
    assert "namespace lake:a (before.properties.e00)" in run.err
    for encoded in VALUES.values():
        assert_hidden(run.err, encoded, "stderr")


def _text_log() -> tuple[Output, Callable[[], str]]:
    out = Output(debug=True)
    out.redactor.add([NASTY])
    return out, lambda: sys.stderr.getvalue()  # type: ignore[attr-defined]


def _json_log() -> tuple[Output, Callable[[], str]]:
    stream = io.StringIO()
    out = Output(debug=True, log=JsonLog(stream))
    out.redactor.add([NASTY])
    return out, stream.getvalue


@pytest.mark.parametrize("made", [_text_log, _json_log])
@pytest.mark.parametrize("name", NAMES)
def test_log_records_messages_and_tracebacks(name: str, made: Callable[[], tuple[Output, Callable[[], str]]]) -> None:
    encoded = ENCODINGS[name](NASTY)
    before = logging.getLogger().handlers[:]
    with patch.object(sys, "stderr", io.StringIO()):
        out, written = made()
        try:
            out.set_up_logging("debug")
            logging.getLogger("library").warning("refused %s", encoded)
            try:
                raise ValueError(encoded)
            except ValueError as error:
                logging.getLogger("library").exception("failed")
                out.traceback(error)
            out.say(f"error: the service said {encoded}")
            text = written()
        finally:
            logging.getLogger().handlers[:] = before
            out.session.close()
    assert text.count(MASK) >= 4
    assert_hidden(text, encoded, "log")


@pytest.fixture
def refusing(rest_adapter: RestServers, oidc: Oidc, tmp_path: Path) -> Iterator[tuple[Proxy, dict[str, str]]]:
    with Proxy(rest_adapter.serve(tmp_path / "lake")) as proxy:
        spec = {
            "type": "rest", "uri": proxy.endpoint, "max_retries": 0, "oauth2_server_uri": oidc.token_uri,
            "credential": "${env:CREDENTIAL}", "scope": "catalog", "storage.aws_secret_access_key": "${env:TOK}",
            "management": {"owner": "team"},
        }  # fmt: skip
        lake = f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {json.dumps(spec)}\n"
        write(tmp_path, lake, namespace("a"), table("a", "t"))
        yield proxy, {**ENV, "CREDENTIAL": oidc.credential(), "RECONCILER_TERMINATION_LOG": "last-words"}


def refused_with(proxy: Proxy, path: str, said: str) -> None:
    async def act(exchange: Exchange) -> None:
        await answer(400, json.dumps({"error": said, "code": 13, "detail": said}))(exchange)

    proxy.fault(act, path=path, times=None)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/list", "/create|/declare|/register"])
def test_messages_of_a_service(tmp_path: Path, refusing: tuple[Proxy, dict[str, str]], path: str) -> None:
    """Of a read and of a write: in the output, the report, the journal, the metrics and the last words; also of the
    secret of the OAuth2 client."""
    proxy, env = refusing
    for name, encode in ENCODINGS.items():
        secret = env["CREDENTIAL"].partition(":")[2]
        for value in (NASTY, secret) if name in ("plain", "html", "url", "base64", "upper case") else (NASTY,):
            encoded = encode(value)
            refused_with(proxy, path, f"who is {encoded} here")
            for how, log in (("text", "text"), ("json", "json"), ("markdown", "text")):
                more = ("--report", "r.json", "--metrics-file", "m.prom", "--log-format", log, "--debug")
                run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", how, *more, env=env)
                assert run.code in (1, 5), run.err
                assert MASK in run.out + run.err, f"{name}: {run.out} {run.err}"
                kept = ("r.json", "m.prom", "last-words")
                texts = {"stdout": run.out, "stderr": run.err} | {f: (tmp_path / f).read_text() for f in kept}
                for journal in (tmp_path / ".reconciler/journal").glob("*"):
                    texts["journal"] = journal.read_text()
                    journal.unlink()
                for where, text in texts.items():
                    assert_hidden(text, encoded, f"{name} in {where}")


@pytest.mark.parametrize(
    ("client", "shown"),
    [
        ("svc-recon-4711", f"who is {MASK}"),
        ("b6f7'c0de", f"who is {MASK}"),
        ("reconcilers", f"who is {MASK}"),
        ("root", "who is root"),
    ],
)
def test_the_client_id_is_a_secret_too_unless_it_is_a_short_word(tmp_path: Path, client: str, shown: str) -> None:
    """As a token server repeats it: plain, in a form, in HTML, in a Basic header."""
    session = Session()
    spec = {"uri": "http://127.0.0.1:9", "credential": f"{client}:secret-canary-9"}
    session.resolved(CatalogSpec("lake", "rest", spec, Management(), Source("m.yaml", 1)))
    for name in ("plain", "form", "html", "upper case"):
        said = ENCODINGS[name](client)
        assert session.redactor.text(f"who is {said}") == (shown if MASK in shown else f"who is {said}")
    session.close()
