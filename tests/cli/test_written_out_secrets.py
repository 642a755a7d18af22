"""A secret in a manifest, and a storage option that nobody takes, are said wherever manifests are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.cli_runs import reconciler, write

HEAD = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec:\n  type: dir\n  path: ./lake\n"


def said(folder: Path, lines: str, *arguments: str, code: int = 0) -> str:
    file = write(folder, HEAD, f"  {lines}\n")
    done = reconciler(folder, arguments[0], file, *arguments[1:], env={"SECRET": "from-outside"})
    assert done.code == code, done.out + done.err
    return done.out + done.err


@pytest.mark.parametrize("command", [("validate",), ("plan",), ("apply", "--yes")])
def test_a_secret_that_is_written_out_is_a_warning(tmp_path: Path, command: tuple[str, ...]) -> None:
    for lines in ("storage.aws_secret_access_key: canary-value", "storage.SAS_TOKEN: canary-value"):
        text = said(tmp_path, lines, *command)
        assert "m.yaml:7:" in text
        assert "warning[M447]" in text
        assert "canary" not in text
        assert "error[M447]" in said(tmp_path, lines, *command, "--strict", code=1)
    for lines in ("storage.aws_secret_access_key: ${env:SECRET}", "storage.aws_region: eu-west-1"):
        assert "M447" not in said(tmp_path, lines, *command, "--strict")


REST = HEAD.replace("type: dir\n  path: ./lake", "type: rest\n  uri: http://127.0.0.1:9")


def warned(folder: Path, line: str) -> bool:
    done = reconciler(folder, "validate", write(folder, REST, f"  {line}\n"), env={"SECRET": "x", "ID": "y"})
    assert done.code == 0, done.err
    assert "canary" not in done.out + done.err
    return "warning[M447]" in done.out + done.err


@pytest.mark.parametrize(
    "line",
    [
        "auth_token: canary",
        "auth_token: '${env:NOPE:-canary}'",
        "auth_token: '${file:/nope:-canary}'",
        "auth_token: 'canarycanary${env:SECRET}'",
        "auth_token: '${env:SECRET}-canary-canary'",
        "auth_token: '${env:SECRET} canary77canary'",
        "credential: '${env:ID}:canary77canary'",
        "credential: 'client:${env:SECRET:-canary}'",
        "storage.secret_access_key: '${env:SECRET:-canary}'",
        "header.authorization: 'Bearer canary77canary ${env:SECRET}'",
        "auth_token: '$${env:SECRET}canary'",
        "storage.proxy_url: 'http://user:canary@proxy:3128'",
        "storage.endpoint: 'https://canary@store'",
        "header.x-forwarded: 'https://user:canary77canary@host'",
    ],
)
def test_a_secret_beside_a_reference_is_one_too(tmp_path: Path, line: str) -> None:
    assert warned(tmp_path, line)


@pytest.mark.parametrize(
    "line",
    [
        "auth_token: '${env:SECRET}'",
        "auth_token: '${env:NOPE:-}'",
        "auth_token: '${env:ID}${env:SECRET}'",
        "auth_token: 'dev-${env:SECRET}'",
        "credential: '${env:ID}:${env:SECRET}'",
        "credential: 'canary-client-17:${env:SECRET}'",
        "header.authorization: 'Bearer ${env:SECRET}'",
        "header.authorization: 'SharedAccessSignature ${env:SECRET}'",
        "header.cookie: 'session=${env:SECRET}; Path=/; HttpOnly'",
        "header.x-custom: 'canary77canary'",
    ],
)
def test_words_and_separators_beside_a_reference_are_none(tmp_path: Path, line: str) -> None:
    """Nor is a header whose name does not say so, whose value has no known form: most headers are none."""
    assert not warned(tmp_path, line)


def test_a_storage_option_that_nobody_takes_is_a_warning(tmp_path: Path) -> None:
    text = said(tmp_path, "storage.aws_regoin: eu-west-1", "validate")
    assert "warning[M448]" in text
    assert "did you mean storage.region?" in text
    assert "M448" in said(tmp_path, "storage.AWS_ALLOW_HTPP: 'true'", "validate", "--strict", code=1)
    for known in ("AWS_ALLOW_HTTP: 'true'", "lance_aimd_max_rate: '5'", "cos_endpoint: x", "dynamodb_endpoint: x"):
        assert "M448" not in said(tmp_path, f"storage.{known}", "validate", "--strict")


@pytest.mark.parametrize("command", [("plan",), ("apply", "--yes"), ("drift",)])
def test_it_is_said_as_well_when_the_catalog_cannot_be_read(tmp_path: Path, command: tuple[str, ...]) -> None:
    file = write(tmp_path, REST, "  auth_token: canary-value\n  max_retries: 0\n")
    done = reconciler(tmp_path, command[0], file, *command[1:])
    assert done.code == 1, done
    assert "warning[M447]" in done.err
    assert "cannot be read" in done.err
    assert "canary" not in done.out + done.err
