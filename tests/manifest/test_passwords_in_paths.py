"""A user name or password in a path or location is refused at validation, and never repeated."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from reconciler.catalog.registry import capabilities_of
from reconciler.core.uris import holds_userinfo

from .support import CATALOG, codes, load_text, namespace, places, table

SECRET = [
    "s3://user:CANARY@host/x",
    "s3://CANARY@host",
    "https://u:CAN@ARY@h:9000/x?y#z",
    "gs://u:CAN/ARY@host/lake",
    "abfss://c:CANARY@account/lake",
    "s3://user:${env:CANARY}@host/x",
]
HARMLESS = [
    "s3://bucket/lake",
    "s3://bucket/a@b",
    "http://127.0.0.1:9000/a@b",
    "http://[::1]:9000/a@b",
    "./lake",
    "/a:b/c@d",
    "user:pw@host/x",
    "abfss://container@account.dfs.core.windows.net/lake",
    "abfss://container@localhost:10000/lake",
    "${env:LAKE}",
]


@pytest.mark.parametrize("uri", [*SECRET, *HARMLESS])
def test_what_it_is(uri: str) -> None:
    assert holds_userinfo(uri) is (uri in SECRET)


@pytest.mark.parametrize("uri", SECRET)
def test_refused_once_and_not_repeated(tmp_path: Path, uri: str) -> None:
    catalog = CATALOG.replace("./lake", f"'{uri}'")
    pond = CATALOG.replace("lake", "pond")
    documents = [
        namespace("n"),
        table("n, t", "schema: [{name: a, type: int64}]"),
        table("t", f"location: '{uri}'\nschema: [{{name: a, type: int64}}]", "pond"),
        table("u", f"location: '{uri}'\nschema: [{{name: a, type: int8}}]", "pond"),
    ]
    loaded = load_text(tmp_path, catalog, pond, *documents, capabilities_of=capabilities_of, environ={"CANARY": "pw"})
    assert codes(loaded) == ["M417"] * 3
    assert places(loaded, "M417")[0] == (4, 25)
    for found in loaded.diagnostics:
        assert "CAN" not in found.message + found.hint
        assert "ARY" not in found.message + found.hint


@pytest.mark.parametrize("uri", [u for u in HARMLESS if "${" not in u])
def test_other_paths_are_fine(tmp_path: Path, uri: str) -> None:
    loaded = load_text(tmp_path, CATALOG.replace("./lake", f"'{uri}'"), namespace("n"), capabilities_of=capabilities_of)
    assert codes(loaded) == []


@pytest.mark.parametrize("command", ["validate", "plan", "drift"])
def test_no_command_prints_it(tmp_path: Path, command: str) -> None:
    from reconciler.cli import run

    (tmp_path / "m.yaml").write_text(CATALOG.replace("./lake", f"'{SECRET[0]}'"))
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        assert run(["--log-level", "debug", command, str(tmp_path / "m.yaml")]) == 1
    assert "M417" in shown.getvalue()
    assert "CANARY" not in shown.getvalue()
