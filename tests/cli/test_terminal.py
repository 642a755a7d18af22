"""At a terminal: the question before apply, colours, and lines that fit."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from cli_runs import command, environment, reconciler

from reconciler.render.text import NOT_APPLIED

CATALOG = """\
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: ./lake, management: {owner: us}}
---
"""
TABLE = """\
apiVersion: reconciler.lance/v1
kind: Table
metadata: {catalog: lake, id: [t]}
spec:
  allow: [drop_column]
  schema: [{name: n, type: int64}%s]
"""


def at_terminal(
    folder: Path,
    *arguments: str,
    answer: str | None,
    columns: int = 100,
    shell: str = "",
    ahead: str = "",
    **env: str,
) -> tuple[int, str]:
    """The exit code and everything that a person sees. `answer`: given to each question; `shell`: a line for the shell
    instead; `ahead`: typed before anything is there, and once more before each further question."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    clean = {k: v for k, v in environment(TERM="xterm", **env).items() if k not in ("COLUMNS", "LINES")}
    run = subprocess.Popen(
        shell or command(*arguments),
        shell=bool(shell),
        cwd=folder,
        env=clean,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, ahead.encode())
    seen, answered, end = "", 0, time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                seen += os.read(ours, 65536).decode()
            except OSError:  # The other side is closed: all was read.
                break
        questions = len(re.findall(r"(?:to stop|name):", seen))
        if answer is not None and questions > answered:
            os.write(ours, f"{answer}\n{ahead}".encode())
            answered = questions
    code = run.wait(30)
    os.close(ours)
    return code, seen.replace("\r\n", "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.yaml").write_text(CATALOG + TABLE % ", {name: old, type: string}")
    return tmp_path


@pytest.mark.slow
def test_only_yes_is_a_yes(folder: Path) -> None:
    code, seen = at_terminal(folder, "apply", "m.yaml", answer="y")
    assert code == 1
    assert "Plan: 1 to create" in seen
    assert "Apply this plan? Type yes to apply, anything else to stop: y\n" in seen
    assert "not applied: nothing was written" in seen
    assert not (folder / "lake").exists()
    code, seen = at_terminal(folder, "apply", "m.yaml", answer="yes")
    assert code == 0, seen
    assert reconciler(folder, "plan", "m.yaml", "--detailed-exitcode").code == 0


TYPED_AHEAD = """\
import select
import sys

from reconciler.__main__ import main
from reconciler.cli import confirm
from reconciler.cli import {command} as command

confirm.ANSWER_SECONDS = {seconds}
asked = command.{function}

def once_it_is_typed(*given, **more):
    print("ready:", flush=True)
    while not select.select([0], [], [], 0.1)[0]:
        pass  # What is typed ahead is at the terminal by now.
    return asked(*given, **more)

command.{function} = once_it_is_typed
sys.argv[1:] = {words}
raise SystemExit(main())
"""


def typed_ahead(folder: Path, line: str, *words: str, seconds: float, answer: str | None) -> tuple[int, str]:
    """`line` is typed, and has arrived, before the question is asked."""
    function = "confirm" if words[0] == "apply" else "_confirmed"
    script = TYPED_AHEAD.format(command=words[0], function=function, seconds=seconds, words=[*words])
    return at_terminal(
        folder, shell=shlex.join([sys.executable, "-c", script]), ahead=line, answer=answer, NO_COLOR="1"
    )


@pytest.mark.slow
@pytest.mark.parametrize("line", ["yes\n", "\nyes\nyes\n"])
def test_what_is_typed_before_the_question_is_no_answer(folder: Path, line: str) -> None:
    """With nobody at the terminal the question ends by itself."""
    (folder / "m.yaml").write_text(CATALOG + TABLE % "")
    code, seen = typed_ahead(folder, line, "apply", "m.yaml", seconds=1, answer=None)
    assert code == 1, seen
    assert "not applied: nothing was written; nobody answered within 1 seconds" in " ".join(seen.split())
    assert not (folder / "lake").exists()
    code, seen = typed_ahead(folder, "no\n", "apply", "m.yaml", seconds=60, answer="yes")
    assert code == 0, seen
    assert (folder / "lake").exists()


@pytest.mark.slow
def test_what_could_lose_data_takes_the_name_of_the_catalog(folder: Path) -> None:
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    (folder / "m.yaml").write_text(CATALOG + TABLE % "")
    code, seen = at_terminal(folder, "apply", "m.yaml", answer="yes", NO_COLOR="1")
    assert code == 1
    assert "Destructive in catalog lake: 1 step\n  - lake:t  drop_columns: columns that are not declared: old\n" in seen
    assert "Data in catalog lake could be lost. To apply, type the catalog's name: yes\n" in seen
    assert reconciler(folder, "plan", "m.yaml", "--detailed-exitcode").code == 2
    assert at_terminal(folder, "apply", "m.yaml", answer="lake")[0] == 0
    assert reconciler(folder, "plan", "m.yaml", "--detailed-exitcode").code == 0


@pytest.mark.slow
def test_the_question_says_nothing_twice_and_fits(folder: Path) -> None:
    names = ", ".join(f"{{name: column_{i}, type: string}}" for i in range(12))
    (folder / "m.yaml").write_text(CATALOG + TABLE % f", {names}")
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    (folder / "m.yaml").write_text(CATALOG + TABLE % "")
    _, seen = at_terminal(folder, "apply", "m.yaml", answer="no", NO_COLOR="1", columns=60)
    assert seen.count("Plan: 0 to create, 1 to update, 0 to delete, 0 blocked.") == 1
    told = seen[seen.index("Destructive in") : seen.index("Data in catalog")].splitlines()
    assert len(told) > 2
    assert max(map(len, told)) <= 60, told
    assert " ".join(told).endswith("column_3 and 8 more")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["text", "json"])
def test_a_plan_that_went_into_a_file_is_summed_up_at_the_question(folder: Path, how: str) -> None:
    """As another format it is shown beside the question, whole; so its last line is there already."""
    words = " ".join(shlex.quote(word) for word in command("apply", "m.yaml", "--format", how))
    _, seen = at_terminal(folder, shell=f"{words} > out.txt", answer="no", NO_COLOR="1")
    assert seen.count("Plan: 1 to create, 0 to update, 0 to delete, 0 blocked.") == 1, seen


WITHOUT_A_STEP = {
    "blocked": ("m.yaml", 3, "! drop_columns blocked: "),
    "unsupported": ("unsupported.yaml", 3, "? add_columns unsupported: "),
    "refused by a threshold": ("threshold.yaml", 3, "Refused: 1 object of the 1 we own would be deleted"),
    "refused by a policy": ("policy.yaml", 3, "Refused: policy: P006 "),
    "nothing to do": ("same.yaml", 0, "No changes. The live catalogs match the manifests."),
    "only something to tell": ("orphan.yaml", 0, "No changes. There is nothing to apply, but 1 object is orphaned"),
}


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of ours with two columns, and manifests for which no step may run."""
    folder = tmp_path_factory.mktemp("applied")
    same = CATALOG + TABLE % ", {name: old, type: string}"
    less = CATALOG + TABLE % ""
    absent = TABLE.replace("spec:", "spec:\n  state: absent") % ", {name: old, type: string}"
    new = "---\n" + (TABLE % "").replace("id: [t]", "id: [new]")
    none = CATALOG.replace("owner: us", "owner: us, thresholds: {deletes: 0}")
    policy = "---\napiVersion: reconciler.lance/v1\nkind: Policy\nmetadata: {name: p}\n"
    policy += "spec: {rules: [{rule: no-destructive-change}]}\n"
    texts = {
        "same.yaml": same,
        "m.yaml": less.replace("  allow: [drop_column]\n", ""),
        "unsupported.yaml": same.replace("{name: n,", "{name: m, type: int64, nullable: false}, {name: n,"),
        "threshold.yaml": none + absent + new,
        "policy.yaml": less + new + policy,
        "orphan.yaml": CATALOG,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    assert reconciler(folder, "apply", "same.yaml", "--yes").code == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("why", WITHOUT_A_STEP)
def test_nothing_is_asked_when_no_step_may_run(applied: Path, why: str) -> None:
    """Whoever answers is not to think that something was done."""
    file, code, told = WITHOUT_A_STEP[why]
    ended, seen = at_terminal(applied, "apply", file, answer="yes", NO_COLOR="1", columns=400)
    assert not re.search("(?i)type (yes|the catalog)|apply this plan", seen), seen
    assert (ended, "not applied" in seen) == (code, False), seen
    assert told in seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "env", "colored"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        (("--color", "never"), {}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
    ],
)
def test_colours_at_a_terminal(folder: Path, flags: tuple[str, ...], env: dict[str, str], colored: bool) -> None:
    _, seen = at_terminal(folder, "plan", "m.yaml", *flags, answer="", **env)
    assert ("\x1b[32m  + table t\x1b[0m" in seen) is colored
    assert ("\x1b" in seen) is colored


def test_no_colours_in_a_file_unless_asked_for(folder: Path) -> None:
    assert "\x1b" not in reconciler(folder, "plan", "m.yaml").out
    assert "\x1b[32m  + table t\x1b[0m" in reconciler(folder, "plan", "m.yaml", "--color", "always").out
    assert "\x1b[1;31merror:\x1b[0m" in reconciler(folder, "plan", "none.yaml", "--color", "always").err


@pytest.mark.slow
def test_long_lines_are_broken_to_the_width_of_the_terminal_and_only_there(folder: Path) -> None:
    many = "".join(f", {{name: column_{i}, type: int64, comment: {'word ' * 30}}}" for i in range(3))
    (folder / "m.yaml").write_text(CATALOG + TABLE % many)
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    (folder / "m.yaml").write_text(CATALOG + (TABLE % "").replace("allow: [drop_column]", "description: x"))
    _, seen = at_terminal(folder, "plan", "m.yaml", answer="", columns=60, NO_COLOR="1")
    assert max(map(len, seen.splitlines())) <= 60
    assert max(map(len, reconciler(folder, "plan", "m.yaml").out.splitlines())) > 60


CLOSING = """\
---
apiVersion: reconciler.lance/v1
kind: Policy
metadata: {name: p}
spec: {rules: [{rule: no-destructive-change}]}
"""


@pytest.mark.slow
def test_the_lines_at_the_end_of_a_plan_are_lines(folder: Path) -> None:
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    (folder / "m.yaml").write_text(CATALOG + TABLE % "" + CLOSING)
    for columns in (60, 80, 100):
        _, seen = at_terminal(folder, "plan", "m.yaml", answer="", columns=columns, NO_COLOR="1")
        lines = seen.splitlines()
        assert max(map(len, lines)) <= columns
        last = lines[lines.index("Plan: 0 to create, 1 to update, 0 to delete, 0 blocked.") :]
        assert last[1].startswith("Refused: policy: P006 lake:t: ")
        assert " ".join(part.strip() for part in last).endswith(NOT_APPLIED)
        assert any(line.startswith("An apply of this plan") for line in last)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("show", "r.json"),
        ("show", "j.jsonl"),
        ("apply", "m.yaml", "--yes"),
        ("validate", "wrong.yaml"),
        ("plan", "wrong.yaml"),
        ("status", "m.yaml"),
        ("explain", "foreign_owner"),
        ("explain",),
        ("explain", "--report", "r.json"),
    ],
)
def test_every_text_fits(folder: Path, words: tuple[str, ...]) -> None:
    """Examples, which somebody copies, stay as they are."""
    (folder / "m.yaml").write_text(CATALOG.replace("us", "them") + TABLE % "")
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    long = f"  description: {'x' * 200}\n"
    (folder / "m.yaml").write_text(CATALOG + TABLE % ", {name: a, type: int8}" + long)
    assert reconciler(folder, "apply", "m.yaml", "--yes", "--report", "r.json", "--journal", "j.jsonl").code == 3
    (folder / "wrong.yaml").write_text(CATALOG + (TABLE % "").replace("int64", "int65" * 40) + long)
    _, seen = at_terminal(folder, *words, answer="", columns=60, NO_COLOR="1")
    piped = reconciler(folder, *words)
    lines = [line for line in seen.splitlines() if not line.startswith("    ") or words[0] != "explain"]
    assert max(map(len, lines)) <= 60
    assert words[0] == "status" or max(map(len, f"{piped.out}{piped.err}".splitlines())) > 60
