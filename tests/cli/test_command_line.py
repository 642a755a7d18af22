"""What a run tells others of its command line: no value of a flag."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.cli_runs import catalog, reconciler, table, write

from reconciler.cli.arguments import parser
from reconciler.cli.command_line import told_command
from reconciler.engine.lease_holder import this_process
from reconciler.engine.run_context import run_context
from reconciler.model.public_url import public_url

CANARY = "c4n4ry"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            f"apply m n/x.yaml --yes --remote sc://h:1/;token={CANARY} --conf k={CANARY} --var=p={CANARY}",
            "reconciler apply m n/x.yaml --var --yes --remote --conf",
        ),
        (
            f"--log-level info pipeline materialize s3://u:{CANARY}@b/m?sig={CANARY} --remote=sc://h/;t={CANARY}",
            "reconciler pipeline materialize s3://b/m --log-level --remote",
        ),
        (f"apply --plan {CANARY}.json --debug", "reconciler apply --debug --plan"),
        (f"apply https://[{CANARY}", "reconciler apply ..."),
        ("apply m --format text", "reconciler apply m"),
    ],
)
def test_names_of_flags_and_no_values(words: str, told: str) -> None:
    top = parser()
    assert told_command(top, top.parse_args(words.split())) == told


@pytest.mark.parametrize(
    ("url", "public"),
    [
        (f"https://me:{CANARY}@h:8443/a/b;j={CANARY}?t={CANARY}#{CANARY}", "https://h:8443/a"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("http://h:port/x", None),
        ("just/a/path", None),
    ],
)
def test_an_address_without_what_may_be_secret(url: str, public: str | None) -> None:
    assert public_url(url) == public


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({"BUILD_URL": f"https://ci.example/job/7/?token={CANARY}"}, "https://ci.example/job/7/"),
        (
            {"RECONCILER_RUN_URL": f"https://u:{CANARY}@ci.example/9", "BUILD_URL": "https://x/1"},
            "https://ci.example/9",
        ),
        ({"CI_PIPELINE_URL": "https://gl.example/p/1"}, "https://gl.example/p/1"),
        ({"BUILD_URL": "javascript:alert(1)"}, None),
    ],
)
def test_the_lease_and_the_report_name_one_run(environ: dict[str, str], url: str | None) -> None:
    environ = {**environ, "GITLAB_USER_LOGIN": "bob"}
    holder, noted = this_process(environ=environ), run_context([], environ)
    assert (holder.url or None, noted.url) == (url, url)
    assert (holder.user, noted.by) == ("bob", "bob")


def test_a_token_is_not_in_the_lease(tmp_path: Path) -> None:
    """The record stays where everybody who applies reads it."""
    write(tmp_path, catalog(), table("t"))
    spark = ("--remote", f"sc://127.0.0.1:1/;token={CANARY}", "--conf", f"k={CANARY}")
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", *spark, env={"BUILD_URL": f"https://ci.example/?t={CANARY}"})
    assert run.code == 0, run
    (record,) = (tmp_path / "lake" / "__reconciler" / "lease").iterdir()
    assert CANARY not in record.read_text()
    holder = json.loads(record.read_text())["holder"]
    assert holder["command"] == "reconciler apply m.yaml --yes --remote --conf"
    assert holder["url"] == "https://ci.example/"
