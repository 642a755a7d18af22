"""A secret that somebody wrote into the catalog: people do not see it in a plan, and the exact one says where it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import catalog, namespace, reconciler, table, write

TOKEN = "TOK-canary.77<&>|x"
HALF = "canary"
ENV = {"TOK": TOKEN}
HUMAN = ("text", "markdown", "html", "sarif", "junit")
LONG = "v" * 180
"""With the token after it, the value is cut in the middle of the token."""
OPTIONS = {"storage__aws_secret_access_key": "${env:TOK}", "storage__aws_region": "us-east-1"}
"""`dir` on a disk uses neither."""


def manifests(folder: Path, note: str) -> Path:
    said = json.dumps({"note": note, "long": LONG + note, "region": "us-east-1"})
    columns = f"[{{name: id, type: int64, comment: {json.dumps(note)}}}]"
    spec = f"properties: {said}"
    return write(folder, catalog(**OPTIONS), namespace("a", spec=f"{{{spec}}}"), table("a", "t", schema=columns))


@pytest.fixture
def drifted(tmp_path: Path) -> Path:
    """The token is live, and the manifest has it no longer."""
    file = manifests(tmp_path, f"uses {TOKEN} here")
    assert reconciler(tmp_path, "apply", file, "--yes", env=ENV).code == 0
    return manifests(tmp_path, "uses nothing")


@pytest.mark.parametrize("how", HUMAN)
def test_no_format_for_people_shows_it(drifted: Path, how: str) -> None:
    for words in (("plan", drifted), ("drift", drifted)):
        run = reconciler(drifted.parent, *words, "--format", how, env=ENV)
        assert run.code in (0, 2), run.err
        assert HALF not in run.out + run.err
        assert "uses ***" in run.out or how in ("sarif", "junit")
        assert "us-east-1" not in run.err
        unknown = reconciler(drifted.parent, *words, "--format", how, env={"TOK": "something else"})
        assert HALF in unknown.out or how == "sarif", "it is a secret only where it is one"


def test_the_exact_plan_is_exact_and_says_where_it_is(drifted: Path) -> None:
    folder = drifted.parent
    run = reconciler(folder, "plan", drifted, "-o", "p.json", env=ENV)
    assert TOKEN in (folder / "p.json").read_text()
    assert HALF not in run.out + run.err
    assert "warning: p.json is exact, and values in it hold secrets of this run: " in run.err
    assert "namespace lake:a (before.properties.note)" in run.err
    as_json = reconciler(folder, "plan", drifted, "--format", "json", env=ENV)
    assert as_json.out == (folder / "p.json").read_text()
    assert "warning: the plan as JSON is exact" in as_json.err
    assert HALF not in as_json.err
    log = reconciler(folder, "plan", drifted, "--format", "json", "--log-format", "json", env=ENV)
    assert HALF not in log.err

    applied = reconciler(folder, "apply", "--plan", "p.json", "--yes", "--report", "r.json", env=_with_region(ENV))
    assert applied.code == 0, applied.err
    assert "uses ***" in applied.out
    assert HALF not in applied.out + applied.err + (folder / "r.json").read_text()
    assert reconciler(folder, "drift", drifted, env=ENV).code == 0


def _with_region(env: dict[str, str]) -> dict[str, str]:
    return env | {"RECONCILER_LAKE_STORAGE_AWS_REGION": "us-east-1"}


def test_a_plan_without_secrets_is_written_without_a_word(tmp_path: Path) -> None:
    """The region is taken out of messages; as a value it is nobody's secret."""
    run = reconciler(tmp_path, "plan", manifests(tmp_path, "nothing"), "--format", "json", env=ENV)
    assert "is exact" not in run.err
    shown = reconciler(tmp_path, "plan", manifests(tmp_path, "nothing"), env=ENV)
    assert 'region = "us-east-1"' in shown.out


def test_a_name_that_is_a_secret(tmp_path: Path) -> None:
    """In keys, in names of objects and of columns; also where two become the same."""
    tok = "TOKcanary"
    columns = f"[{{name: id, type: int64}}, {{name: s{tok}, type: 'struct<{tok}: int8, b{tok}: string>'}}]"
    file = write(
        tmp_path,
        catalog(storage__aws_session_token="${env:TOK}"),
        namespace("a", spec=f"{{properties: {{{tok}: x, {tok}2: y}}}}"),
        namespace(f"n{tok}"),
        table(f"n{tok}", "t", schema=columns),
    )
    for how in HUMAN:
        run = reconciler(tmp_path, "plan", file, "--format", how, env={"TOK": tok})
        assert run.code == 0, run.err
        assert HALF not in run.out
    applied = reconciler(tmp_path, "apply", file, "--yes", "--report", "r.json", env={"TOK": tok})
    assert applied.code == 0, applied.err
    assert HALF not in applied.out + applied.err + (tmp_path / "r.json").read_text()
    for how in ("text", "json", "markdown"):
        write(tmp_path, catalog(storage__aws_session_token="${env:TOK}"), name="only.yaml")
        shown = reconciler(tmp_path, "status", "only.yaml", "--format", how, env={"TOK": tok})
        assert shown.code == 0
        assert HALF not in shown.out + shown.err
