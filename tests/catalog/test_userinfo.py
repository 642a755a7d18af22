"""A user name or a password in a URI: refused where it is given, hidden wherever it turns up."""

from __future__ import annotations

import pytest
from dir_support import open_catalog

from reconciler.catalog.directory_capabilities import directory_capabilities
from reconciler.core.uris import holds_userinfo
from reconciler.engine.redact import Redactor, literal_secrets, without_literal_secrets
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import CatalogError, Code

SECRET = [
    "s3://user:CANARY@host/lake",
    "s3://CANARY@host",
    "https://u:CAN@ARY@h:9000/x?y#z",
    "gs://u:CAN/ARY@host/lake",
]
HARMLESS = [
    "s3://bucket/lake", "s3://bucket/a@b", "http://127.0.0.1:9000/a@b", "http://[::1]:9000/a@b", "./lake", "/a:b/c@d",
    "abfss://container@account.dfs.core.windows.net/lake",
]  # fmt: skip


@pytest.mark.parametrize("path", SECRET)
def test_a_path_with_a_password_is_refused(path: str) -> None:
    with pytest.raises(CatalogError) as failed:
        open_catalog(path)
    assert failed.value.code is Code.INVALID_INPUT
    assert "storage.*" in failed.value.message
    offline = directory_capabilities({"path": path}).ident_problem("Table", ("t",))
    location = directory_capabilities({"path": "s3://host/lake"}).location_problem(("n", "t"), path)
    for text in (failed.value.message, offline or "", location or ""):
        assert "password" in text
        assert "CAN" not in text
        assert "ARY" not in text


@pytest.mark.parametrize("path", HARMLESS)
def test_other_paths_are_not(path: str) -> None:
    assert not holds_userinfo(path)
    assert directory_capabilities({"path": path}).problem is None


@pytest.mark.parametrize("uri", SECRET)
def test_it_is_hidden_in_every_text(uri: str) -> None:
    redactor = Redactor()
    for text in (f"cannot open {uri}: no", f"'{uri}' and \"{uri}\"", f'{{"x":"{uri}"}}'):
        shown = redactor.text(text)
        assert "://***@h" in shown
        assert "CAN" not in shown
        assert "ARY" not in shown
        assert redactor.value([text, {text: 1}]) == [shown, {shown: 1}]


@pytest.mark.parametrize("uri", HARMLESS)
def test_what_is_none_stays(uri: str) -> None:
    text = f"cannot open {uri}, ask team@example.org"
    assert Redactor().text(text) == text


def test_such_a_uri_is_not_written_down() -> None:
    options = {"path": SECRET[0], "storage.endpoint": "http://${env:U}:${env:P}@h", "uri": HARMLESS[0]}
    spec = CatalogSpec("lake", "dir", options, Management(), Source("m.yaml"))
    assert literal_secrets(spec, lambda key: False) == ["path"]
    written = without_literal_secrets(spec, lambda key: False).options
    assert written == {**options, "path": "${env:RECONCILER_LAKE_PATH}"}
