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


def test_a_storage_option_that_nobody_takes_is_a_warning(tmp_path: Path) -> None:
    text = said(tmp_path, "storage.aws_regoin: eu-west-1", "validate")
    assert "warning[M448]" in text
    assert "did you mean storage.region?" in text
    assert "M448" in said(tmp_path, "storage.AWS_ALLOW_HTPP: 'true'", "validate", "--strict", code=1)
    assert "M448" not in said(tmp_path, "storage.AWS_ALLOW_HTTP: 'true'", "validate", "--strict")
