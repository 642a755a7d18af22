"""A real OAuth2 server (npm oidc-provider): client credentials that are checked, tokens that really expire.

    def test_x(oidc: Oidc) -> None:
        options = {"credential": oidc.credential("long"), "oauth2_server_uri": oidc.token_uri, "scope": "catalog"}
        proxy.fault(oidc.guard(), times=None)        # the server behind the proxy now asks for a token of ours

The client `long` gets tokens for an hour, `short` for `SHORT` seconds. A wrong secret is refused (401).
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.cache import digest, fetch, needs, once
from servers.process import Conversation
from servers.proxy import Exchange, Fault, answer

SHORT = 2
_FILES = Path(__file__).with_name("oidc")


class Oidc:
    def __init__(self, folder: Path) -> None:
        node, npm = needs("node", "the OAuth2 server"), needs("npm", "the OAuth2 server")
        package = _FILES / "package.json"

        def fill(target: Path) -> None:
            shutil.copy(package, target)
            fetch([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], "oidc", target)

        home = once(f"oidc-{digest(package.read_bytes())}", fill)
        # Node looks for packages beside the program.
        program = home / f"server-{digest((_FILES / 'server.mjs').read_bytes())}.mjs"
        if not program.exists():
            shutil.copy(_FILES / "server.mjs", program)
        self.secret = f"secret-canary-{secrets.token_hex(8)}"
        self._process = Conversation([node, str(program), self.secret, str(SHORT)], folder / "oidc.log")
        self._base = f"http://127.0.0.1:{self._process.read()}"

    @property
    def token_uri(self) -> str:
        return f"{self._base}/token"

    def credential(self, client: str = "long") -> str:
        return f"{client}:{self.secret}"

    def token(self, client: str = "long") -> str:
        """As any client of the server would get it."""
        form = {"grant_type": "client_credentials", "scope": "catalog"}
        return str(self._post("/token", client, form)["access_token"])

    def accepts(self, token: str) -> bool:
        """Issued here and not expired."""
        return self._post("/token/introspection", "long", {"token": token})["active"] is True

    def guard(self, status: int = 401) -> Fault:
        """Lets only requests with a good token through (for a Proxy, with `times=None`)."""
        refuse = answer(status, '{"error": {"message": "not authorized", "type": "NotAuthorizedException"}}')

        async def act(exchange: Exchange) -> None:
            scheme, _, token = exchange.request.headers.get("authorization", "").partition(" ")
            if scheme == "Bearer" and await asyncio.to_thread(self.accepts, token):
                await exchange.give(await exchange.forward())
            else:
                await refuse(exchange)

        return act

    def close(self) -> None:
        self._process.close()

    def _post(self, path: str, client: str, form: dict[str, str]) -> dict[str, object]:
        data = urllib.parse.urlencode({"client_id": client, "client_secret": self.secret, **form}).encode()
        with urllib.request.urlopen(f"{self._base}{path}", data, timeout=30) as reply:
            found: dict[str, object] = json.load(reply)
            return found


@pytest.fixture(scope="session")
def oidc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oidc]:
    server = Oidc(tmp_path_factory.mktemp("oidc"))
    yield server
    server.close()
