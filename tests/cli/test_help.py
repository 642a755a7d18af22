"""--help, and what is said about a command line that is wrong."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest
from cli_runs import reconciler

from reconciler.cli.arguments import parser
from reconciler.cli.completion import commands
from reconciler.cli.help_examples import EXAMPLES

COMMANDS = [" ".join(command.words) for command in commands(parser())]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples_that_it_takes(command: str, tmp_path: Path) -> None:
    shown = reconciler(tmp_path, *command.split(), "--help")
    assert shown.code == 0
    lines = re.findall(r"^  (reconciler .*)$", shown.out.partition("\nexamples:\n")[2], re.MULTILINE)
    assert lines == [line for _, line in EXAMPLES[command]]
    for line in lines:
        words = shlex.split(line, comments=True)
        given = words[1 : words.index(">")] if ">" in words else words[1:]
        chosen = parser().parse_args(given)
        assert isinstance(chosen, argparse.Namespace)
        assert " ".join(given).startswith(command)


def test_there_are_no_examples_of_commands_that_are_gone() -> None:
    assert set(EXAMPLES) == set(COMMANDS)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plann m", "reconciler: error: argument COMMAND: 'plann' is not one of validate, plan"),
        ("plann m", "did you mean plan?"),
        ("pipeline verfy m", "reconciler pipeline: error: argument VERB: 'verfy' is not one of"),
        ("pipeline verfy m", "did you mean verify?"),
        ("plan m --targett=x", "reconciler plan: error: '--targett' is not known here; did you mean --target?"),
        ("pipeline verify m --dryrun", "'--dryrun' is not known here; did you mean --dry-run?"),
        ("plan m --format jsno", "'jsno' is not one of text, json"),
        ("apply m --allow drop_columns", "did you mean drop_column?"),
        ("plan m --xyzzy", "'--xyzzy' is not known here\n"),
        ("plan m --b\x1bad", r"'--b\x1bad' is not known here"),
        ("--verison", "reconciler: error: '--verison' is not known here; did you mean --version?\n"),
        ("--colr never plan m", "reconciler: error: '--colr' is not known here; did you mean --color?\n"),
        ("--colr=never plan m", "'--colr' is not known here; did you mean --color?\n"),
        ("--color never --log-levle debug plan m", "'--log-levle' is not known here; did you mean --log-level?\n"),
        (
            "pipeline --colr never verify m",
            "reconciler pipeline: error: '--colr' is not known here; did you mean --color?",
        ),
        ("plan m --formt s3cret", "'--formt' is not known here; did you mean --format?\n"),
        ("plan m -Zs3cret --tokn -s3cret", "'-Z' is not known here; '--tokn' is not known"),
        ("plan m --tokn s3cret --xyz=s3cret", "; '--xyz' is not known here\n"),
        ("--xyzzy s3cret plan m", "reconciler: error: '--xyzzy' is not known here\n"),
        ("--target vision plan m", "'--target' is not known here; it goes after the command\n"),
        ("--format json plan m", "'--format' is not known here; it goes after the command\n"),
        ("--color nevr plan m", "'nevr' is not one of auto, always, never; did you mean never?"),
        ("--debug", "reconciler: error: the following arguments are required: COMMAND\n"),
        ("plan", "reconciler plan: error: the following arguments are required: PATH\n"),
        ("plan", "run `reconciler plan --help` for what it takes, with examples\n"),
    ],
)
def test_a_wrong_command_line_gets_a_hint(line: str, said: str, tmp_path: Path) -> None:
    done = reconciler(tmp_path, *line.split(" "))
    assert done.code == 1
    assert done.out == ""
    assert said in done.err
    assert "s3cret" not in done.err


def test_what_is_right_before_a_command_is_taken() -> None:
    for line in ("--color=never plan m", "--debug --log-level debug --color never plan m"):
        assert parser().parse_args(line.split(" ")).command == "plan"
